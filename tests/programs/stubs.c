/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the test programs need from C: the identity of the thread, the clock of
 * the records, allocations made by C primitives, and callbacks into OCaml.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

/* As the records name a thread. */
value test_gettid(value unit)
{
	(void)unit;
	return Val_long(gettid());
}

/* The clock of the records, so that a program can say when it let go of a block. */
value test_now_ns(value unit)
{
	struct timespec t;

	(void)unit;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return Val_long(t.tv_sec * 1000000000L + t.tv_nsec);
}

/* Where a block is: a number that the GC does not update, to see it move. */
value test_address(value v)
{
	return Val_long((long)v >> 1);
}

/* A crash of the target, which OCaml code alone cannot have. */
value test_crash(value unit)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return unit;
}

/* To stdout, and the runtime does not notice. */
value test_write_raw(value text)
{
	if (write(STDOUT_FILENO, String_val(text), caml_string_length(text)) < 0)
		raise(SIGABRT);
	return Val_unit;
}

/* ---- allocations in C: wosize is passed so that each site has its own ------ */

value test_alloc_small(value wosize)
{
	value v = caml_alloc_small(Long_val(wosize), 0);

	for (long i = 0; i < Long_val(wosize); i++)
		Field(v, i) = Val_unit;
	return v;
}

value test_alloc(value wosize)
{
	return caml_alloc(Long_val(wosize), 0);
}

value test_alloc_shr(value wosize)
{
	CAMLparam0();
	CAMLlocal1(v);

	v = caml_alloc_shr(Long_val(wosize), 0);
	for (long i = 0; i < Long_val(wosize); i++)
		Field(v, i) = Val_unit;
	caml_process_pending_actions(); /* where the GC gets its turn */
	CAMLreturn(v);
}

value test_alloc_string(value bytes)
{
	return caml_alloc_string(Long_val(bytes));
}

value test_copy_string(value unit)
{
	(void)unit;
	return caml_copy_string("a string of thirty characters.");
}

value test_copy_double(value unit)
{
	(void)unit;
	return caml_copy_double(0.5);
}

/* ---- C to OCaml ------------------------------------------------------------ */

/* Call f n times; the value of each call is dropped. */
value test_call(value f, value n)
{
	CAMLparam1(f);

	for (long i = 0; i < Long_val(n); i++)
		caml_callback(f, Val_long(i));
	CAMLreturn(Val_unit);
}

/* Call f once and return what it returns: one more C frame in the stack. */
value test_call_through(value f, value arg)
{
	CAMLparam1(f);
	CAMLlocal1(v);

	v = caml_callback(f, arg);
	CAMLreturn(v);
}

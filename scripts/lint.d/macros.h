/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For cppcheck, which does not read the headers of libraries: their macros that are neither
 * calls nor declarations.
 *
 * In:   nothing.
 * Out:  as much of each macro's meaning as cppcheck needs.
 */
#define LIBBPF_OPTS(type, name, ...) struct type name = { __VA_ARGS__ }
#define HASH_ITER(hh, head, el, tmp)                                                               \
	for ((el) = (head), (tmp) = next_of(el); (el); (el) = (tmp), (tmp) = next_of(el))
#define json_object_foreach(object, key, value) while (next_member((object), &(key), &(value)))
#define json_array_foreach(array, index, value)                                                    \
	for ((index) = 0; ((value) = json_array_get((array), (index))); (index)++)

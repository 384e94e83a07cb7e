/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines, of every command.
 *
 * In:   a byte that chooses the command, then arguments, each ended by a NUL. Above the
 *       commands: one text for the readers of values.
 * Out:  user/cli, up to where the options have been read: nothing is done.
 *
 * Built with --wrap: all commands read their options through common_args__parse, and do
 * nothing before; there we leave them by longjmp, as where they exit. What they have
 * allocated till then is freed here, for it would be the process's end that frees it.
 */
#include "tests/fuzz/fuzz.h"

#include <argp.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/output_file.h"
#include "user/common/say.h"
#include "user/daemon/metrics_listen.h"
#include "user/profile/profile.h"

#define ARGS_MAX 24
#define BLOCKS_MAX 4096

static int (*const commands[])(int argc, char **argv) = {
	cmd_list,    cmd_record, cmd_stat,     cmd_daemon, cmd_start,   cmd_stop,
	cmd_discard, cmd_rate,   cmd_status,   cmd_follow, cmd_export,  cmd_diff,
	cmd_leaks,   cmd_report, cmd_timeline, cmd_top,    cmd_version,
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Of the sanitizers' runtime; gcc has it without the header. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
					      void (*on_free)(const volatile void *));

/* ---- what a command has allocated ---- */

static struct {
	bool is_on;
	size_t n;
	const volatile void *at[BLOCKS_MAX];
} blocks;

static void on_malloc(const volatile void *block, size_t size)
{
	(void)size;
	if (!blocks.is_on || !block)
		return;
	CHECK(blocks.n < BLOCKS_MAX);
	blocks.at[blocks.n++] = block;
}

static void on_free(const volatile void *block)
{
	for (size_t i = blocks.is_on ? blocks.n : 0; i-- > 0;) {
		if (blocks.at[i] != block)
			continue;
		blocks.at[i] = blocks.at[--blocks.n];
		return;
	}
}

static void free_blocks(void)
{
	blocks.is_on = false;
	while (blocks.n)
		free((void *)blocks.at[--blocks.n]);
}

/* ---- where commands end ---- */

static jmp_buf end;

void __real_exit(int status) __attribute__((noreturn));
void __wrap_exit(int status) __attribute__((noreturn));
void __real_argp_state_help(const struct argp_state *state, FILE *f, unsigned int flags);
void __wrap_argp_state_help(const struct argp_state *state, FILE *f, unsigned int flags);
error_t __real_common_args__parse(const struct argp *argp, int argc, char **argv,
				  unsigned int flags, void *input);
error_t __wrap_common_args__parse(const struct argp *argp, int argc, char **argv,
				  unsigned int flags, void *input);

void __wrap_exit(int status)
{
	if (!blocks.is_on)
		__real_exit(status);
	CHECK(status == CLI_EXIT_USAGE);
	longjmp(end, 1);
}

void __wrap_argp_state_help(const struct argp_state *state, FILE *f, unsigned int flags)
{
	__real_argp_state_help(state, f,
			       flags & ~(unsigned)(ARGP_HELP_EXIT_ERR | ARGP_HELP_EXIT_OK));
	longjmp(end, 1);
}

error_t __wrap_common_args__parse(const struct argp *argp, int argc, char **argv,
				  unsigned int flags, void *input)
{
	__real_common_args__parse(argp, argc, argv, flags, input);
	longjmp(end, 1);
}

static void run(unsigned int command, struct fuzz_bytes b)
{
	/* A copy, as the kernel makes one: argp sorts it. */
	char *text = malloc(b.left + 1), *argv[ARGS_MAX + 2] = { "heapsonde" };
	int argc = 1;

	CHECK(text);
	memcpy(text, b.at, b.left);
	text[b.left] = '\0';
	for (char *p = text; p < text + b.left && argc <= ARGS_MAX; p += strlen(p) + 1)
		argv[argc++] = p;
	if (!setjmp(end)) {
		blocks.is_on = true;
		commands[command](argc, argv);
		CHECK(!"a command that does not read its options");
	}
	free_blocks();
	free(text);
}

/* ---- values ---- */

static void read_values(const char *text)
{
	struct profile_options options;
	struct tier_choice tier;
	struct hs_error err;
	uint64_t bytes;
	double number;
	char *name;
	int n;

	if (!cli__parse_rate(text, &number)) {
		CHECK(number > 0 && number <= 1);
		tier_choice__make(number, &tier);
	}
	if (!cli__parse_bytes(text, &bytes))
		CHECK(bytes >= 1);
	if (!cli__parse_seconds(text, &number))
		CHECK(number > 0 && number <= 366.0 * 24 * 3600);
	if (!cli__parse_positive(text, 1000, &n))
		CHECK(n >= 1 && n <= 1000);
	if (!output_file__expand(text, 1, &name, &err)) {
		/* Each letter after a % is there once more, or replaced by what is no letter less.
		 */
		CHECK(strlen(name) + 1 >= strlen(text) / 2);
		free(name);
	}
	metrics_listen__check(text);
	profile_options__init(&options);
	if (!profile_options__set_track(&options, text))
		CHECK(!options.attach.max_words ||
		      options.attach.min_words <= options.attach.max_words);
	profile_options__deinit(&options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_hooked;
	struct fuzz_bytes b = { data, size };
	unsigned int choice = (unsigned int)fuzz__number(&b, 1);
	char *text;

	if (!is_hooked) {
		cli__init();
		CHECK(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free));
		is_hooked = true;
	}
	say__set_level(SAY_ERRORS);
	if (choice < N_COMMANDS) {
		run(choice, b);
	} else {
		text = strndup((const char *)b.at, b.left);
		CHECK(text);
		read_values(text);
		free(text);
	}
	return 0;
}

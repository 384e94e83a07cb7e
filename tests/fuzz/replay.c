/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main of fuzzers that only hand over files: build/fuzz/replay/NAME FILE-OR-FOLDER...
 *
 * In:   inputs, or folders of them.
 * Out:  how many there were, on stdout; exit status 1 if one cannot be read or there were
 *       none. One that is a finding ends the program as the sanitizer or CHECK does, and the
 *       last line on stderr before that names it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

/* Has it a main of its own that wants to be called first? */
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static bool replay(const char *path)
{
	struct stat st;
	uint8_t *bytes;
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f || fstat(fileno(f), &st) || !S_ISREG(st.st_mode)) {
		if (f)
			fclose(f);
		fprintf(stderr, "cannot read %s\n", path);
		return false;
	}
	/* Exactly as large: what is read beyond it shows. */
	bytes = malloc((size_t)st.st_size + !st.st_size);
	n = bytes ? fread(bytes, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	fprintf(stderr, "replaying %s\n", path);
	if (bytes)
		LLVMFuzzerTestOneInput(bytes, n);
	free(bytes);
	return bytes && n == (size_t)st.st_size;
}

/* Returns how many were replayed, -1 if one could not be. */
static int replay_folder(const char *path, DIR *dir)
{
	struct dirent *e;
	int n = 0;

	while ((e = readdir(dir))) {
		char name[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		if (!replay(name))
			return -1;
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	int sum = 0;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		int n = dir ? replay_folder(argv[i], dir) : replay(argv[i]) ? 1 : -1;

		if (dir)
			closedir(dir);
		if (n < 0)
			return 1;
		sum += n;
	}
	/* On a descriptor of its own: stdout is perhaps the fuzzer's to write to. */
	printf("%d inputs\n", sum);
	return sum ? 0 : 1;
}

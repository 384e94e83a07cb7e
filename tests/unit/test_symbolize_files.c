/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening the file behind a mapping, and no other: user/symbolize/map_file.h, on the
 * mappings of this process. As root in a mount namespace of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "user/attach/proc.h"
#include "user/symbolize/map_file.h"

#define PAGE 4096u

static char dir[] = "/tmp/heapsonde-files-XXXXXX";
static char a_path[PATH_MAX], b_path[PATH_MAX];
static struct proc_files files;

static void path_in(char *out, const char *folder, const char *name)
{
	assert_in_range(snprintf(out, PATH_MAX, "%s%s/%s", dir, folder, name), 1, PATH_MAX - 1);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Map a file, at `at` unless that is NULL. */
static void *map(const char *path, void *at)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p;

	assert_true(fd >= 0);
	p = mmap(at, PAGE, PROT_READ, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);
	close(fd);
	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* The line of our maps that begins at p; good until the next call. */
static struct map_line line_at(const void *p)
{
	static struct map_lines list;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct map_line found = { 0 };

	map_lines__free(&list);
	assert_int_equal(map_lines__read(&list, fd), 0);
	close(fd);
	for (size_t i = 0; i < list.n; i++)
		if (list.lines[i].start == (uint64_t)(uintptr_t)p)
			found = list.lines[i];
	assert_non_null(found.path);
	return found;
}

static void expect_file(const struct map_line *l, const char *text)
{
	char buf[64] = "";
	int fd = map_file__open(&files, "", l);

	if (fd < 0)
		fail_msg("not opened: %s", strerror(-fd));
	assert_true(read(fd, buf, sizeof(buf) - 1) >= 0);
	close(fd);
	assert_string_equal(buf, text);
}

static void expect_none(const struct map_line *l)
{
	int fd = map_file__open(&files, "", l);

	if (fd >= 0)
		fail_msg("opened a file for %s", l->path);
}

static int setup(void **state)
{
	(void)state;
	write_file(a_path, "A");
	write_file(b_path, "B");
	return 0;
}

/* By its mapping, wherever its path leads by now. */
static void opens_by_range(void **state)
{
	void *p = map(a_path, NULL);
	struct map_line l = line_at(p);

	(void)state;
	expect_file(&l, "A");
	assert_int_equal(rename(b_path, a_path), 0);
	expect_file(&l, "A");
	assert_int_equal(unlink(a_path), 0);
	expect_file(&l, "A");
	/* The path in the line matters as little as its absence. */
	l.path = "";
	expect_file(&l, "A");
	munmap(p, PAGE);
}

/* As after an exec: another file at the addresses of the line. */
static void refuses_another_at_the_range(void **state)
{
	void *p = map(a_path, NULL);
	struct map_line l = line_at(p);

	(void)state;
	map(b_path, p);
	expect_file(&l, "A"); /* it is still at its path */
	assert_int_equal(unlink(a_path), 0);
	expect_none(&l);
	munmap(p, PAGE);
	expect_none(&l);
}

/* What its owner may put there: any file, or a link to any. */
static void refuses_another_at_the_path(void **state)
{
	void *p = map(a_path, NULL);
	struct map_line l = line_at(p), other;
	char moved[PATH_MAX];

	(void)state;
	munmap(p, PAGE);
	expect_file(&l, "A");
	other = l;
	other.ino++;
	expect_none(&other);
	other = l;
	other.dev++; /* the same number on another file system */
	expect_none(&other);
	path_in(moved, "", "moved");
	assert_int_equal(rename(a_path, moved), 0);
	expect_none(&l);
	assert_int_equal(symlink(b_path, a_path), 0);
	expect_none(&l);
	assert_int_equal(unlink(a_path), 0);
	assert_int_equal(link(b_path, a_path), 0);
	expect_none(&l);
	assert_int_equal(unlink(a_path), 0);
	assert_int_equal(rename(moved, a_path), 0);
	expect_file(&l, "A");
}

static void refuses_devices(void **state)
{
	void *p = map("/dev/zero", NULL);
	struct map_line l = line_at(p);

	(void)state;
	assert_string_equal(l.path, "/dev/zero");
	expect_none(&l);
	munmap(p, PAGE);
}

/* The executable, where nothing else leads to it. */
static void compares_the_executable(void **state)
{
	struct proc_files f = files;
	struct map_line l = { .start = PAGE, .end = 2 * PAGE, .path = "exe" };
	struct stat st, opened;
	int fd;

	(void)state;
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	l.ino = st.st_ino;
	l.dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
	f.exe_dev = st.st_dev;
	f.exe_ino = st.st_ino;
	fd = map_file__open(&f, "exe", &l);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &opened), 0);
	assert_int_equal(opened.st_ino, st.st_ino);
	close(fd);
	assert_int_equal(map_file__open(&f, "another", &l), -ENOENT);
	f.exe_ino++;
	assert_int_equal(map_file__open(&f, "exe", &l), -ENOENT);
	f.exe_ino--;
	f.exe_dev++;
	assert_int_equal(map_file__open(&f, "exe", &l), -ENOENT);
	f.exe_dev--;
	l.ino++;
	assert_int_equal(map_file__open(&f, "exe", &l), -ENOENT);
}

/* Containers: stat and maps number files differently where layers are file systems. */
static void knows_files_of_overlays(void **state)
{
	static const char *const folders[] = { "/low", "/up", "/all" };
	char path[PATH_MAX], options[PATH_MAX * 3];
	struct map_line l;
	struct stat st;
	void *p;

	(void)state;
	for (int i = 0; i < 3; i++) {
		path_in(path, folders[i], "");
		assert_int_equal(mkdir(path, 0755), 0);
		if (i < 2)
			assert_int_equal(mount("none", path, "tmpfs", 0, NULL), 0);
	}
	path_in(path, "/low", "a");
	write_file(path, "A");
	path_in(path, "/low", "b");
	write_file(path, "B");
	path_in(path, "/up", "up");
	assert_int_equal(mkdir(path, 0755), 0);
	path_in(path, "/up", "work");
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(options, sizeof(options),
		 "lowerdir=%s/low,upperdir=%s/up/up,workdir=%s/up/work,xino=off", dir, dir, dir);
	path_in(path, "/all", "");
	assert_int_equal(mount("none", path, "overlay", 0, options), 0);

	path_in(path, "/all", "a");
	p = map(path, NULL);
	l = line_at(p);
	assert_int_equal(stat(path, &st), 0);
	assert_true(l.ino != st.st_ino ||
		    l.dev != ((uint64_t)major(st.st_dev) << 32 | minor(st.st_dev)));
	expect_file(&l, "A");
	path_in(path, "/all", "b");
	map(path, p);
	expect_none(&l);
	munmap(p, PAGE);
	for (int i = 2; i >= 0; i--) {
		path_in(path, folders[i], "");
		assert_int_equal(umount2(path, MNT_DETACH), 0);
		assert_int_equal(rmdir(path), 0);
	}
}

/* Without a file: no line. Names with spaces and newlines; any position to start at. */
static void reads_lines(void **state)
{
	char strange[PATH_MAX], want[PATH_MAX];
	void *anonymous = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), empty;
	struct map_lines list;
	struct map_line l;
	char c;
	void *p;

	(void)state;
	path_in(strange, "", "a b\n1000-2000 r-xp 0 08:00 7 shadow");
	path_in(want, "", "a b\\0121000-2000 r-xp 0 08:00 7 shadow");
	write_file(strange, "C");
	p = map(strange, NULL);
	l = line_at(p);
	assert_string_equal(l.path, want);
	assert_false(l.is_exec);
	assert_int_equal(l.end - l.start, PAGE);
	assert_int_equal(read(fd, &c, 1), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(map_lines__read(&list, fd), 0);
		assert_true(list.n > 3);
		for (size_t k = 0; k < list.n; k++) {
			assert_true(list.lines[k].ino != 0);
			assert_true(list.lines[k].start != (uint64_t)(uintptr_t)anonymous);
			assert_true(k == 0 || list.lines[k].start >= list.lines[k - 1].end);
		}
		map_lines__free(&list);
	}
	close(fd);
	empty = memfd_create("empty", MFD_CLOEXEC);
	assert_int_equal(map_lines__read(&list, empty), -ESRCH);
	close(empty);
	assert_int_equal(map_lines__read(&list, -1), -EBADF);
	assert_int_equal(list.n, 0);
	map_lines__free(&list);
	munmap(p, PAGE);
	munmap(anonymous, PAGE);
	assert_int_equal(unlink(strange), 0);
}

static int group_setup(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		print_message("no mount namespace of our own: %s\n", strerror(errno));
	if (!mkdtemp(dir))
		return -1;
	path_in(a_path, "", "a");
	path_in(b_path, "", "b");
	files = (struct proc_files){ .proc_fd = proc__open(getpid()), .maps_fd = -1, .mem_fd = -1 };
	return files.proc_fd < 0;
}

static int group_teardown(void **state)
{
	(void)state;
	close(files.proc_fd);
	unlink(a_path);
	unlink(b_path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(opens_by_range, setup),
		cmocka_unit_test_setup(refuses_another_at_the_range, setup),
		cmocka_unit_test_setup(refuses_another_at_the_path, setup),
		cmocka_unit_test(refuses_devices),
		cmocka_unit_test(compares_the_executable),
		cmocka_unit_test(knows_files_of_overlays),
		cmocka_unit_test(reads_lines),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}

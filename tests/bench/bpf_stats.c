/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_stats PID: how long the BPF programs of a process have run, and how often.
 *
 * In:   PID, a heapsonde that has attached; commands on stdin, one a line: "read", or "stop".
 * Out:  "ready OWN-PID"; for each read a line "NAME=NS/RUNS …", sums over programs of one name, ns.
 *       Exit 1 if that cannot be had.
 *
 * The kernel counts while this runs, and no longer, however it ends; each run takes it some
 * 50 ns more, which are not in the figures. Program ids come from /proc/PID/fdinfo.
 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAMS_MAX 512

static int programs[PROGRAMS_MAX]; /* descriptors */
static int n_programs;

/* The number behind "prog_id:" in an fdinfo; 0: it is not one of a program. */
static unsigned int prog_id_of(const char *path)
{
	unsigned int id = 0;
	bool is_link = false;
	char line[256];
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		/* A link names its program too. */
		is_link = is_link || strncmp(line, "link_id:", 8) == 0;
		sscanf(line, "prog_id: %u", &id);
	}
	fclose(f);
	return is_link ? 0 : id;
}

/* Open all programs of a process. 0 or a negative errno. */
static int programs_open(const char *pid)
{
	char path[600];
	struct dirent *e;
	unsigned int id;
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, e->d_name);
		id = prog_id_of(path);
		if (!id)
			continue;
		fd = bpf_prog_get_fd_by_id(id);
		if (fd >= 0 && n_programs < PROGRAMS_MAX)
			programs[n_programs++] = fd;
	}
	closedir(dir);
	return n_programs ? 0 : -ENOENT;
}

/* One line with all programs; those that have never run are left out. 0 or a negative errno. */
static int programs_print(void)
{
	struct bpf_prog_info info;
	__u32 size;
	int err;

	for (int i = 0; i < n_programs; i++) {
		memset(&info, 0, sizeof(info));
		size = sizeof(info);
		err = bpf_obj_get_info_by_fd(programs[i], &info, &size);
		if (err)
			return err;
		if (info.run_cnt)
			printf("%s=%llu/%llu ", info.name, (unsigned long long)info.run_time_ns,
			       (unsigned long long)info.run_cnt);
	}
	printf("end\n");
	return fflush(stdout) ? -errno : 0;
}

int main(int argc, char **argv)
{
	char line[64];
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: bpf_stats PID\n");
		return 2;
	}
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0) {
		fprintf(stderr, "bpf_stats: the kernel does not count: %s; run as root\n",
			strerror(errno));
		return 1;
	}
	err = programs_open(argv[1]);
	if (err) {
		fprintf(stderr, "bpf_stats: no BPF programs of process %s: %s\n", argv[1],
			strerror(-err));
		return 1;
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "stop", 4) != 0) {
		err = programs_print();
		if (err) {
			fprintf(stderr, "bpf_stats: %s\n", strerror(-err));
			return 1;
		}
	}
	return 0;
}

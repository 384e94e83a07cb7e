/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the daemon says on stderr: one line an event.
 *
 * In:   a priority of sd-daemon.h and a text.
 * Out:  "heapsonde: TEXT", or "<4>TEXT" if stderr is the journal, which reads that.
 */
#ifndef HEAPSONDE_LOG_H
#define HEAPSONDE_LOG_H

/* priority: SD_ERR, SD_WARNING, … without its text: 3, 4, … */
enum log_priority {
	LOG_PRIORITY_ERR = 3,
	LOG_PRIORITY_WARNING = 4,
	LOG_PRIORITY_INFO = 6,
	LOG_PRIORITY_DEBUG = 7,
};

/*
 * Print a line, printf-style, without newline; control characters become '?'. What has
 * only priority INFO is not printed with -q, DEBUG with -v only (user/common/say.h).
 */
void log__line(enum log_priority priority, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* HEAPSONDE_LOG_H */

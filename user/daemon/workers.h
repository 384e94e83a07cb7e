/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The workers as the supervisor sees them: processes, each with a channel.
 *
 * In:   PIDs of targets; requests to be handed over.
 * Out:  worker processes (worker.h); their events, and their ends.
 */
#ifndef HEAPSONDE_WORKERS_H
#define HEAPSONDE_WORKERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "user/attach/kernel.h"
#include "user/common/error.h"
#include "user/wire/wire.h"

struct workers;

struct worker {
	struct worker *next;
	struct workers *all;
	pid_t target;   /* the process that it is for */
	pid_t pid;      /* its own */
	uid_t uid;      /* for whom it was begun */
	bool is_closed; /* nothing new for it */
	bool has_ended; /* its channel has; then channel is -1 */
	int channel;
	sd_event_source *io, *exit;
	json_t *info; /* "target" of its last status; the owner of workers sets it */
};

/* Called with workers__new's ctx. */
struct workers_ops {
	/* An event. object is borrowed; what is not taken out of m is closed. */
	void (*event)(void *ctx, struct worker *w, const json_t *object, struct wire_message *m);
	/* There will be no more events. *w lives on until `gone`. */
	void (*end)(void *ctx, struct worker *w);
	/* The process has ended, and *w is freed after that. */
	void (*gone)(void *ctx, struct worker *w);
};

/*
 * event, kernel and ops are borrowed and must outlive *out. SIGCHLD must be blocked.
 * Errors: -ENOMEM, those of opening /dev/null.
 */
int workers__new(struct workers **out, sd_event *event, const struct kernel_features *kernel,
		 const struct workers_ops *ops, void *ctx);

/* Kills what still lives. NULL is fine. */
void workers__free(struct workers *ws);

/* The one that takes new profiles of this process, or NULL. */
struct worker *workers__find(const struct workers *ws, pid_t target);

/* Begin another. Errors, with a text: those of fork(2) and socketpair(2), -ENOMEM. */
int workers__begin(struct workers *ws, pid_t target, uid_t uid, struct worker **out,
		   struct hs_error *err);

/* How many there are, and how many were begun for this user. */
size_t workers__count(const struct workers *ws);
size_t workers__count_of(const struct workers *ws, uid_t uid);
struct worker *workers__first(const struct workers *ws);

/* Take in the events that are there now; bounded. May call all ops but `gone`. */
void workers__drain(struct workers *ws);

/*
 * Hand over a request with a connection (borrowed). -EAGAIN: the worker does not
 * read; -EPIPE: it has ended, and `end` has been called; others: wire__send_packet.
 */
int worker__send(struct worker *w, const json_t *request, int connection);

/* Let it end when it has done what was asked of it. Harmless when done before. */
void worker__close(struct worker *w);

/* Let all end; kill all. */
void workers__close(struct workers *ws);
void workers__kill(struct workers *ws);

#endif /* HEAPSONDE_WORKERS_H */

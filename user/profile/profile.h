/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile: what `record` makes one of, and a daemon any number of.
 *
 * In:   a target, what is wished for, a sink.
 * Out:  records in the sink, from the header to the summary.
 *
 * Its states are those of Gc.Memprof: it samples until it is stopped; from then on
 * only promotions and deaths are told, until it is discarded, which is here
 * profile__finish. When its domains have all gone it stops by itself.
 */
#ifndef HEAPSONDE_PROFILE_H
#define HEAPSONDE_PROFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "user/attach/attach.h"
#include "user/sinks/sink.h"
#include "user/symbolize/symbolize.h"
#include "user/track/domains.h"
#include "user/track/pipeline.h"

/* How often profile__tick wants to be called, in ns, with how many of them counters
 * records come, and how long records may wait in the ring buffer before profile__drain,
 * in ms. */
#define PROFILE_TICK_NS 200000000ull
#define PROFILE_COUNTERS_TICKS 5
#define PROFILE_DRAIN_MS 50

/* The default rate: about one sample per 8 MiB. */
#define PROFILE_RATE_DEFAULT 0x1p-20
#define PROFILE_DEPTH_DEFAULT 64

/* What is wished for. */
struct profile_options {
	struct attach_options attach; /* attach.domains points to `domains` */
	uint32_t *domains;            /* unique ids; owned; NULL: all */
	char track[128];              /* --track as given, or "all" */
};

/* The defaults: all domains, 2^-20, 64 frames, everything tracked, number 1. */
void profile_options__init(struct profile_options *o);
void profile_options__deinit(struct profile_options *o);

/* Take in a list of kinds, comma-separated, as --track has it. 0 or -EINVAL. */
int profile_options__set_track(struct profile_options *o, const char *text);

/* One more domain, by unique id. 0, -ENOMEM. */
int profile_options__add_domain(struct profile_options *o, uint32_t unique_id);

enum profile_state {
	PROFILE_SAMPLING,
	PROFILE_STOPPED,
	PROFILE_FINISHED, /* the summary is written, nothing is attached */
};

/* Why it stopped or finished; the texts of docs/records.md. */
enum end_reason {
	END_NONE = 0,
	END_INTERRUPTED,  /* by the user */
	END_DURATION,     /* asked for */
	END_DOMAINS_GONE, /* all that it covered have terminated */
	END_TARGET_EXITED,
	END_TARGET_EXECED, /* it runs another program now */
	END_ERROR,
};

const char *end_reason__text(enum end_reason reason);

struct profile {
	const struct profile_options *options; /* borrowed */
	const struct kernel_features *kernel;  /* borrowed */
	struct target *target;                 /* borrowed */
	struct sink *sink;                     /* borrowed */
	struct attachment *attachment;
	struct collector *collector;
	struct domain_book *book;
	struct pipeline pipeline;
	enum profile_state state;
	enum end_reason reason;
	double rate;            /* asked for last; domains go over one by one */
	unsigned int n_changes; /* of the rate */
	int n_rates;            /* in force; 1 when all have gone over */
	uint64_t counted_ns;    /* when the counters were read last, and before that */
	uint64_t counted_before_ns;
	unsigned int n_ticks;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t until_ns; /* when sampling stopped, which is before all is detached; 0: not yet */
	uint64_t missed;   /* probe hits that the kernel did not run; when finished */
	json_t *summary;   /* when finished */
};

/*
 * Attach and write header and profile. kernel, t, symbolizer and sink are borrowed
 * and must outlive *out. want_sites: keep pipeline.sites.
 * On error nothing is attached. Errors, with a text: those of attaching, -ENOENT a
 * listed domain is not there, -EIO and others from the sink (text "cannot write
 * the output…").
 */
int profile__begin(struct profile **out, const struct profile_options *options, struct target *t,
		   const struct kernel_features *kernel, struct symbolizer *symbolizer,
		   struct sink *sink, bool want_sites, struct hs_error *err);

/*
 * What a reader needs to know who comes in the middle: header, profile, the rates of
 * domains that have not yet gone over. Errors: -ENOMEM, the sink's.
 */
int profile__introduce(struct profile *p, struct sink *sink);

/* Hand over what the kernel has. As collector__drain. */
int profile__drain(struct profile *p);

/*
 * Read the counters, write what was lost and now and then what has changed, detach what is not used
 * any more, stop if all domains have gone. 0 or a negative errno.
 */
int profile__tick(struct profile *p);

/* End sampling. -EALREADY if it does not sample. Others: the sink's. */
int profile__stop(struct profile *p, enum end_reason reason);

/*
 * Sample at another rate. -EALREADY if it does not sample; others as
 * attachment__set_rate, or the sink's.
 */
int profile__set_rate(struct profile *p, const struct tier_choice *tier, struct hs_error *err);

/*
 * Detach everything, without a word to the sink: for one who cannot write now. Nothing is sampled
 * or counted from here on, and profile__finish is still to be called.
 */
void profile__detach(struct profile *p, enum end_reason reason);

/*
 * Detach everything, hand over what is left, write the summary. The reason stays if
 * it stopped before. Errors: the sink's; nothing is attached even so.
 */
int profile__finish(struct profile *p, enum end_reason reason);

/* NULL is fine. Without profile__finish there is no summary. */
void profile__free(struct profile *p);

/* The records of profile_json.c; new references, NULL if memory is short. */
json_t *profile_json__header(const struct profile *p);
json_t *profile_json__profile(const struct profile *p);
json_t *profile_json__lost(const struct profile *p); /* by cause, as in the summary */
json_t *profile_json__summary(const struct profile *p);

#endif /* HEAPSONDE_PROFILE_H */

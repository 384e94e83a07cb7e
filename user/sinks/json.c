/* SPDX-License-Identifier: BSD-2-Clause */
/* Records as JSON; see json.h. */
#include "user/sinks/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at s, or 0. Overlong forms, surrogates and
 * numbers beyond U+10FFFF are not valid. */
static size_t utf8_length(const unsigned char *s)
{
	static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if ((s[0] & 0xe0) == 0xc0)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if ((s[0] & 0xf8) == 0xf0)
		n = 4;
	else
		return 0;
	c = s[0] & (0xff >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < lowest[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return n;
}

json_t *json__text(const char *text)
{
	json_t *string = NULL;
	char *clean, *to;

	if (!text)
		return json_null();
	string = json_string(text);
	if (string)
		return string;
	clean = malloc(3 * strlen(text) + 1);
	if (!clean)
		return NULL;
	to = clean;
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t n = utf8_length(s);

		if (n) {
			memcpy(to, s, n);
			to += n;
			s += n;
		} else {
			memcpy(to, "\xef\xbf\xbd", 3);
			to += 3;
			s++;
		}
	}
	*to = '\0';
	string = json_string(clean);
	free(clean);
	return string;
}

static json_t *location(const struct hs_location *l)
{
	json_t *o = json_pack("{s:s?, s:s?}", "function", l->function, "file", l->file);

	if (!o)
		return NULL;
	if (l->line) {
		json_object_set_new(o, "line", json_integer(l->line));
		if (l->end_line != l->line)
			json_object_set_new(o, "end_line", json_integer(l->end_line));
		json_object_set_new(o, "start", json_integer(l->start_char));
		json_object_set_new(o, "end", json_integer(l->end_char));
	}
	if (l->is_inlined)
		json_object_set_new(o, "inlined", json_true());
	return o;
}

json_t *json__stack(const struct stack *stack)
{
	json_t *frames = json_array();

	for (uint32_t i = 0; frames && i < stack->depth; i++) {
		const struct stack_frame *f = &stack->frames[i];

		for (size_t k = 0; k < f->n_locations; k++) {
			if (json_array_append_new(frames, location(&f->locations[k]))) {
				json_decref(frames);
				return NULL;
			}
		}
	}
	if (!frames)
		return NULL;
	return json_pack("{s:s, s:I, s:o}", "type", "stack", "id", (json_int_t)stack->id, "frames",
			 frames);
}

const char *json__type_name(const struct hs_event *event)
{
	switch (event->type) {
	case HS_REC_ALLOC:
		return event->alloc->heap == HS_HEAP_MINOR ? "alloc_minor" : "alloc_major";
	case HS_REC_STACK:
		return "stack";
	case HS_REC_PROMOTE:
		return "promote";
	case HS_REC_DEALLOC:
		return event->block->heap == HS_HEAP_MINOR ? "dealloc_minor" : "dealloc_major";
	case HS_REC_UNKNOWN:
		return "unknown";
	case HS_REC_DOMAIN_SPAWN:
		return "domain_spawn";
	case HS_REC_DOMAIN_TERMINATE:
		return "domain_terminate";
	case HS_REC_EXIT:
		return "exit";
	case HS_REC_RATE:
		return "rate";
	case HS_REC_MAJOR_CYCLE:
		return "major_cycle";
	case HS_REC_TYPE_END:
		break;
	}
	return "?";
}

int json__add_counts(json_t *object, const char *prefix, const struct hs_counts *c)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "minor_words", c->minor_words },
		{ "promoted_words", c->promoted_words },
		{ "major_words", c->major_words },
		{ "minor_collections", c->minor_collections },
		{ "major_collections", c->major_collections },
	};
	char key[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(key, sizeof(key), "%s%s", prefix, rows[i].name);
		if (json_object_set_new(object, key, json_integer((json_int_t)rows[i].value)))
			return -1;
	}
	return 0;
}

static json_t *alloc(const struct hs_rec_alloc *r, const struct stack *stack)
{
	json_t *id;

	if (!r->stack_hash)
		id = json_integer(0);
	else
		id = stack ? json_integer(stack->id) : json_null();
	return json_pack("{s:I, s:I, s:s, s:o, s:b}", "n_samples", (json_int_t)r->n_samples, "size",
			 (json_int_t)r->size_words, "source", decode__source_name(r->source),
			 "stack", id, "tracked", r->is_tracked);
}

/* Counters, in an object that this takes over. */
static json_t *with_counts(json_t *o, const struct hs_counts *c)
{
	if (o && json__add_counts(o, "", c)) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static json_t *domain(const struct hs_event *event)
{
	const struct hs_rec_domain *r = event->domain;

	if (event->type == HS_REC_DOMAIN_SPAWN)
		return json_pack("{s:I}", "parent", (json_int_t)r->parent);
	return with_counts(json_object(), &r->counts);
}

static json_t *rate(const struct hs_rec_rate *r)
{
	return with_counts(json_pack("{s:f}", "rate", decode__rate(r)), &r->counts);
}

/* Is it told of a domain as such, whatever profile looks at it? */
static bool is_of_no_profile(const struct hs_event *event)
{
	return event->type == HS_REC_DOMAIN_SPAWN || event->type == HS_REC_DOMAIN_TERMINATE ||
	       event->type == HS_REC_EXIT || event->type == HS_REC_MAJOR_CYCLE;
}

json_t *json__event(const struct hs_event *event, const struct stack *stack)
{
	const struct hs_record *h = event->h;
	json_t *o, *rest;

	o = json_pack("{s:s}", "type", json__type_name(event));
	if (!o)
		return NULL;
	switch (event->type) {
	case HS_REC_ALLOC:
		json_object_set_new(o, "id", json_integer((json_int_t)event->alloc->id));
		rest = alloc(event->alloc, stack);
		break;
	case HS_REC_PROMOTE:
	case HS_REC_DEALLOC:
	case HS_REC_UNKNOWN:
		json_object_set_new(o, "id", json_integer((json_int_t)event->block->id));
		rest = json_object();
		break;
	case HS_REC_RATE:
		rest = rate(event->rate);
		break;
	default:
		rest = domain(event);
		break;
	}
	if (!is_of_no_profile(event))
		json_object_set_new(o, "profile", json_integer(h->profile));
	json_object_set_new(o, "domain", json_integer(h->domain));
	json_object_set_new(o, "thread", json_integer(h->tid));
	json_object_set_new(o, "time", json_integer((json_int_t)h->time_ns));
	if (!rest || json_object_update(o, rest)) {
		json_decref(rest);
		json_decref(o);
		return NULL;
	}
	json_decref(rest);
	return o;
}

json_t *json__thread(uint32_t tid, uint32_t domain, uint64_t time_ns)
{
	return json_pack("{s:s, s:I, s:I, s:I}", "type", "thread", "thread", (json_int_t)tid,
			 "domain", (json_int_t)domain, "time", (json_int_t)time_ns);
}

json_t *json__loss(uint32_t domain, const char *cause, uint64_t n, uint64_t since_ns,
		   uint64_t time_ns)
{
	return json_pack("{s:s, s:o, s:s, s:I, s:I, s:I}", "type", "loss", "domain",
			 domain == UINT32_MAX ? json_null() : json_integer(domain), "cause", cause,
			 "count", (json_int_t)n, "since", (json_int_t)since_ns, "time",
			 (json_int_t)time_ns);
}

bool json__loss_is_part(const char *cause)
{
	static const char whole[] = "output_full_";

	return !strncmp(cause, whole, sizeof(whole) - 1);
}

json_t *json__counters(uint32_t domain, const struct hs_counts *c, uint64_t samples_kept,
		       uint64_t tracked, uint64_t time_ns)
{
	json_t *o = with_counts(json_pack("{s:s, s:I, s:I}", "type", "counters", "domain",
					  (json_int_t)domain, "time", (json_int_t)time_ns),
				c);

	if (o && (json_object_set_new(o, "samples_kept", json_integer((json_int_t)samples_kept)) ||
		  json_object_set_new(o, "tracked", json_integer((json_int_t)tracked)))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

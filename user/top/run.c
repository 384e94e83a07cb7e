/* SPDX-License-Identifier: BSD-2-Clause */
/* See run.h. */
#include "user/top/run.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "user/common/clock.h"
#include "user/common/say.h"
#include "user/top/plain.h"
#include "user/top/rate.h"
#include "user/top/screen.h"
#include "user/top/signals.h"
#include "user/top/source.h"
#include "user/top/terminal.h"

#define NS_PER_S 1e9
/* A refresh takes no more than one in so many parts of the time. */
#define REST 4

struct run {
	const struct top_options *options;
	struct facts facts;
	struct heap *heap;
	struct model model;
	struct view view;
	struct lines lines;
	struct canvas canvas;
	struct source *source;
	struct signals signals;
	uint64_t begin_ns, next_ns; /* next_ns: when to refresh */
	int n_refreshes;
	bool is_utf8, is_full_screen, is_rate_auto;
	bool is_stale; /* the rows are not those that the view wants */
	bool is_dirty; /* the picture is not shown yet */
	bool is_whole; /* it has to be shown as if the terminal had nothing of it */
	bool has_shown_end;
	bool wants_end;
	struct hs_error remark;
};

static struct screen screen_of(const struct run *r)
{
	return (struct screen){
		.facts = &r->facts,
		.model = &r->model,
		.view = &r->view,
		.lines = &r->lines,
		.is_rate_auto = r->is_rate_auto,
		.seconds = (double)(clock__now_ns() - r->begin_ns) / NS_PER_S,
	};
}

/* ---- what is to be seen ---- */

static int out_of_memory(struct hs_error *err)
{
	return hs_error__set(err, -ENOMEM, "out of memory");
}

static int make_lines(struct run *r)
{
	lines__clear(&r->lines);
	if (r->view.is_help)
		return lines__help(&r->lines);
	return r->view.is_open ? lines__row(&r->lines, &r->model, &r->view, r->is_utf8) : 0;
}

/* Make rows and lines as the view wants them now. */
static int make(struct run *r, struct hs_error *err)
{
	struct screen s = screen_of(r);
	struct view_bounds bounds;

	if (model__make(&r->model, &r->view) || make_lines(r))
		return out_of_memory(err);
	bounds = screen__bounds(&s, r->canvas.rows);
	view__settle(&r->view, &bounds);
	r->is_stale = false;
	r->is_dirty = true;
	return 0;
}

static int show(struct run *r, struct hs_error *err)
{
	struct screen s = screen_of(r);

	if (!r->is_full_screen) {
		r->is_dirty = false;
		return plain__print(&s, r->options->n_rows, r->is_utf8, err);
	}
	/* While the last picture is on its way the next one waits, and is the newest then. */
	if (!terminal__is_ready())
		return 0;
	screen__draw(&s, &r->canvas);
	terminal__show(&r->canvas, r->is_whole);
	r->is_dirty = r->is_whole = false;
	return 0;
}

/* ---- the rate ---- */

static void change_rate(struct run *r, double rate)
{
	if (!r->source->has_rate)
		r->view.remark = "the rate cannot be changed now";
	else if (rate == r->facts.rate)
		r->view.remark = rate < 1 ? "there is no lower rate" : "there is no higher rate";
	else if (r->source->ops->set_rate(r->source, rate, &r->remark))
		r->view.remark = r->remark.text;
}

/* A rate that was asked for is not to be had: say so, and do not ask each second. */
static void heed_refusal(struct run *r)
{
	if (!r->source->refusal.text[0])
		return;
	r->remark = r->source->refusal;
	r->source->refusal.text[0] = '\0';
	r->view.remark = r->remark.text;
	r->is_rate_auto = false;
	r->is_dirty = true;
}

static void follow_program(struct run *r)
{
	struct facts_counts added;
	double seconds = window__counted(&r->model.window, &added), better;
	struct hs_error ignored;

	if (!r->is_rate_auto || !r->source->has_rate || seconds <= 0)
		return;
	better = rate__better(r->facts.rate,
			      (double)(added.minor_words + added.direct_words) / seconds);
	/* If it cannot be, the rate is as good as any. */
	if (better > 0 && r->source->ops->set_rate(r->source, better, &ignored))
		r->is_rate_auto = false;
}

/* ---- refreshing ---- */

static int refresh(struct run *r, uint64_t now_ns, struct hs_error *err)
{
	uint64_t delay_ns = (uint64_t)(r->options->delay_s * NS_PER_S), took_ns;
	int ret;

	r->next_ns += delay_ns;
	/* Those that have been missed are not made up for. */
	if (r->next_ns <= now_ns)
		r->next_ns = now_ns + delay_ns;
	if (model__step(&r->model, &r->facts, now_ns))
		return out_of_memory(err);
	follow_program(r);
	r->n_refreshes++;
	r->is_dirty = true;
	if (r->view.is_paused && !r->source->has_ended)
		return 0;
	ret = make(r, err);
	/* Where there are very many rows: most of the time is for the records. */
	took_ns = clock__now_ns() - now_ns;
	if (r->next_ns < now_ns + REST * took_ns)
		r->next_ns = now_ns + REST * took_ns;
	return ret;
}

/* What the clock says, and the program's end. */
static int look_at_clock(struct run *r, struct hs_error *err)
{
	const struct top_options *o = r->options;
	uint64_t now_ns = clock__now_ns();
	int ret = 0;

	if (r->source->has_ended ? !r->has_shown_end : now_ns >= r->next_ns) {
		r->has_shown_end = r->source->has_ended;
		/* That it is the end stands where a remark does. */
		if (r->has_shown_end)
			r->view.remark = NULL;
		ret = refresh(r, now_ns, err);
	}
	if ((o->n_refreshes && r->n_refreshes >= o->n_refreshes) ||
	    (o->duration_s > 0 && (double)(now_ns - r->begin_ns) >= o->duration_s * NS_PER_S) ||
	    (r->has_shown_end && !r->is_full_screen))
		r->wants_end = true;
	return ret;
}

/* ---- keys and signals ---- */

static void grant_wishes(struct run *r)
{
	struct view *v = &r->view;

	r->wants_end |= v->wants_quit;
	if (v->wants_restart)
		window__restart(&r->model.window);
	if (v->rate_steps) {
		double rate = r->facts.rate;

		r->is_rate_auto = false;
		change_rate(r, rate__stepped(rate, v->rate_steps));
	}
	v->wants_restart = false;
	v->rate_steps = 0;
}

static void read_keys(struct run *r)
{
	int key;

	while ((key = terminal__key()) >= 0 && !r->wants_end) {
		struct screen s = screen_of(r);
		struct view_bounds bounds = screen__bounds(&s, r->canvas.rows);

		view__key(&r->view, &bounds, key);
		grant_wishes(r);
		/* The next key may be about the rows that this one has brought. */
		if (r->view.prompt == PROMPT_NONE)
			r->is_stale = true;
		r->is_dirty = true;
		if (r->is_stale && make(r, &r->remark))
			r->view.remark = r->remark.text;
	}
}

static int fit_canvas(struct run *r, struct hs_error *err)
{
	int rows, cols;

	terminal__size(&rows, &cols);
	r->is_dirty = r->is_whole = true;
	return canvas__resize(&r->canvas, rows, cols, r->is_utf8) ? out_of_memory(err) : 0;
}

static int heed_signals(struct run *r, struct hs_error *err)
{
	struct signals *s = &r->signals;
	bool is_new_size;

	signals__read(s);
	r->wants_end |= s->wants_end;
	if (s->wants_stop && !r->wants_end)
		terminal__suspend();
	else if (s->continued)
		terminal__resume();
	is_new_size = s->wants_resize || s->wants_stop || s->continued;
	s->wants_resize = s->wants_stop = s->continued = false;
	if (!is_new_size || fit_canvas(r, err))
		return is_new_size ? -ENOMEM : 0;
	return make(r, err);
}

/* ---- the loop ---- */

static int timeout_ms(const struct run *r, bool is_more)
{
	uint64_t now_ns = clock__now_ns();
	int ms;

	if (is_more)
		return 0;
	ms = now_ns >= r->next_ns ? 0 : (int)((r->next_ns - now_ns) / 1000000) + 1;
	if (r->source->has_ended)
		ms = -1;
	else if (r->source->wait_ms >= 0 && r->source->wait_ms < ms)
		ms = r->source->wait_ms;
	return ms;
}

static int wait_and_heed(struct run *r, bool is_more, struct hs_error *err)
{
	struct pollfd fds[3 + SOURCE_FDS] = {
		{ .fd = r->signals.fd, .events = POLLIN },
		{ .fd = r->is_full_screen ? terminal__fd() : -1, .events = POLLIN },
		{ .fd = r->is_full_screen ? terminal__pending_fd() : -1, .events = POLLOUT },
	};
	int n = r->source->ops->fds(r->source, fds + 3), ret = 0;

	if (poll(fds, (nfds_t)n + 3, timeout_ms(r, is_more)) < 0)
		return 0;
	if (fds[0].revents)
		ret = heed_signals(r, err);
	if (fds[1].revents & POLLIN)
		read_keys(r);
	/* The terminal has gone, and its SIGHUP was for somebody else. */
	else if (fds[1].revents)
		r->wants_end = true;
	if (fds[2].revents)
		terminal__is_ready();
	return ret;
}

static int loop(struct run *r, struct hs_error *err)
{
	int more = 0, ret = 0;

	while (!r->wants_end) {
		ret = wait_and_heed(r, more > 0, err);
		if (ret)
			return ret;
		more = r->source->ops->step(r->source, err);
		if (more < 0)
			return more;
		heed_refusal(r);
		ret = look_at_clock(r, err);
		if (!ret && r->is_dirty)
			ret = show(r, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- beginning and end ---- */

static int begin_source(struct run *r, struct hs_error *err)
{
	const struct top_options *o = r->options;
	const struct source_options options = { .pid = o->pid,
						.profile = &o->profile,
						.socket = o->socket,
						.sink = &r->facts.base,
						.heap = r->heap };

	return o->is_from_daemon ? source__begin_daemon(&r->source, &options, err)
				 : source__begin_direct(&r->source, &options, err);
}

static int begin(struct run *r, struct hs_error *err)
{
	const struct top_options *o = r->options;
	struct hs_error no_screen;
	int ret;

	setlocale(LC_ALL, "");
	/* Numbers as everywhere else. */
	setlocale(LC_NUMERIC, "C");
	r->is_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	r->is_rate_auto = o->is_rate_auto;
	facts__init(&r->facts);
	view__init(&r->view, o->by, o->metric);
	if (heap__new(&r->heap, NULL))
		return out_of_memory(err);
	r->model.heap = r->heap;
	/* Until here Ctrl-C simply ends us, and the kernel or the daemon detaches. */
	ret = begin_source(r, err);
	if (ret)
		return ret;
	r->is_full_screen = !o->is_plain && terminal__is_there();
	ret = signals__open(&r->signals, r->is_full_screen, err);
	if (ret)
		return ret;
	if (r->is_full_screen && terminal__open(&no_screen)) {
		say__note("%s; so it is plain tables", no_screen.text);
		r->is_full_screen = false;
	}
	r->begin_ns = clock__now_ns();
	r->next_ns = r->begin_ns + (uint64_t)(o->delay_s * NS_PER_S);
	/* The first step of the window is now, with nothing in it. */
	ret = model__step(&r->model, &r->facts, r->begin_ns) ? out_of_memory(err) : 0;
	if (!ret && r->is_full_screen) {
		ret = fit_canvas(r, err);
		if (!ret)
			ret = make(r, err);
	}
	return ret;
}

static void deinit(struct run *r)
{
	source__free(r->source);
	model__deinit(&r->model);
	heap__free(r->heap);
	lines__clear(&r->lines);
	canvas__deinit(&r->canvas);
	facts__deinit(&r->facts);
	if (r->signals.fd >= 0)
		close(r->signals.fd);
}

int top__run(const struct top_options *o, struct hs_error *err)
{
	struct run r = { .options = o, .signals.fd = -1 };
	int ret = begin(&r, err), finished;

	if (!ret)
		ret = loop(&r, err);
	/* First the terminal: detaching may take a moment. */
	terminal__close();
	if (r.source && !ret) {
		finished = r.source->ops->finish(r.source, END_INTERRUPTED, err);
		ret = finished;
	}
	deinit(&r);
	return ret;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/live_view.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "recorder/segments.h"
#include "top/top.h"
#include "trace/dump.h"
#include "trace/outputs.h"

/* Of the last minute; memory is taken as records come. */
#define SEGMENT_BYTES (UINT64_C(64) << 20)
#define SEGMENT_NS    (75 * NS_PER_S)

struct live_view {
	const struct options *options;
	struct top *top;
	struct segments *segments;
	struct exports *exports;
	struct dump *dump; /* NULL: none is being written */
	struct fbt_cost cost;
	uint64_t turn_ns; /* when the last two were looked after */
};

int live_view__new(struct live_view **result, const struct options *options)
{
	const struct segments_options room = {.bytes = SEGMENT_BYTES, .span_ns = SEGMENT_NS};
	struct live_view *view;
	int err;

	*result = NULL;
	if (!options->top)
		return 0;
	err = top_check();
	if (err)
		return err;
	view = calloc(1, sizeof(*view));
	if (!view)
		return -ENOMEM;
	view->options = options;
	view->top = top__new();
	err = view->top ? segments__new(&view->segments, &room) : -ENOMEM;
	if (err) {
		live_view__free(view);
		return err;
	}
	*result = view;
	return 0;
}

void live_view__free(struct live_view *view)
{
	if (!view)
		return;
	dump__free(view->dump);
	top__free(view->top);
	segments__free(view->segments);
	free(view);
}

static int add(struct live_view *view, struct sink *sink)
{
	int err = sink ? exports__add_sink(view->exports, sink) : -ENOMEM;

	if (err)
		log_err("top: no memory");
	return err;
}

int live_view__attach(struct live_view *view, struct exports *exports)
{
	int err;

	if (!view)
		return 0;
	view->exports = exports;
	err = add(view, top__sink(view->top));
	return err ? err : add(view, sink_segments__new(view->segments));
}

int live_view__open(struct live_view *view, struct loop *loop)
{
	int err;

	if (!view)
		return 0;
	err = loop__watch_terminal(loop);
	if (!err)
		err = loop__watch(loop, STDIN_FILENO);
	return err ? err : top__open(view->top);
}

static void begin_dump(struct live_view *view, struct session *session, uint64_t now_ns)
{
	int err;

	if (view->dump) {
		top__tell(view->top, now_ns, "the last dump is still being written");
		return;
	}
	session__send_totals(session);
	err = dump__start(&view->dump, view->segments, view->options,
			  exports__metadata(view->exports), exports__tgid(view->exports));
	if (!err)
		top__tell(view->top, now_ns, "writing the last minute ...");
}

static void turn_dump(struct live_view *view, uint64_t now_ns)
{
	const char *result;

	if (!view->dump || dump__turn(view->dump))
		return;
	result = dump__result(view->dump);
	/* A failure has been logged, and is shown. */
	if (result)
		top__tell(view->top, now_ns, "%s", result);
	dump__free(view->dump);
	view->dump = NULL;
}

bool live_view__turn(struct live_view *view, unsigned int news, struct session *session,
		     uint64_t now_ns)
{
	const struct top_news top_news = {
		.keys = news & LOOP_INPUT,
		.resized = news & LOOP_RESIZED,
		.suspended = news & LOOP_SUSPENDED,
		.continued = news & LOOP_CONTINUED,
	};
	enum top_wish wish;

	if (!view)
		return true;
	if (now_ns - view->turn_ns >= NS_PER_S) {
		segments__turn(view->segments, now_ns);
		session__cost(session, &view->cost);
		view->turn_ns = now_ns;
	}
	wish = top__turn(view->top, &top_news, exports__window(view->exports), &view->cost, now_ns);
	if (wish == TOP_WISH_DUMP)
		begin_dump(view, session, now_ns);
	turn_dump(view, now_ns);
	return wish != TOP_WISH_QUIT;
}

void live_view__close(struct live_view *view)
{
	if (!view)
		return;
	while (view->dump)
		turn_dump(view, clock_ns(CLOCK_MONOTONIC));
	top__close(view->top);
}

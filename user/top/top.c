/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "top/top.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "top/keys.h"
#include "top/model.h"
#include "top/notice.h"
#include "top/screen.h"
#include "top/trust.h"
#include "top/view.h"

#define DRAW_NS NS_PER_S
/* After the end of a second its last steps are still on their way. */
#define SETTLE_NS (100 * NS_PER_MS)
/* Steps with GPU records wait for the shim's flushes, four in a second. */
#define SETTLE_GPU_NS (600 * NS_PER_MS)

struct top {
	struct top_model *model;
	struct screen *screen; /* NULL: it has no terminal */
	struct top_state state;
	struct top_figures figures;
	struct trust trust;
	uint64_t draw_ns; /* when to take figures again */
	bool stale;	  /* the page must be drawn */
	struct notice notice;
	uint64_t cpu_ns; /* of this process, cpu_at_ns */
	uint64_t cpu_at_ns;
	double cpu_percent;
	enum log_level level;	       /* before the terminal was taken */
	struct log_diversion diverted; /* who got messages then */
};

struct top_sink {
	struct sink sink; /* must be first: the pipeline holds a pointer to it */
	struct top *top;
};

int top_check(void)
{
	return screen_check();
}

struct top *top__new(void)
{
	struct top *top = calloc(1, sizeof(*top));

	if (!top)
		return NULL;
	top->model = top_model__new();
	if (!top->model) {
		free(top);
		return NULL;
	}
	top_state_init(&top->state);
	top->cpu_percent = -1;
	return top;
}

void top__free(struct top *top)
{
	if (!top)
		return;
	top__close(top);
	top_model__free(top->model);
	free(top);
}

/* Without memory a step is missing from percentiles, no more. */
static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	const struct top_sink *self = (const struct top_sink *)sink;

	(void)top_model__add_step(self->top->model, window, step);
	return 0;
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	const struct top_sink *self = (const struct top_sink *)sink;

	top_model__add_escalation(self->top->model, window, step, escalation);
	return 0;
}

static int write_hang(struct sink *sink, const struct window *window, const struct fbt_hang *hang)
{
	const struct top_sink *self = (const struct top_sink *)sink;

	top_model__add_hang(self->top->model, window, hang);
	return 0;
}

static void free_sink(struct sink *sink)
{
	free(sink);
}

struct sink *top__sink(struct top *top)
{
	struct top_sink *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "top",
		.write_step = write_step,
		.write_escalation = write_escalation,
		.write_hang = write_hang,
		.free = free_sink,
	};
	self->top = top;
	return &self->sink;
}

static void take_message(void *ctx, enum log_level level, const char *message)
{
	struct top *top = ctx;

	top_model__add_message(top->model, level, message);
	if (notice_message(&top->notice, clock_ns(CLOCK_MONOTONIC), level, message))
		top->stale = true;
}

int top__open(struct top *top)
{
	int err = screen__new(&top->screen);

	if (err)
		return err;
	/* Debug messages would go to the terminal. */
	top->level = log_level();
	if (top->level > LOG_INFO)
		log_set_level(LOG_INFO);
	top->diverted = log_divert((struct log_diversion){take_message, top});
	top->stale = true;
	return 0;
}

/* From the oldest that is kept to the newest. */
static void repeat_messages(const struct top *top)
{
	size_t count = 0;

	while (top_model__message(top->model, count))
		count++;
	while (count) {
		const struct top_message *message = top_model__message(top->model, --count);

		if (message->level == LOG_ERR)
			log_err("%s", message->text);
		else if (message->level == LOG_WARN)
			log_warn("%s", message->text);
	}
}

void top__close(struct top *top)
{
	if (!top->screen)
		return;
	screen__free(top->screen);
	top->screen = NULL;
	log_divert(top->diverted);
	log_set_level(top->level);
	repeat_messages(top);
}

void top__tell(struct top *top, uint64_t now_ns, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	notice_answer(&top->notice, now_ns, format, args);
	va_end(args);
	top->stale = true;
}

static void measure_self(struct top *top, uint64_t now_ns)
{
	uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (top->cpu_at_ns && now_ns > top->cpu_at_ns)
		top->cpu_percent = percent_of((double)(cpu_ns - top->cpu_ns),
					      (double)(now_ns - top->cpu_at_ns));
	top->cpu_ns = cpu_ns;
	top->cpu_at_ns = now_ns;
}

static uint64_t settle_ns(const struct window *window)
{
	vec_for_each (entry, &window->gpus.processes) {
		if ((*entry)->armed)
			return SETTLE_GPU_NS;
	}
	return SETTLE_NS;
}

static void take_figures(struct top *top, const struct window *window, const struct fbt_cost *cost,
			 uint64_t now_ns)
{
	uint64_t start_ns = window->record.start_ns, wait_ns = settle_ns(window);

	measure_self(top, now_ns);
	/* Shortly after each whole second of the window. */
	top->draw_ns = now_ns + DRAW_NS;
	if (start_ns && now_ns > start_ns + wait_ns)
		top->draw_ns = now_ns - (now_ns - start_ns - wait_ns) % DRAW_NS + DRAW_NS;
	if (top_model__figures(top->model, now_ns, top->state.kind, &top->figures))
		top__tell(top, now_ns, "no memory for percentiles");
	trust_find(&top->trust, window, cost, top->model, &top->figures);
	top->stale = true;
}

static void draw(struct top *top, const struct window *window)
{
	const struct top_view view = {
		.model = top->model,
		.figures = &top->figures,
		.state = &top->state,
		.trust = &top->trust,
		.window = window,
		.notice = top->notice.text,
		.cpu_percent = top->cpu_percent,
	};
	struct grid grid;

	top->stale = false;
	if (screen__page(top->screen, &grid))
		return;
	top_draw(&grid, &view);
	screen__paint(top->screen, &grid);
	grid_clear(&grid);
}

static enum top_wish take_keys(struct top *top, const struct window *window,
			       const struct fbt_cost *cost, uint64_t now_ns)
{
	enum top_wish wish = TOP_WISH_NONE;
	uint32_t key;

	while (wish == TOP_WISH_NONE && screen__key(top->screen, &key)) {
		uint32_t kind = top->state.kind;
		bool paused = top->state.paused;

		switch (top_press(&top->state, top->model, key)) {
		case TOP_QUIT:
			wish = TOP_WISH_QUIT;
			break;
		case TOP_DUMP:
			wish = TOP_WISH_DUMP;
			break;
		case TOP_NOTHING:
			break;
		}
		if (kind != top->state.kind || (paused && !top->state.paused))
			take_figures(top, window, cost, now_ns);
		top->stale = true;
	}
	return screen__is_gone(top->screen) ? TOP_WISH_QUIT : wish;
}

enum top_wish top__turn(struct top *top, const struct top_news *news, const struct window *window,
			const struct fbt_cost *cost, uint64_t now_ns)
{
	enum top_wish wish = TOP_WISH_NONE;

	if (!top->screen)
		return wish;
	if (news->suspended)
		screen__suspend(top->screen);
	if (news->resized)
		screen__resize(top->screen);
	if (news->continued)
		screen__redraw(top->screen);
	if (news->suspended || news->resized || news->continued)
		top->stale = true;
	if (news->keys)
		wish = take_keys(top, window, cost, now_ns);
	if (notice_turn(&top->notice, now_ns))
		top->stale = true;
	if (now_ns >= top->draw_ns && !top->state.paused)
		take_figures(top, window, cost, now_ns);
	if (top->stale && wish != TOP_WISH_QUIT)
		draw(top, window);
	return wish;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Draws the pages of the live view into a grid. Pure. */
#ifndef FBT_TOP_VIEW_H
#define FBT_TOP_VIEW_H

#include "top/grid.h"
#include "top/keys.h"
#include "top/model.h"
#include "top/trust.h"

/* On less a page says how much it needs. */
#define TOP_ROWS_LEAST	  16
#define TOP_COLUMNS_LEAST 60

struct top_view {
	const struct top_model *model;
	const struct top_figures *figures;
	const struct top_state *state;
	const struct trust *trust;
	const struct window *window;
	const char *notice; /* in the last line; "": the keys */
	double cpu_percent; /* of one CPU, that the tool used lately; less than 0: not known */
};

void top_draw(struct grid *grid, const struct top_view *view);

/* Its pages. */
void top_draw_slow(struct grid *grid, const struct top_view *view, int row, int end);
void top_draw_step(struct grid *grid, const struct top_view *view);
void top_draw_trust(struct grid *grid, const struct top_view *view);
void top_draw_help(struct grid *grid);

/* "own code", "waiting for a CPU", "futex" …; of steps whose calls are not traced other words. */
const char *top_part_words(enum step_part part, bool calls_known);

/* "4-7", "64.0 us-128 us", or "" of steps without a class. */
#define TOP_CLASS_SIZE 64
const char *top_class_words(const struct top_key *key, char text[TOP_CLASS_SIZE]);

/* Text over several rows, broken at spaces, from row on but not to end. Returns the next row. */
int top_paragraph(struct grid *grid, int row, int end, int indent, enum top_style style,
		  const char *text);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A page of characters with styles, drawn without a terminal. Pure but for memory. */
#ifndef FBT_TOP_GRID_H
#define FBT_TOP_GRID_H

#include <stdbool.h>
#include <stdint.h>

enum top_style {
	TOP_PLAIN,
	TOP_BOLD,
	TOP_DIM,
	TOP_GOOD,
	TOP_WARN,
	TOP_BAD,
	TOP_HEAD,     /* heading of a table */
	TOP_SELECTED, /* the row under the cursor */
	TOP_STYLES,
};

#define GRID_ROWS_MAX	 200
#define GRID_COLUMNS_MAX 400

struct cell {
	uint32_t point; /* of one column; never a control character */
	uint8_t style;
};

struct grid {
	int rows;
	int columns;
	int top;    /* the first row that may be written */
	bool ascii; /* the terminal shows nothing else */
	struct cell *cells;
};

/* Blank. rows and columns are cut to the limits above. 0 or -ENOMEM. */
int grid_init(struct grid *grid, int rows, int columns, bool ascii);
void grid_clear(struct grid *grid);

/*
 * Writes at most width columns (less than 0: to the end of the row) and returns the column after
 * them. Of the text nothing but one-column characters reaches a cell: controls and what is not
 * UTF-8 are escaped, all else is a '?'. Outside of the page nothing is written.
 */
int grid_text(struct grid *grid, int row, int column, int width, enum top_style style,
	      const char *text);
int grid_print(struct grid *grid, int row, int column, enum top_style style, const char *format,
	       ...) __attribute__((format(printf, 5, 6)));

/* A block of 0 to 8 eighths of a cell. */
void grid_block(struct grid *grid, int row, int column, int eighths, enum top_style style);
void grid_style(struct grid *grid, int row, enum top_style style); /* of a whole row */

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "top/grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

int grid_init(struct grid *grid, int rows, int columns, bool ascii)
{
	rows = rows > GRID_ROWS_MAX ? GRID_ROWS_MAX : rows < 1 ? 1 : rows;
	columns = columns > GRID_COLUMNS_MAX ? GRID_COLUMNS_MAX : columns < 1 ? 1 : columns;
	*grid = (struct grid){.rows = rows, .columns = columns, .ascii = ascii};
	grid->cells = calloc((size_t)rows * (size_t)columns, sizeof(*grid->cells));
	if (!grid->cells)
		return -ENOMEM;
	for (int i = 0; i < rows * columns; i++)
		grid->cells[i].point = ' ';
	return 0;
}

void grid_clear(struct grid *grid)
{
	free(grid->cells);
	grid->cells = NULL;
}

static struct cell *cell_at(struct grid *grid, int row, int column)
{
	if (row < grid->top || row >= grid->rows || column < 0 || column >= grid->columns)
		return NULL;
	return &grid->cells[row * grid->columns + column];
}

static void put(struct grid *grid, int row, int column, enum top_style style, uint32_t point)
{
	struct cell *cell = cell_at(grid, row, column);

	if (cell)
		*cell = (struct cell){point, (uint8_t)style};
}

/*
 * Latin, Greek and Cyrillic letters and the block elements take one column everywhere. The width
 * of others depends on the terminal, and marks that combine take none.
 */
static bool is_narrow(uint32_t point)
{
	return (point >= 0xa1 && point <= 0x2ff && point != 0xad) ||
	       (point >= 0x370 && point <= 0x482) || (point >= 0x48a && point <= 0x52f) ||
	       point == 0x2026 || (point >= 0x2580 && point <= 0x259f);
}

int grid_text(struct grid *grid, int row, int column, int width, enum top_style style,
	      const char *text)
{
	char safe[2048];
	const char *at = safe;
	int end = width < 0 || width > grid->columns - column ? grid->columns : column + width;

	log_escape(safe, sizeof(safe), text);
	while (*at && column < end) {
		size_t length = utf8_length(at, NULL);
		uint32_t point = length ? utf8_point(at, length) : '?';

		if (point < ' ' || point == 0x7f ||
		    (point > 0x7e && (grid->ascii || !is_narrow(point))))
			point = '?';
		put(grid, row, column++, style, point);
		at += length ? length : 1;
	}
	return column;
}

int grid_print(struct grid *grid, int row, int column, enum top_style style, const char *format,
	       ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return grid_text(grid, row, column, -1, style, text);
}

void grid_block(struct grid *grid, int row, int column, int eighths, enum top_style style)
{
	static const char letters[] = " ..::||##";

	if (eighths <= 0)
		return;
	eighths = eighths > 8 ? 8 : eighths;
	put(grid, row, column, style,
	    grid->ascii ? (uint32_t)letters[eighths] : 0x2580 + (uint32_t)eighths);
}

void grid_style(struct grid *grid, int row, enum top_style style)
{
	for (int i = 0; i < grid->columns; i++) {
		struct cell *cell = cell_at(grid, row, i);

		if (cell)
			cell->style = (uint8_t)style;
	}
}

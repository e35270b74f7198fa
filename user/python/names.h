/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Texts (str) and numbers of lines of a CPython process, from its memory. */
#ifndef FBT_PYTHON_NAMES_H
#define FBT_PYTHON_NAMES_H

#include "python/layout.h"

/* The addresses of the types that objects are checked against. */
struct python_types {
	uint64_t code;
	uint64_t text;
	uint64_t bytes;
	uint64_t frame; /* needed if frames are objects */
};

/* Characters of a text that are read. */
#define PYTHON_TEXT_CHARS 160

/*
 * The last PYTHON_TEXT_CHARS characters of a text or what fits of them, as UTF-8; "..." stands for
 * those before. What would steer a terminal is written as "\u001b". False, and *to "": the object
 * is no text, or could not be read.
 */
bool python_text_read(const struct python_layout *layout, const struct python_memory *memory,
		      const struct python_types *types, uint64_t object, char *to, size_t size);

/*
 * The line of an instruction by the table of its code: instr is in bytes from the first one, and
 * negative before it. 0: it has no line, or the table is damaged or longer than 256 KiB.
 */
uint32_t python_line_find(const struct python_layout *layout, const struct python_memory *memory,
			  const struct python_types *types, uint64_t table, uint32_t first_line,
			  int64_t instr);

#endif

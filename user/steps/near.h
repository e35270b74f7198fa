/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Names of functions that are like one that was not found. */
#ifndef FBT_STEPS_NEAR_H
#define FBT_STEPS_NEAR_H

#include "elf/symbols.h"

#define NEAR_NAMES 3

/* Zero with the name that was not found. */
struct near_names {
	const char *wanted; /* borrowed */
	size_t count;
	struct near_name {
		size_t distance;
		char name[128]; /* as --step takes it, cut off at worst; from the target */
	} names[NEAR_NAMES];	/* the nearest first */
};

/*
 * Adds the functions of a file whose names, or the last parts of whose names, are like the wanted
 * one. deadline_ns: of CLOCK_MONOTONIC, after which no more are looked at; 0: none.
 */
void near_names_add(struct near_names *near, const struct elf_symbols *symbols,
		    uint64_t deadline_ns);

/* "; did you mean llama_decode, llama_encode?"; "" if none is like it. Escaped. */
void near_names_text(const struct near_names *near, char *text, size_t size);

#endif

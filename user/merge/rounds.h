/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which rank is late, over traces on one clock: for each collective that all ranks of its process
 * group have, or else for each step that all ranks have, who came last, how long after the first
 * one, and what it did in that time.
 */
#ifndef FBT_MERGE_ROUNDS_H
#define FBT_MERGE_ROUNDS_H

#include <stdio.h>
#include "merge/gather.h"

#define ROUND_NAMES 4

/* A rank: a process of a trace. */
struct rank_unit {
	size_t file;
	size_t process;	  /* with the collectives, or the steps */
	int64_t step_pid; /* whose calls tell what it did; may be the same process */
	bool is_nobodys;  /* a device, and it is not known which process uses it */
	char label[64]; /* "rank 1, pid 7"; "rank 1" of such a device, "rank 1, GPU 3" of several */
};

/* What the last one did meanwhile: the slices with most time. */
struct meanwhile {
	uint32_t name; /* index + 1 in names; 0: none */
	int64_t ns;
};

struct round {
	int64_t first_ns;    /* when the first one came */
	int64_t last_ns;     /* and the last one */
	int64_t earliest_ns; /* first_ns of this one, or of a later one in order with the same rank
			      */
	uint32_t late;	     /* index of the rank that was last */
	uint32_t lead;	     /* index of the first rank that takes part */
	uint32_t step; /* number of the step of the first rank that takes part; 0: not known */
	bool is_end;   /* of steps: they are about ends, not begins */
	struct meanwhile did[ROUND_NAMES];
	uint32_t cause; /* as a name: the cause of an escalated step of that rank */
};

struct rounds {
	VEC(struct rank_unit) ranks;
	VEC(struct round) rounds; /* by last_ns */
	VEC(uint32_t) order;	  /* of the rounds of each rank that was late, see by_rank */
	VEC(size_t) by_rank;	  /* where those of a rank begin in order; one more at the end */
	VEC(char *) names;
	void *name_tree;
	bool of_collectives;
	uint64_t unmatched;	   /* collectives or steps that not all ranks have that take part */
	uint64_t error_ns;	   /* of the clocks; differences up to that are no lateness */
	uint64_t matched_error_ns; /* the same where collectives match */
	bool error_known;
};

/* Files are converted. 0 or -ENOMEM; without two ranks there are no rounds. */
int rounds_find(struct rounds *rounds, struct gather_file *files, size_t count);

/* An event of a file, whose times on the common clock are given. 0 or -ENOMEM. */
int rounds_note(struct rounds *rounds, size_t file, const struct source_event *event,
		int64_t begin_ns, int64_t end_ns);

/* Whether one rank was late by more than the clocks' error, and than noise; and by how much. */
bool round_is_late(const struct rounds *rounds, const struct round *round);
uint64_t round_spread(const struct round *round);

/* What the late one did meanwhile: "clock_nanosleep 4.1 ms (sleep)". */
#define ROUND_TEXT 160
void rounds_describe(const struct rounds *rounds, const struct round *round, char text[ROUND_TEXT]);

/* The table. base_ns: the time of the first event. */
void rounds_print(const struct rounds *rounds, int64_t base_ns, FILE *out);
void rounds_clear(struct rounds *rounds);

#endif

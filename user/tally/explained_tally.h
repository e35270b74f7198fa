/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What --explain has found out about the steps with one cause, in sum. */
#ifndef FBT_TALLY_EXPLAINED_TALLY_H
#define FBT_TALLY_EXPLAINED_TALLY_H

#include "judge/explained.h"

/* Others that had the CPU, by name; the time of further ones, which had least, is in others_ns. */
#define EXPLAINED_TAKERS 16
/* Functions that are counted; of further ones none. */
#define EXPLAINED_FUNCTIONS 16
#define EXPLAINED_NAME	    128
/* Wakers that are counted, by name; further ones are not. */
#define EXPLAINED_WAKERS 8

struct explained_tally {
	uint64_t steps;	 /* whose cause it would explain more of … */
	uint64_t missed; /* … but was not looked at */
	enum fbt_explain kind;
	uint64_t waited_ns;
	uint64_t own_ns; /* threads of the step's own process had the CPU */
	uint64_t idle_ns;
	uint64_t others_ns;
	uint32_t count;
	/*
	 * Other processes. tgid is 0 if several have that name; cgroup is "" if they are in
	 * several, whose bits are in mixed, and if it is not known. Of a group comm is "".
	 */
	struct fbt_taker takers[EXPLAINED_TAKERS];
	uint32_t mixed;
	struct explained_function {
		uint64_t steps; /* 0: none; in which it has grown */
		uint64_t ns;	/* by how much, in all of them */
		char name[EXPLAINED_NAME];
	} functions[EXPLAINED_FUNCTIONS];
	uint64_t interrupts; /* steps whose wait ended in one */
	struct explained_waker {
		uint64_t steps;	 /* 0: none */
		uint32_t tgid;	 /* 0: several */
		bool is_own;	 /* a thread of the step's process, and comm is its name */
		bool is_perhaps; /* of one step at least that is not sure */
		char comm[sizeof(((struct fbt_woken *)0)->comm)];
	} wakers[EXPLAINED_WAKERS];
};

void explained_tally_add(struct explained_tally *tally, const struct window *window,
			 const struct cause *cause);

/* The index of the one with the most time; -1: there is none. skip: bits of those to leave out. */
int explained_tally_most(const struct explained_tally *tally, uint32_t skip);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Functions of the program whose calls are steps. An armed function has another vectorcall pointer,
 * of callers.c: no code object changes, and no other function gets slower. CPython 3.11 calls
 * functions without looking at that pointer; there the function gets another code object, which
 * makes one call. Disarmed, the function object is bit for bit what it was.
 *
 * All functions here need the GIL.
 */
#ifndef FERRUM_PYTHON_SLOT_H
#define FERRUM_PYTHON_SLOT_H

#include "api.h"
#include "attribute.h"
#include "fbt_python.h"

/* One definition: the function that was named, or one that overrides it. */
struct python_own {
	py_object *function; /* a reference */
	py_vectorcall old;
	uint32_t version; /* func_version: specialised call sites check only that */
	/* What the function was made of when it was armed: references, the last two may be NULL. */
	py_object *code;
	py_object *defaults;
	py_object *keywords;
	/* 3.11: references. A call of clone runs the original code. */
	py_object *clone;
	py_object *trampoline;
	bool has_layout; /* function and clone are laid out as trampoline.h has it */
	bool is_held;	 /* see python_slot_release */
	struct python_attribute attributes[FBT_PYTHON_ATTRIBUTES];
};

struct python_slot {
	struct python_own own[FBT_PYTHON_OWN_MAX];
	size_t own_count;
	size_t attribute_count;
	bool is_armed;
	bool is_pinned; /* a definition of it is held */
	/* Written by whoever holds the GIL; in a free-threaded build several threads count at once.
	 */
	uint32_t inside; /* calls that look at own[] right now; free-threaded builds only */
	uint64_t begun;
	uint64_t ended;
	uint64_t raised;
	/* As they were when the slot was armed. None is ever set back: a call may still run. */
	uint64_t begun_before;
	uint64_t raised_before;
};

/*
 * Looks up what the page's slot asks for and answers there. On success the slot holds references
 * until python_slot_release. A function that another of all slots has is left out: it can be armed
 * only once. Slots after this one have some too: those that are held, or armed still.
 */
void python_slot_resolve(const struct python *python, struct python_slot *slot,
			 struct fbt_python_slot *shared, const struct python_slot *slots);

/* Arms a slot that was resolved; index: which caller takes its calls. */
void python_slot_arm(const struct python *python, struct python_slot *slot, unsigned int index,
		     struct fbt_python_slot *shared);

/* What became of a function that was armed. */
enum python_disarmed {
	PYTHON_DISARMED,
	PYTHON_REPLACED, /* the program has put something in our place: that stays */
	PYTHON_HELD,	 /* its calls may lead to our caller still */
};

/*
 * Disarms the slot if it is armed, and forgets its functions. If somebody has changed the pointer
 * of a function since, or forbids the change, that function is held: it may lead to our caller for
 * ever. The slot then keeps the function, and serves no other, until a later try succeeds.
 */
void python_slot_release(const struct python *python, struct python_slot *slot, unsigned int index,
			 struct fbt_python_slot *shared);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libferrum_python.so in a process (fbt_python.h): finds its page, has it look up Python functions,
 * and arms them. The tool trusts no word of the page.
 */
#ifndef FBT_PYTHON_GUEST_H
#define FBT_PYTHON_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_python.h"

struct python_guest;
struct broker_order;

/* In the broker: opens the page, or an export of PyTorch, for the confined tool (broker_task). */
int python_memfd_serve(const void *nothing, const struct broker_order *order);

/*
 * 0; -ENOENT the library is not in this process, or has not made its page yet; -EPROTONOSUPPORT
 * another version of it; -EBUSY another tool gives it orders (*holder, as that tool sees its own
 * pid); -EBADMSG the page is not sound; -ESRCH; -errno. Logs nothing.
 */
int python_guest__open(struct python_guest **guest, uint32_t tgid, uint32_t *holder);

/*
 * The same without becoming the tool that gives the orders: it only reads what that one has armed.
 * Nothing may be called but armed, answer, minor, text, times, free, and keep, which tells once, by
 * -EBUSY, that another tool has it by now. -ENOTCONN, also of keep: no tool has the page.
 */
int python_guest__open_shared(struct python_guest **guest, uint32_t tgid);

/* The slot in which that function is armed, with just these attributes; -1: none. */
int python_guest__armed(const struct python_guest *guest, const char *function,
			const char *const *attributes, size_t attribute_count);

/* Whether the library is in a process; its page is not taken. */
bool python_guest_is_there(uint32_t tgid);

/*
 * Whether a process has the library's code only because it was forked, without execve, from one
 * with the library: it has neither a page nor a thread of it.
 */
bool python_guest_is_inherited(uint32_t tgid);

/* Gives back the page. What is armed stays so until the lease ends: disarm it first. */
void python_guest__free(struct python_guest *guest);

/*
 * Writes the function that a slot is to have; resolve it next. false: a text is too long, or there
 * is no such slot.
 */
bool python_guest__wish(struct python_guest *guest, unsigned int slot, const char *function,
			const char *const *attributes, size_t attribute_count);

/*
 * Whether names that are like it are wanted if there is none: each time the function is looked for
 * that holds the GIL for up to 1 ms. A wish has none.
 */
void python_guest__suggest(struct python_guest *guest, unsigned int slot);

/*
 * Gives an order and waits for the answer, at most until deadline_ns (CLOCK_MONOTONIC). The library
 * needs the GIL for all but FBT_PYTHON_COUNT. 0; -ETIMEDOUT, and the order was withdrawn; -EPIPE
 * the library serves no orders (python_guest__text says why). Extends the lease.
 */
int python_guest__order(struct python_guest *guest, enum fbt_python_command command,
			uint64_t deadline_ns);

/*
 * The same in two parts, for a window that is open. ask gives the order, in place of one that was
 * not taken yet: 0; -EAGAIN the library is just about the last one; -EPIPE. poll tells whether it
 * was answered: 0; -EAGAIN; -EPIPE.
 */
int python_guest__ask(struct python_guest *guest, enum fbt_python_command command);
int python_guest__poll(const struct python_guest *guest);

/*
 * Waits for the answer to an order that ask has given, at most until deadline_ns. 0; -ETIMEDOUT,
 * and the order was withdrawn; -EAGAIN the library is just about it; -EPIPE. Whoever asks several
 * first, and then waits for all until one deadline, is not held up by each of them.
 */
int python_guest__await(struct python_guest *guest, uint64_t deadline_ns);

/* false: the library has begun with the order, so it will be answered. */
bool python_guest__withdraw(struct python_guest *guest);

/*
 * Tells the library that the tool lives; call at least once a second while functions are armed. 0;
 * -ESTALE the lease had ended, because the tool had no CPU for so long: the library has disarmed
 * and forgotten all functions, and the page was taken again; -EBUSY another tool has it by now, and
 * no order is given any more; -EPIPE that was told before.
 */
int python_guest__keep(struct python_guest *guest);

/* Wants PyTorch's profiler to run, from the begin of the next step on (struct fbt_python_torch). */
struct python_torch_wish {
	uint32_t window; /* its number, not 0 */
	uint32_t flags;	 /* FBT_TORCH_… */
	uint64_t max_steps;
	uint64_t max_bytes;
};
void python_guest__want_torch(struct python_guest *guest, const struct python_torch_wish *wish);

/* Wants it no more: the library stops and exports at the end of a step, or between steps. */
void python_guest__end_torch(struct python_guest *guest);

/*
 * What the library has answered, with its text ended; times are those of our clock. The state is
 * FBT_TORCH_NONE if it is about another window.
 */
void python_guest__torch(const struct python_guest *guest, uint32_t window,
			 struct fbt_python_torch *answer);

/* What the end of that window still waits for in a process. */
enum python_torch_wait {
	PYTHON_TORCH_NOTHING,
	PYTHON_TORCH_STEP,  /* the end of a step, which may not come */
	PYTHON_TORCH_AT_IT, /* PyTorch is just starting, or exports: the function stays armed */
};
enum python_torch_wait python_guest__torch_wait(const struct python_guest *guest, uint32_t window);

/* A copy of a slot's answer, with all strings ended. Of a slot that is none, it is empty. */
void python_guest__answer(const struct python_guest *guest, unsigned int slot,
			  struct fbt_python_slot *answer);

/* 3.minor of the interpreter; 0: not known yet. */
unsigned int python_guest__minor(const struct python_guest *guest);

/* What the library says about itself: why it is dead, or takes no order yet; "". */
void python_guest__text(const struct python_guest *guest, char *text, size_t size);

/* How long the last order waited for the GIL and held it. */
void python_guest__times(const struct python_guest *guest, uint64_t *wait_ns, uint64_t *hold_ns);

/* What became of a function, in words: "the module is not loaded". */
const char *python_found_text(enum fbt_python_found found);

#endif

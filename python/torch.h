/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * PyTorch's profiler in this process, for as long as the tool wants a window (fbt_python.h). Only
 * functions that PyTorch has in C++ are called, those that torch.profiler itself calls: nothing is
 * imported, and no line of Python runs. (torch.profiler.profile.start() imports torch._inductor,
 * which takes seconds.)
 *
 * Kineto's profiler belongs to the thread that started it: it records only that one, which must
 * stop it. The observer of the execution trace records all threads. PyTorch (up to 2.13) does not
 * wait for those that are in the observer when it removes it, so it is disabled a while before.
 */
#ifndef FERRUM_PYTHON_TORCH_H
#define FERRUM_PYTHON_TORCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "page.h"

struct guest;

struct python_torch {
	uint32_t served;	    /* the last window that was */
	uint32_t is_on;		    /* atomic */
	uint32_t is_busy;	    /* atomic: a thread starts or stops it */
	uint32_t is_cancelled;	    /* the tool is gone: nobody wants what was recorded */
	uint32_t is_observed;	    /* atomic: the observer is enabled */
	uint64_t unobserved_ns;	    /* since when it is not */
	pid_t thread;		    /* that started it */
	unsigned int host;	    /* slot whose steps are counted, and end the window */
	unsigned int inner;	    /* calls within other calls that did not start it */
	struct own_memfd execution; /* fd -1: none */
	struct own_memfd kineto;
	struct own_memfd stream; /* PyTorch's own descriptor of the execution trace */
};

void python_torch_init(struct python_torch *torch);

static inline bool python_torch_is_on(const struct python_torch *torch)
{
	return __atomic_load_n(&torch->is_on, __ATOMIC_ACQUIRE);
}

static inline bool python_torch_is_observed(const struct python_torch *torch)
{
	return __atomic_load_n(&torch->is_observed, __ATOMIC_ACQUIRE);
}

/*
 * Before the begin marker of a call, and after its end marker. Called with the GIL. An exception
 * that is pending stays so; one of PyTorch's is cleared. In a forked child only the first one may
 * be called, if the profiler is on: it ends the recording.
 */
void python_torch_begin(struct guest *guest, unsigned int slot);
void python_torch_end(struct guest *guest, unsigned int slot);

/*
 * Whether the profiler is on, or is just being started, and only a call of this slot can stop it:
 * it must stay armed.
 */
bool python_torch_needs(const struct guest *guest, unsigned int slot);

/*
 * Disables the observer of a profiler that nobody wants any more: no step may come for long. Needs
 * the GIL.
 */
void python_torch_end_idle(struct guest *guest);

/* The tool is gone. */
void python_torch_cancel(struct guest *guest);

/*
 * Closes what was exported, unless the profiler is on, or a thread is just about to start or stop
 * it, and has let go of the GIL meanwhile.
 */
void python_torch_forget(struct python_torch *torch);

/* Closes what was exported. */
void python_torch_close(struct python_torch *torch);

/*
 * In a child that was just forked: what PyTorch writes there does not come into the parent's files.
 * Only makes system calls.
 */
void python_torch_close_in_child(struct python_torch *torch);

#endif

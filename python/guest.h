/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libferrum_python.so: loaded by LD_PRELOAD when an interpreter starts, or put into a running one
 * by the tool. It makes the page (fbt_python.h) and one thread, which serves the tool's orders.
 *
 * The library is a guest in another program's process: it never prints, exits or takes a signal, it
 * is never unloaded, and without orders it does nothing.
 *
 * Threads: the guest's own thread alone changes slots, while it holds the GIL. Threads of the
 * program read them in callers.c, and start and stop PyTorch's profiler there (torch.h).
 */
#ifndef FERRUM_PYTHON_GUEST_H
#define FERRUM_PYTHON_GUEST_H

#include <stdbool.h>
#include <stdint.h>
#include "api.h"
#include "slot.h"
#include "torch.h"

struct guest {
	uint32_t *alive;       /* 1; 0 in a forked child and after exit: touch nothing */
	struct own_memfd file; /* of the page */
	struct fbt_python_page *page;
	struct python python;
	bool is_loaded; /* python is set */
	struct python_slot slots[FBT_PYTHON_SLOTS];
	struct python_torch torch;
};

/*
 * The guest of this process, for callers.c, whose functions have no argument of ours: set once,
 * before anything is armed. The only variable of the library.
 */
extern struct guest *guest_of_process;

static inline struct guest *guest__bound(void)
{
	return __atomic_load_n(&guest_of_process, __ATOMIC_ACQUIRE);
}

/* false: a forked child, or after exit. There is no page, and no marker may be passed. */
static inline bool guest__is_alive(const struct guest *guest)
{
	return __atomic_load_n(guest->alive, __ATOMIC_RELAXED);
}

/*
 * Whether python_torch_begin and python_torch_end have anything to do, if the guest is alive; in a
 * forked child, which has no page, python_torch_is_on tells it. Cheap, for each call of an armed
 * function.
 */
static inline bool python_torch_is_wanted(const struct guest *guest)
{
	uint32_t window;

	if (python_torch_is_on(&guest->torch))
		return true;
	window = __atomic_load_n(&guest->page->torch.window, __ATOMIC_ACQUIRE);
	return window && window != guest->torch.served;
}

#endif

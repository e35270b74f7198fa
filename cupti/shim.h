/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * All that the shim knows. One object a process, made by InitializeInjection or
 * ferrum_cupti_attach; delivery has the one
 * pointer to it that CUPTI's buffer callbacks need, since they have no user data.
 *
 * Threads: the shim's own, which alone arms, flushes and disarms; application threads and CUPTI's
 * in the two callbacks. lock is the writer lock of the ring: it guards ring, names, copy and
 * clock's books, and no call of CUPTI's is made under it.
 */
#ifndef FERRUM_SHIM_H
#define FERRUM_SHIM_H

#include <pthread.h>
#include "api_table.h"
#include "buffer_pool.h"
#include "cuda_devices.h"
#include "cupti_library.h"
#include "record_copy.h"
#include "shim_clock.h"

/* Attributes of CUPTI that are changed while collecting, and put back. */
#define SHIM_ATTRIBUTES 3

struct shim_saved {
	uint64_t attributes[SHIM_ATTRIBUTES];
	uint32_t attribute_mask; /* a bit for each that was changed */
	bool thread_id_changed;
	uint32_t thread_id_type;
};

struct shim {
	uint32_t *alive; /* 1; 0 in a forked child, where nothing may be touched */
	pthread_t thread;
	struct shim_ring ring;
	pthread_mutex_t lock;
	struct name_table *names;
	struct record_copy copy;
	struct shim_clock clock;
	struct buffer_pool pool;
	struct cupti_library library;
	struct cuda_driver driver;
	uint32_t driver_version;
	struct api_table apis;
	void *subscriber; /* CUPTI's seat; NULL: we do not have it */
	bool early;	  /* FERRUM_CUPTI_EARLY: the seat is kept between windows */
	bool late;	  /* put into a process that ran: on a thread that is not ours to choose */
	bool attached_early; /* CUPTI was there before the engine could capture a graph */
	bool devices_told;
	uint32_t kinds_enabled; /* bits of collection.c */
	bool apis_enabled;
	struct shim_saved saved;
	uint32_t watched; /* enum ending_stage, 0: no handler of exit() yet */
	/* Of application threads too: atomic. */
	uint32_t collecting;
	uint32_t inside;     /* threads of ours in CUPTI, see ending.h */
	uint32_t ending;     /* exit() has been called */
	uint64_t flushed_ns; /* up to when all has come, of this arming */
	/* Since arming: */
	uint64_t dropped;
	uint64_t no_buffer;
	uint64_t spent_ns;
};

static inline bool shim__is_alive(const struct shim *shim)
{
	return __atomic_load_n(shim->alive, __ATOMIC_RELAXED);
}

#endif

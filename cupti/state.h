/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The state of the shim: one object per process, made by InitializeInjection or
 * ferrum_cupti_attach.
 *
 * Threads: the shim's own thread alone arms, flushes and disarms. Application threads and CUPTI's
 * threads run the two buffer callbacks. The lock is the writer lock of the ring: it guards ring,
 * names, records, and the error figures of the clock. CUPTI is never called with the lock held.
 */
#ifndef FERRUM_STATE_H
#define FERRUM_STATE_H

#include <pthread.h>
#include "api_table.h"
#include "buffer_pool.h"
#include "cuda_devices.h"
#include "cupti_library.h"
#include "records.h"
#include "shim_clock.h"

/* CUPTI attributes that are changed while collecting, and restored afterwards. */
#define SHIM_ATTRIBUTES 3

struct shim_saved {
	uint64_t attributes[SHIM_ATTRIBUTES];
	uint32_t attribute_mask; /* bit n: attribute n was changed */
	bool thread_id_changed;
	uint32_t thread_id_type;
};

/* See takeover.h. */
struct takeover {
	/* Atomic, for CUPTI's callbacks: */
	uint32_t buffers; /* that were requested from us, and returned to us, since arming */
	uint32_t foreign; /* 1: a buffer of another tool had records from before arming */
	/* Of the shim's own thread: */
	bool canary_works; /* this CUPTI records canaries */
	bool certain;	   /* another tool has the records */
	uint32_t buffers_before;
	uint64_t content_before;
	uint32_t quiet_turns;
};

struct shim {
	uint32_t *alive; /* 1; 0 in a forked child and after exit: touch nothing */
	pthread_t thread;
	struct shim_ring ring;
	pthread_mutex_t lock;
	struct name_table *names;
	struct record_writer records;
	struct shim_clock clock;
	struct buffer_pool pool;
	struct cupti_library library;
	struct cuda_driver driver;
	uint32_t driver_version;
	struct api_table apis;
	void *subscriber;    /* CUPTI's handle; NULL: not subscribed */
	bool early;	     /* FERRUM_CUPTI_EARLY: stay subscribed between windows */
	bool late;	     /* injected into a running process, on an arbitrary thread */
	bool attached_early; /* CUPTI was loaded before the engine could capture a graph */
	bool devices_sent;
	uint32_t kinds_enabled; /* bit n: kinds[n] of collect.c is enabled */
	bool apis_enabled;
	struct shim_saved saved;
	struct takeover takeover;
	/* Of the shim's own thread, up to the last turn: */
	uint64_t kernels;
	uint64_t untimed;
	bool exhausted;	     /* CUPTI gives kernels no times any more */
	uint32_t exit_stage; /* enum exit_stage, 0: no handler of exit() yet */
	/* Atomic, because application threads use these too: */
	uint32_t collecting;
	uint32_t inside;     /* threads in CUPTI for us, see exit_guard.h */
	uint32_t exiting;    /* exit() has been called */
	uint64_t flushed_ns; /* since arming: all records up to this time have arrived */
	/* Since arming: */
	uint64_t dropped;
	uint64_t no_buffer;
	uint64_t spent_ns;
};

static inline bool shim__is_alive(const struct shim *shim)
{
	return __atomic_load_n(shim->alive, __ATOMIC_RELAXED);
}

/*
 * The shim of this process, for callbacks without user data: CUPTI's two buffer callbacks and the
 * handlers of fork and exit. shim__bind sets it, once, before any of them is registered; false: a
 * shim was bound before. shim__bound returns NULL before that.
 */
bool shim__bind(struct shim *shim);
struct shim *shim__bound(void);

#endif

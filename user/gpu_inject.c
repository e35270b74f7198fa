/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "gpu_shim.h"
#include "inject.h"
#include "log.h"
#include "processes.h"
#include "vec.h"

#define NS_PER_S 1000000000ull

struct wanted {
	uint32_t tgid;
	uint64_t due_ns;
	bool tried;
};

struct gpu_inject {
	char *shim;
	uint64_t timeout_ns;
	VEC(struct wanted) queue; /* in the order they came in */
	struct inject *running;	  /* NULL: none */
	uint32_t tgid;		  /* whose; 0: its outcome is of no use any more */
	bool finished;
};

struct gpu_inject *gpu_inject__new_for(char *shim, uint64_t timeout_ns)
{
	struct gpu_inject *inject = calloc(1, sizeof(*inject));

	if (!inject) {
		free(shim);
		return NULL;
	}
	inject->timeout_ns = timeout_ns;
	inject->shim = shim;
	return inject;
}

int gpu_inject__new(struct gpu_inject **inject, uint64_t timeout_ns)
{
	char *shim = gpu_shim_path();

	*inject = NULL;
	if (!shim) {
		log_err("--gpu inject: " GPU_SHIM_MISSING);
		return -ENOENT;
	}
	*inject = gpu_inject__new_for(shim, timeout_ns);
	return *inject ? 0 : -ENOMEM;
}

void gpu_inject__finish(struct gpu_inject *inject)
{
	inject__free(inject->running);
	inject->running = NULL;
	inject->finished = true;
}

void gpu_inject__free(struct gpu_inject *inject)
{
	if (!inject)
		return;
	gpu_inject__finish(inject);
	vec_free(&inject->queue);
	free(inject->shim);
	free(inject);
}

static struct wanted *find(struct gpu_inject *inject, uint32_t tgid)
{
	vec_for_each (wanted, &inject->queue) {
		if (wanted->tgid == tgid)
			return wanted;
	}
	return NULL;
}

static bool is_old(uint32_t tgid)
{
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK), start_ns;
	struct thread_stat stat;

	if (thread_stat_read(&stat, tgid, tgid))
		return false;
	start_ns = stat.start_ticks * (NS_PER_S / ticks);
	return clock_ns(CLOCK_BOOTTIME) >= start_ns + GPU_INJECT_SETTLE_NS;
}

void gpu_inject__want(struct gpu_inject *inject, uint32_t tgid, uint64_t since_ns, bool from_start)
{
	struct wanted wanted = {.tgid = tgid, .due_ns = since_ns};

	if (find(inject, tgid))
		return;
	if (!from_start || !is_old(tgid))
		wanted.due_ns += GPU_INJECT_SETTLE_NS;
	if (vec_push(&inject->queue, wanted))
		log_warn("process %u: no memory to inject the shim", tgid);
}

void gpu_inject__forget(struct gpu_inject *inject, uint32_t tgid)
{
	struct wanted *wanted = find(inject, tgid);

	if (inject->tgid == tgid)
		inject->tgid = 0;
	if (!wanted)
		return;
	/* In their order. */
	memmove(wanted, wanted + 1,
		(size_t)(inject->queue.items + inject->queue.count - wanted - 1) * sizeof(*wanted));
	inject->queue.count--;
}

static void explain(char why[INJECT_TEXT_MAX], const char *text, const char *otherwise)
{
	snprintf(why, INJECT_TEXT_MAX, "%s", *text ? text : otherwise);
}

static void judge(struct gpu_injected *injected, const struct inject_outcome *outcome)
{
	injected->loaded = false;
	switch (outcome->status) {
	case INJECT_LOADED:
		injected->loaded = !outcome->result;
		if (outcome->result)
			snprintf(injected->why, sizeof(injected->why),
				 "it was loaded, but could not start: %s",
				 strerror(outcome->result));
		break;
	case INJECT_PRESENT:
		injected->loaded = true;
		break;
	case INJECT_GONE:
		break;
	case INJECT_REFUSED:
		explain(injected->why, outcome->text, "it cannot be, and nothing was done to it");
		break;
	case INJECT_NO_THREAD:
		explain(injected->why, outcome->text,
			"no thread of it waited where it could be taken");
		break;
	case INJECT_NO_HELPER:
		explain(injected->why, outcome->text, "it could not start a thread for it");
		break;
	default:
		explain(injected->why, outcome->text, "it failed, and the process goes on");
	}
}

static void log_outcome(uint32_t tgid, const struct inject_outcome *outcome)
{
	if (outcome->status == INJECT_LOADED)
		log_info("process %u: the shim was put into it by way of thread %u, which was "
			 "stopped for %.3f ms; it stays there, at rest, when we leave",
			 tgid, outcome->tid, (double)outcome->stop_ns / 1e6);
	log_debug("process %u: injection: status %d, %u tries, %.3f ms", tgid, outcome->status,
		  outcome->tries, (double)outcome->total_ns / 1e6);
}

/* Whether it is over, and somebody wants to know. */
static bool poll_running(struct gpu_inject *inject, uint64_t now_ns, struct gpu_injected *injected)
{
	struct inject_outcome outcome = {0};

	if (!inject__poll(inject->running, now_ns, &outcome))
		return false;
	inject__free(inject->running);
	inject->running = NULL;
	if (!inject->tgid)
		return false;
	/* What comes from the child was written by the child, which may have crashed. */
	outcome.text[sizeof(outcome.text) - 1] = '\0';
	injected->tgid = inject->tgid;
	log_outcome(inject->tgid, &outcome);
	judge(injected, &outcome);
	return true;
}

/* Whether it could not be begun. */
static bool start(struct gpu_inject *inject, struct wanted *wanted, struct gpu_injected *injected)
{
	int err;

	wanted->tried = true;
	inject->tgid = wanted->tgid;
	log_debug("process %u: injecting %s", wanted->tgid, inject->shim);
	err = inject__start(&inject->running, wanted->tgid, inject->shim, inject->timeout_ns);
	if (!err)
		return false;
	inject->running = NULL;
	injected->tgid = wanted->tgid;
	explain(injected->why, strerror(-err), "");
	return true;
}

bool gpu_inject__poll(struct gpu_inject *inject, uint64_t now_ns, struct gpu_injected *injected)
{
	memset(injected, 0, sizeof(*injected));
	if (inject->finished)
		return false;
	if (inject->running)
		return poll_running(inject, now_ns, injected);
	vec_for_each (wanted, &inject->queue) {
		if (!wanted->tried && now_ns >= wanted->due_ns)
			return start(inject, wanted, injected);
	}
	return false;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * --gpu=inject: puts the shim into a running process. The work is done by a short-lived child of
 * the tool (inject_run.h), with a session of its own, signals blocked and a high priority: Ctrl-C,
 * Ctrl-Z or the death of the tool do not come between it and the thread that it has stopped, and
 * the tool's rings are emptied meanwhile.
 */
#ifndef FBT_INJECT_TOOL_H
#define FBT_INJECT_TOOL_H

#include "inject_run.h"

struct broker_order;
struct inject;

/* What a broker does it with. */
struct inject_service {
	void *library; /* all of the shim, read here: its file may be another by then; owned */
	size_t size;
	uint64_t timeout_ns;
};

/* shim: as inject__start. 0 or -errno, logged; on failure nothing will be put anywhere. */
int inject_service_open(struct inject_service *service, const char *shim, uint64_t timeout_ns);
void inject_service_clear(struct inject_service *service);

/* The child, where a broker starts it: struct broker_task, its ctx is a struct inject_service. */
void inject_serve(const void *service, const struct broker_order *order, int output);

/*
 * Starts. shim: path of libferrum_cupti.so, read here. 0 or -errno, logged.
 */
int inject__start(struct inject **inject, uint32_t tgid, const char *shim, uint64_t timeout_ns);

/*
 * Whether it is over: true, and outcome is set (also where the child died). A child that takes 10 s
 * longer than its time-out is killed: the kernel then lets go of what it had stopped.
 */
bool inject__poll(struct inject *inject, uint64_t now_ns, struct inject_outcome *outcome);

/* Waits for a running one, as long as inject__poll would. */
void inject__free(struct inject *inject);

#endif

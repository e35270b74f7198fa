/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/stopper.h"

#include <inttypes.h>
#include <stddef.h>

/* Where all signals have the same numbers as on x86-64. */
#define FIRST_SIGNAL 19

const char *stop_signal_name(uint32_t number)
{
	static const char *const names[] = {"SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"};

	if (number < FIRST_SIGNAL || number - FIRST_SIGNAL >= sizeof(names) / sizeof(names[0]))
		return NULL;
	return names[number - FIRST_SIGNAL];
}

const char *sender_origin_name(enum fbt_sender_origin origin)
{
	static const char *const names[FBT_SENDER_ORIGINS] = {
		[FBT_SENT_BY_PROCESS] = "process",
		[FBT_SENT_BY_TERMINAL] = "terminal",
		[FBT_SENT_BY_TRACER] = "tracer",
		[FBT_SENT_BY_KERNEL] = "kernel",
	};

	return (unsigned int)origin < FBT_SENDER_ORIGINS ? names[origin] : "unknown";
}

/* "gdb (pid 4711)" */
static void add_process(struct line *line, const char comm[16], uint32_t pid)
{
	char text[4 * 16 + 1];

	line_add(line, "%s", shorten_text(text, sizeof(text), *comm ? comm : "?", 16));
	if (pid)
		line_add(line, " (pid %" PRIu32 ")", pid);
}

/* The first process has started what nobody else has. */
static void add_parent(struct line *line, const struct fbt_stop_sender *sender)
{
	if (sender->parent <= 1 || sender->parent == sender->sender)
		return;
	line_add(line, ", started by ");
	add_process(line, sender->parent_comm, sender->parent);
}

static void add_signal(struct line *line, const struct fbt_stop_sender *sender)
{
	const char *name = stop_signal_name(sender->number);

	if (sender->header.type != FBT_EVENT_STOP_SENDER || !name) {
		line_add(line, " by a signal (SIGSTOP or alike)");
		return;
	}
	line_add(line, " by %s ", name);
	switch ((enum fbt_sender_origin)sender->origin) {
	case FBT_SENT_BY_PROCESS:
		line_add(line, "from ");
		if (sender->sender == sender->tgid) {
			line_add(line, "itself");
			break;
		}
		add_process(line, sender->comm, sender->sender);
		add_parent(line, sender);
		break;
	case FBT_SENT_BY_TRACER:
		line_add(line, "as ");
		add_process(line, sender->comm, sender->sender);
		line_add(line, " attached to it");
		break;
	case FBT_SENT_BY_TERMINAL:
		line_add(line, "of its terminal");
		break;
	case FBT_SENT_BY_KERNEL:
	case FBT_SENDER_ORIGINS:
		line_add(line, "of the kernel");
		break;
	}
}

void stopper_add(struct line *line, const struct fbt_stop *stop,
		 const struct fbt_stop_sender *sender)
{
	switch ((enum fbt_stop_reason)stop->reason) {
	case FBT_STOP_SIGNAL:
		add_signal(line, sender);
		break;
	case FBT_STOP_FREEZER:
		line_add(line, " by the freezer of its cgroup");
		break;
	case FBT_STOP_TRACER:
		line_add(line, " by a tracer");
		if (*stop->comm) {
			line_add(line, ": ");
			add_process(line, stop->comm, stop->tracer);
		} else if (stop->tracer) {
			line_add(line, " (pid %" PRIu32 ")", stop->tracer);
		}
		break;
	case FBT_STOP_REASON_COUNT:
		break;
	}
}

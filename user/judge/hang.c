/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/hang.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/format.h"
#include "judge/stopper.h"
#include "model/driver_calls.h"
#include "model/syscalls.h"

#define NAME_COLUMNS 48
#define PATH_COLUMNS 60
#define HOUR_NS	     (3600 * NS_PER_S)

bool hang_limit_take(struct hang_limit *limit, uint64_t time_ns)
{
	if (!limit->count || time_ns >= limit->since_ns + HOUR_NS)
		*limit = (struct hang_limit){.since_ns = time_ns};
	limit->count++;
	return limit->count <= HANGS_TOLD_MAX;
}

bool hang_limit_begins(const struct hang_limit *limit)
{
	return limit->count == HANGS_TOLD_MAX + 1;
}

static void add_thread(struct line *line, const struct fbt_hang *hang, const struct window *window)
{
	line_add(line, " on ");
	look_add_thread(line, hang->tid, window);
	if (hang->tid != hang->tgid)
		line_add(line, " of process %" PRIu32, hang->tgid);
}

/* ": in read of /tmp/fifo for 9.98 s" */
static void add_call(struct line *line, const struct fbt_hang *hang, const struct window *window)
{
	const struct fbt_call *call = &hang->call;
	const struct file *file = window__file(window, call->file);
	enum fbt_arch arch = (enum fbt_arch)window->record.arch;
	char label[24], driver[DRIVER_CALL_NAME], path[4 * PATH_COLUMNS + 1];
	bool is_known = call->header.flags & FBT_CALL_ARGS;

	line_add(line, ": in %s", syscall_label(arch, call->nr, label));
	if (driver_call_has_command(window, call) && driver_call_name(file, call->args[1], driver))
		line_add(line, " %s", driver);
	if (is_known && file && *file->path)
		line_add(line, " of %s",
			 shorten_text(path, sizeof(path), file->path, PATH_COLUMNS));
	line_add(line, " for %s", FORMAT_TIME(call->duration_ns));
	if (is_known && syscall_category(arch, call->nr) == FBT_FUTEX)
		line_add(line, ", lock at 0x%" PRIx64, (uint64_t)call->args[0]);
}

/* ", held by thread 7331 "kv-evict": read for 9.90 s in …" */
static void add_holders(struct line *line, const struct fbt_hang *hang, const struct window *window)
{
	const struct hang_look *look = window__hang_look(window, hang);
	struct fbt_look_thread threads[FBT_LOOK_HOLDERS];
	struct look_holders holders = {.threads = threads};

	if (!look)
		return;
	vec_for_each (thread, &look->threads)
		if (!(thread->header.flags & FBT_LOOK_GROUP) &&
		    thread->depth == holders.count + 1 && holders.count < FBT_LOOK_HOLDERS)
			threads[holders.count++] = *thread;
	if (!holders.count)
		return;
	line_add(line, ", held by ");
	look_add_thread(line, threads[0].owner, window);
	look_add_holders(line, &holders, window);
}

const struct fbt_look_thread *hang_group(const struct fbt_hang *hang, const struct window *window,
					 size_t number)
{
	const struct hang_look *look = window__hang_look(window, hang);

	if (!look)
		return NULL;
	vec_for_each (thread, &look->threads)
		if (thread->header.flags & FBT_LOOK_GROUP && thread->depth == number)
			return thread;
	return NULL;
}

static bool is_in_group(const struct fbt_look_thread *group, uint32_t tid)
{
	for (int i = 0; i < FBT_LOOK_TIDS; i++)
		if (group->tids[i] == tid)
			return true;
	return group->owner == tid;
}

const struct fbt_look_thread *hang_own_thread(const struct fbt_hang *hang,
					      const struct window *window)
{
	const struct hang_look *look = window__hang_look(window, hang);
	const struct fbt_look_thread *found = NULL;

	if (!look)
		return NULL;
	vec_for_each (thread, &look->threads) {
		bool is_group = thread->header.flags & FBT_LOOK_GROUP;

		/* The one that waits is the head of the chain. */
		if (!is_group && !thread->depth)
			return thread;
		if (is_group && !found && is_in_group(thread, hang->tid))
			found = thread;
	}
	return found;
}

/* Threads that are in none of the first groups. */
static uint32_t count_others(const struct fbt_hang *hang, const struct window *window,
			     size_t groups)
{
	const struct hang_look *look = window__hang_look(window, hang);
	uint64_t shown = 0;

	if (!look)
		return 0;
	for (size_t i = 0; i < groups; i++) {
		const struct fbt_look_thread *group = hang_group(hang, window, i);

		shown += group ? group->threads : 0;
	}
	return look->record.threads > shown ? look->record.threads - (uint32_t)shown : 0;
}

uint32_t hang_left_out(const struct fbt_hang *hang, const struct window *window)
{
	return count_others(hang, window, FBT_LOOK_GROUPS);
}

uint32_t hang_others(const struct fbt_hang *hang, const struct window *window)
{
	return count_others(hang, window, LOOK_GROUPS_SHOWN);
}

void hang_describe_threads(const struct fbt_hang *hang, const struct window *window,
			   char text[HANG_THREADS_SIZE])
{
	struct line line = {text, HANG_THREADS_SIZE, 0};
	const struct fbt_look_thread *group;
	char described[LOOK_GROUP_SIZE];
	uint32_t others = hang_others(hang, window);

	*text = '\0';
	for (size_t i = 0; i < LOOK_GROUPS_SHOWN && (group = hang_group(hang, window, i)); i++) {
		look_describe_group(group, window, described);
		line_add(&line, "%s%s", i ? "; " : "", described);
	}
	if (others)
		line_add(&line, "; %s more", FORMAT_COUNT(others));
}

static const char *state_words(const struct fbt_hang *hang, const struct window *window)
{
	switch (hang->state) {
	case 'R':
		return window__traces_calls(window)
			       ? "running, in its own code or from one short call to the next"
			       : "running, or ready to run";
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a tracer";
	case 'D':
		return "waiting for a disk, or for the kernel (state D)";
	case 'S':
		return window__traces_calls(window) ? "asleep, in no call" : "asleep";
	default:
		return "doing what is not known";
	}
}

/* " by SIGSTOP from kill (pid 81)"; NULL: " by a signal" */
static void add_sender(struct line *line, const struct fbt_stop_sender *sender)
{
	const struct fbt_stop stop = {.reason = FBT_STOP_SIGNAL};

	if (sender)
		stopper_add(line, &stop, sender);
	else
		line_add(line, " by a signal");
}

void hang_describe(const struct fbt_hang *hang, const struct window *window,
		   char text[HANG_TEXT_SIZE])
{
	struct line line = {text, HANG_TEXT_SIZE, 0};
	char name[4 * NAME_COLUMNS + 1];

	*text = '\0';
	shorten_name(name, sizeof(name), window__kind_name(window, hang->kind), NAME_COLUMNS);
	line_add(&line, "%s has not returned for %s", name,
		 FORMAT_TIME(hang->time_ns - hang->step_start_ns));
	add_thread(&line, hang, window);
	/* A thread that was stopped in a call is both. */
	if (hang->state == 'T' || hang->state == 't' || !hang->call.header.type)
		line_add(&line, ": %s", state_words(hang, window));
	if (hang->state == 'T')
		add_sender(&line, window__hang_sender(window, hang));
	if (hang->call.header.type)
		add_call(&line, hang, window);
	add_holders(&line, hang, window);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/look.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/arith.h"
#include "judge/peers.h"
#include "model/syscalls.h"

#define THREAD_COLUMNS 15

/* A call for the GIL that begins so soon after one that timed out is of the same wait. */
#define GIL_AGAIN_NS 1000000

void look_add_thread(struct line *line, uint32_t tid, const struct window *window)
{
	const char *name = window__thread_name(window, tid);
	char escaped[4 * THREAD_COLUMNS + 1];

	line_add(line, "thread %" PRIu32, tid);
	if (name && *name)
		line_add(line, " \"%s\"",
			 shorten_text(escaped, sizeof(escaped), name, THREAD_COLUMNS));
}

void look_stack(const struct fbt_look_thread *thread, struct fbt_stack *stack)
{
	*stack = (struct fbt_stack){
		.header.flags =
			thread->header.flags & (FBT_STACK_CUT | FBT_STACK_LOST | FBT_STACK_GUESSED |
						FBT_STACK_APART | FBT_STACK_MOVED | FBT_STACK_RAN),
		.tgid = thread->tgid,
		.tid = thread->tid,
		.start_ns = thread->start_ns,
		.nr = thread->nr,
		.owner = thread->owner,
		.count = thread->count,
	};
	memcpy(stack->codes, thread->codes, sizeof(stack->codes));
}

bool look_has_script(const struct fbt_look_thread *thread, const struct window *window)
{
	for (uint32_t i = 0; i < thread->count; i++) {
		const struct code *code = window__code(window, thread->codes[i]);

		if (code && code->record.header.flags & FBT_CODE_SCRIPT)
			return true;
	}
	return false;
}

/* A wait for the GIL is a row of calls: the look is at the first one, and good for all of them. */
static bool is_in_row(const struct step *step, const struct fbt_look_thread *look,
		      const struct fbt_call *call)
{
	uint64_t again_until_ns = look->start_ns;

	if (call->start_ns < look->start_ns || call->nr != look->nr)
		return false;
	for (size_t i = vec_lower_bound(&step->calls, item->start_ns, look->start_ns);
	     i < step->calls.count; i++) {
		const struct fbt_call *next = &step->calls.items[i];

		if (next->nr != look->nr || next->start_ns > again_until_ns)
			return false;
		if (next->start_ns == call->start_ns)
			return true;
		if (next->ret != -ETIMEDOUT)
			return false;
		again_until_ns = add_saturating(add_saturating(next->start_ns, next->duration_ns),
						GIL_AGAIN_NS);
	}
	return false;
}

static bool is_look_at(const struct step *step, const struct fbt_look_thread *look,
		       const struct fbt_call *call)
{
	if (look->depth || look->header.flags & (FBT_LOOK_GROUP | FBT_LOOK_SPIN) || !look->count ||
	    look->tid != call->tid)
		return false;
	return look->start_ns == call->start_ns ||
	       (look->header.flags & FBT_LOOK_GIL && is_in_row(step, look, call));
}

bool look_call_stack(const struct step *step, const struct window *window,
		     const struct fbt_call *call, struct fbt_stack *stack)
{
	*stack = (struct fbt_stack){.count = 0};
	vec_for_each (copied, &step->stacks) {
		if (copied->start_ns == call->start_ns && copied->tid == call->tid &&
		    !(copied->header.flags & (FBT_STACK_WAKER | FBT_STACK_SAMPLED))) {
			*stack = *copied;
			break;
		}
	}
	/* A copy of the end of the call does not have the functions of scripts. */
	vec_for_each (look, &step->looks) {
		if (!is_look_at(step, look, call) ||
		    (stack->count && !look_has_script(look, window)))
			continue;
		look_stack(look, stack);
		stack->start_ns = call->start_ns;
	}
	return stack->count != 0;
}

static const char *call_label(const struct fbt_look_thread *thread, const struct window *window,
			      char label[24])
{
	return syscall_label((enum fbt_arch)window->record.arch, thread->nr, label);
}

static const char *state_words(const struct fbt_look_thread *thread)
{
	switch ((enum fbt_look_doing)thread->doing) {
	case FBT_DOING_CPU:
		return "on a CPU";
	case FBT_DOING_CPU_WAIT:
		return "waiting for a CPU";
	case FBT_DOING_STOPPED:
		return "stopped";
	case FBT_DOING_KERNEL:
		return "asleep outside of calls";
	case FBT_DOING_CALL:
	case FBT_DOING_UNKNOWN:
	case FBT_DOING_COUNT:
		break;
	}
	return "doing what is not known";
}

static void add_call(struct line *line, const struct fbt_look_thread *thread,
		     const struct window *window)
{
	char label[24];

	line_add(line, "%s", call_label(thread, window, label));
	if (thread->call_ns)
		line_add(line, " for %s", FORMAT_TIME(thread->call_ns));
}

/* "clock_nanosleep for 19.8 ms", or "waiting for a CPU, in read". */
static void add_doing(struct line *line, const struct fbt_look_thread *thread,
		      const struct window *window)
{
	if (thread->doing == FBT_DOING_CALL) {
		add_call(line, thread, window);
		return;
	}
	line_add(line, "%s", state_words(thread));
	if (thread->header.flags & FBT_LOOK_IN_CALL) {
		line_add(line, ", in ");
		add_call(line, thread, window);
	}
}

static void add_stack(struct line *line, const struct fbt_look_thread *thread, uint32_t shown,
		      const char *word, const struct window *window)
{
	struct fbt_stack stack;
	char frames[FRAMES_SIZE];

	if (!thread->count)
		return;
	look_stack(thread, &stack);
	frames_describe_some(&stack, window, shown, frames, sizeof(frames));
	line_add(line, "%s%s%s", word, thread->header.flags & FBT_LOOK_SAMPLE ? "near " : "",
		 frames);
}

/* ": clock_nanosleep for 19.8 ms in evict <- run", or where its call is known ", in evict <- run"
 */
static void add_holder(struct line *line, const struct fbt_look_thread *holder, bool is_call_said,
		       const struct window *window)
{
	bool is_near = holder->header.flags & FBT_LOOK_SAMPLE;

	if (!is_call_said) {
		line_add(line, ": ");
		add_doing(line, holder, window);
	}
	add_stack(line, holder, FRAMES_SHORT,
		  is_call_said ? (is_near ? ", " : ", in ") : (is_near ? " " : " in "), window);
	if (holder->depth == 1 && !(holder->header.flags & FBT_LOOK_HANG))
		line_add(line, " (seen %s into the wait)",
			 FORMAT_TIME(holder->time_ns - holder->start_ns));
}

void look_add_holders(struct line *line, const struct look_holders *holders,
		      const struct window *window)
{
	for (uint32_t i = 0; i < holders->count; i++) {
		const struct fbt_look_thread *holder = &holders->threads[i];
		const struct step_peer *peer = holders->peer;
		bool is_last = i + 1 == holders->count;

		add_holder(line, holder, !i && holders->is_call_said, window);
		if (holder->header.flags & FBT_LOOK_CYCLE)
			line_add(line, ", for a lock that one of these threads holds: a deadlock");
		else if (!is_last)
			line_add(line, ", lock at 0x%" PRIx64 " held by ", (uint64_t)holder->lock);
		if (!is_last) {
			look_add_thread(line, holder[1].owner, window);
		} else if (peer && peer->record.via == holder->owner) {
			line_add(line, ", waiting for ");
			peer_describe(line, peer, window);
		}
	}
}

void look_describe_group(const struct fbt_look_thread *group, const struct window *window,
			 char text[LOOK_GROUP_SIZE])
{
	struct line line = {text, LOOK_GROUP_SIZE, 0};

	*text = '\0';
	if (group->threads == 1)
		look_add_thread(&line, group->owner, window);
	else
		line_add(&line, "%s threads", FORMAT_COUNT(group->threads));
	line_add(&line, group->doing == FBT_DOING_CALL ? " in " : " ");
	add_doing(&line, group, window);
	add_stack(&line, group, FRAMES_SHOWN, ": ", window);
}

void look_describe_others(const struct fbt_look_thread *others, uint32_t count,
			  const struct window *window, char text[LOOK_OTHERS_SIZE])
{
	struct line line = {text, LOOK_OTHERS_SIZE, 0};
	char described[LOOK_GROUP_SIZE];

	*text = '\0';
	for (uint32_t i = 0; i < count; i++) {
		line_add(&line, "%s", i ? "; " : "");
		if (others[i].doing == FBT_DOING_UNKNOWN) {
			line_add(&line, "%s other%s", FORMAT_COUNT(others[i].threads),
				 plural(others[i].threads));
			continue;
		}
		look_describe_group(&others[i], window, described);
		line_add(&line, "%s", described);
	}
}

const char *look_doing_name(const struct fbt_look_thread *thread, const struct window *window,
			    char label[24])
{
	switch ((enum fbt_look_doing)thread->doing) {
	case FBT_DOING_CALL:
		return call_label(thread, window, label);
	case FBT_DOING_CPU:
		return "cpu";
	case FBT_DOING_CPU_WAIT:
		return "cpu_wait";
	case FBT_DOING_STOPPED:
		return "stopped";
	case FBT_DOING_KERNEL:
		return "kernel";
	case FBT_DOING_UNKNOWN:
	case FBT_DOING_COUNT:
		break;
	}
	return "unknown";
}

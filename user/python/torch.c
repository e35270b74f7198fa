/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/torch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/end_signals.h"
#include "base/log.h"
#include "proc/open.h"
#include "python/guest.h"
#include "sandbox/broker.h"

/* The execution trace is in the memory of the engine until it is copied, and so is Kineto's. */
#define EXECUTION_BYTES_MAX (1ull << 30)
#define LOOK_US		    20000

/* How long PyTorch may take to start and to export its traces, and a step of an engine to end. */
#define EXPORT_NS (60 * NS_PER_S)
#define STEP_NS	  (10 * NS_PER_S)
#define TELL_NS	  NS_PER_S

/* A number that no earlier window of these processes has. */
static uint32_t new_number(void)
{
	uint32_t number = (uint32_t)(clock_ns(CLOCK_MONOTONIC) / NS_PER_MS);

	return number ? number : 1;
}

static struct python_torch_wish make_wish(const struct torch_settings *settings, uint32_t window)
{
	return (struct python_torch_wish){
		.window = window,
		.flags = settings->flags,
		.max_steps = settings->max_steps,
		.max_bytes = EXECUTION_BYTES_MAX,
	};
}

uint32_t python_torch_begin(const struct python_steps *steps, const struct torch_settings *settings)
{
	struct python_torch_wish wish = make_wish(settings, new_number());
	struct python_member member;

	for (size_t i = 0; python_steps__member(steps, i, &member); i++)
		python_guest__want_torch(member.guest, &wish);
	return wish.window;
}

void python_torch_join(const struct python_steps *steps, const struct torch_settings *settings,
		       uint32_t window, uint32_t tgid)
{
	struct python_torch_wish wish = make_wish(settings, window);
	struct python_member member;

	for (size_t i = 0; python_steps__member(steps, i, &member); i++) {
		if (member.tgid == tgid)
			python_guest__want_torch(member.guest, &wish);
	}
}

struct torch_span python_torch_span(const struct python_steps *steps, uint32_t window)
{
	struct torch_span span = {.begin_ns = UINT64_MAX};
	struct fbt_python_torch answer;
	struct python_member member;

	for (size_t i = 0; python_steps__member(steps, i, &member); i++) {
		python_guest__torch(member.guest, window, &answer);
		/* Before the state is set: the start itself takes time. */
		if (!answer.begin_ns || (answer.state == FBT_TORCH_NONE && answer.end_ns))
			continue;
		if (answer.begin_ns < span.begin_ns)
			span.begin_ns = answer.begin_ns;
		if (!answer.end_ns || answer.end_ns > span.end_ns)
			span.end_ns = answer.end_ns ? answer.end_ns : UINT64_MAX;
	}
	return span;
}

void python_torch_end(const struct python_steps *steps)
{
	struct python_member member;

	for (size_t i = 0; python_steps__member(steps, i, &member); i++)
		python_guest__end_torch(member.guest);
}

/* The longest wait of all. */
static enum python_torch_wait wait_of_all(const struct python_steps *steps, uint32_t window)
{
	enum python_torch_wait longest = PYTHON_TORCH_NOTHING, own;
	struct python_member member;

	for (size_t i = 0; python_steps__member(steps, i, &member); i++) {
		own = python_guest__torch_wait(member.guest, window);
		if (own > longest && (!kill((pid_t)member.tgid, 0) || errno != ESRCH))
			longest = own;
	}
	return longest;
}

static void tell(const struct python_member *member, const struct fbt_python_torch *answer)
{
	switch (answer->state) {
	case FBT_TORCH_NONE:
		log_debug("process %u: PyTorch's profiler was not started: no step began",
			  member->tgid);
		break;
	case FBT_TORCH_ON:
		log_warn("process %u: no trace of PyTorch: no step has ended since the window did; "
			 "the profiler stops with its next step",
			 member->tgid);
		break;
	case FBT_TORCH_DONE:
		if (*answer->text)
			log_warn("process %u: PyTorch's profiler was stopped after %llu steps: %s",
				 member->tgid, (unsigned long long)answer->steps, answer->text);
		break;
	case FBT_TORCH_ABSENT:
		log_warn("process %u: no trace of PyTorch: it is not loaded, or older than 2.0",
			 member->tgid);
		break;
	case FBT_TORCH_TAKEN:
		log_warn("process %u: no trace of PyTorch: a profiler of the engine's own is on, "
			 "and was left alone",
			 member->tgid);
		break;
	default:
		log_warn("process %u: no trace of PyTorch: %s", member->tgid, answer->text);
		break;
	}
}

/* Confined, the tool may open nothing for writing, as memfd_open does: it asks the broker. */
static int open_export(uint32_t tgid, int32_t number)
{
	if (number < 0)
		return -EBADF;
	if (!broker_is_there())
		return memfd_open_named(tgid, (uint32_t)number, FBT_TORCH_MEMFD);
	return broker_open(BROKER_PYTHON, tgid, (uint32_t)number, NULL);
}

static bool open_exports(const struct python_member *member, const struct fbt_python_torch *answer,
			 struct torch_export *export)
{
	*export = (struct torch_export){
		.tgid = member->tgid,
		.execution_fd = open_export(member->tgid, answer->execution_fd),
		.kineto_fd = open_export(member->tgid, answer->kineto_fd),
	};
	if (export->execution_fd >= 0 && export->kineto_fd >= 0)
		return true;
	log_warn("process %u: the traces of PyTorch cannot be opened: %s", member->tgid,
		 strerror(export->kineto_fd < 0 ? -export->kineto_fd : -export->execution_fd));
	if (export->execution_fd >= 0)
		close(export->execution_fd);
	if (export->kineto_fd >= 0)
		close(export->kineto_fd);
	return false;
}

/* Until all have exported. A step that hangs, or an engine that is idle, does not end the wait. */
static void await_exports(struct python_steps *steps, uint32_t window)
{
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	enum python_torch_wait wait;
	bool told = false;

	while ((wait = wait_of_all(steps, window)) != PYTHON_TORCH_NOTHING) {
		uint64_t limit_ns = wait == PYTHON_TORCH_STEP ? STEP_NS : EXPORT_NS;
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

		if (now_ns - begin_ns >= limit_ns || end_signals_came())
			break;
		if (!told && now_ns - begin_ns >= TELL_NS) {
			log_info(
				wait == PYTHON_TORCH_STEP
					? "PyTorch's profiler stops at the end of a step (send an "
					  "idle engine a request), which is waited for up to %u s; "
					  "Ctrl-C ends the wait"
					: "PyTorch's profiler is being stopped, which is waited "
					  "for up to %u s; Ctrl-C ends the wait",
				(unsigned int)(limit_ns / NS_PER_S));
			told = true;
		}
		python_steps__beat(steps, now_ns);
		usleep(LOOK_US);
	}
}

void python_torch_collect(struct python_steps *steps, uint32_t window,
			  void (*take)(void *ctx, const struct torch_export *export), void *ctx)
{
	struct fbt_python_torch answer;
	struct torch_export export;
	struct python_member member;
	sigset_t before;

	end_signals_hold(&before);
	await_exports(steps, window);
	end_signals_release(&before);
	for (size_t i = 0; python_steps__member(steps, i, &member); i++) {
		python_guest__torch(member.guest, window, &answer);
		tell(&member, &answer);
		if (answer.state == FBT_TORCH_DONE && open_exports(&member, &answer, &export))
			take(ctx, &export);
	}
}

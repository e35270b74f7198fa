/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/torch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/open.h"
#include "python/guest.h"
#include "sandbox/broker.h"

/* The execution trace is in the memory of the engine until it is copied, and so is Kineto's. */
#define EXECUTION_BYTES_MAX (1ull << 30)
#define LOOK_US		    20000

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

/* Or is just being started, which may take seconds: its function is not disarmed meanwhile. */
static bool is_on(const struct fbt_python_torch *answer)
{
	return answer->state == FBT_TORCH_ON ||
	       (answer->state == FBT_TORCH_NONE && answer->begin_ns && !answer->end_ns);
}

static bool is_on_somewhere(const struct python_steps *steps, uint32_t window)
{
	struct fbt_python_torch answer;
	struct python_member member;

	for (size_t i = 0; python_steps__member(steps, i, &member); i++) {
		python_guest__torch(member.guest, window, &answer);
		if (is_on(&answer) && (!kill((pid_t)member.tgid, 0) || errno != ESRCH))
			return true;
	}
	return false;
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

void python_torch_collect(struct python_steps *steps, uint32_t window, uint64_t deadline_ns,
			  void (*take)(void *ctx, const struct torch_export *export), void *ctx)
{
	struct fbt_python_torch answer;
	struct torch_export export;
	struct python_member member;
	uint64_t now_ns;

	while (is_on_somewhere(steps, window) &&
	       (now_ns = clock_ns(CLOCK_MONOTONIC)) < deadline_ns) {
		python_steps__beat(steps, now_ns);
		usleep(LOOK_US);
	}
	for (size_t i = 0; python_steps__member(steps, i, &member); i++) {
		python_guest__torch(member.guest, window, &answer);
		tell(&member, &answer);
		if (answer.state == FBT_TORCH_DONE && open_exports(&member, &answer, &export))
			take(ctx, &export);
	}
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "inject_take.h"
#include "processes.h"

#define MS 1000000ull
/* The helper is there, or never comes: pthread_create has failed. On a busy machine it takes long.
 */
#define HELPER_WAIT_NS (4000 * MS)
/* For the library to be loaded and its entry to return. */
#define ANSWER_WAIT_NS (5000 * MS)
/* How often a process that may have called execve is looked at meanwhile. */
#define LOOK_NS (200 * MS)
/* Between two looks for the page: short ones first. */
#define PAUSE_MIN_NS (MS / 20)
#define PAUSE_MAX_NS (5 * MS)

struct run {
	const struct inject_wish *wish;
	struct inject_outcome *outcome;
	struct inject_target target;
	uint32_t nonce;
};

static void conclude(struct run *run, enum inject_status status, const char *text)
{
	run->outcome->status = status;
	snprintf(run->outcome->text, sizeof(run->outcome->text), "%s", text);
}

static bool is_gone(const struct run *run)
{
	return run->target.pidfd >= 0 && !inject_target_is_there(&run->target);
}

/* What failed may have failed because there is no such process any more. */
static void conclude_error(struct run *run, const char *what, int err)
{
	char text[INJECT_TEXT_MAX];

	if (err == -ESRCH || is_gone(run)) {
		conclude(run, INJECT_GONE, "the process has ended, or runs another program");
		return;
	}
	snprintf(text, sizeof(text), "%s: %s", what, strerror(-err));
	conclude(run, INJECT_FAILED, text);
}

/* Whether there is more to do. */
static bool check(struct run *run)
{
	const struct inject_wish *wish = run->wish;
	struct inject_verdict verdict = {0};
	int err = inject_check(&run->target, &verdict, wish->tgid, wish->need_cuda);
	char text[INJECT_TEXT_MAX];

	inject_verdict_reason(&verdict, text);
	if (!err && verdict.present)
		conclude(run, INJECT_PRESENT, "the shim is in the process already");
	else if (err == -EPERM && text[0] && !is_gone(run))
		conclude(run, INJECT_REFUSED, text);
	else if (err)
		conclude_error(run, "the process cannot be looked at", err);
	err = err || verdict.present;
	inject_verdict_clear(&verdict);
	inject_reach(&wish->hook, INJECT_AT_CHECKED);
	return !err;
}

static bool write_stub(struct run *run)
{
	struct inject_target *target = &run->target;
	int err =
		inject_place_write(&target->place, target->tgid, target->thread, &run->wish->hook);

	if (err)
		conclude_error(run, "the stub cannot be written", err);
	else
		inject_reach(&run->wish->hook, INJECT_AT_STUB_WRITTEN);
	return !err;
}

static bool take_thread(struct run *run)
{
	const struct inject_wish *wish = run->wish;
	struct inject_take take = {
		.target = &run->target,
		.tid = wish->tid,
		.nonce = run->nonce,
		.deadline_ns = clock_ns(CLOCK_MONOTONIC) + wish->timeout_ns,
		.hook = &wish->hook,
	};
	struct inject_taken taken;
	int err = inject_take(&take, &taken);

	run->outcome->tid = taken.tid;
	run->outcome->nr = taken.nr;
	run->outcome->tries = taken.tries;
	run->outcome->stop_ns = taken.stop_ns;
	run->outcome->total_ns = taken.begin_ns; /* until it is over */
	if (err == -EPERM)
		conclude(run, INJECT_REFUSED, taken.text);
	else if (err == -EAGAIN)
		conclude(run, INJECT_NO_THREAD,
			 taken.tries ? "no thread waited long enough where it could be taken"
				     : "no thread waited where it could be taken");
	else if (err == -ETIMEDOUT)
		conclude(run, INJECT_FAILED, taken.text);
	else if (err)
		conclude_error(run, "no thread can be taken", err);
	return !err;
}

static void pause_for(uint64_t ns)
{
	struct timespec time = {.tv_nsec = (long)ns};

	nanosleep(&time, NULL);
}

static struct inject_page *await_helper(struct run *run)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + HELPER_WAIT_NS, pause_ns = PAUSE_MIN_NS;
	uint64_t token = FBT_INJECT_TOKEN(run->nonce, 0);
	uint32_t tgid = run->target.tgid;
	struct inject_page *page;
	int err;

	for (;;) {
		err = inject_page__open(&page, tgid, processes_living_thread(tgid), token);
		if (!err)
			return page;
		if (clock_ns(CLOCK_MONOTONIC) >= until_ns || !inject_target_is_there(&run->target))
			break;
		pause_for(pause_ns);
		pause_ns = pause_ns * 2 < PAUSE_MAX_NS ? pause_ns * 2 : PAUSE_MAX_NS;
	}
	if (err == -ENOENT && inject_target_is_there(&run->target))
		conclude(run, INJECT_NO_HELPER,
			 "no helper thread came: is there a limit on threads, memory or files?");
	else
		conclude_error(run, "the helper's page cannot be opened", err);
	return NULL;
}

static int await_answer(struct run *run, struct inject_page *page, struct inject_answer *answer)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + ANSWER_WAIT_NS, now_ns;
	int err;

	do {
		now_ns = clock_ns(CLOCK_MONOTONIC);
		err = inject_page__await(page, run->target.pidfd,
					 until_ns - now_ns > LOOK_NS ? now_ns + LOOK_NS : until_ns,
					 answer);
		if (err == -ETIMEDOUT && !inject_target_is_there(&run->target))
			return -ESRCH;
	} while (err == -ETIMEDOUT && clock_ns(CLOCK_MONOTONIC) < until_ns);
	return err;
}

static void judge(struct run *run, const struct inject_answer *answer)
{
	char text[INJECT_TEXT_MAX];

	run->outcome->result = answer->result;
	if (answer->stage == FBT_INJECT_STAGE_DONE) {
		conclude(run, INJECT_LOADED, "");
		return;
	}
	snprintf(text, sizeof(text), "%s: %.*s",
		 answer->stage == FBT_INJECT_STAGE_LOAD ? "dlopen in the process"
							: "dlsym in the process",
		 INJECT_TEXT_MAX - 32, answer->text);
	conclude(run, INJECT_FAILED, text);
}

static void hand_over(struct run *run, struct inject_page *page)
{
	const struct inject_hook *hook = &run->wish->hook;
	struct inject_answer answer;
	int err;

	inject_reach(hook, INJECT_AT_PAGE_FOUND);
	inject_reach(hook, INJECT_AT_PAGE_MAPPED);
	err = inject_page__fill(page, &run->wish->library, hook);
	if (err) {
		conclude_error(run, "the library cannot be handed over", err);
		return;
	}
	err = await_answer(run, page, &answer);
	if (!err)
		judge(run, &answer);
	else if (err == -ETIMEDOUT)
		conclude(run, INJECT_FAILED,
			 "the library was handed over, but is not loaded yet: does a thread of the "
			 "process hold the loader's lock?");
	else
		conclude_error(run, "the helper's page", err);
}

void inject_hurry(void)
{
	/* Where the kernel shares the processor out by sessions a nice value counts within one. */
	int fd = setsid() < 0 ? -1 : open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "-20", 3) < 0)
			errno = 0;
		close(fd);
	}
	setpriority(PRIO_PROCESS, 0, -20);
}

void inject_run(const struct inject_wish *wish, struct inject_outcome *outcome)
{
	struct run run = {.wish = wish, .outcome = outcome, .target = {.pidfd = -1}};
	struct inject_page *page;

	memset(outcome, 0, sizeof(*outcome));
	inject_reach(&wish->hook, INJECT_AT_START);
	if (getrandom(&run.nonce, sizeof(run.nonce), 0) != sizeof(run.nonce))
		run.nonce = (uint32_t)clock_ns(CLOCK_MONOTONIC);
	if (!check(&run) || !write_stub(&run) || !take_thread(&run))
		goto out;
	page = await_helper(&run);
	if (page)
		hand_over(&run, page);
	inject_page__free(page);
out:
	if (outcome->total_ns)
		outcome->total_ns = clock_ns(CLOCK_MONOTONIC) - outcome->total_ns;
	inject_target_clear(&run.target);
	inject_reach(&wish->hook, INJECT_AT_DONE);
}

int inject_try(uint32_t tgid, struct inject_verdict *verdict)
{
	struct inject_target target = {.pidfd = -1};
	int err = inject_check(&target, verdict, tgid, true);

	if (!err && !verdict->present)
		inject_take_look(&target, verdict);
	inject_target_clear(&target);
	return err ? err : verdict->refused ? -EPERM : 0;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/target.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memfd.h"
#include "proc/process.h"
#include "recorder/flight.h"
#include "proc/open.h"
#include "proc/status.h"
#include "watch/children.h"

/* A tracer that says nothing for so long is stuck; to start, it may need longer. */
#define SILENCE_NS	 (30 * NS_PER_S)
#define START_SILENCE_NS (180 * NS_PER_S)
#define RETRY_NS	 (5 * NS_PER_S)
/* A tracer that beats answers within a second or two, also with the largest memory. */
#define DUMP_NS (60 * NS_PER_S)
/* An escalation while another window of system calls runs. */
#define CALLS_WAIT_NS (15 * NS_PER_S)
/* For a window of system calls to begin and to end. */
#define CALLS_GRACE_NS (120 * NS_PER_S)
/* Who has run for so long has not failed before. */
#define GOOD_NS	     (300 * NS_PER_S)
#define RETRY_MAX_NS (60 * NS_PER_S)
/* A sample of more is not kept in memory. */
#define SAMPLE_BYTES_MAX (UINT64_C(64) << 20)

bool target_find_start(uint32_t tgid, uint64_t *start)
{
	struct thread_stat stat;

	if (thread_stat_read(&stat, (struct proc_ref){.tgid = tgid}))
		return false;
	*start = stat.start_ticks;
	/* Its first thread may have ended before others. */
	return (stat.state != 'Z' && stat.state != 'X') || processes_live_thread(tgid) != tgid;
}

static bool is_alive(const struct target *target)
{
	uint64_t start;

	return target_find_start(target->tgid, &start) && start == target->start;
}

struct target *target__new(struct target_home *home, uint32_t tgid, uint64_t start,
			   const char *comm)
{
	struct target *target = calloc(1, sizeof(*target));

	if (!target)
		return NULL;
	target->home = home;
	target->tgid = tgid;
	target->start = start;
	snprintf(target->comm, sizeof(target->comm), "%s", comm);
	target->link = target->calls_fd = target->sample_fd = -1;
	target->due_sample_fd = target->due_calls_fd = -1;
	return target;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_link(struct target *target)
{
	if (target->link >= 0)
		epoll_ctl(target->home->epoll_fd, EPOLL_CTL_DEL, target->link, NULL);
	close_fd(&target->link);
	target->attached = false;
}

/* A second SIGTERM would kill it. */
static void end_child(const struct target *target, pid_t pid, unsigned int slot, bool was_told)
{
	if (!pid)
		return;
	if (!was_told)
		kill(pid, SIGTERM);
	dying_add(&target->home->dying, pid, slot, clock_ns(CLOCK_MONOTONIC));
}

bool target_home_reap(struct target_home *home, pid_t pid)
{
	if (!dying_reap(&home->dying, pid))
		return false;
	if (home->calls == pid)
		home->calls = 0;
	return true;
}

bool target__is_over(const struct target *target)
{
	return !target->tracer && !target->calls && !is_alive(target);
}

static void wait_for_retry(struct target *target, uint64_t now_ns)
{
	uint64_t wait_ns = RETRY_NS << (target->failures < 4 ? target->failures : 4);

	target->failures++;
	target->retry_ns = now_ns + min_u64(wait_ns, RETRY_MAX_NS);
}

static void start_tracer(struct target *target, uint64_t now_ns)
{
	struct tracer_plan plan = {.options = target->home->options,
				   .tgid = target->tgid,
				   .follows = target->follows,
				   .slot = target->slot};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = target};
	int ends[2], err = flight_pair(ends);

	if (err) {
		log_err("tracer of %u: %s", target->tgid, strerror(-err));
		wait_for_retry(target, now_ns);
		return;
	}
	plan.fd = ends[1];
	err = children_start_tracer(&plan, &target->tracer);
	close(ends[1]);
	target->link = ends[0];
	if (!err && epoll_ctl(target->home->epoll_fd, EPOLL_CTL_ADD, target->link, &event))
		err = -errno;
	if (err) {
		target->tracer = err == -EAGAIN ? 0 : target->tracer;
		close_link(target);
		wait_for_retry(target, now_ns);
	}
	target->heard_ns = now_ns;
}

static bool traces_calls(const struct target *target, uint64_t ns)
{
	return ns && !target->calls && !target->home->calls && !target->home->stopping &&
	       target->attached;
}

/* One window of system calls. Only then do other processes of the machine pay anything. */
static void start_calls(struct target *target, uint64_t ns, bool is_sample)
{
	struct tracer_plan plan = {.options = target->home->options,
				   .tgid = target->tgid,
				   .follows = target->follows,
				   .calls_ns = ns};

	/* Its tracer may still follow others, but a new one finds them only by their parent. */
	if (!traces_calls(target, ns) || !is_alive(target))
		return;
	close_fd(&target->calls_fd);
	target->calls_fd = memfd_make("ferrum-calls");
	if (target->calls_fd < 0) {
		log_err("system calls of %u: %s", target->tgid, strerror(errno));
		return;
	}
	plan.fd = target->calls_fd;
	if (children_start_tracer(&plan, &target->calls)) {
		target->calls = 0;
		close_fd(&target->calls_fd);
		return;
	}
	target->home->calls = target->calls;
	target->calls_end_ns = clock_ns(CLOCK_MONOTONIC) + ns + CALLS_GRACE_NS;
	target->is_sample = is_sample;
	memcpy(target->calls_stem, target->stem, sizeof(target->stem));
}

static uint64_t bytes_of(int fd)
{
	struct stat file;

	return fstat(fd, &file) ? 0 : (uint64_t)file.st_size;
}

/* Hands a capture over; *fd is -1 afterwards. */
static void give(struct target *target, int *fd, const char *stem, const char *part,
		 const struct flight_message *message)
{
	struct dump_job job = {.fd = *fd, .bytes = bytes_of(*fd)};

	snprintf(job.stem, sizeof(job.stem), "%s", stem);
	snprintf(job.part, sizeof(job.part), "%s", part);
	if (message) {
		snprintf(job.text, sizeof(job.text), "%s", target->trigger.text);
		job.steps = message->steps;
		job.crowded = message->crowded;
		job.covers_ns = sub_saturating(clock_ns(CLOCK_MONOTONIC), message->time_ns);
	}
	*fd = -1;
	target->home->take_job(target->home->ctx, &job);
}

static void name_dump(struct target *target)
{
	dump_stem(target->stem, clock_ns(CLOCK_REALTIME), target->tgid,
		  flight_reason_name(target->trigger.reason));
}

/* A dump is due from now on. */
static void begin_dump(struct target *target)
{
	uint64_t calls_ns = target->home->options->watch.calls_ns;

	name_dump(target);
	target->due_sample_fd = target->sample_fd;
	target->sample_fd = -1;
	/* Started by look_after_calls, at once unless another window runs. */
	target->calls_wait_ns = calls_ns ? clock_ns(CLOCK_MONOTONIC) + CALLS_WAIT_NS : 0;
}

static bool are_calls_of_due(const struct target *target)
{
	return target->trigger.pending && !strcmp(target->calls_stem, target->stem);
}

/* It is about something else now, and so are its parts. */
static void rename_dump(struct target *target)
{
	bool has_calls = are_calls_of_due(target);

	name_dump(target);
	if (has_calls)
		memcpy(target->calls_stem, target->stem, sizeof(target->stem));
}

static void give_parts(struct target *target)
{
	if (target->due_calls_fd >= 0)
		give(target, &target->due_calls_fd, target->stem, "_calls", NULL);
	if (target->due_sample_fd >= 0)
		give(target, &target->due_sample_fd, target->stem, "_sample", NULL);
}

/* It has come, or will not. */
static void end_dump(struct target *target)
{
	give_parts(target);
	if (trigger_end(&target->trigger))
		begin_dump(target);
}

/* Of many in one cooldown the first one is told, and all are counted. */
static void ignore_trigger(struct target *target, const struct flight_message *message)
{
	target->home->ignored++;
	if (target->trigger.ignored == 1)
		log_info("%u: %s: no dump, because of --cooldown", target->tgid, message->text);
	else
		log_debug("%u: %s: no dump, because of --cooldown", target->tgid, message->text);
}

static void take_trigger(struct target *target, const struct flight_message *message,
			 uint64_t now_ns)
{
	const struct option_watch *watch = &target->home->options->watch;
	const struct trigger_limits limits = {watch->after_ns, watch->cooldown_ns};

	switch (trigger_pull(&target->trigger, &limits, message->reason, message->text, now_ns)) {
	case TRIGGER_NEW:
		begin_dump(target);
		break;
	case TRIGGER_RAISED:
		rename_dump(target);
		break;
	case TRIGGER_COOLING:
		ignore_trigger(target, message);
		break;
	case TRIGGER_JOINED:
	case TRIGGER_NEXT:
		break;
	}
}

static void say_no_dump(const struct target *target, const char *why)
{
	log_err("%u: no dump of \"%s\": %s", target->tgid, target->trigger.text, why);
}

void target__free(struct target *target)
{
	if (!target)
		return;
	if (target->trigger.pending) {
		say_no_dump(target, "it is no longer watched");
		give_parts(target);
	}
	end_child(target, target->tracer, target->slot, target->told_to_end || target->told_ns);
	/* home->calls stays until it has ended: its probes are in the kernel as long. */
	end_child(target, target->calls, 0, target->told_to_end);
	close_link(target);
	close_fd(&target->calls_fd);
	close_fd(&target->sample_fd);
	close_fd(&target->due_sample_fd);
	close_fd(&target->due_calls_fd);
	free(target);
}

/* The container of such a process is in a cgroup of its own, with docker. */
static bool is_container_client(const char *comm)
{
	static const char *const names[] = {"docker", "nerdctl", "ctr", "crictl"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(comm, names[i]))
			return true;
	}
	return false;
}

static void take_message(struct target *target, const struct flight_message *message, int *passed,
			 uint64_t now_ns)
{
	target->heard_ns = now_ns;
	switch (message->type) {
	case FLIGHT_READY:
		target->attached = true;
		target->ready_ns = now_ns;
		target->sample_ns = now_ns + target->home->options->watch.sample_every_ns;
		log_info("watching %u (%s)", target->tgid, target->comm);
		if (is_container_client(target->comm))
			log_warn("%u (%s) is not the engine, it is the client of a container: name "
				 "that with --container",
				 target->tgid, target->comm);
		break;
	case FLIGHT_BEAT:
		target->steps = message->steps;
		/* Attaching is what costs: one that then fails each time is started ever later. */
		if (target->attached && now_ns - target->ready_ns > GOOD_NS)
			target->failures = 0;
		break;
	case FLIGHT_TRIGGER:
		take_trigger(target, message, now_ns);
		break;
	case FLIGHT_DUMP:
		/* A tracer whose targets have ended sends it unasked. */
		if (*passed >= 0 && target->trigger.pending)
			give(target, passed, target->stem, "", message);
		else if (target->trigger.pending)
			say_no_dump(target, "its tracer could not make it");
		end_dump(target);
		break;
	}
}

void target__read(struct target *target, uint64_t now_ns)
{
	struct flight_message message;
	int passed, got;

	while (target->link >= 0 && (got = flight_receive(target->link, &message, &passed))) {
		if (got > 0)
			take_message(target, &message, &passed, now_ns);
		close_fd(&passed);
		if (got < 0 && got != -EBADMSG)
			close_link(target);
	}
}

static void ask_for_dump(struct target *target)
{
	const struct flight_message wanted = {.type = FLIGHT_WANTED};
	int err = target->link < 0 ? -EPIPE : flight_send(target->link, &wanted, -1);

	if (err == -EAGAIN)
		trigger_ask_again(&target->trigger);
	if (!err || err == -EAGAIN)
		return;
	say_no_dump(target, err == -EPIPE ? "its tracer has ended" : strerror(-err));
	end_dump(target);
}

static void look_after_dump(struct target *target, uint64_t now_ns)
{
	if (trigger_is_due(&target->trigger, now_ns))
		ask_for_dump(target);
	if (!trigger_is_late(&target->trigger, DUMP_NS, now_ns))
		return;
	say_no_dump(target, "its tracer does not send it");
	end_dump(target);
}

/* A tracer that is stuck is started again. */
static void look_after_tracer(struct target *target, uint64_t now_ns)
{
	uint64_t limit_ns = target->attached ? SILENCE_NS : START_SILENCE_NS;

	if (target->killed)
		return;
	if (target->told_ns) {
		if (now_ns - target->told_ns <= DYING_NS)
			return;
		log_warn("%u: its tracer does not end when it is told to: it is killed",
			 target->tgid);
		target->killed = true;
		kill(target->tracer, SIGKILL);
		return;
	}
	if (now_ns - target->heard_ns <= limit_ns)
		return;
	log_err("%u: its tracer has not answered for %llu s: it is killed, and started again",
		target->tgid, (unsigned long long)(limit_ns / NS_PER_S));
	target->killed = true;
	kill(target->tracer, SIGKILL);
}

bool target__hurry(struct target *target)
{
	target->trigger.due_ns = 0;
	if (trigger_is_due(&target->trigger, clock_ns(CLOCK_MONOTONIC)))
		ask_for_dump(target);
	return target->trigger.pending;
}

void target__restart(struct target *target)
{
	target->retry_ns = 0;
	target->failures = 0;
	/* One that was told to end must not be told again: a second SIGTERM would kill it. */
	target->restarts = target->tracer && !target->told_ns;
}

void target__follow(struct target *target, bool follows)
{
	if (target->follows == follows)
		return;
	target->follows = follows;
	target__restart(target);
}

/*
 * Ends the tracer for target__restart(), once a dump that is due has come, and the second tracer,
 * which shares its Python steps, has ended.
 */
static void restart_when_free(struct target *target, uint64_t now_ns)
{
	if (!target->restarts || target->told_to_end || target__hurry(target) || target->calls)
		return;
	target->restarts = false;
	/* One that is killed already ends anyway. */
	if (target->killed)
		return;
	target->told_ns = now_ns;
	kill(target->tracer, SIGTERM);
}

static void look_after_calls(struct target *target, uint64_t now_ns)
{
	const struct option_watch *watch = &target->home->options->watch;

	if (target->calls && now_ns > target->calls_end_ns)
		kill(target->calls, SIGKILL);
	if (target->calls_wait_ns && traces_calls(target, watch->calls_ns)) {
		target->calls_wait_ns = 0;
		start_calls(target, watch->calls_ns, false);
	}
	if (target->calls_wait_ns && now_ns > target->calls_wait_ns) {
		target->calls_wait_ns = 0;
		log_warn("dump %s has no _calls: its tracer has ended, or those of another were "
			 "traced",
			 target->stem);
	}
	/* Of two that are due at once, the second one's turn comes when the first one's is over. */
	if (watch->sample_ns && now_ns >= target->sample_ns && !target->calls_wait_ns &&
	    traces_calls(target, watch->sample_ns)) {
		start_calls(target, watch->sample_ns, true);
		target->sample_ns = now_ns + watch->sample_every_ns;
	}
}

void target__pardon(struct target *target, uint64_t ns, uint64_t now_ns)
{
	/* What was noted at the end of the pause is no older for it. */
	target->heard_ns = min_u64(target->heard_ns + ns, now_ns);
	target->told_ns = min_u64(target->told_ns + (target->told_ns ? ns : 0), now_ns);
	target->calls_wait_ns += target->calls_wait_ns ? ns : 0;
	target->calls_end_ns += ns;
	target->trigger.asked_ns += ns;
}

void target__turn(struct target *target, uint64_t now_ns)
{
	if (target->tracer) {
		restart_when_free(target, now_ns);
		look_after_tracer(target, now_ns);
	} else if (!target->home->stopping && now_ns >= target->retry_ns && is_alive(target)) {
		start_tracer(target, now_ns);
	}
	look_after_dump(target, now_ns);
	look_after_calls(target, now_ns);
}

static void end_calls(struct target *target, int status)
{
	bool is_good = WIFEXITED(status) && !WEXITSTATUS(status);

	target->calls = 0;
	target->home->calls = 0;
	if (!is_good && !target->is_sample)
		log_warn("dump %s has no _calls: its second tracer has failed", target->calls_stem);
	if (!is_good || (target->is_sample && bytes_of(target->calls_fd) > SAMPLE_BYTES_MAX)) {
		close_fd(&target->calls_fd);
	} else if (target->is_sample) {
		close_fd(&target->sample_fd);
		target->sample_fd = target->calls_fd;
		target->calls_fd = -1;
	} else if (are_calls_of_due(target)) {
		target->due_calls_fd = target->calls_fd;
		target->calls_fd = -1;
	} else {
		give(target, &target->calls_fd, target->calls_stem, "_calls", NULL);
	}
}

static void end_tracer(struct target *target, int status, uint64_t now_ns)
{
	bool is_good = WIFEXITED(status) && !WEXITSTATUS(status);
	bool ended = !is_alive(target);

	/* What it has sent last is still in the link. */
	target__read(target, now_ns);
	close_link(target);
	target->tracer = 0;
	while (target->trigger.pending) {
		say_no_dump(target, "its tracer has ended");
		give_parts(target);
		(void)trigger_end(&target->trigger);
	}
	if (ended) {
		log_info("%u (%s) has ended", target->tgid, target->comm);
	} else if (!target->told_ns && !target->home->stopping) {
		if (!target->failures && !target->killed)
			log_warn("%u (%s): its tracer has ended%s; it is started again",
				 target->tgid, target->comm, is_good ? "" : " with an error");
		wait_for_retry(target, now_ns);
	}
	target->killed = false;
	target->told_ns = 0;
	target->restarts = false;
}

bool target__reap(struct target *target, pid_t pid, int status, uint64_t now_ns)
{
	if (pid == target->calls)
		end_calls(target, status);
	else if (pid == target->tracer)
		end_tracer(target, status, now_ns);
	else
		return false;
	return true;
}

void target__escalate(const struct target *target)
{
	if (target->tracer)
		kill(target->tracer, SIGUSR1);
}

void target__stop(struct target *target)
{
	/* They are ended once the dump has come. */
	if (target->told_to_end || (target->tracer && target__hurry(target)))
		return;
	target->told_to_end = true;
	if (target->calls)
		kill(target->calls, SIGTERM);
	if (target->tracer && !target->told_ns)
		kill(target->tracer, SIGTERM);
}

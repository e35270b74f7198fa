/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "option_parse.h"
#include "proc/process.h"
#include "proc/status.h"
#include "sandbox/privilege.h"
#include "watch/notify.h"
#include "watch/roster.h"
#include "watch/slots.h"
#include "watch/target.h"
#include "watch/writer.h"

#define TURN_NS (200 * NS_PER_MS)
/* A loaded machine may keep this process waiting for less than that. */
#define FROZEN_NS (2 * NS_PER_S)
/* All processes are looked at when one has begun, and for some time after: it may call execve. */
#define LOOK_NS	     (2 * NS_PER_S)
#define LOOK_IDLE_NS (10 * NS_PER_S)
#define SETTLE_NS    (6 * NS_PER_S)
#define STATUS_NS    (10 * NS_PER_S)
#define ENDED_MAX    64
#define EVENTS_MAX   16
/* After a request to end: for dumps that are due and their files, then for the rest. */
#define STOP_NS	 (20 * NS_PER_S)
#define ABORT_NS (5 * NS_PER_S)

/* The dump of an engine that has ended: one of that name that starts next goes on with it. */
struct ended {
	char comm[16];
	struct cooldown cooldown;
};

/* One that descended from a target: its tracer goes on with it if a process in between ends. */
struct follower {
	uint32_t tgid;
	uint64_t start;
	pid_t tracer;
};

struct watch {
	struct options options;
	int argc;
	char **argv;
	int base_level; /* of messages, before options */
	char *dir;
	int signal_fd;
	int timer_fd;
	int dumps_fd; /* dumps_enter */
	struct notify notify;
	struct target_home home;
	struct writer *writer;
	VEC(struct target *) targets;
	VEC(struct ended) ended;
	VEC(struct follower) followers;
	struct roster roster;
	uint32_t last_id; /* processes_last */
	uint64_t changed_ns;
	uint64_t look_ns;
	uint64_t status_ns;
	uint64_t alive_ns;  /* when the watchdog was told last */
	uint64_t turn_ns;   /* when it was looked last at what has come */
	uint64_t stop_ns;   /* when that was asked for; 0: not yet */
	bool too_many;	    /* that was said */
	bool reloaded;	    /* since all processes were looked at */
	bool frees_slots;   /* a tracer has ended that has no target any more */
	uint32_t own_slots; /* bit N: slot N has had a tracer of ours since the last sweep */
	uint64_t sweep_ns;  /* when to sweep in any case; 0: not any more */
};

static void forget_ended(struct watch *watch, size_t index)
{
	watch->ended.items[index] = watch->ended.items[--watch->ended.count];
}

static void remember_ended(struct watch *watch, const struct target *target)
{
	struct ended ended = {.cooldown = target->trigger.cooldown};

	if (!ended.cooldown.since_ns || target->succeeded)
		return;
	memcpy(ended.comm, target->comm, sizeof(ended.comm));
	if (watch->ended.count >= ENDED_MAX)
		forget_ended(watch, 0);
	(void)vec_push(&watch->ended, ended);
}

static bool is_alive(const struct target *target)
{
	uint64_t start;

	return target_find_start(target->tgid, &start) && start == target->start;
}

/* One whose tracer is still at work, though its process has ended. NULL: there is none. */
static struct target *find_dead(const struct watch *watch, const char *comm)
{
	vec_for_each (target, &watch->targets) {
		if ((*target)->trigger.cooldown.since_ns && !(*target)->succeeded &&
		    !strcmp((*target)->comm, comm) && !is_alive(*target))
			return *target;
	}
	return NULL;
}

static void take_over(struct watch *watch, struct target *target)
{
	struct target *dead = find_dead(watch, target->comm);

	if (dead) {
		target->trigger.cooldown = dead->trigger.cooldown;
		dead->succeeded = true;
		return;
	}
	for (size_t i = 0; i < watch->ended.count; i++) {
		if (strcmp(watch->ended.items[i].comm, target->comm) != 0)
			continue;
		target->trigger.cooldown = watch->ended.items[i].cooldown;
		forget_ended(watch, i);
		return;
	}
}

/* Its process has called execve: only now it has the name of the one before it. */
static void rename_target(struct watch *watch, struct target *target, const char *comm)
{
	if (!strcmp(target->comm, comm))
		return;
	memcpy(target->comm, comm, sizeof(target->comm));
	if (!target->trigger.cooldown.since_ns)
		take_over(watch, target);
}

static struct target *find_target(const struct watch *watch, uint32_t tgid, uint64_t start)
{
	vec_for_each (target, &watch->targets) {
		if ((*target)->tgid == tgid && (*target)->start == start)
			return *target;
	}
	return NULL;
}

/* Bit N: slot N has a target, or a tracer of one that is no more: it writes its last values. */
static uint32_t used_slots(const struct watch *watch)
{
	uint32_t used = dying_slots(&watch->home.dying);

	vec_for_each (target, &watch->targets)
		used |= UINT32_C(1) << (*target)->slot;
	return used;
}

static bool is_following(const struct watch *watch, const struct follower *follower)
{
	vec_for_each (target, &watch->targets) {
		if ((*target)->tracer == follower->tracer && (*target)->attached &&
		    (*target)->follows)
			return true;
	}
	return false;
}

static struct follower *find_follower(const struct watch *watch, uint32_t tgid)
{
	vec_for_each (follower, &watch->followers) {
		if (follower->tgid == tgid)
			return follower;
	}
	return NULL;
}

static void note_follower(struct watch *watch, uint32_t tgid, uint32_t top_tgid)
{
	struct follower *known = find_follower(watch, tgid), fresh = {.tgid = tgid};

	vec_for_each (target, &watch->targets) {
		if ((*target)->tgid != top_tgid || !(*target)->attached || !(*target)->follows)
			continue;
		fresh.tracer = (*target)->tracer;
		if (!target_find_start(tgid, &fresh.start))
			return;
		if (known)
			*known = fresh;
		else
			(void)vec_push(&watch->followers, fresh);
		return;
	}
}

static void note_followers(struct watch *watch, const selected_vec *found)
{
	size_t kept = 0;

	vec_for_each (selected, found) {
		if (selected->is_below)
			note_follower(watch, selected->tgid, selected->top_tgid);
	}
	vec_for_each (follower, &watch->followers) {
		if (selected_find(found, follower->tgid) && is_following(watch, follower))
			watch->followers.items[kept++] = *follower;
	}
	watch->followers.count = kept;
}

/* Of a group it may be a health check or the like, which has soon ended. */
static bool may_pass(const struct selected_process *selected, uint64_t start)
{
	uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);

	return selected->how == SELECTED_GROUP &&
	       sub_saturating(clock_ns(CLOCK_BOOTTIME), start * tick_ns) < LOOK_NS;
}

static void add_target(struct watch *watch, const struct selected_process *selected, bool follows)
{
	unsigned int slot = slot_choose(used_slots(watch));
	const struct follower *follower;
	struct target *target;
	uint64_t start;

	if (!target_find_start(selected->tgid, &start))
		return;
	target = find_target(watch, selected->tgid, start);
	/* If children come and go, the tracer is not started again each time. */
	if (target && (follows || watch->reloaded))
		target__follow(target, follows);
	if (target) {
		rename_target(watch, target, selected->comm);
		return;
	}
	follower = find_follower(watch, selected->tgid);
	if (follower && follower->start == start)
		return;
	/* The next time. */
	if (may_pass(selected, start))
		return;
	if (watch->targets.count >= SLOTS_MAX) {
		if (!watch->too_many)
			log_warn("%u (%s) is not watched: at most %d processes are; select fewer",
				 selected->tgid, selected->comm, SLOTS_MAX);
		watch->too_many = true;
		return;
	}
	/* The next time, when the tracers of former targets have ended. */
	if (!slot)
		return;
	target = target__new(&watch->home, selected->tgid, start, selected->comm);
	if (!target || vec_push(&watch->targets, target)) {
		target__free(target);
		log_err("%u: no memory to watch it", selected->tgid);
		return;
	}
	target->slot = slot;
	watch->own_slots |= UINT32_C(1) << slot;
	target->follows = follows;
	take_over(watch, target);
}

/*
 * Whether the descendants of a process are traced with it: if any of its group may be the engine,
 * or if some are selected themselves. Otherwise not, because probes are then in all processes that
 * run the same file.
 */
static bool must_follow(const struct watch *watch, const struct selected_process *selected)
{
	return watch->options.follow || selected->how == SELECTED_GROUP || selected->is_above;
}

/* Whether the process is still one that the options select, and no other tracer has it. */
static bool is_selected(const selected_vec *found, const struct target *target)
{
	const struct selected_process *selected = selected_find(found, target->tgid);

	return selected && !selected->is_below;
}

static void drop_unselected(struct watch *watch, const selected_vec *found)
{
	size_t kept = 0;

	for (size_t i = 0; i < watch->targets.count; i++) {
		struct target *target = watch->targets.items[i];

		/* If a dump is due, it is asked for now, and the target goes the next time. */
		if (!is_alive(target) || is_selected(found, target) || target__hurry(target)) {
			watch->targets.items[kept++] = target;
			continue;
		}
		log_info("%u (%s) is no longer watched", target->tgid, target->comm);
		/* Else once its tracer has ended: it may write its last values. */
		watch->frees_slots |= !target->tracer;
		target__free(target);
	}
	watch->targets.count = kept;
}

static void look_for_targets(struct watch *watch, uint64_t now_ns)
{
	selected_vec found = {0};
	int err = roster_look(&watch->roster, &watch->options, now_ns, &found);

	if (!err) {
		drop_unselected(watch, &found);
		note_followers(watch, &found);
		vec_for_each (selected, &found) {
			if (!selected->is_below)
				add_target(watch, selected, must_follow(watch, selected));
		}
	}
	watch->reloaded &= err != 0;
	vec_free(&found);
}

static void look_when_due(struct watch *watch, uint64_t now_ns)
{
	uint32_t last = processes_last();

	if (now_ns < watch->look_ns || watch->home.stopping)
		return;
	if (last != watch->last_id || !last)
		watch->changed_ns = now_ns;
	else if (now_ns - watch->changed_ns > SETTLE_NS &&
		 now_ns - watch->look_ns < LOOK_IDLE_NS - LOOK_NS)
		return;
	watch->last_id = last;
	watch->look_ns = now_ns + LOOK_NS;
	look_for_targets(watch, now_ns);
}

static void take_job(void *ctx, const struct dump_job *job)
{
	const struct watch *watch = ctx;

	writer__take(watch->writer, job);
}

static void send_status(struct watch *watch, uint64_t now_ns)
{
	char text[256];
	uint64_t steps = 0;
	size_t attached = 0;

	if (now_ns < watch->status_ns)
		return;
	watch->status_ns = now_ns + STATUS_NS;
	vec_for_each (target, &watch->targets) {
		attached += (*target)->attached;
		steps += (*target)->steps;
	}
	snprintf(text, sizeof(text),
		 "STATUS=watching %zu of %zu processes; %" PRIu64 " steps seen, %" PRIu64
		 " dumps written, %" PRIu64 " left out because of cooldown",
		 attached, watch->targets.count, steps, writer__written(watch->writer),
		 watch->home.ignored);
	(void)notify_send(&watch->notify, text);
}

static void feed_watchdog(struct watch *watch, uint64_t now_ns)
{
	if (!watch->notify.watchdog_ns || now_ns - watch->alive_ns < watch->notify.watchdog_ns)
		return;
	watch->alive_ns = now_ns;
	(void)notify_send(&watch->notify, "WATCHDOG=1");
}

static void reap(struct watch *watch, uint64_t now_ns)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (writer__reap(watch->writer, &watch->options, pid, status))
			continue;
		if (target_home_reap(&watch->home, pid)) {
			watch->frees_slots = true;
			continue;
		}
		vec_for_each (target, &watch->targets) {
			if (target__reap(*target, pid, status, now_ns))
				break;
		}
	}
}

static void remove_ended(struct watch *watch)
{
	size_t kept = 0;

	for (size_t i = 0; i < watch->targets.count; i++) {
		struct target *target = watch->targets.items[i];

		if (!target__is_over(target)) {
			watch->targets.items[kept++] = target;
			continue;
		}
		remember_ended(watch, target);
		target__free(target);
		watch->frees_slots = true;
	}
	watch->targets.count = kept;
}

/* A tracer that was killed has not written that it has ended. */
static void sweep_slots(struct watch *watch, uint64_t now_ns)
{
	uint32_t used = used_slots(watch);

	/* Those of a watch that was killed before are too new at first. */
	watch->frees_slots |= watch->sweep_ns && now_ns >= watch->sweep_ns;
	if (!watch->frees_slots)
		return;
	slots_sweep(watch->options.metrics, used, watch->own_slots);
	watch->own_slots = used;
	watch->frees_slots = false;
	if (now_ns >= watch->sweep_ns)
		watch->sweep_ns = 0;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Whether tracers were started with other options. */
static bool changes_tracers(const struct options *old, const struct options *fresh)
{
	const struct option_watch *a = &old->watch, *b = &fresh->watch;

	if (a->last_ns != b->last_ns || a->memory != b->memory ||
	    a->given.count != b->given.count || !same_text(old->metrics, fresh->metrics))
		return true;
	for (size_t i = 0; i < a->given.count; i++) {
		if (strcmp(a->given.items[i].name, b->given.items[i].name) != 0 ||
		    !same_text(a->given.items[i].value, b->given.items[i].value))
			return true;
	}
	return false;
}

/* A dump is counted before it is compressed: how much that saves is not known. */
static void check_room(const struct options *options)
{
	uint64_t disk = options->watch.max_disk, memory = options->watch.memory;

	if (disk && disk < memory)
		log_warn("a dump of all of --memory (%s) has no room in --max-disk (%s), and would "
			 "not be written: raise --max-disk",
			 FORMAT_BYTES(memory), FORMAT_BYTES(disk));
}

/* A configuration that is wrong changes nothing: the old one stays. */
static void take_config(struct watch *watch)
{
	struct options fresh;
	enum log_level level = log_level();
	bool restart;

	log_set_level((enum log_level)watch->base_level);
	if (options_parse(&fresh, watch->argc, watch->argv)) {
		options_clear(&fresh);
		log_set_level(level);
		log_err("reload: the configuration stays as it was");
		return;
	}
	restart = changes_tracers(&watch->options, &fresh);
	if (!same_text(watch->options.windows.dir, fresh.windows.dir))
		log_warn("reload: dumps go to %s until watch is started again", watch->dir);
	options_clear(&watch->options);
	watch->options = fresh;
	roster_clear(&watch->roster);
	watch->look_ns = 0;
	watch->last_id = 0;
	watch->too_many = false;
	watch->reloaded = true;
	check_room(&watch->options);
	log_info("reload: done%s", restart ? "; tracers start again, with empty memory" : "");
	vec_for_each (target, &watch->targets) {
		if (restart)
			target__restart(*target);
	}
}

static void reload(struct watch *watch)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 clock_ns(CLOCK_MONOTONIC) / NS_PER_US);
	(void)notify_send(&watch->notify, text);
	take_config(watch);
	notify_ready(&watch->notify);
}

static void escalate(const struct watch *watch)
{
	size_t attached = 0;

	vec_for_each (target, &watch->targets) {
		attached += (*target)->attached;
		target__escalate(*target);
	}
	log_info(attached ? "SIGUSR1: the next step of each process is escalated, and dumped"
			  : "SIGUSR1: no process is watched, so there is no step to escalate");
}

static void stop(struct watch *watch, uint64_t now_ns)
{
	if (!watch->stop_ns)
		(void)notify_send(&watch->notify, "STOPPING=1");
	/* A second request does not wait for files. */
	watch->stop_ns =
		watch->stop_ns ? min_u64(watch->stop_ns, sub_saturating(now_ns, STOP_NS)) : now_ns;
	watch->home.stopping = true;
}

static void take_signals(struct watch *watch, uint64_t now_ns)
{
	struct signalfd_siginfo signal;

	while (read(watch->signal_fd, &signal, sizeof(signal)) == sizeof(signal)) {
		if (signal.ssi_signo == SIGUSR1)
			escalate(watch);
		else if (signal.ssi_signo == SIGUSR2)
			reload(watch);
		else if (signal.ssi_signo != SIGCHLD)
			stop(watch, now_ns);
	}
}

/* Whether everything that was started has ended, or was given up. */
static bool has_stopped(const struct watch *watch, uint64_t now_ns)
{
	bool runs = !writer__is_idle(watch->writer) || watch->home.dying.children.count;

	vec_for_each (target, &watch->targets)
		runs |= (*target)->tracer || (*target)->calls;
	return !runs || now_ns - watch->stop_ns > STOP_NS + ABORT_NS;
}

/* A turn that came so late says that this process did not run. */
static void pardon(struct watch *watch, uint64_t now_ns)
{
	uint64_t late_ns = sub_saturating(now_ns, watch->turn_ns + TURN_NS);

	if (watch->turn_ns && late_ns > FROZEN_NS) {
		vec_for_each (target, &watch->targets)
			target__pardon(*target, late_ns, now_ns);
	}
	watch->turn_ns = now_ns;
}

static void turn(struct watch *watch)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	reap(watch, now_ns);
	dying_turn(&watch->home.dying, now_ns);
	look_when_due(watch, now_ns);
	vec_for_each (target, &watch->targets) {
		target__turn(*target, now_ns);
		if (watch->stop_ns)
			target__stop(*target);
	}
	if (!watch->stop_ns)
		remove_ended(watch);
	sweep_slots(watch, now_ns);
	writer__turn(watch->writer, &watch->options, now_ns);
	notify_turn(&watch->notify);
	feed_watchdog(watch, now_ns);
	send_status(watch, now_ns);
}

static int run(struct watch *watch)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t expirations, now_ns;

	for (;;) {
		int count = epoll_wait(watch->home.epoll_fd, events, EVENTS_MAX, -1);

		if (count < 0 && errno != EINTR)
			return -errno;
		now_ns = clock_ns(CLOCK_MONOTONIC);
		pardon(watch, now_ns);
		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr == &watch->signal_fd)
				take_signals(watch, now_ns);
			else if (events[i].data.ptr == &watch->timer_fd)
				(void)!read(watch->timer_fd, &expirations, sizeof(expirations));
			else
				target__read(events[i].data.ptr, now_ns);
		}
		turn(watch);
		if (watch->stop_ns && has_stopped(watch, now_ns))
			return 0;
	}
}

static int add_event(const struct watch *watch, const int *fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = (void *)fd};

	return *fd < 0 || epoll_ctl(watch->home.epoll_fd, EPOLL_CTL_ADD, *fd, &event) ? -errno : 0;
}

static int open_loop(struct watch *watch)
{
	const struct timespec period = clock_timespec(TURN_NS);
	const struct itimerspec timer = {period, period};
	struct sigaction hang_up;
	sigset_t signals;
	int err;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	/* Under nohup it is ignored, and a signal that is blocked would come all the same. */
	if (!sigaction(SIGHUP, NULL, &hang_up) && hang_up.sa_handler != SIG_IGN)
		sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	watch->home.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (watch->home.epoll_fd < 0)
		return -errno;
	watch->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	watch->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	err = add_event(watch, &watch->signal_fd);
	if (!err)
		err = add_event(watch, &watch->timer_fd);
	if (!err && timerfd_settime(watch->timer_fd, 0, &timer, NULL))
		err = -errno;
	return err;
}

/* --dir, else what systemd has made for the service (StateDirectory=), else here. */
static char *choose_dir(const struct options *options)
{
	const char *dir = options->windows.dir, *state = getenv("STATE_DIRECTORY");

	if (!dir || !strcmp(dir, "."))
		dir = state && *state == '/' ? state : ".";
	return strdup(dir);
}

/* As a service: the kernel shows the filters of an engine only to a process that has none. */
static void check_injection(const struct options *options)
{
	struct thread_status status;

	if (options->gpu.mode != GPU_INJECT && options->python != PYTHON_INJECT)
		return;
	if (thread_status_read(&status, (struct proc_ref){.tgid = (uint32_t)getpid()}) ||
	    status.seccomp == SECCOMP_MODE_DISABLED)
		return;
	log_warn(
		"watch has a seccomp filter, so nothing is injected into engines that have one, as "
		"in containers: docs/watch.md has a drop-in for the service");
}

static int open_watch(struct watch *watch)
{
	int err;

	watch->home.options = &watch->options;
	watch->home.take_job = take_job;
	watch->home.ctx = watch;
	watch->dir = choose_dir(&watch->options);
	watch->writer = watch->dir ? writer__new(watch->dir) : NULL;
	if (!watch->writer)
		return -ENOMEM;
	err = open_loop(watch);
	if (err) {
		log_err("event loop: %s", strerror(-err));
		return err;
	}
	check_room(&watch->options);
	check_injection(&watch->options);
	/* Else every dump would be lost, while the service seems to be well. */
	watch->dumps_fd = dumps_enter(watch->dir);
	return watch->dumps_fd < 0 ? watch->dumps_fd : 0;
}

static void close_watch(struct watch *watch)
{
	vec_for_each (target, &watch->targets)
		target__free(*target);
	vec_free(&watch->targets);
	dying_clear(&watch->home.dying);
	vec_free(&watch->ended);
	vec_free(&watch->followers);
	roster_clear(&watch->roster);
	writer__free(watch->writer);
	if (watch->signal_fd >= 0)
		close(watch->signal_fd);
	if (watch->timer_fd >= 0)
		close(watch->timer_fd);
	if (watch->dumps_fd >= 0)
		close(watch->dumps_fd);
	if (watch->home.epoll_fd >= 0)
		close(watch->home.epoll_fd);
	notify_close(&watch->notify);
	options_clear(&watch->options);
	free(watch->dir);
}

int watch_run(struct options *options, int argc, char **argv)
{
	struct watch watch = {
		.options = *options,
		.argc = argc,
		.argv = argv,
		.base_level = LOG_INFO,
		.frees_slots = true,
		.sweep_ns = clock_ns(CLOCK_MONOTONIC) + (SLOT_OLD_S + 1) * NS_PER_S,
		.signal_fd = -1,
		.timer_fd = -1,
		.dumps_fd = -1,
		.home = {.epoll_fd = -1},
	};
	int err;

	options_init(options);
	err = privilege_check();
	notify_open(&watch.notify);
	if (!err)
		err = open_watch(&watch);
	if (!err) {
		look_when_due(&watch, clock_ns(CLOCK_MONOTONIC));
		if (!watch.targets.count)
			log_info("no such process runs yet: it is watched as soon as it does");
		notify_ready(&watch.notify);
		err = run(&watch);
		/* What was killed last; a tracer that was given up writes again if it ends. */
		slots_sweep(watch.options.metrics, 0, watch.own_slots);
	}
	close_watch(&watch);
	return err;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "inject/take.h"
#include "proc/process.h"
#include "sandbox/broker.h"

/*
 * How long to wait for the helper. The limit is long because machines may be busy. A helper that is
 * not there by then will not come: pthread_create has failed.
 */
#define HELPER_WAIT_NS (4 * NS_PER_S)
/* How long the library may take to load and its entry to return. */
#define ANSWER_WAIT_NS (5 * NS_PER_S)
/* How often to check during that wait whether the process has called execve. */
#define LOOK_NS (200 * NS_PER_MS)
/* How long a child that was killed may take to end. */
#define BURY_MS 1000
/* Pause between two searches for the page, doubled each time. */
#define PAUSE_MIN_NS (NS_PER_MS / 20)
#define PAUSE_MAX_NS (5 * NS_PER_MS)

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

/* Any failure may mean only that the process is gone, so check that first. */
static void conclude_error(struct run *run, const char *what, int err)
{
	char text[INJECT_TEXT_MAX];

	if (err == -ESRCH || is_gone(run)) {
		conclude(run, INJECT_GONE, "the process has ended or called execve");
		return;
	}
	snprintf(text, sizeof(text), "%s: %s", what, strerror(-err));
	conclude(run, INJECT_FAILED, text);
}

/* Whether an injection may be tried. If not, the outcome is set. */
static bool check(struct run *run)
{
	const struct inject_wish *wish = run->wish;
	struct inject_verdict verdict = {0};
	int err = inject_check(&run->target, &verdict, wish->tgid, wish->purpose);
	char text[INJECT_TEXT_MAX];

	inject_verdict_reason(&verdict, text);
	if (!err && verdict.present)
		conclude(run, INJECT_PRESENT, "the library is in the process already");
	else if (err == -EPERM && text[0] && !is_gone(run))
		conclude(run, INJECT_REFUSED, text);
	else if (err)
		conclude_error(run, "the process cannot be looked at", err);
	err = err || verdict.present;
	findings_free(&verdict.findings);
	inject_reach(&wish->hook, INJECT_AT_CHECKED);
	return !err;
}

static bool write_stub(struct run *run)
{
	struct inject_target *target = &run->target;
	int err = inject_place_write(&target->place, target->process, &run->wish->hook);

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
	run->outcome->wait_ns = taken.wait_ns;
	run->outcome->total_ns =
		taken.begin_ns; /* a start time, until inject_run turns it into a duration */
	if (err == -EPERM)
		conclude(run, INJECT_REFUSED, taken.text);
	else if (err == -EAGAIN)
		conclude(run, INJECT_NO_THREAD,
			 taken.tries ? "no thread waited long enough in a call where it can be used"
				     : "no thread waited in a call where it can be used");
	else if (err == -ETIMEDOUT)
		conclude(run, INJECT_FAILED, taken.text);
	else if (err)
		conclude_error(run, "no thread can be taken", err);
	return !err;
}

static struct inject_page *await_helper(struct run *run)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + HELPER_WAIT_NS, pause_ns = PAUSE_MIN_NS;
	uint64_t token = FBT_INJECT_TOKEN(run->nonce, 0);
	uint32_t tgid = run->target.process.tgid;
	struct inject_page *page;
	int err;

	for (;;) {
		err = inject_page__open(&page, processes_ref(tgid), token);
		if (!err)
			return page;
		if (clock_ns(CLOCK_MONOTONIC) >= until_ns || !inject_target_is_there(&run->target))
			break;
		clock_sleep(pause_ns);
		pause_ns = pause_ns * 2 < PAUSE_MAX_NS ? pause_ns * 2 : PAUSE_MAX_NS;
	}
	if (err == -ENOENT && inject_target_is_there(&run->target))
		conclude(run, INJECT_NO_HELPER,
			 "no helper thread was started: check the limits on threads, memory and "
			 "files");
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
			 "the library was handed over but is not loaded yet: a thread of the "
			 "process may hold the loader's lock");
	else
		conclude_error(run, "the helper's page", err);
}

void inject_hurry(void)
{
	/* With autogroup scheduling (sched(7)) a nice value only counts within its session. */
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

int inject_try(uint32_t tgid, enum inject_purpose purpose, struct inject_verdict *verdict)
{
	struct inject_target target = {.pidfd = -1};
	int err = inject_check(&target, verdict, tgid, purpose);

	if (!err && !verdict->present)
		inject_take_look(&target, verdict);
	inject_target_clear(&target);
	return err ? err : inject_refused(verdict) ? -EPERM : 0;
}

#define CHILD_EXTRA_NS (10 * NS_PER_S)
/* A larger file cannot be the shim. */
#define LIBRARY_BYTES_MAX (64u << 20)
#define CHILD_NAME	  "ferrum-inject"

struct inject {
	pid_t pid;	/* of the child; 0: it has ended and was reaped */
	bool by_broker; /* who started it, and can kill it */
	int outcome_fd;
	uint64_t kill_ns;
	struct inject_outcome outcome;
};

/* 0, or -errno, logged. The caller frees bytes. */
static int read_library(const char *path, void **bytes, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat status;
	ssize_t got = 0;

	*bytes = NULL;
	if (fd < 0 || fstat(fd, &status))
		err = -errno;
	else if (!S_ISREG(status.st_mode) || status.st_size <= 0 ||
		 status.st_size > LIBRARY_BYTES_MAX)
		err = -ENOEXEC;
	else if (!(*bytes = malloc((size_t)status.st_size)))
		err = -ENOMEM;
	else {
		*size = (size_t)status.st_size;
		got = read(fd, *bytes, *size);
		if (got != (ssize_t)*size)
			err = got < 0 ? -errno : -EIO;
	}
	if (fd >= 0)
		close(fd);
	if (err) {
		free(*bytes);
		*bytes = NULL;
		log_err("%s: %s", path, strerror(-err));
	}
	return err;
}

/*
 * Closes the tool's files, leaves its terminal and blocks all signals. Returns the descriptor for
 * the outcome, or -1.
 */
static int detach_child(int outcome_fd)
{
	int nothing, fd;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	inject_hurry();
	prctl(PR_SET_NAME, CHILD_NAME);
	nothing = open("/dev/null", O_RDWR);
	fd = fcntl(outcome_fd, F_DUPFD, 3);
	if (nothing < 0 || fd < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		dup2(nothing, i);
	if (dup2(fd, 3) < 0)
		return -1;
	close_range(4, ~0u, 0);
	return 3;
}

static _Noreturn void run_child(const struct inject_wish *wish, int outcome_fd)
{
	struct inject_outcome outcome;
	int fd = detach_child(outcome_fd);

	if (fd < 0)
		_exit(1);
	inject_run(wish, &outcome);
	_exit(write(fd, &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
}

static enum broker_work work_for(enum inject_purpose purpose)
{
	return purpose == INJECT_FOR_PYTHON ? BROKER_INJECT_PYTHON : BROKER_INJECT;
}

static int start_child(struct inject *inject, const struct inject_wish *wish, bool by_broker)
{
	int ends[2], err = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	if (by_broker) {
		err = broker_run(work_for(wish->purpose), wish->tgid, ends[1], &inject->pid);
	} else {
		inject->pid = fork();
		err = inject->pid < 0 ? -errno : 0;
		if (!inject->pid)
			run_child(wish, ends[1]);
	}
	close(ends[1]);
	if (err) {
		close(ends[0]);
		return err;
	}
	inject->by_broker = by_broker;
	inject->outcome_fd = ends[0];
	inject->kill_ns = clock_ns(CLOCK_MONOTONIC) + wish->timeout_ns + CHILD_EXTRA_NS;
	return 0;
}

static struct inject_wish make_wish(uint32_t tgid, const struct inject_service *service)
{
	return (struct inject_wish){
		.tgid = tgid,
		.library = {service->library, service->size, service->entry},
		.purpose = service->purpose,
		.timeout_ns = service->timeout_ns,
	};
}

void inject_serve(const void *service, const struct broker_order *order, int output)
{
	const struct inject_service *what = service;
	struct inject_wish wish = make_wish(order->tgid, what);

	if (what->library)
		run_child(&wish, output);
}

int inject_service_open(struct inject_service *service, const struct inject_load *load,
			uint64_t timeout_ns)
{
	*service = (struct inject_service){
		.entry = load->entry,
		.purpose = load->purpose,
		.timeout_ns = timeout_ns,
	};
	return read_library(load->path, &service->library, &service->size);
}

void inject_service_clear(struct inject_service *service)
{
	free(service->library);
	*service = (struct inject_service){0};
}

static int start(struct inject **result, uint32_t tgid, const struct inject_load *load,
		 uint64_t timeout_ns, bool by_broker)
{
	struct inject *inject = calloc(1, sizeof(*inject));
	struct inject_service service;
	int err;

	*result = NULL;
	if (!inject)
		return -ENOMEM;
	err = inject_service_open(&service, load, timeout_ns);
	if (!err) {
		struct inject_wish wish = make_wish(tgid, &service);

		err = start_child(inject, &wish, by_broker);
		if (err)
			log_err("process %u: %s cannot be injected: %s", tgid, load->path,
				strerror(-err));
	}
	inject_service_clear(&service);
	if (err)
		free(inject);
	else
		*result = inject;
	return err;
}

int inject__start(struct inject **result, uint32_t tgid, const struct inject_load *load,
		  uint64_t timeout_ns)
{
	return start(result, tgid, load, timeout_ns, broker_is_there());
}

/*
 * Kills and reaps the child. Returns its wait status; 0 if it does not end, as in a read of a file
 * system that does not answer: it is left, because the tool has rings to read.
 */
static int bury_child(struct inject *inject)
{
	const struct timespec pause = {.tv_nsec = NS_PER_MS};
	int status = 0;

	if (inject->by_broker)
		broker_kill(inject->pid);
	else
		kill(inject->pid, SIGKILL);
	for (int i = 0; i < BURY_MS && !waitpid(inject->pid, &status, WNOHANG); i++)
		nanosleep(&pause, NULL);
	inject->pid = 0;
	close(inject->outcome_fd);
	return status;
}

static void fail(struct inject *inject, const char *text)
{
	memset(&inject->outcome, 0, sizeof(inject->outcome));
	inject->outcome.status = INJECT_FAILED;
	snprintf(inject->outcome.text, sizeof(inject->outcome.text), "%s", text);
}

/* The outcome is shorter than PIPE_BUF, so the read returns all of it or nothing. */
static bool has_outcome(struct inject *inject)
{
	struct inject_outcome *outcome = &inject->outcome;

	if (read(inject->outcome_fd, outcome, sizeof(*outcome)) != sizeof(*outcome))
		return false;
	outcome->text[sizeof(outcome->text) - 1] = '\0';
	return true;
}

static bool has_ended(const struct inject *inject)
{
	siginfo_t info = {0};

	/* WNOWAIT keeps the child a zombie, so that its PID is not reused. */
	return waitid(P_PID, (id_t)inject->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid == inject->pid;
}

static bool look_at_child(struct inject *inject, uint64_t now_ns)
{
	bool ended = has_ended(inject);
	char text[64];
	int status;

	if (has_outcome(inject)) {
		bury_child(inject);
	} else if (ended) {
		status = bury_child(inject);
		snprintf(text, sizeof(text), "the injecting process died (%s %d)",
			 WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		fail(inject, text);
	} else if (now_ns >= inject->kill_ns) {
		bury_child(inject);
		fail(inject, "it took too long and was abandoned");
	} else {
		return false;
	}
	return true;
}

bool inject__poll(struct inject *inject, uint64_t now_ns, struct inject_outcome *outcome)
{
	if (inject->pid && !look_at_child(inject, now_ns))
		return false;
	*outcome = inject->outcome;
	return true;
}

void inject__await(struct inject *inject, struct inject_outcome *outcome)
{
	uint64_t now_ns;

	while (!inject__poll(inject, now_ns = clock_ns(CLOCK_MONOTONIC), outcome)) {
		struct pollfd end = {.fd = inject->outcome_fd, .events = POLLIN};

		poll(&end, 1, (int)((inject->kill_ns - now_ns) / NS_PER_MS) + 1);
	}
}

void inject__free(struct inject *inject)
{
	struct inject_outcome outcome;

	if (!inject)
		return;
	inject__await(inject, &outcome);
	free(inject);
}

int inject_now(uint32_t tgid, const struct inject_load *load, uint64_t timeout_ns,
	       struct inject_outcome *outcome)
{
	struct inject *inject;
	int err = start(&inject, tgid, load, timeout_ns, false);

	if (err)
		return err;
	inject__await(inject, outcome);
	free(inject);
	return 0;
}

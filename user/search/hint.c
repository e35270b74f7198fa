/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "search/hint.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "proc/process.h"
#include "sandbox/broker.h"
#include "steps/find.h"
#include "search/candidates.h"
#include "search/descendant.h"
#include "search/step_search.h"

#define NAMED_MAX 3
/*
 * How long to wait for a killed child, which needs a CPU to end. Detaching many probes may take it
 * some seconds; init reaps it then.
 */
#define REAP_MS 300

/* What the child says with its exit status besides success and failure. */
#define EXIT_STARVED 2
#define EXIT_PYTHON  3
#define EXIT_NONE    4

struct hint {
	uint32_t tgid;
	pid_t pid;	 /* -1: the child has ended */
	int output;	 /* read end of its pipe; -1: closed */
	uint64_t cpu_ns; /* of the child, once it has ended */
	size_t size;
	struct candidate named[NAMED_MAX];
};

int hint_write(const struct rate *rates, size_t count, int output)
{
	uint64_t most_ns = 0;
	int named = 0;

	for (size_t i = 0; i < count; i++)
		if (!rates[i].too_often && rate_total_ns(&rates[i]) > most_ns)
			most_ns = rate_total_ns(&rates[i]);
	for (size_t i = 0; i < count && named < NAMED_MAX; i++) {
		struct candidate candidate = {
			.calls_per_s = rate_per_second(&rates[i]),
			.mean_ms = (double)rates[i].mean_ns / 1e6,
		};

		if (!rate_is_plausible(&rates[i], most_ns))
			continue;
		snprintf(candidate.name, sizeof(candidate.name), "%s",
			 step_function_alone(rates[i].function));
		if (write(output, &candidate, sizeof(candidate)) != sizeof(candidate))
			return -EIO;
		named++;
	}
	return 0;
}

static bool has_plausible(const struct candidates *found)
{
	uint64_t most_ns = 0;

	for (size_t i = 0; i < found->functions.count; i++)
		if (!found->rates[i].too_often && rate_total_ns(&found->rates[i]) > most_ns)
			most_ns = rate_total_ns(&found->rates[i]);
	for (size_t i = 0; i < found->functions.count; i++)
		if (rate_is_plausible(&found->rates[i], most_ns))
			return true;
	return false;
}

/* Names say nothing: the stacks do. */
static int look_at_stacks(const struct options *options, uint32_t tgid, int output)
{
	struct step_search search;
	int err;

	(void)nice(CANDIDATES_NICE);
	err = step_search(&search, tgid, options, true, true);
	if (!err && search.end == STEP_SEARCH_FOUND)
		err = hint_write(search.rates, 1, output);
	else if (!err && search.end != STEP_SEARCH_IDLE)
		err = search.end == STEP_SEARCH_STARVED	 ? -EAGAIN
		      : search.end == STEP_SEARCH_NONE	 ? -ENODATA
		      : search.end == STEP_SEARCH_PYTHON ? -ENOTSUP
							 : -ENOENT;
	step_search_clear(&search);
	return err;
}

/* 1: a descendant was written; 0: there is none to name; or -EIO. */
static int write_descendant(const struct options *options, uint32_t tgid, int output)
{
	const struct descendant_roots roots = {&tgid, 1};
	struct descendant found;
	struct candidate candidate = {0};

	if (options->follow || !descendant_find(options, &roots, false, &found) ||
	    process_has_step(options, tgid))
		return 0;
	candidate.tgid = found.tgid;
	candidate.is_child = found.is_child;
	proc_comm((struct proc_ref){.tgid = tgid}, candidate.launcher, sizeof(candidate.launcher));
	snprintf(candidate.name, sizeof(candidate.name), "%s", found.name);
	return write(output, &candidate, sizeof(candidate)) == sizeof(candidate) ? 1 : -EIO;
}

int hint_look(const struct options *options, uint32_t tgid, int output)
{
	struct candidates found;
	int err = write_descendant(options, tgid, output);

	if (err)
		return err < 0 ? err : 0;
	err = candidates_measure(&found, options, tgid, true);
	if (err == -ENOENT || (!err && found.functions.count && !has_plausible(&found)))
		err = look_at_stacks(options, tgid, output);
	else if (!err)
		err = hint_write(found.rates, found.functions.count, output);
	candidates_clear(&found);
	return err;
}

/*
 * The engine needs its CPUs more than we do: the search runs at a low priority, and the kernel ends
 * it when it has used more than its share. Not SCHED_IDLE: on a busy machine that gets no CPU for
 * many seconds, perhaps while it holds a lock that the engine needs.
 */
static void be_modest(void)
{
	const struct itimerspec limit = {.it_value.tv_nsec = HINT_CPU_MS * NS_PER_MS};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
	timer_t timer;

	(void)nice(CANDIDATES_NICE);
	signal(SIGPROF, SIG_DFL);
	/* ITIMER_PROF counts ticks, not time: it may ring too early. */
	if (!timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer))
		(void)timer_settime(timer, 0, &limit, NULL);
}

/*
 * Closes all files of the tool, because probes are removed only when no process has their link
 * open.
 */
_Noreturn static void run_child(hint_look_fn look, const struct options *options, uint32_t tgid,
				int output)
{
	sigset_t none;
	int err;

	/* The child does not inherit the signals that the tool blocks and ignores. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	/*
	 * The child must not outlive the tool, however that ends: its probes stay while it lives.
	 */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "fbt-candidates"); /* as ps shows it */
	log_set_level(LOG_NONE);
	if (dup2(output, STDERR_FILENO + 1) < 0 || close_range(STDERR_FILENO + 2, ~0u, 0))
		_exit(127);
	be_modest();
	err = look(options, tgid, STDERR_FILENO + 1);
	_exit(err == -EAGAIN	? EXIT_STARVED
	      : err == -ENOTSUP ? EXIT_PYTHON
	      : err == -ENODATA ? EXIT_NONE
	      : err		? EXIT_FAILURE
				: EXIT_SUCCESS);
}

/*
 * The standard files of a broker are /dev/null already, and its filter may not allow opening that.
 */
void hint_run(const void *options, const struct broker_order *order, int output)
{
	run_child(hint_look, options, order->tgid, output);
}

static int start_child(struct hint *hint, hint_look_fn look, const struct options *options)
{
	int ends[2], null, err = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	hint->output = ends[0];
	if (fcntl(hint->output, F_SETFL, O_NONBLOCK))
		err = -errno;
	if (!err && broker_is_there()) {
		err = broker_run(BROKER_HINT, hint->tgid, ends[1], &hint->pid);
	} else if (!err) {
		hint->pid = fork();
		err = hint->pid < 0 ? -errno : 0;
		if (hint->pid == 0) {
			null = open("/dev/null", O_RDWR | O_CLOEXEC);
			for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
				dup2(null, fd);
			run_child(look, options, hint->tgid, ends[1]);
		}
	}
	close(ends[1]);
	return err;
}

struct hint *hint__begin(const struct options *options, uint32_t tgid, hint_look_fn look)
{
	struct hint *hint;
	int err;

	if (log_level() < LOG_INFO)
		return NULL;
	hint = calloc(1, sizeof(*hint));
	if (!hint)
		return NULL;
	*hint = (struct hint){.tgid = tgid, .pid = -1, .output = -1};
	err = start_child(hint, look, options);
	if (err) {
		log_warn("no step was seen yet; search for candidates: %s", strerror(-err));
		hint__free(hint);
		return NULL;
	}
	return hint;
}

/* Reads what is available. Closes the pipe at end of file, or when all candidates have come. */
static void read_output(struct hint *hint)
{
	ssize_t length;

	do {
		length = read(hint->output, (char *)hint->named + hint->size,
			      sizeof(hint->named) - hint->size);
		hint->size += length > 0 ? (size_t)length : 0;
	} while ((length > 0 && hint->size < sizeof(hint->named)) ||
		 (length < 0 && errno == EINTR));
	if (length < 0 && errno == EAGAIN)
		return;
	close(hint->output);
	hint->output = -1;
}

static void name_descendant(const struct hint *hint, struct candidate *found)
{
	found->launcher[sizeof(found->launcher) - 1] = '\0';
	found->name[sizeof(found->name) - 1] = '\0';
	log_info("process %u (%s) has no step function, but its %s %u (%s) has: ferrum-bpftrace -p "
		 "%u, or -p %u -f",
		 hint->tgid, found->launcher, found->is_child ? "child" : "descendant", found->tgid,
		 found->name, found->tgid, hint->tgid);
}

static void name_busiest(struct hint *hint)
{
	size_t count = hint->size / sizeof(*hint->named);
	char name[sizeof(hint->named->name) + 64];

	if (count && hint->named[0].tgid) {
		name_descendant(hint, &hint->named[0]);
		return;
	}
	log_info("no step was seen yet; the busiest candidates of process %u are:", hint->tgid);
	for (size_t i = 0; i < count; i++) {
		struct candidate *candidate = &hint->named[i];

		candidate->name[sizeof(candidate->name) - 1] = '\0';
		text_quote(name, sizeof(name), candidate->name);
		if (candidate->mean_ms > 0)
			log_info("  --step %s  (%.1f calls/s, mean %.3f ms)", name,
				 candidate->calls_per_s, candidate->mean_ms);
		else
			log_info("  --step %s  (%.1f calls/s, duration not known)", name,
				 candidate->calls_per_s);
	}
	if (!count)
		log_info("  none: no other candidate was called in two seconds either; is the "
			 "server idle? (--list-steps -p %u shows all of them)",
			 hint->tgid);
}

/* Whether the child was stopped with us: Ctrl-C and service managers signal all our processes. */
static bool was_stopped(int status)
{
	int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	return by == SIGINT || by == SIGTERM || by == SIGHUP;
}

static void tell_failure(const struct hint *hint, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STARVED)
		log_info("no step was seen yet; candidates are not searched while process %u is "
			 "short of CPUs: ferrum-bpftrace --list-steps -p %u does it",
			 hint->tgid, hint->tgid);
	else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_PYTHON)
		log_info("no step was seen yet; process %u runs Python, and no function in native "
			 "code is its step (--list-steps -p %u counts calls of its Python "
			 "functions)",
			 hint->tgid, hint->tgid);
	else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NONE)
		log_info("no step was seen yet, and no regular step was found in process %u by the "
			 "stacks of its busy threads (--list-steps -p %u looks again)",
			 hint->tgid, hint->tgid);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
		log_info("no step was seen yet; a search for candidates in process %u takes more "
			 "than %d ms of a CPU: ferrum-bpftrace --list-steps -p %u does it",
			 hint->tgid, HINT_CPU_MS, hint->tgid);
	else if (!was_stopped(status))
		log_info("no step was seen yet, and no candidate was found in process %u "
			 "(--list-steps -p %u says why)",
			 hint->tgid, hint->tgid);
}

/* As waitpid(2), without waiting; also keeps the CPU time of the child. */
static pid_t reap(struct hint *hint, int *status)
{
	struct rusage used = {0};
	pid_t ended = wait4(hint->pid, status, WNOHANG, &used);

	if (ended > 0)
		hint->cpu_ns =
			(uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * NS_PER_S +
			(uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * NS_PER_US;
	return ended;
}

bool hint__check(struct hint *hint)
{
	int status = 0;
	pid_t ended;

	if (hint->output >= 0)
		read_output(hint);
	if (hint->output >= 0)
		return false;
	ended = reap(hint, &status);
	if (!ended)
		return false;
	hint->pid = -1;
	if (ended > 0 && !status)
		name_busiest(hint);
	else
		tell_failure(hint, status);
	return true;
}

/* Kills the child if it is running. */
static void end_child(struct hint *hint)
{
	int status;

	if (hint->pid > 0) {
		broker_kill(hint->pid);
		for (int i = 0; i < REAP_MS && !reap(hint, &status); i++)
			usleep(1000);
	}
	hint->pid = -1;
}

uint64_t hint_wait_end(struct hint_wait *wait)
{
	if (wait->hint) {
		end_child(wait->hint);
		wait->cpu_ns += wait->hint->cpu_ns;
		hint__free(wait->hint);
	}
	wait->hint = NULL;
	return wait->cpu_ns;
}

bool hint_wait_turn(struct hint_wait *wait, uint64_t now_ns)
{
	if (wait->hint && hint__check(wait->hint)) {
		wait->cpu_ns += wait->hint->cpu_ns;
		hint__free(wait->hint);
		wait->hint = NULL;
	}
	if (!wait->due_ns || now_ns < wait->due_ns)
		return false;
	wait->due_ns = 0;
	return true;
}

void hint__free(struct hint *hint)
{
	if (!hint)
		return;
	end_child(hint);
	if (hint->output >= 0)
		close(hint->output);
	free(hint);
}

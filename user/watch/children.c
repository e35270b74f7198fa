/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/children.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "output/file.h"
#include "output/memory_copy.h"
#include "sandbox/capabilities.h"
#include "watch/dumps.h"
#include "watch/slots.h"

/* Of /proc/PID/oom_score_adj (proc(5)): what children have more than watch, and the most there is.
 */
#define OOM_MORE 300
#define OOM_MOST 1000
/* The descriptor that a child is given. */
#define CHILD_FD 3
/* ioprio_set(2), of <linux/ioprio.h>, which older systems lack. */
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_IDLE	   (3 << 13)
#define NICE_LOWEST	   19
/* To a tracer: what tells its metrics from those of others, for a collector. */
#define INSTANCE "FERRUM_BPFTRACE_INSTANCE"
/* What a tracer gets when watch has ended. */
#define TRACER_SIGNAL SIGTERM

typedef VEC(char *) argument_vec;

static void clear_arguments(argument_vec *arguments)
{
	vec_for_each (argument, arguments)
		free(*argument);
	vec_free(arguments);
}

/* Takes text over; NULL: -ENOMEM. */
static int take_argument(argument_vec *arguments, char *text)
{
	int err = text ? vec_push(arguments, text) : -ENOMEM;

	if (err)
		free(text);
	return err;
}

__attribute__((format(printf, 2, 3))) static int add(argument_vec *arguments, const char *format,
						     ...)
{
	va_list values;
	char *text = NULL;

	va_start(values, format);
	if (vasprintf(&text, format, values) < 0)
		text = NULL;
	va_end(values);
	return take_argument(arguments, text);
}

static bool is_among(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (!strcmp(name, *names))
			return true;
	}
	return false;
}

/* The options that were given for tracers, without some. */
static int add_given(argument_vec *arguments, const struct options *options,
		     const char *const *without)
{
	int err = 0;

	vec_for_each (given, &options->watch.given) {
		if (err || is_among(given->name, without))
			continue;
		err = given->value ? add(arguments, "--%s=%s", given->name, given->value)
				   : add(arguments, "--%s", given->name);
	}
	return err;
}

static int add_all(argument_vec *arguments, const char *const *texts)
{
	int err = 0;

	for (; *texts && !err; texts++)
		err = add(arguments, "%s", *texts);
	return err;
}

/*
 * A process has one reader of its GPU records, its Python functions are armed by the first tracer
 * (--python=share), and a collector wants each escalation and each value
 * once. What one option requires, as rank and otlp-metrics do, is left out with it.
 */
static const char *const without_in_calls[] = {"gpu",
					       "gpu-strict",
					       "inject",
					       "inject-timeout",
					       "otlp",
					       "otlp-metrics",
					       "metrics-interval",
					       "python",
					       "rank",
					       "trace-format",
					       NULL};
static const char *const without_in_flight[] = {"rank", "trace-format", NULL};
/* What a replay warns of, or would do again. */
static const char *const without_in_replay[] = {
	"otlp",	   "otlp-metrics", "metrics-interval", "follow",       "gpu",
	"inject",  "python",	   "inject-timeout",   "step-arg",     "step",
	"verbose", "quiet",	   "uretprobe",	       "ring-records", NULL};

/* A file for each engine. */
static int add_metrics(argument_vec *arguments, const struct tracer_plan *plan)
{
	const char *path = plan->options->metrics;
	char *file;
	int err;

	if (!path)
		return 0;
	file = slot_path(path, plan->slot);
	err = file ? add(arguments, "--metrics=%s", file) : -ENOMEM;
	free(file);
	return err;
}

static int plan_tracer(argument_vec *arguments, const struct tracer_plan *plan)
{
	static const char *const flight[] = {"--wait-step",
					     "--detail=probes",
					     "--trace=none",
					     "--profile=none",
					     "--report=none",
					     "--flight-fd=3",
					     NULL};
	static const char *const calls[] = {
		"--detail=escalated", "--trace=none", "--profile=none",	    "--report=none",
		"--gpu=off",	      "-q",	      "--record=/dev/fd/3", NULL};
	const struct option_watch *watch = &plan->options->watch;
	int err = add(arguments, "ferrum-bpftrace");

	if (!err)
		err = add(arguments, "--pid=%" PRIu32, plan->tgid);
	if (!err && plan->follows)
		err = add(arguments, "--follow");
	if (!err)
		err = add_given(arguments, plan->options,
				plan->calls_ns ? without_in_calls : without_in_flight);
	if (!err)
		err = add_all(arguments, plan->calls_ns ? calls : flight);
	if (!err && plan->calls_ns)
		err = add(arguments, "--python=%s",
			  plan->options->python == PYTHON_OFF ? "off" : "share");
	if (!err && plan->calls_ns)
		return add(arguments, "--duration=%" PRIu64 "us", plan->calls_ns / NS_PER_US);
	if (!err)
		err = add_metrics(arguments, plan);
	if (!err)
		err = add(arguments, "--last=%" PRIu64 "us", watch->last_ns / NS_PER_US);
	return err ? err : add(arguments, "--memory=%" PRIu64, watch->memory);
}

static int plan_writer(argument_vec *arguments, const struct writer_plan *plan)
{
	static const char *const texts[] = {"--replay=/dev/fd/3", "--report=none", "-qq", NULL};
	const char *trace =
		plan->options->trace_format == TRACE_PERFETTO ? "pftrace" : "trace.json";
	int err = add(arguments, "ferrum-bpftrace");

	if (!err)
		err = add_given(arguments, plan->options, without_in_replay);
	if (!err)
		err = add_all(arguments, texts);
	if (!err)
		err = add(arguments, "--trace=%s/" DUMPS_FOLDER "/%s%s.%s.gz", plan->dir,
			  plan->stem, plan->part, trace);
	if (!err)
		err = add(arguments, "--profile=%s/" DUMPS_FOLDER "/%s%s.jsonl.gz", plan->dir,
			  plan->stem, plan->part);
	return err ? err
		   : add(arguments, "--html=%s/" DUMPS_FOLDER "/%s%s.html", plan->dir, plan->stem,
			 plan->part);
}

/* Variables that are about us, or that would change what a child does. */
static void clear_environment(void)
{
	static const char *const names[] = {
		"NOTIFY_SOCKET",    "WATCHDOG_USEC",	    "WATCHDOG_PID",
		"FERRUM_BPFTRACE",  "FERRUM_BPFTRACE_FLAG", "FERRUM_BPFTRACE_DIR",
		"FERRUM_TRACE_OUT", "FERRUM_PROFILE_JSONL", "FERRUM_BPFTRACE_MAX_STEPS",
		INSTANCE,
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unsetenv(names[i]);
}

/* Without memory a child is to be killed, not watch, which starts another one. */
static void die_first(void)
{
	char text[16];
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	int score;

	if (size > 0) {
		text[size] = '\0';
		score = atoi(text) + OOM_MORE;
		size = snprintf(text, sizeof(text), "%d", score < OOM_MOST ? score : OOM_MOST);
		(void)!write(fd, text, (size_t)size);
	}
	if (fd >= 0)
		close(fd);
}

/* In the child: it ends when we do, however that happens. */
static void become_child(pid_t parent, int signo, int fd)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, signo);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	/* Ctrl-C, a terminal that closes and timeout(1) are for watch alone, which stops us. */
	(void)setpgid(0, 0);
	/* From there a terminal with "stty tostop" would stop us at the first message. */
	signal(SIGTTOU, SIG_IGN);
	/* SIGUSR1 stays blocked, as main has it: a request that comes early waits. */
	sigemptyset(&none);
	sigaddset(&none, SIGUSR1);
	sigprocmask(SIG_SETMASK, &none, NULL);
	clear_environment();
	die_first();
	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	if (fd == CHILD_FD)
		fcntl(fd, F_SETFD, 0);
	else
		dup2(fd, CHILD_FD);
	close_range(CHILD_FD + 1, ~0u, 0);
}

/* Our own file, also if it was replaced or deleted since. main gives the process its name. */
static void run_self(const argument_vec *arguments)
{
	execv("/proc/self/exe", arguments->items);
	log_err("/proc/self/exe: %s", strerror(errno));
	_exit(EXIT_FAILURE);
}

static pid_t fork_off(void)
{
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	pid = fork();
	if (pid < 0)
		log_err("fork: %s", strerror(errno));
	return pid;
}

/* 0: no limit. It counts for memory files too (setrlimit(2)). */
static void limit_files(uint64_t bytes)
{
	const struct rlimit limit = {bytes, bytes};

	if (bytes)
		(void)setrlimit(RLIMIT_FSIZE, &limit);
}

/* By slot, as the file of metrics: a tracer that is started again goes on with it. */
static void name_instance(const struct tracer_plan *plan, pid_t parent)
{
	char text[32];

	snprintf(text, sizeof(text), "%d.%u", parent, plan->slot);
	(void)setenv(INSTANCE, text, true);
}

/* COMMAND may have inherited the variable: its parent is another process. */
void children_follow_watch(void)
{
	const char *instance = getenv(INSTANCE);
	pid_t parent = instance ? (pid_t)strtol(instance, NULL, 10) : 0;

	if (parent <= 0 || getppid() != parent)
		return;
	prctl(PR_SET_PDEATHSIG, TRACER_SIGNAL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
}

int children_start_tracer(const struct tracer_plan *plan, pid_t *pid)
{
	argument_vec arguments = {0};
	pid_t parent = getpid();
	int err = plan_tracer(&arguments, plan);

	if (!err)
		err = vec_push(&arguments, (char *)NULL);
	if (err) {
		log_err("tracer: %s", strerror(-err));
		clear_arguments(&arguments);
		return err;
	}
	*pid = fork_off();
	if (!*pid) {
		become_child(parent, TRACER_SIGNAL, plan->fd);
		name_instance(plan, parent);
		/* Its capture is in memory: it fails rather than that the machine runs out. */
		if (plan->calls_ns) {
			signal(SIGXFSZ, SIG_IGN);
			limit_files(plan->options->watch.memory);
		}
		run_self(&arguments);
	}
	err = *pid < 0 ? -EAGAIN : 0;
	clear_arguments(&arguments);
	return err;
}

/* What the kernel lets the lowest have is enough: watching goes on meanwhile. */
static void lower_priority(void)
{
	const struct sched_param none = {0};

	(void)setpriority(PRIO_PROCESS, 0, NICE_LOWEST);
	(void)sched_setscheduler(0, SCHED_IDLE, &none);
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

static uint64_t wanted_by_writer(const struct sandbox_works *works, uint64_t permitted)
{
	return permitted & (1ull << CAP_DAC_OVERRIDE | 1ull << CAP_CHOWN | 1ull << CAP_FOWNER);
}

static int write_capture(const struct writer_plan *plan)
{
	struct output *output;
	char path[4096];
	int err;

	snprintf(path, sizeof(path), "%s/" DUMPS_FOLDER "/%s%s.fbt.gz", plan->dir, plan->stem,
		 plan->part);
	err = output__create(&output, path);
	if (err)
		return err;
	err = memory_file_copy(CHILD_FD, memory_file_bytes(CHILD_FD), output__file(output));
	if (err)
		log_err("%s: %s", path, strerror(-err));
	else
		err = output__commit(output);
	if (err)
		output__discard(output);
	else
		output__free(output);
	return err;
}

/* In the child. What it reads comes from an engine, so it keeps no more rights than it needs. */
static _Noreturn void write_dump(const struct writer_plan *plan, const argument_vec *arguments)
{
	int err = 0;

	lower_priority();
	/* A disk is not filled by a single file. */
	limit_files(plan->options->watch.max_disk);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err)
		err = sandbox_keep(wanted_by_writer, NULL);
	if (err) {
		log_err("dump: not written, because privileges cannot be dropped: %s",
			strerror(-err));
		_exit(EXIT_FAILURE);
	}
	if (write_capture(plan))
		_exit(EXIT_FAILURE);
	run_self(arguments);
	_exit(EXIT_FAILURE);
}

int children_start_writer(const struct writer_plan *plan, pid_t *pid)
{
	argument_vec arguments = {0};
	pid_t parent = getpid();
	int err = plan_writer(&arguments, plan);

	if (!err)
		err = vec_push(&arguments, (char *)NULL);
	if (err) {
		log_err("dump: %s", strerror(-err));
		clear_arguments(&arguments);
		return err;
	}
	*pid = fork_off();
	if (!*pid) {
		become_child(parent, SIGKILL, plan->fd);
		write_dump(plan, &arguments);
	}
	err = *pid < 0 ? -EAGAIN : 0;
	clear_arguments(&arguments);
	return err;
}

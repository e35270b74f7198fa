/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "broker.h"
#include "hint.h"
#include "log.h"
#include "vec.h"

#define NAMED_MAX 3
#define OURSELVES "/proc/self/exe"
/* More than 16 candidates with long names. The rest is read and dropped. */
#define TEXT_MAX (64 * 1024)
/* Letting go of many probes takes a killed child up to some seconds: init reaps that one. */
#define REAP_MS 50

struct hint {
	uint32_t tgid;
	pid_t pid;  /* -1: it has ended */
	int output; /* read end of its stdout; -1: it is closed */
	VEC(char) text;
};

typedef VEC(const char *) string_vec;

/* With the standard input and error that it has. */
static void run_program(const char *program, const string_vec *args, int output)
{
	sigset_t none;

	/* The signals that the tool blocks and ignores are not the child's. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	/* What it has attached goes with the tool, however that ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(output, STDOUT_FILENO) < 0)
		_exit(127);
	execv(program, (char *const *)args->items);
	_exit(127);
}

static void run_child(const char *program, const string_vec *args, int output)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
		_exit(127);
	run_program(program, args, output);
}

static int make_args(string_vec *args, const struct options *options, const char *tgid)
{
	int err = vec_push(args, "ferrum-bpftrace");

	err = err ? err : vec_push(args, "--list-steps");
	err = err ? err : vec_push(args, "-p");
	err = err ? err : vec_push(args, tgid);
	vec_for_each (file, &options->symbol_files) {
		err = err ? err : vec_push(args, "--symbols");
		err = err ? err : vec_push(args, *file);
	}
	return err ? err : vec_push(args, NULL);
}

static int start_child(struct hint *hint, const char *program, const string_vec *args)
{
	int ends[2], err = 0;

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
		if (hint->pid == 0)
			run_child(program, args, ends[1]);
	}
	close(ends[1]);
	return err;
}

void hint_run(const void *options, const struct broker_order *order, int output)
{
	string_vec args = {0};
	char number[16];

	snprintf(number, sizeof(number), "%u", order->tgid);
	/* A broker's are /dev/null, which its filter may not let be opened here. */
	if (!make_args(&args, options, number))
		run_program(OURSELVES, &args, output);
}

struct hint *hint__begin_with(const char *program, const struct options *options, uint32_t tgid)
{
	struct hint *hint;
	string_vec args = {0};
	char number[16];
	int err;

	if (log_level() < LOG_INFO)
		return NULL;
	hint = calloc(1, sizeof(*hint));
	if (!hint)
		return NULL;
	hint->tgid = tgid;
	hint->pid = -1;
	hint->output = -1;
	snprintf(number, sizeof(number), "%u", tgid);
	err = make_args(&args, options, number);
	if (!err)
		err = start_child(hint, program, &args);
	vec_free(&args);
	if (err) {
		log_warn("no step was seen yet; search for candidates: %s", strerror(-err));
		hint__free(hint);
		return NULL;
	}
	return hint;
}

struct hint *hint__begin(const struct options *options, uint32_t tgid)
{
	return hint__begin_with(OURSELVES, options, tgid);
}

static void keep_text(struct hint *hint, const char *text, size_t length)
{
	for (size_t i = 0; i < length && hint->text.count < TEXT_MAX; i++) {
		if (vec_push(&hint->text, text[i]))
			return;
	}
}

/* Takes what is there; at its end the pipe is closed. */
static void read_output(struct hint *hint)
{
	char buffer[4096];
	ssize_t length;

	do {
		length = read(hint->output, buffer, sizeof(buffer));
		if (length > 0)
			keep_text(hint, buffer, (size_t)length);
	} while (length > 0 || (length < 0 && errno == EINTR));
	if (length < 0 && errno == EAGAIN)
		return;
	close(hint->output);
	hint->output = -1;
}

/*
 * A line of --list-steps: "      12.5      3.100 ms  NAME  [FILE]", "-" for the mean of a function
 * that has not returned. False if it is another line, or of one not called, or called too often.
 */
static bool name_candidate(char *line)
{
	double calls_per_s = 0, mean_ms = 0;
	char *file = NULL, *next = line;
	bool has_mean;
	int name = 0;

	while ((next = strstr(next, "  [")))
		file = next++;
	if (!file)
		return false;
	*file = '\0';
	has_mean = sscanf(line, " %lf %lf ms %n", &calls_per_s, &mean_ms, &name) == 2 && name;
	if (!has_mean)
		sscanf(line, " %lf - %n", &calls_per_s, &name);
	if (!line[name] || !name || calls_per_s <= 0)
		return false;
	if (has_mean)
		log_info("  --step '%s'  (%.1f calls/s, mean %.3f ms)", line + name, calls_per_s,
			 mean_ms);
	else
		log_info("  --step '%s'  (%.1f calls/s, none has returned)", line + name,
			 calls_per_s);
	return true;
}

static void name_busiest(struct hint *hint)
{
	char *line, *rest = hint->text.items;
	int named = 0;

	log_info("no step was seen yet; the busiest candidates of process %u are:", hint->tgid);
	while (named < NAMED_MAX && (line = strsep(&rest, "\n")))
		named += name_candidate(line);
	if (!named)
		log_info("  no other candidate was called in two seconds either: is the server "
			 "idle? "
			 "(--list-steps -p %u shows all of them)",
			 hint->tgid);
}

/* Ctrl-C and the end of a service go to all processes of ours. */
static bool was_stopped(int status)
{
	int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	return by == SIGINT || by == SIGTERM || by == SIGHUP;
}

bool hint__check(struct hint *hint)
{
	int status = 0;
	pid_t ended;

	if (hint->output >= 0)
		read_output(hint);
	if (hint->output >= 0)
		return false;
	ended = waitpid(hint->pid, &status, WNOHANG);
	if (!ended)
		return false;
	hint->pid = -1;
	if (ended > 0 && !status && !vec_push(&hint->text, '\0'))
		name_busiest(hint);
	else if (!was_stopped(status))
		log_info("no step was seen yet, and no candidate was found in process %u "
			 "(--list-steps -p %u says why)",
			 hint->tgid, hint->tgid);
	return true;
}

bool hint_wait_turn(struct hint_wait *wait, uint64_t now_ns)
{
	if (wait->hint && hint__check(wait->hint)) {
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
	if (hint->pid > 0) {
		broker_kill(hint->pid);
		for (int i = 0; i < REAP_MS && !waitpid(hint->pid, NULL, WNOHANG); i++)
			usleep(1000);
	}
	if (hint->output >= 0)
		close(hint->output);
	vec_free(&hint->text);
	free(hint);
}

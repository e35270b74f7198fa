/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Parses the command line, runs what it asks for, and picks the exit code. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "commands/diff.h"
#include "commands/doctor.h"
#include "commands/dry_run.h"
#include "commands/env_hash.h"
#include "commands/list_steps.h"
#include "commands/validate.h"
#include "merge/merge.h"
#include "model/metadata.h"
#include "option_parse.h"
#include "sandbox/privilege.h"
#include "shim/library.h"
#include "trace/flag.h"
#include "trace/trace.h"
#include "watch/children.h"
#include "watch/watch.h"

/* With -- COMMAND any other number is its status. */
enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_REGRESSION = 3 };

/* Free memory that the heap keeps at its end; blocks of half of it and more are mapped. */
#define HEAP_SPARE_BYTES (2 << 20)

/*
 * After a stall the full rings are read at once, in blocks of up to 8 MiB. By default glibc keeps
 * what is freed then, up to twice the largest block ever freed (mallopt(3)); libbpf frees one of
 * 5 MiB when it loads.
 */
static void bound_heap(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, HEAP_SPARE_BYTES / 2);
	(void)mallopt(M_TRIM_THRESHOLD, HEAP_SPARE_BYTES);
}

/* If 0, 1 or 2 is closed, the next file we open would take its place. */
static int fill_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* open(2) returns the lowest free descriptor. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) {
			log_err("/dev/null: %s", strerror(errno));
			return -EIO;
		}
	}
	return 0;
}

/* No failure is silent: what returns -ENOMEM need not log it. */
static enum exit_code end_with(int err)
{
	if (err == -ENOMEM && !log_has_told())
		log_err("out of memory: free some, or raise the limit (ulimit -v, memory.max)");
	else if (err && !log_has_told())
		log_err("%s", strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

static void do_nothing(int signo)
{
}

/*
 * A shell script ignores SIGINT in its background jobs and may send it to them later, so SIGINT
 * gets its default action back. So does SIGCHLD: where it is ignored, as below some supervisors, no
 * signal comes when a child or a traced thread stops or ends. SIGUSR1 asks for an escalation;
 * outside of a window it must not end us. It has a handler because COMMAND would inherit an ignored
 * signal. It is blocked until the event loop takes it, so that a request that comes before the
 * window is served in the window.
 */
static void set_signals(void)
{
	struct sigaction nothing = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
	sigset_t manual;

	signal(SIGPIPE, SIG_IGN);
	/* A file that reaches ulimit -f is then an error of its write(2). */
	sigaction(SIGXFSZ, &nothing, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&manual);
	sigaddset(&manual, SIGUSR1);
	sigprocmask(SIG_BLOCK, &manual, NULL);
	sigaction(SIGUSR1, &nothing, NULL);
}

static enum exit_code trace(const struct options *options, struct flag *flag)
{
	int status = 0, err;

	if (options->windows.disabled) {
		log_info("FERRUM_BPFTRACE is off: no window will be opened by %s",
			 options->windows.flag);
		return EXIT_DONE;
	}
	err = flag ? trace_by_flag(options, flag) : trace_once(options, &status);
	return end_with(err) == EXIT_DONE || status ? (enum exit_code)status : EXIT_FAILED;
}

static enum exit_code compare(const struct options *options)
{
	bool has_regression = false;
	enum exit_code code = end_with(diff(options, stdout, &has_regression));

	return code == EXIT_DONE && has_regression ? EXIT_REGRESSION : code;
}

static enum exit_code dispatch(struct options *options, const struct metadata *metadata,
			       struct flag *flag)
{
	bool is_ok = true; /* of a command that prints why it is not */
	int err;

	switch (options->mode) {
	case MODE_TRACE:
		return trace(options, flag);
	case MODE_REPLAY:
		return end_with(replay_run(options, metadata));
	case MODE_LIST_STEPS:
		err = privilege_check();
		return end_with(err ? err : list_steps(options, stdout));
	case MODE_VALIDATE:
		is_ok = validate_files(options->files, options->file_count, options->require_events,
				       stdout, stderr);
		break;
	case MODE_MERGE:
		return end_with(
			merge_traces(options->files, options->file_count, options->output, stdout));
	case MODE_ENGINE_ENV:
		return end_with(engine_env_print(stdout));
	case MODE_DRY_RUN:
		is_ok = inject_dry_run(options, stdout);
		break;
	case MODE_DIFF:
		return compare(options);
	case MODE_DOCTOR:
		is_ok = doctor(options, stdout);
		break;
	case MODE_WATCH: /* main, because it takes the options over */
		break;
	case MODE_ENV_HASH:
		return end_with(
			env_hash_command(options->file_count ? options->files[0] : NULL, stdout));
	}
	return is_ok ? EXIT_DONE : EXIT_FAILED;
}

/* Reads the metadata and looks for the flag. 0, -EINVAL, logged, or -ENOMEM. */
static int prepare(const struct options *options, struct metadata *metadata, struct flag **flag)
{
	int err = 0;

	if (options->mode != MODE_VALIDATE && options->mode != MODE_LIST_STEPS &&
	    options->mode != MODE_DRY_RUN && options->mode != MODE_DOCTOR &&
	    options->mode != MODE_MERGE && options->mode != MODE_DIFF)
		err = metadata_resolve(metadata, &options->metadata, environ);
	if (!err && options->windows.flag && !options->windows.disabled)
		err = flag__new(flag, options->windows.flag);
	return err;
}

int main(int argc, char **argv)
{
	struct metadata metadata = {0};
	struct options options;
	struct flag *flag = NULL;
	enum exit_code code;
	int err = fill_standard_fds();

	if (err)
		return EXIT_FAILED;
	/* What watch starts is run as /proc/self/exe, and would be named exe. */
	(void)prctl(PR_SET_NAME, "ferrum-bpftrace");
	set_signals();
	children_follow_watch();
	bound_heap();
	err = options_parse(&options, argc, argv);
	if (!err)
		err = prepare(&options, &metadata, &flag);
	if (!err && options.mode == MODE_WATCH)
		code = end_with(watch_run(&options, argc, argv));
	else if (!err)
		code = dispatch(&options, &metadata, flag);
	else
		code = err == -ENOMEM ? end_with(err) : EXIT_USAGE;
	flag__free(flag);
	metadata_clear(&metadata);
	options_clear(&options);
	return (int)code;
}

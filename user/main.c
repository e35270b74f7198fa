/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Parse, wire, dispatch, exit code. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "doctor.h"
#include "env_hash_command.h"
#include "flag.h"
#include "gpu_shim.h"
#include "inject_dry_run.h"
#include "list_steps.h"
#include "log.h"
#include "metadata.h"
#include "options.h"
#include "privilege.h"
#include "profile.h"
#include "replay.h"
#include "trace.h"

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Where 0, 1 or 2 is closed, the next file we open would take its place. */
static int fill_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* The lowest that is free is the one that is made. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) {
			log_err("/dev/null: %s", strerror(errno));
			return -EIO;
		}
	}
	return 0;
}

/* No failure is silent: a lack of memory has no place that tells of it. */
static void tell(int err, enum options_mode mode)
{
	/* What these print has said no already, and why; so has validate, whose no is positive. */
	if (err > 0 || (err == -EPERM && (mode == MODE_DOCTOR || mode == MODE_DRY_RUN)))
		return;
	if (err == -ENOMEM && !log_has_told())
		log_err("no memory: free some, or raise the limit (ulimit -v, memory.max)");
	else if (err && !log_has_told())
		log_err("%s", strerror(-err));
}

static void do_nothing(int signo)
{
	(void)signo;
}

/*
 * A script's shell ignores SIGINT in background jobs, and then sends it itself. SIGUSR1 means an
 * escalation: where no loop waits for it there is none to be had, and it must not end us. A
 * handler, because what is ignored a COMMAND would inherit.
 */
static void set_signals(void)
{
	struct sigaction nothing = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};

	signal(SIGPIPE, SIG_IGN);
	/* A file as large as ulimit -f allows is an error of its write. */
	sigaction(SIGXFSZ, &nothing, NULL);
	signal(SIGINT, SIG_DFL);
	sigaction(SIGUSR1, &nothing, NULL);
}

static int list(const struct options *options)
{
	int err = privilege_check();

	return err ? err : list_steps(options, stdout);
}

static int trace(const struct options *options, struct flag *flag)
{
	if (options->windows.disabled) {
		log_info("FERRUM_BPFTRACE is off: no window will be opened by %s",
			 options->windows.flag);
		return 0;
	}
	return flag ? trace_by_flag(options, flag) : trace_once(options);
}

static int dispatch(const struct options *options, const struct metadata *metadata,
		    struct flag *flag)
{
	switch (options->mode) {
	case MODE_TRACE:
		return trace(options, flag);
	case MODE_REPLAY:
		return replay_run(options, metadata);
	case MODE_LIST_STEPS:
		return list(options);
	case MODE_VALIDATE:
		return profile_validate_files(options->files, options->file_count,
					      options->require_events, stdout, stderr);
	case MODE_GPU_ENV:
		return gpu_env_print(stdout);
	case MODE_DRY_RUN:
		return inject_dry_run(options->pids.items, options->pids.count, stdout);
	case MODE_DOCTOR:
		return doctor(options, stdout);
	case MODE_ENV_HASH:
		return env_hash_command(options->file_count ? options->files[0] : NULL, stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct metadata metadata = {0};
	struct options options;
	struct flag *flag = NULL;
	int err = fill_standard_fds();

	if (err)
		return EXIT_FAILED;
	set_signals();
	err = options_parse(&options, argc, argv);
	if (!err && options.mode != MODE_VALIDATE && options.mode != MODE_LIST_STEPS &&
	    options.mode != MODE_DRY_RUN && options.mode != MODE_DOCTOR)
		err = metadata_resolve(&metadata, &options.metadata, environ);
	if (!err && options.windows.flag && !options.windows.disabled)
		err = flag__new(&flag, options.windows.flag);
	if (err) {
		metadata_clear(&metadata);
		options_clear(&options);
		if (err == -ENOMEM)
			tell(err, options.mode);
		return err == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
	}
	err = dispatch(&options, &metadata, flag);
	tell(err, options.mode);
	flag__free(flag);
	metadata_clear(&metadata);
	options_clear(&options);
	return err ? EXIT_FAILED : EXIT_DONE;
}

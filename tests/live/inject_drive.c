/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the tool's child does, for tests: injects a library into a process as often as is wanted, a
 * line of JSON for each time.
 *
 *   live_inject_drive [-n ROUNDS] [-t TID] [-T TIMEOUT_S] [-k POINT] [-l LIBRARY] [-e ENTRY]
 *                     [-p PAUSE_MS] PID
 *   live_inject_drive -k list
 *
 * LIBRARY is inject_probe.so beside this program unless said; what it is to return is 7. -k: it
 * kills itself at that point of the last round. Exit 0: each round was as it should be.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "inject/inject.h"
#include "base/json.h"

#define EXPECTED 7
#define NO_POINT (-1L)

struct options {
	long rounds;
	long point;
	long pause_ms;
	struct inject_wish wish;
	const char *path;
};

static const char *point_name(enum inject_point point)
{
	switch (point) {
	case INJECT_AT_START:
		return "start";
	case INJECT_AT_CHECKED:
		return "checked";
	case INJECT_AT_STUB_PART:
		return "stub_part";
	case INJECT_AT_STUB_WRITTEN:
		return "stub_written";
	case INJECT_AT_CHOSEN:
		return "chosen";
	case INJECT_AT_SEIZED:
		return "seized";
	case INJECT_AT_INTERRUPTED:
		return "interrupted";
	case INJECT_AT_STOPPED:
		return "stopped";
	case INJECT_AT_REGISTERS_READ:
		return "registers_read";
	case INJECT_AT_FILTERS_READ:
		return "filters_read";
	case INJECT_AT_STUB_COMPARED:
		return "stub_compared";
	case INJECT_AT_DIVERTED:
		return "diverted";
	case INJECT_AT_PENDING_CHECKED:
		return "pending_checked";
	case INJECT_AT_DETACHED:
		return "detached";
	case INJECT_AT_PAGE_FOUND:
		return "page_found";
	case INJECT_AT_PAGE_MAPPED:
		return "page_mapped";
	case INJECT_AT_LIBRARY_PART:
		return "library_part";
	case INJECT_AT_LIBRARY_WRITTEN:
		return "library_written";
	case INJECT_AT_FILLED:
		return "filled";
	case INJECT_AT_DONE:
		return "done";
	case INJECT_POINT_COUNT:
		break;
	}
	return "?";
}

static const char *status_name(enum inject_status status)
{
	switch (status) {
	case INJECT_LOADED:
		return "loaded";
	case INJECT_PRESENT:
		return "present";
	case INJECT_REFUSED:
		return "refused";
	case INJECT_NO_THREAD:
		return "no_thread";
	case INJECT_NO_HELPER:
		return "no_helper";
	case INJECT_FAILED:
		return "failed";
	case INJECT_GONE:
		return "gone";
	case INJECT_STATUS_COUNT:
		break;
	}
	return "?";
}

static void list_points(void)
{
	for (int i = 0; i < INJECT_POINT_COUNT; i++)
		printf("%d %s\n", i, point_name((enum inject_point)i));
}

static void die_there(void *ctx, enum inject_point point)
{
	if (point == (enum inject_point)(*(const long *)ctx))
		kill(getpid(), SIGKILL);
}

static void read_library(const char *path, struct inject_library *library)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *bytes;

	if (fd < 0 || fstat(fd, &status)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(2);
	}
	bytes = malloc((size_t)status.st_size + 1);
	if (!bytes || read(fd, bytes, (size_t)status.st_size) != status.st_size) {
		fprintf(stderr, "%s: cannot be read\n", path);
		exit(2);
	}
	close(fd);
	library->bytes = bytes;
	library->size = (size_t)status.st_size;
}

static void read_default_library(struct inject_library *library)
{
	char self[PATH_MAX], path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length < 0)
		exit(2);
	self[length] = '\0';
	snprintf(path, sizeof(path), "%s/inject_probe.so", dirname(self));
	read_library(path, library);
}

/* Signals are blocked while a thread may be stopped. */
static void run_round(const struct inject_wish *wish, struct inject_outcome *outcome)
{
	sigset_t all, before;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	inject_run(wish, outcome);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static bool print_round(const struct inject_outcome *outcome)
{
	bool ok = outcome->status == INJECT_LOADED && outcome->result == EXPECTED;
	struct json json = {.out = stdout};

	json_object_begin(&json, NULL);
	json_bool(&json, "ok", ok);
	json_string(&json, "status", status_name(outcome->status));
	json_uint(&json, "tid", outcome->tid);
	json_uint(&json, "nr", outcome->nr);
	json_uint(&json, "tries", outcome->tries);
	json_micros(&json, "stop_us", outcome->stop_ns);
	json_micros(&json, "total_us", outcome->total_ns);
	json_int(&json, "result", outcome->result);
	json_string(&json, "text", outcome->text);
	json_object_end(&json);
	putchar('\n');
	fflush(stdout);
	return ok;
}

static void usage(void)
{
	fputs("usage: live_inject_drive [-n ROUNDS] [-t TID] [-T TIMEOUT_S] [-k POINT|list] "
	      "[-l LIBRARY] [-e ENTRY] [-p PAUSE_MS] PID\n",
	      stderr);
	exit(2);
}

static void read_options(struct options *options, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "n:t:T:k:l:e:p:")) != -1) {
		switch (option) {
		case 'n':
			options->rounds = atol(optarg);
			break;
		case 't':
			options->wish.tid = (uint32_t)atol(optarg);
			/* A thread that was not found must not become "any thread". */
			if (!options->wish.tid)
				usage();
			break;
		case 'T':
			options->wish.timeout_ns = (uint64_t)(atof(optarg) * 1e9);
			break;
		case 'k':
			if (!strcmp(optarg, "list")) {
				list_points();
				exit(0);
			}
			options->point = atol(optarg);
			break;
		case 'l':
			options->path = optarg;
			break;
		case 'e':
			options->wish.library.entry = optarg;
			break;
		case 'p':
			options->pause_ms = atol(optarg);
			break;
		default:
			usage();
		}
	}
	if (optind + 1 != argc)
		usage();
	options->wish.tgid = (uint32_t)atol(argv[optind]);
}

int main(int argc, char **argv)
{
	struct options options = {
		.rounds = 1,
		.point = NO_POINT,
		.wish = {.library = {.entry = "inject_probe"}, .timeout_ns = 60000000000ull},
	};
	struct inject_outcome outcome;
	bool all = true;

	read_options(&options, argc, argv);
	if (options.path)
		read_library(options.path, &options.wish.library);
	else
		read_default_library(&options.wish.library);
	inject_hurry();
	for (long i = 0; i < options.rounds; i++) {
		struct timespec pause = {options.pause_ms / 1000,
					 options.pause_ms % 1000 * 1000000};

		if (i && options.pause_ms)
			nanosleep(&pause, NULL);
		if (i == options.rounds - 1 && options.point != NO_POINT)
			options.wish.hook = (struct inject_hook){die_there, &options.point};
		run_round(&options.wish, &outcome);
		all = print_round(&outcome) && all;
	}
	free((void *)options.wish.library.bytes);
	return !all;
}

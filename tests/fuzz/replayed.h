/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Passes a capture through all stages to all outputs, which must be valid whatever the capture
 * contains. */
#ifndef FBT_FUZZ_REPLAYED_H
#define FBT_FUZZ_REPLAYED_H

#include "fuzz.h"
#include "base/log.h"
#include "option_parse.h"
#include "commands/validate.h"
#include "trace/trace.h"

#define CAPTURE_FD   100
#define CAPTURE_PATH "/dev/fd/100"
#define TRACE_FD     101
#define TRACE_PATH   "/dev/fd/101"
#define PROFILE_FD   102
#define PROFILE_PATH "/dev/fd/102"
#define FOLDED_FD    103
#define FOLDED_PATH  "/dev/fd/103"

static struct options replay_options;

/* Sets the default options of "--replay", once. */
static inline void replay_set_up(void)
{
	char *argv[] = {"fuzz",	     "--replay",   CAPTURE_PATH, "--trace",   TRACE_PATH,
			"--profile", PROFILE_PATH, "--folded",	 FOLDED_PATH, NULL};

	log_set_level(LOG_DEBUG);
	fuzz_check(!options_parse(&replay_options, 9, argv));
}

static inline void replay_file(int number, const void *data, size_t size)
{
	int fd = fuzz_file(data, size);

	fuzz_check(dup2(fd, number) == number);
	close(fd);
}

/* Runs "validate" on the file. */
static inline void replay_check(char *path)
{
	char *paths[] = {path};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fuzz_check(out);
	if (!validate_files(paths, 1, NULL, out, out)) {
		fclose(out);
		fprintf(stderr, "%s", text);
		fuzz_stop("the output is valid", __FILE__, __LINE__);
	}
	fclose(out);
	free(text);
}

/* Each line of folded stacks is frames without control characters, a space and a number. */
static inline void replay_check_folded(void)
{
	FILE *file = fopen(FOLDED_PATH, "re");
	size_t capacity = 0;
	char *line = NULL;
	ssize_t size;

	fuzz_check(file);
	while ((size = getline(&line, &capacity, file)) > 0) {
		char *number = strrchr(line, ' ');

		fuzz_check(number && number > line && number[-1] == ']' && line[size - 1] == '\n');
		line[size - 1] = '\0';
		fuzz_check((size_t)size == strlen(line) + 1 &&
			   strlen(number + 1) == strspn(number + 1, "0123456789"));
		for (const char *at = line; *at; at++)
			fuzz_check((unsigned char)*at >= ' ' && *at != 0x7f);
	}
	free(line);
	fclose(file);
}

/* The outputs are those of one format or the other. */
static inline void replay_bytes(const void *data, size_t size, bool as_kineto)
{
	struct metadata metadata = {.commit_sha = NULL,
				    .env_hash = "sha256:unknown",
				    .model = "unknown",
				    .concurrency = 1,
				    .runtime_flags = "{}",
				    .world_size = 1};
	/* A replay takes options from the recording: no later one may have them. */
	struct options options = replay_options;
	int err;

	replay_file(CAPTURE_FD, data, size);
	replay_file(TRACE_FD, "", 0);
	replay_file(PROFILE_FD, "", 0);
	replay_file(FOLDED_FD, "", 0);
	options.trace_format = as_kineto ? TRACE_KINETO : TRACE_FERRUM;
	options.report = as_kineto ? REPORT_JSON : REPORT_TEXT;
	options.escalate_now = as_kineto;
	err = replay_run(&options, &metadata);
	vec_for_each (text, &options.judging_given)
		free(*text);
	vec_free(&options.judging_given);
	if (err)
		return;
	replay_check(TRACE_PATH);
	replay_check(PROFILE_PATH);
	replay_check_folded();
}

#endif

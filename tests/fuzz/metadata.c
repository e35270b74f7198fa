/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The command line and the environment of the target: the metadata of a profile, and the document
 * of --compute-env-hash. The input holds both, as strings that end with a NUL, separated by a
 * string of the byte 1.
 */
#include "model/env_host.h"
#include "fuzz.h"
#include "base/json_read.h"
#include "base/log.h"
#include "model/metadata.h"
#include "proc/process.h"

#define ERROR_SIZE 512

static void check_json(const char *text)
{
	struct json_object *value = NULL;
	char error[ERROR_SIZE];

	fuzz_check(!json_read(text, strlen(text), &value, error, sizeof(error)));
	json_object_put(value);
}

static void check_document(const struct env_host *host, char *const *environment)
{
	char hash[ENV_HASH_SIZE], *text = NULL;

	fuzz_check(!env_collect_document(&text, host, "0123", environment));
	check_json(text);
	fuzz_check(!env_collect_hash(hash, host, "0123", environment));
	free(text);
}

static void resolve(const struct metadata_options *options, const struct metadata_sources *sources)
{
	struct metadata metadata;

	if (metadata_resolve_from(&metadata, options, sources))
		return;
	check_json(metadata.runtime_flags);
	fuzz_check(metadata.env_hash && !strncmp(metadata.env_hash, "sha256:", 7));
	fuzz_check(metadata.model && metadata.concurrency && metadata.world_size);
	metadata_clear(&metadata);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_set_level(LOG_DEBUG);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char between[] = "\0\1";
	const uint8_t *split = memmem(data, size, between, sizeof(between));
	size_t first = split ? (size_t)(split - data) + 1 : size;
	size_t second = split ? size - first - 2 : 0;
	struct process_strings arguments, environment;
	struct env_host host = {
		.hw_id = "H100", .rust = "1.80", .has_clock = true, .clock_mhz = 1980};
	struct metadata_options options = {.commit_sha = NULL};
	struct metadata_sources sources = {.host = &host};

	fuzz_check(!process_strings_split(&arguments, fuzz_text(data, first), first));
	fuzz_check(!process_strings_split(&environment, fuzz_text(data + size - second, second),
					  second));
	sources.target_arguments = arguments.items;
	sources.target_environment = environment.items;
	resolve(&options, &sources);
	check_document(&host, environment.items);
	/* The same values as options of the user. */
	if (arguments.count > 4) {
		options = (struct metadata_options){arguments.items[0], arguments.items[1],
						    arguments.items[2], arguments.items[3],
						    arguments.items[4]};
		resolve(&options, &sources);
	}
	process_strings_clear(&arguments);
	process_strings_clear(&environment);
	return 0;
}

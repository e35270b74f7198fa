/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "env_collect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "vec.h"

#define PREFIX "FERRUM_"

struct variable {
	char *name;
	const char *value;
	size_t index; /* in the environment */
};

typedef VEC(struct variable) variable_vec;

static void clear_variables(variable_vec *variables)
{
	vec_for_each (variable, variables)
		free(variable->name);
	vec_free(variables);
}

/* By the bytes of the names; equal names in their order. */
static int compare_variables(const void *a, const void *b)
{
	const struct variable *left = a, *right = b;
	int order = strcmp(left->name, right->name);

	if (!order)
		order = left->index < right->index ? -1 : 1;
	return order;
}

static int find_variables(variable_vec *found, char *const *environment)
{
	int err = 0;

	for (size_t i = 0; !err && environment[i]; i++) {
		struct variable variable = {.index = i};
		const char *equals = strchr(environment[i], '=');

		if (!equals || strncmp(environment[i], PREFIX, strlen(PREFIX)) != 0)
			continue;
		variable.name = strndup(environment[i], (size_t)(equals - environment[i]));
		variable.value = equals + 1;
		err = variable.name ? vec_push(found, variable) : -ENOMEM;
		if (err)
			free(variable.name);
	}
	return err;
}

/* In the order of the engine's map, which keeps the last of equal names. */
static void sort_variables(variable_vec *variables)
{
	struct variable *items = variables->items;
	size_t kept = 0;

	if (variables->count)
		qsort(items, variables->count, sizeof(*items), compare_variables);
	for (size_t i = 0; i < variables->count; i++) {
		if (i + 1 < variables->count && !strcmp(items[i].name, items[i + 1].name))
			free(items[i].name);
		else
			items[kept++] = items[i];
	}
	variables->count = kept;
}

/*
 * The words of a name by which the engine tells what a variable affects (ferrum-types,
 * runtime_config.rs, infer_effects). Words were added over time, with the variables that have them.
 */
static const char diagnostics_words[] = "DIAG PROF TRACE DUMP LOG_CONFIG CAPTURE DEBUG";
static const char memory_words[] = "KV BATCHED_TOKENS PAGED_MAX_SEQS MODEL_LEN FIT_POLICY "
				   "STATE_MAX_SLOTS REUSABLE_EXECUTION MEMORY";
static const char correctness_words[] =
	"PREFIX_CACHE MODEL_PATH MODEL_LEN FIT_POLICY RUNTIME_MEMORY_BUDGET NATIVE ARTIFACT SPEC_ "
	"REF_ DTYPE ATTENTION_POLICY REUSABLE_EXECUTION";
static const char performance_words[] =
	"MOE VLLM MARLIN PAGED GRAPH SCHED BATCH ATTN ATTENTION_POLICY FLASH CUDA TRITON GREEDY "
	"REUSABLE_EXECUTION FA";

static bool has_word(const char *name, const char *words)
{
	for (size_t length; *words; words += length + (words[length] == ' ')) {
		length = strcspn(words, " ");
		if (memmem(name, strlen(name), words, length))
			return true;
	}
	return false;
}

static void write_effects(struct json *json, const char *name)
{
	bool diagnostics = has_word(name, diagnostics_words);
	bool memory = has_word(name, memory_words);
	bool correctness = has_word(name, correctness_words);

	json_array_begin(json, "affects");
	if (correctness)
		json_string(json, NULL, "correctness");
	if (!(diagnostics || memory || correctness) || has_word(name, performance_words))
		json_string(json, NULL, "performance");
	if (memory)
		json_string(json, NULL, "memory");
	if (diagnostics)
		json_string(json, NULL, "diagnostics");
	json_array_end(json);
}

static void write_optional(struct json *json, const char *key, const char *value)
{
	if (value)
		json_string(json, key, value);
}

static void write_gpu(struct json *json, const struct env_host *host)
{
	if (host->has_clock)
		json_uint(json, "gpu_clock_lock_mhz", host->clock_mhz);
	if (host->has_power_limit)
		json_uint(json, "gpu_power_limit_w", host->power_limit_w);
	if (host->has_persistence)
		json_bool(json, "gpu_persistence_mode", host->persistence);
}

static void write_document(FILE *out, const struct env_host *host, const char *commit_sha,
			   const variable_vec *variables)
{
	struct json json = {.out = out};

	json_object_begin(&json, NULL);
	json_string(&json, "commit_sha", commit_sha ? commit_sha : "");
	json_string(&json, "hw_id", host->hw_id);
	write_optional(&json, "driver", host->driver);
	write_optional(&json, "cuda", host->cuda);
	json_string(&json, "rust", host->rust);
	json_array_begin(&json, "ferrum_features");
	json_array_end(&json);
	write_gpu(&json, host);
	json_object_begin(&json, "ferrum_env");
	vec_for_each (variable, variables)
		json_string(&json, variable->name, variable->value);
	json_object_end(&json);
	json_object_begin(&json, "runtime_config");
	json_array_begin(&json, "entries");
	vec_for_each (variable, variables) {
		json_object_begin(&json, NULL);
		json_string(&json, "key", variable->name);
		json_string(&json, "effective_value", variable->value);
		json_string(&json, "source", "env");
		write_effects(&json, variable->name);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	json_object_end(&json);
}

int env_collect_document(char **text, const struct env_host *host, const char *commit_sha,
			 char *const *environment)
{
	variable_vec variables = {0};
	FILE *out = NULL;
	size_t size = 0;
	int err;

	*text = NULL;
	err = find_variables(&variables, environment);
	if (err)
		goto out;
	sort_variables(&variables);
	out = open_memstream(text, &size);
	if (!out) {
		err = -ENOMEM;
		goto out;
	}
	write_document(out, host, commit_sha, &variables);
	if (fclose(out)) {
		free(*text);
		*text = NULL;
		err = -ENOMEM;
	}
out:
	clear_variables(&variables);
	return err;
}

int env_collect_hash(char hash[ENV_HASH_SIZE], const struct env_host *host, const char *commit_sha,
		     char *const *environment)
{
	struct json_object *document = NULL;
	char error[256] = "";
	char *text = NULL;
	int err;

	err = env_collect_document(&text, host, commit_sha, environment);
	if (!err)
		err = json_read(text, strlen(text), &document, error, sizeof(error));
	/* Not by its text: names that are no UTF-8 may be equal by now, and json-c takes the last.
	 */
	if (!err)
		err = env_document_hash(hash, document, error, sizeof(error));
	if (err)
		log_err("environment document: %s", *error ? error : strerror(-err));
	else
		log_debug("environment document: %s", text);
	json_object_put(document);
	free(text);
	return err;
}

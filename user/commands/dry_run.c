/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/dry_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/log.h"
#include "base/vec.h"
#include "inject/inject.h"
#include "inject/python_use.h"
#include "python/outlook.h"
#include "python/tree.h"
#include "shim/library.h"

/* One of the libraries that may be injected. */
struct library_kind {
	enum inject_purpose purpose;
	struct inject_words words;
};

static const struct library_kind gpu_kind = {INJECT_FOR_CUDA, {"--gpu=inject", "the shim"}};
static const struct library_kind python_kind = {INJECT_FOR_PYTHON,
						{"--python=inject", "libferrum_python.so"}};

static bool has_library(const char *option, char *path, const char *missing)
{
	if (!path)
		log_err("%s: %s", option, missing);
	free(path);
	return path;
}

static bool has_libraries(const struct options *options)
{
	bool has = true;

	if (options->gpu.mode == GPU_INJECT)
		has = has_library("--gpu inject", gpu_shim_path(), GPU_SHIM_MISSING);
	if (options->python == PYTHON_INJECT)
		has = has_library("--python inject", python_library_path(),
				  PYTHON_LIBRARY_MISSING) &&
		      has;
	return has;
}

static void print_outlook(const struct options *options, uint32_t pid, FILE *out)
{
	char text[PYTHON_OUTLOOK_MAX];

	python_outlook(pid, options->specs.items, options->specs.count, text);
	if (*text)
		terminal_line(out, "  it would look for %s", text);
}

/* Prints the verdict on one process. True if the library would be loaded, or is there. */
static bool print_verdict(const struct options *options, const struct library_kind *kind,
			  uint32_t pid, FILE *out)
{
	struct inject_verdict verdict = {0};
	int err = inject_try(pid, kind->purpose, &verdict);
	bool would, answered = !err || inject_refused(&verdict) || verdict.present;

	if (answered)
		inject_verdict_print(&verdict, &kind->words, pid, out);
	else
		log_err("process %u: %s", pid, err == -ESRCH ? "no such process" : strerror(-err));
	would = answered && !inject_refused(&verdict);
	findings_free(&verdict.findings);
	if (would && kind == &python_kind)
		print_outlook(options, pid, out);
	return would;
}

static bool print_process(const struct options *options, uint32_t pid, FILE *out)
{
	bool would = false;

	if (options->gpu.mode == GPU_INJECT)
		would = print_verdict(options, &gpu_kind, pid, out);
	if (options->python == PYTHON_INJECT)
		would = print_verdict(options, &python_kind, pid, out) || would;
	return would;
}

/* The other processes of an engine get the library too. */
static bool print_tree(const struct options *options, uint32_t pid, FILE *out)
{
	process_vec others = {0};
	bool would = true;

	if (options->python != PYTHON_INJECT || options->follow || python_tree_list(pid, &others))
		return true;
	vec_for_each (other, &others) {
		if (!options_name_process(options, other->tgid))
			would = print_process(options, other->tgid, out) && would;
	}
	vec_free(&others);
	return would;
}

bool inject_dry_run(const struct options *options, FILE *out)
{
	bool would = has_libraries(options);

	vec_for_each (pid, &options->pids)
		would = print_process(options, *pid, out) && would;
	vec_for_each (pid, &options->pids)
		would = print_tree(options, *pid, out) && would;
	if (!fflush(out))
		return would;
	log_err("--dry-run: %s", strerror(errno));
	return false;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Candidates for --list-steps, and the explanation of a --step that matched nothing. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/open.h"
#include "proc/process.h"
#include "steps/engines.h"
#include "steps/find.h"
#include "steps/image.h"
#include "steps/near.h"
#include "steps/patched.h"
#include "steps/resolve.h"

/* Smaller functions only call others. */
#define CANDIDATE_BYTES_MIN 32

struct candidate {
	const struct elf_symbol *symbol; /* valid while its image is open */
	struct step_function *function;
	unsigned int rank;
	uint64_t size;
	bool name_is_shared; /* --step NAME, or --step SYMBOL, means other functions too */
	bool symbol_is_shared;
};

typedef VEC(struct candidate) candidate_vec;

/* What to search, and for what. */
struct search {
	uint32_t tgid;
	const struct target_options *options;
	const code_place_vec *busy; /* NULL: all functions */
	size_t max;
	candidate_vec found;
};

/* Sorts the likeliest first, and of equally likely ones the largest first. */
static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return 0;
}

/* Adds a symbol if its name is likely. 0 or -ENOMEM. */
static int add_symbol(const struct elf_symbol *symbol, candidate_vec *candidates)
{
	struct candidate candidate = {.symbol = symbol, .size = symbol->size};

	candidate.rank = engines_rank(symbol->name);
	return candidate.rank ? vec_push(candidates, candidate) : 0;
}

static int gather_all(const struct image *image, const struct target_options *options,
		      candidate_vec *candidates)
{
	const struct elf_symbols *symbols = &image->symbols;
	int err = 0;

	for (size_t i = 0; i < symbols->count && !err; i++) {
		if (target_is_too_late(options, i))
			break;
		if (!i || symbols->items[i - 1].address != symbols->items[i].address)
			err = add_symbol(&symbols->items[i], candidates);
	}
	return err;
}

/* The index of the first place in a mapping or after it. */
static size_t first_place(const code_place_vec *busy, const struct mapping *mapping)
{
	return vec_lower_bound(busy, item->address, mapping->start);
}

static bool has_place(const code_place_vec *busy, const struct mapping *mapping)
{
	size_t at = first_place(busy, mapping);

	return at < busy->count && busy->items[at].address < mapping->end;
}

/*
 * Adds the functions that the places in a mapping are in. A place is a return address, which may be
 * just after the last instruction of its function. A place at the start of a function is a pointer
 * to it.
 */
static int gather_busy(const struct image *image, const struct mapping *mapping,
		       const code_place_vec *busy, candidate_vec *candidates)
{
	const struct elf_symbol *last = NULL;
	int err = 0;

	for (size_t i = first_place(busy, mapping);
	     i < busy->count && busy->items[i].address < mapping->end && !err; i++) {
		uint64_t offset = busy->items[i].address - mapping->start + mapping->offset;
		const struct elf_symbol *symbol;
		uint64_t address;

		if (elf_file__code_address(image->elf, offset, &address) ||
		    elf_symbols_at(&image->symbols, address))
			continue;
		symbol = elf_symbols_around(&image->symbols, address - 1);
		symbol = symbol ? elf_symbols_at(&image->symbols, symbol->address) : NULL;
		if (symbol && symbol != last)
			err = add_symbol(symbol, candidates);
		last = symbol ? symbol : last;
	}
	return err;
}

static bool is_too_small(const struct candidate *candidate)
{
	return candidate->rank != 1 && candidate->size < CANDIDATE_BYTES_MIN;
}

/* Whether --step TEXT means a symbol. */
static bool means(const char *text, const char *symbol)
{
	/* A name with characters of a glob is one. */
	const struct step_spec spec = {.form = STEP_SPEC_SYMBOL, .pattern = (char *)text};

	return step_spec_matches_symbol(&spec, symbol);
}

/*
 * Overloads share a name, and so do generic functions; copies of a static function share a symbol.
 */
static void compare_names(struct candidate *candidate, const struct step_function *other,
			  const char *symbol)
{
	const struct step_function *function = candidate->function;

	if (other == function)
		return;
	candidate->name_is_shared |= means(function->name, symbol);
	candidate->symbol_is_shared |= means(function->symbol, symbol);
}

/*
 * --step takes all matches in the file, also those that are too small, or too many, for candidates.
 */
static void compare_in_file(struct candidate *candidate, const candidate_vec *all)
{
	const struct step_function *function = candidate->function;

	candidate->name_is_shared = !means(function->name, function->symbol);
	candidate->symbol_is_shared = !means(function->symbol, function->symbol);
	vec_for_each (other, all) {
		if (other->symbol != candidate->symbol)
			compare_names(candidate, NULL, other->symbol->name);
	}
}

static int name_alone(struct candidate *candidate, const candidate_vec *found)
{
	struct step_function *function = candidate->function;

	vec_for_each (other, found)
		compare_names(candidate, other->function, other->function->symbol);
	if (!candidate->name_is_shared)
		return 0;
	if (!candidate->symbol_is_shared)
		function->alone = strdup(function->symbol);
	else if (asprintf(&function->alone, "%s+0x%" PRIx64, function->path, function->address) < 0)
		function->alone = NULL;
	return function->alone ? 0 : -ENOMEM;
}

static int resolve_one(struct search *search, const struct image *image,
		       const struct mapping *mapping, struct candidate candidate)
{
	char reason[RESOLVE_REASON_BYTES];
	int err;

	err = resolve_function_in(&candidate.function, search->tgid, image, mapping,
				  candidate.symbol, candidate.symbol->address, false, reason);
	if (err)
		return err == -ENOMEM || err == -EMFILE ? err : 0;
	candidate.function->builtin = candidate.rank == 1;
	target_add_args(candidate.function, image, search->options);
	err = vec_push(&search->found, candidate);
	if (err)
		step_function_free(candidate.function);
	return err;
}

/* Adds the likeliest functions of one file. */
static int look_at(struct search *search, const struct mapping *mapping)
{
	const struct target_options *options = search->options;
	candidate_vec candidates = {0};
	size_t first = search->found.count;
	struct image image;
	int err;

	err = image_open(&image, search->tgid, mapping);
	if (err) {
		err = err == -ENOMEM || err == -EMFILE ? err : 0;
		goto out;
	}
	err = image_read(&image, search->tgid, options->symbol_files, options->symbol_file_count);
	if (!err)
		err = search->busy ? gather_busy(&image, mapping, search->busy, &candidates)
				   : gather_all(&image, options, &candidates);
	vec_sort(&candidates, compare_candidates);
	for (size_t i = 0;
	     i < candidates.count && !err && search->found.count - first < search->max; i++)
		if (!is_too_small(&candidates.items[i]))
			err = resolve_one(search, &image, mapping, candidates.items[i]);
	for (size_t i = first; i < search->found.count && !err; i++)
		compare_in_file(&search->found.items[i], &candidates);
out:
	image_close(&image);
	vec_free(&candidates);
	return err;
}

/* Keeps the max likeliest functions and frees the others. */
static void keep_best(candidate_vec *found, size_t max)
{
	vec_sort(found, compare_candidates);
	while (found->count > max)
		step_function_free(found->items[--found->count].function);
}

static int look_at_all(struct search *search, mapping_vec *maps)
{
	int err;

	vec_for_each (mapping, maps) {
		if (engines_is_runtime(mapping->path) ||
		    (search->busy && !has_place(search->busy, mapping)))
			continue;
		if (clock_ns(CLOCK_MONOTONIC) > search->options->deadline_ns) {
			log_warn("process %u: stopped looking at its files after %" PRIu64
				 " s, at %s",
				 search->tgid, TARGET_SEARCH_NS_MAX / NS_PER_S, mapping->path);
			break;
		}
		err = look_at(search, mapping);
		if (err) {
			log_err("%s: %s", mapping->path, strerror(-err));
			return err;
		}
		keep_best(&search->found, search->max);
	}
	return 0;
}

/* A process shows no mappings under its own number once its first thread has ended. */
int target_find_candidates(uint32_t tgid, const struct target_options *options,
			   const code_place_vec *busy, size_t max, function_vec *functions)
{
	struct target_options limited = *options;
	struct search search = {
		.tgid = processes_live_thread(tgid), .options = &limited, .busy = busy, .max = max};
	mapping_vec maps = {0};
	int err, added = 0;

	err = maps_read(search.tgid, &maps);
	if (err)
		return err;
	limited.deadline_ns = clock_ns(CLOCK_MONOTONIC) + TARGET_SEARCH_NS_MAX;
	err = look_at_all(&search, &maps);
	for (size_t i = 0; i < search.found.count && !err; i++)
		err = name_alone(&search.found.items[i], &search.found);
	vec_for_each (candidate, &search.found) {
		if (!err)
			err = vec_push(functions, candidate->function);
		if (err)
			step_function_free(candidate->function);
		else
			added++;
	}
	while (err && added--)
		step_function_free(functions->items[--functions->count]);
	vec_free(&search.found);
	maps_free(&maps);
	return err ? err : added;
}

/* Names that are like the wanted one are looked for no longer than this. */
#define NEAR_NS_MAX (2 * NS_PER_S)

/* The files that were searched for a --step that matched nothing. */
struct found {
	size_t files;	/* mapped ELF files that spec applies to */
	size_t named;	/* those of them that have local symbols too */
	char path[256]; /* path of the last one */
	struct near_names near;
	uint64_t deadline_ns; /* for near */
};

static void count_file(struct found *found, uint32_t tgid, const struct target_options *options,
		       const struct mapping *mapping)
{
	struct image image;

	if (!image_open(&image, tgid, mapping)) {
		snprintf(found->path, sizeof(found->path), "%s", mapping->path);
		found->files++;
		if (!image_read(&image, tgid, options->symbol_files, options->symbol_file_count)) {
			found->named += image.symbols.complete;
			near_names_add(&found->near, &image.symbols, found->deadline_ns);
		}
	}
	image_close(&image);
}

/* Why no code can be mapped from the file at path; "" if it can. */
static const char *describe_file(uint32_t tgid, const char *path)
{
	struct elf_file *elf = NULL;
	char rooted[PATH_MAX];
	struct stat status;
	int fd, err;

	if (*path != '/')
		snprintf(rooted, sizeof(rooted), "%s", path);
	else if (!proc_root_path(rooted, sizeof(rooted), tgid, path))
		return "";
	fd = regular_file_open(rooted, &status);
	if (fd < 0)
		return fd == -ENOENT ? " (there is no such file)" : "";
	err = elf_file__open(&elf, fd);
	elf_file__free(elf);
	close(fd);
	if (err == -ENOEXEC)
		return " (it is not an ELF file)";
	return err == -EAFNOSUPPORT ? " (it is a 32-bit ELF file)" : "";
}

static void explain_python(uint32_t tgid, const struct step_spec *spec, enum target_python python)
{
	if (python != TARGET_PYTHON_TOLD)
		log_err("--step %s: process %u has no %s", spec->text, tgid,
			python == TARGET_PYTHON_THERE
				? "such Python function"
				: "libferrum_python.so, which --python=inject loads");
}

static void explain_spec(uint32_t tgid, const struct target_options *options,
			 const struct step_spec *spec, mapping_vec *maps)
{
	bool is_name = spec->form == STEP_SPEC_SYMBOL && !strpbrk(spec->pattern, "*?[");
	struct found found = {.near.wanted = is_name ? spec->pattern : "",
			      .deadline_ns = clock_ns(CLOCK_MONOTONIC) + NEAR_NS_MAX};
	char near[512];

	vec_for_each (mapping, maps)
		if (target_spec_means(spec, tgid, mapping->path, mapping->inode))
			count_file(&found, tgid, options, mapping);
	near_names_text(&found.near, near, sizeof(near));
	if (spec->path && !found.files)
		log_err("--step %s: process %u has no code mapped from %s%s; see "
			"/proc/%u/maps",
			spec->text, tgid, spec->path, describe_file(tgid, spec->path), tgid);
	else if (spec->form == STEP_SPEC_USDT)
		log_err("--step %s: no file mapped by process %u has these probes", spec->text,
			tgid);
	else if (spec->form == STEP_SPEC_TEXT)
		log_err("--step %s: no function in the %zu files mapped by process %u refers to "
			"this text",
			spec->text, found.files, tgid);
	else if (found.files == 1 && !found.named)
		log_err("--step %s: %s is stripped and exports no such function; give --symbols "
			"FILE of the same build, PATH+0xADDR, or string:TEXT with a message that "
			"only the step writes%s",
			spec->text, found.path, near);
	else
		log_err("--step %s: no such function in the %zu files mapped by process %u (%zu of "
			"them stripped)%s%s --list-steps shows candidates",
			spec->text, found.files, tgid, found.files - found.named, near,
			*near ? "" : ";");
}

void target_explain_no_match(uint32_t tgid, const struct target_options *options,
			     enum target_python python)
{
	mapping_vec maps = {0};

	if (!options->spec_count) {
		log_err("process %u: no known step function found (llama.cpp, ferrum); name one "
			"with "
			"--step (--list-steps shows candidates)",
			tgid);
		return;
	}
	if (maps_read(tgid, &maps))
		return;
	for (size_t i = 0; i < options->spec_count; i++) {
		if (options->specs[i].form == STEP_SPEC_PYTHON)
			explain_python(tgid, &options->specs[i], python);
		else
			explain_spec(tgid, options, &options->specs[i], &maps);
	}
	maps_free(&maps);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Functions that may be the step, for --list-steps. */
#include "target.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "image.h"
#include "log.h"
#include "resolve.h"
#include "step_table.h"

/* Smaller functions only hand on to others. */
#define CANDIDATE_BYTES_MIN 32

/* What one process may cost, however many files, of however many names, it maps. */
#define SEARCH_NS_MAX 30000000000ull
#define CLOCK_EVERY   256 /* symbols */

struct candidate {
	const struct elf_symbol *symbol; /* while its image is open */
	struct step_function *function;
	unsigned int rank;
	uint64_t size;
};

typedef VEC(struct candidate) candidate_vec;

/* Likeliest first, of equals the largest. */
static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return 0;
}

static int gather_symbols(const struct image *image, uint64_t deadline_ns,
			  candidate_vec *candidates)
{
	const struct elf_symbols *symbols = &image->symbols;
	int err;

	for (size_t i = 0; i < symbols->count; i++) {
		struct candidate candidate = {.symbol = &symbols->items[i]};

		if (i % CLOCK_EVERY == 0 && clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			break;
		candidate.size = candidate.symbol->size;
		if (i && symbols->items[i - 1].address == candidate.symbol->address)
			continue;
		candidate.rank = step_table_rank(candidate.symbol->name);
		if (!candidate.rank ||
		    (candidate.rank != 1 && candidate.size < CANDIDATE_BYTES_MIN))
			continue;
		err = vec_push(candidates, candidate);
		if (err)
			return err;
	}
	if (candidates->count)
		qsort(candidates->items, candidates->count, sizeof(*candidates->items),
		      compare_candidates);
	return 0;
}

static int resolve_one(const struct image *image, const struct target_options *options,
		       struct candidate candidate, candidate_vec *found)
{
	char reason[RESOLVE_REASON_BYTES];
	struct step_arg arg;
	int err;

	err = resolve_function(&candidate.function, image, candidate.symbol,
			       candidate.symbol->address, false, reason);
	if (err)
		return err == -ENOMEM || err == -EMFILE ? err : 0;
	candidate.function->builtin = candidate.rank == 1;
	for (size_t i = 0; i < options->arg_count; i++)
		target_function_add_arg(candidate.function, &options->args[i]);
	if (step_table_arg(candidate.symbol->name, elf_file__arch(image->elf), &arg))
		target_function_add_arg(candidate.function, &arg);
	err = vec_push(found, candidate);
	if (err)
		target_function_free(candidate.function);
	return err;
}

/* Adds the likeliest max functions of one file to found. */
static int look_at(uint32_t tgid, const struct target_options *options,
		   const struct mapping *mapping, size_t max, candidate_vec *found)
{
	candidate_vec candidates = {0};
	size_t first = found->count;
	struct image image;
	int err;

	err = image_open(&image, tgid, mapping);
	if (err) {
		err = err == -ENOMEM || err == -EMFILE ? err : 0;
		goto out;
	}
	err = image_read(&image, tgid, options->symbol_files, options->symbol_file_count);
	if (!err)
		err = gather_symbols(&image, options->deadline_ns, &candidates);
	for (size_t i = 0; i < candidates.count && !err && found->count - first < max; i++)
		err = resolve_one(&image, options, candidates.items[i], found);
out:
	image_close(&image);
	vec_free(&candidates);
	return err;
}

/* Keeps the likeliest max of all and lets the others go. */
static void keep_best(candidate_vec *found, size_t max)
{
	if (!found->count)
		return;
	qsort(found->items, found->count, sizeof(*found->items), compare_candidates);
	while (found->count > max)
		target_function_free(found->items[--found->count].function);
}

int target_find_candidates(uint32_t tgid, const struct target_options *options, size_t max,
			   function_vec *functions)
{
	struct target_options limited = *options;
	candidate_vec found = {0};
	mapping_vec maps = {0};
	int err, added = 0;

	err = maps_read(tgid, &maps);
	if (err)
		return err;
	limited.deadline_ns = clock_ns(CLOCK_MONOTONIC) + SEARCH_NS_MAX;
	vec_for_each (mapping, &maps) {
		if (step_table_is_runtime(mapping->path))
			continue;
		if (clock_ns(CLOCK_MONOTONIC) > limited.deadline_ns) {
			log_warn(
				"process %u: looked at its files for %llu s, up to %s: the rest is "
				"not looked at",
				tgid, SEARCH_NS_MAX / 1000000000, mapping->path);
			break;
		}
		err = look_at(tgid, &limited, mapping, max, &found);
		if (err) {
			log_err("%s: %s", mapping->path, strerror(-err));
			break;
		}
		keep_best(&found, max);
	}
	vec_for_each (candidate, &found) {
		if (!err)
			err = vec_push(functions, candidate->function);
		if (err)
			target_function_free(candidate->function);
		else
			added++;
	}
	while (err && added--)
		target_function_free(functions->items[--functions->count]);
	vec_free(&found);
	maps_free(&maps);
	return err ? err : added;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Candidates for --list-steps, and the explanation of a --step that matched nothing. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/open.h"
#include "steps/engines.h"
#include "steps/find.h"
#include "steps/image.h"
#include "steps/resolve.h"

/* Smaller functions only call others. */
#define CANDIDATE_BYTES_MIN 32

struct candidate {
	const struct elf_symbol *symbol; /* valid while its image is open */
	struct step_function *function;
	unsigned int rank;
	uint64_t size;
};

typedef VEC(struct candidate) candidate_vec;

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

static int gather_symbols(const struct image *image, const struct target_options *options,
			  candidate_vec *candidates)
{
	const struct elf_symbols *symbols = &image->symbols;
	int err;

	for (size_t i = 0; i < symbols->count; i++) {
		struct candidate candidate = {.symbol = &symbols->items[i]};

		if (target_is_too_late(options, i))
			break;
		candidate.size = candidate.symbol->size;
		if (i && symbols->items[i - 1].address == candidate.symbol->address)
			continue;
		candidate.rank = engines_rank(candidate.symbol->name);
		if (!candidate.rank ||
		    (candidate.rank != 1 && candidate.size < CANDIDATE_BYTES_MIN))
			continue;
		err = vec_push(candidates, candidate);
		if (err)
			return err;
	}
	vec_sort(candidates, compare_candidates);
	return 0;
}

static int resolve_one(const struct image *image, const struct target_options *options,
		       struct candidate candidate, candidate_vec *found)
{
	char reason[RESOLVE_REASON_BYTES];
	int err;

	err = resolve_function(&candidate.function, image, candidate.symbol,
			       candidate.symbol->address, false, reason);
	if (err)
		return err == -ENOMEM || err == -EMFILE ? err : 0;
	candidate.function->builtin = candidate.rank == 1;
	target_add_args(candidate.function, image, options);
	err = vec_push(found, candidate);
	if (err)
		step_function_free(candidate.function);
	return err;
}

/* Adds the max likeliest functions of one file to found. */
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
		err = gather_symbols(&image, options, &candidates);
	for (size_t i = 0; i < candidates.count && !err && found->count - first < max; i++)
		err = resolve_one(&image, options, candidates.items[i], found);
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
	limited.deadline_ns = clock_ns(CLOCK_MONOTONIC) + TARGET_SEARCH_NS_MAX;
	vec_for_each (mapping, &maps) {
		if (engines_is_runtime(mapping->path))
			continue;
		if (clock_ns(CLOCK_MONOTONIC) > limited.deadline_ns) {
			log_warn("process %u: stopped looking at its files after %" PRIu64
				 " s, at %s",
				 tgid, TARGET_SEARCH_NS_MAX / NS_PER_S, mapping->path);
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
			step_function_free(candidate->function);
		else
			added++;
	}
	while (err && added--)
		step_function_free(functions->items[--functions->count]);
	vec_free(&found);
	maps_free(&maps);
	return err ? err : added;
}

/* The files that were searched for a --step that matched nothing. */
struct found {
	size_t files;	/* mapped ELF files that spec applies to */
	size_t named;	/* those of them that have local symbols too */
	char path[256]; /* path of the last one */
};

static void count_file(struct found *found, uint32_t tgid, const struct target_options *options,
		       const struct mapping *mapping)
{
	struct image image;

	if (!image_open(&image, tgid, mapping)) {
		snprintf(found->path, sizeof(found->path), "%s", mapping->path);
		found->files++;
		if (!image_read(&image, tgid, options->symbol_files, options->symbol_file_count))
			found->named += image.symbols.complete;
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

static void explain_spec(uint32_t tgid, const struct target_options *options,
			 const struct step_spec *spec, mapping_vec *maps)
{
	struct found found = {0};

	vec_for_each (mapping, maps)
		if (target_spec_means(spec, tgid, mapping->path, mapping->inode))
			count_file(&found, tgid, options, mapping);
	if (spec->path && !found.files)
		log_err("--step %s: process %u has no code mapped from %s%s; see "
			"/proc/%u/maps",
			spec->text, tgid, spec->path, describe_file(tgid, spec->path), tgid);
	else if (spec->form == STEP_SPEC_USDT)
		log_err("--step %s: no file mapped by process %u has these probes", spec->text,
			tgid);
	else if (found.files == 1 && !found.named)
		log_err("--step %s: %s is stripped and exports no such function; give --symbols "
			"FILE of the same build, or PATH+0xADDR",
			spec->text, found.path);
	else
		log_err("--step %s: no such function in the %zu files mapped by process %u (%zu of "
			"them stripped); --list-steps shows candidates",
			spec->text, found.files, tgid, found.files - found.named);
}

void target_explain_no_match(uint32_t tgid, const struct target_options *options)
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
	for (size_t i = 0; i < options->spec_count; i++)
		explain_spec(tgid, options, &options->specs[i], &maps);
	maps_free(&maps);
}

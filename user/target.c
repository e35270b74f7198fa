/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "target.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "debug_file.h"
#include "image_scan.h"
#include "log.h"

struct file_id {
	uint64_t inode;
	uint32_t major;
	uint32_t minor;
};

/* What one process may cost, however many files, of however many names, it maps. */
#define SEARCH_NS_MAX 30000000000ull

struct target_seen {
	VEC(struct file_id) files;
	uint64_t spent_ns;    /* looking for steps in them */
	bool gave_up;	      /* that was long enough */
	bool symbols_checked; /* every --symbols file was found to belong to a mapped file */
};

struct target_seen *target_seen__new(void)
{
	return calloc(1, sizeof(struct target_seen));
}

void target_seen__free(struct target_seen *seen)
{
	if (!seen)
		return;
	vec_free(&seen->files);
	free(seen);
}

static bool has_seen(struct target_seen *seen, const struct mapping *mapping)
{
	vec_for_each (file, &seen->files) {
		if (file->inode == mapping->inode && file->major == mapping->device_major &&
		    file->minor == mapping->device_minor)
			return true;
	}
	return false;
}

static int remember(struct target_seen *seen, const struct mapping *mapping)
{
	struct file_id file = {mapping->inode, mapping->device_major, mapping->device_minor};

	return vec_push(&seen->files, file);
}

struct search {
	uint32_t tgid;
	struct target_options *options;
	struct target_seen *seen;
	function_vec *functions;
	uint64_t exe_inode; /* 0: not known */
	size_t images;	    /* ELF files that could be opened in this call */
	bool is_starting;   /* the program's loader has not yet mapped its libraries */
	bool *symbols_used; /* per --symbols file: it belongs to a mapped file */
};

static uint64_t find_exe_inode(uint32_t tgid)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	return stat(path, &status) ? 0 : status.st_ino;
}

/* Whether the user named this very file. */
static bool is_named(const struct search *search, const struct mapping *mapping)
{
	for (size_t i = 0; i < search->options->spec_count; i++) {
		const struct step_spec *spec = &search->options->specs[i];

		if (spec->path &&
		    image_scan_wants(spec, search->tgid, mapping->path, mapping->inode))
			return true;
	}
	return false;
}

/*
 * What a file that cannot be looked at means: nothing, unless it is the program itself or was
 * named. A file that has gone by now is looked for again next time.
 */
static int skip_mapping(const struct search *search, const struct mapping *mapping, int err)
{
	bool refused = err == -EPERM || err == -EACCES;
	/* Which file is the program is not said to whom it does not say what it maps. */
	bool matters = mapping->inode == search->exe_inode || is_named(search, mapping) ||
		       (refused && !search->exe_inode);
	bool is_elf_error = err == -ENOEXEC || err == -EAFNOSUPPORT || err == -ENOSYS;

	if (err == -ENOMEM || err == -EMFILE || err == -ENFILE) {
		log_err("%s: %s", mapping->path, strerror(-err));
		return err;
	}
	if (matters && is_elf_error) {
		log_err("%s: is %s", mapping->path, elf_file_strerror(err));
		return -EINVAL;
	}
	if (matters && refused) {
		log_err("%s: may not be opened in process %u: run with sudo, or grant "
			"%sCAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
			mapping->path, search->tgid,
			mapping->deleted ? "CAP_CHECKPOINT_RESTORE (the file was deleted), " : "");
		return -EPERM;
	}
	log_debug("%s: not looked at: %s", mapping->path, elf_file_strerror(err));
	return err == -ENOENT || err == -ESTALE ? 0 : remember(search->seen, mapping);
}

static void note_symbol_files(struct search *search, const struct image *image)
{
	for (size_t i = 0; i < search->options->symbol_file_count; i++)
		if (!search->symbols_used[i])
			search->symbols_used[i] =
				debug_file_fits(search->options->symbol_files[i], image->elf);
}

/* Scans the image, unless the time for that is over. */
static int scan(struct search *search, const struct mapping *mapping, struct image *image)
{
	struct target_seen *seen = search->seen;
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	int err = -ETIMEDOUT;

	search->options->deadline_ns = start_ns + SEARCH_NS_MAX - seen->spent_ns;
	if (seen->spent_ns < SEARCH_NS_MAX)
		err = image_scan(image, search->tgid, search->options, search->functions);
	seen->spent_ns += clock_ns(CLOCK_MONOTONIC) - start_ns;
	if (seen->spent_ns > SEARCH_NS_MAX)
		seen->spent_ns = SEARCH_NS_MAX;
	if (err != -ETIMEDOUT)
		return err;
	log_warn("process %u: looked for steps in its files for %llu s, up to %s: the rest is not "
		 "looked at; put PATH: before the name of the step",
		 search->tgid, SEARCH_NS_MAX / 1000000000, mapping->path);
	seen->gave_up = true;
	return 0;
}

static int look_at(struct search *search, const struct mapping *mapping)
{
	struct image image;
	int err;

	err = image_open(&image, search->tgid, mapping);
	if (err) {
		image_close(&image);
		return skip_mapping(search, mapping, err);
	}
	search->images++;
	if (mapping->inode == search->exe_inode)
		search->is_starting = elf_file__has_interpreter(image.elf);
	if (!search->seen->symbols_checked)
		note_symbol_files(search, &image);
	err = scan(search, mapping, &image);
	image_close(&image);
	return err ? err : remember(search->seen, mapping);
}

/*
 * A --symbols file that fits nothing is an error, but not while the program's loader has yet to map
 * the libraries: program and loader alone are mapped then.
 */
static int check_symbol_files(struct search *search)
{
	if (search->seen->symbols_checked || (search->is_starting && search->images <= 2))
		return 0;
	search->seen->symbols_checked = true;
	for (size_t i = 0; i < search->options->symbol_file_count; i++) {
		if (search->symbols_used[i])
			continue;
		log_err("--symbols %s: its build-id is that of no file mapped by process %u; it "
			"must come from the very build that runs",
			search->options->symbol_files[i], search->tgid);
		return -EINVAL;
	}
	return 0;
}

static int prepare_symbol_files(struct search *search)
{
	size_t count = search->options->symbol_file_count;
	int err = 0;

	search->symbols_used = calloc(count + 1, sizeof(*search->symbols_used));
	if (!search->symbols_used)
		return -ENOMEM;
	for (size_t i = 0; i < count && !err && !search->seen->symbols_checked; i++)
		err = debug_file_check(search->options->symbol_files[i]);
	return err;
}

static int look_at_all(struct search *search, mapping_vec *maps, size_t first)
{
	int err;

	vec_for_each (mapping, maps) {
		if (search->seen->gave_up)
			break;
		if (has_seen(search->seen, mapping))
			continue;
		err = look_at(search, mapping);
		if (err)
			return err;
		if (search->functions->count - first > TARGET_FUNCTIONS_MAX) {
			log_err("--step: more than %d functions match; name fewer, or put "
				"PATH: before the name",
				TARGET_FUNCTIONS_MAX);
			return -E2BIG;
		}
	}
	if (kill(search->tgid, 0) && errno == ESRCH) {
		log_err("process %u: has exited", search->tgid);
		return -ESRCH;
	}
	return check_symbol_files(search);
}

int target_find(uint32_t tgid, const struct target_options *options, struct target_seen *seen,
		function_vec *functions)
{
	struct target_options limited = *options;
	struct search search = {.tgid = tgid, .options = &limited, .seen = seen};
	size_t first = functions->count;
	mapping_vec maps = {0};
	int err;

	search.functions = functions;
	err = prepare_symbol_files(&search);
	if (!err)
		err = maps_read(tgid, &maps);
	if (err)
		goto out;
	search.exe_inode = find_exe_inode(tgid);
	err = look_at_all(&search, &maps, first);
out:
	while (err && functions->count > first)
		target_function_free(functions->items[--functions->count]);
	maps_free(&maps);
	free(search.symbols_used);
	return err ? err : (int)(functions->count - first);
}

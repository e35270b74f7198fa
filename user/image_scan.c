/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "image_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "demangle.h"
#include "log.h"
#include "resolve.h"
#include "step_match.h"
#include "step_table.h"
#include "usdt.h"

#define CLOCK_EVERY 256 /* symbols */

struct scan {
	struct image *image;
	uint32_t tgid;
	const struct target_options *options;
	function_vec *functions;
	size_t first; /* of functions that are of this image */
};

/* maps shows where a path leads; the user may have named a link to it. */
static bool leads_to(uint32_t tgid, const char *path, uint64_t inode)
{
	char rooted[PATH_MAX];
	struct stat status;

	if (*path != '/' ||
	    snprintf(rooted, sizeof(rooted), "/proc/%u/root%s", tgid, path) >= (int)sizeof(rooted))
		return false;
	return !stat(rooted, &status) && status.st_ino == inode;
}

bool image_scan_wants(const struct step_spec *spec, uint32_t tgid, const char *mapped_path,
		      uint64_t inode)
{
	return !spec->path || step_match_path(spec->path, mapped_path) ||
	       leads_to(tgid, spec->path, inode);
}

static bool is_known(const struct scan *scan, uint64_t address)
{
	for (size_t i = scan->first; i < scan->functions->count; i++)
		if (scan->functions->items[i]->address == address)
			return true;
	return false;
}

static int refuse_many(const struct scan *scan, const struct step_spec *spec)
{
	log_err("--step %s: matches more than %d functions in %s; name fewer",
		spec ? spec->text : "(built-in)", TARGET_FUNCTIONS_MAX, scan->image->path);
	return -E2BIG;
}

static int add_function(struct scan *scan, struct step_function *function,
			const struct step_spec *spec)
{
	struct step_arg arg;
	int err;

	if (scan->functions->count - scan->first >= TARGET_FUNCTIONS_MAX) {
		target_function_free(function);
		return refuse_many(scan, spec);
	}
	function->builtin = !spec;
	for (size_t i = 0; i < scan->options->arg_count; i++)
		target_function_add_arg(function, &scan->options->args[i]);
	if (function->symbol &&
	    step_table_arg(function->symbol, elf_file__arch(scan->image->elf), &arg))
		target_function_add_arg(function, &arg);
	err = vec_push(scan->functions, function);
	if (err)
		target_function_free(function);
	return err;
}

static int check_go(const struct scan *scan)
{
	if (!scan->options->uretprobe || !elf_file__is_go(scan->image->elf))
		return 0;
	log_err("%s: is a Go program, and a uretprobe would crash it (Go moves its stacks); "
		"leave --uretprobe out",
		scan->image->path);
	return -ENOTSUP;
}

/* A function of the built-in table is passed over if it cannot be probed: nobody asked for it. */
static int explain_resolve(const struct scan *scan, const struct step_spec *spec, const char *name,
			   int err, const char *reason)
{
	const char *hint =
		err == -ENOTSUP ? "; name another function or PATH+0xADDR, or use --interval, or "
				  "--uretprobe (an exception through it then aborts the engine)"
				: "";

	if (!spec && err != -ENOMEM) {
		log_warn("%s in %s: %s%s%s", name, scan->image->path,
			 err == -ENOTSUP ? "no safe exit: " : "", reason, hint);
		return 0;
	}
	log_err("--step %s: %s in %s: %s%s%s", spec ? spec->text : "(built-in)", name,
		scan->image->path, err == -ENOTSUP ? "no safe exit: " : "", reason, hint);
	return err == -ENOTSUP || err == -ENOMEM ? err : -EINVAL;
}

static int take_symbol(struct scan *scan, const struct elf_symbol *symbol,
		       const struct step_spec *spec)
{
	char reason[RESOLVE_REASON_BYTES];
	struct step_function *function;
	char *name;
	int err;

	if (is_known(scan, symbol->address))
		return 0;
	err = check_go(scan);
	if (err)
		return err;
	err = resolve_function(&function, scan->image, symbol, symbol->address,
			       scan->options->uretprobe, reason);
	if (!err)
		return add_function(scan, function, spec);
	name = demangle_symbol(symbol->name);
	err = explain_resolve(scan, spec, name ? name : symbol->name, err, reason);
	free(name);
	return err;
}

/* Looked at now and then: a file may have millions of names that take long to read. */
static bool is_too_late(const struct scan *scan, size_t index)
{
	uint64_t deadline_ns = scan->options->deadline_ns;

	return deadline_ns && index % CLOCK_EVERY == 0 && clock_ns(CLOCK_MONOTONIC) > deadline_ns;
}

/* Before any of them is resolved: that one cannot be is no news among hundreds. */
static bool matches_many(const struct scan *scan, const struct step_spec *spec)
{
	const struct elf_symbols *symbols = &scan->image->symbols;
	uint64_t last = 0;
	size_t count = 0;

	for (size_t i = 0; i < symbols->count && count <= TARGET_FUNCTIONS_MAX; i++) {
		const struct elf_symbol *symbol = &symbols->items[i];

		if (is_too_late(scan, i))
			return false;
		if (symbol->address == last || !step_match_symbol(spec, symbol->name))
			continue;
		last = symbol->address;
		count++;
	}
	return count > TARGET_FUNCTIONS_MAX;
}

static int scan_symbols(struct scan *scan, const struct step_spec *spec)
{
	const struct elf_symbols *symbols = &scan->image->symbols;
	bool is_program = elf_file__is_executable(scan->image->elf);
	int err;

	if (spec && matches_many(scan, spec))
		return refuse_many(scan, spec);
	for (size_t i = 0; i < symbols->count; i++) {
		const char *name = symbols->items[i].name;

		if (is_too_late(scan, i))
			return -ETIMEDOUT;
		if (spec ? !step_match_symbol(spec, name)
			 : !step_table_has(name, scan->image->path, is_program))
			continue;
		err = take_symbol(scan, &symbols->items[i], spec);
		if (err)
			return err;
	}
	return 0;
}

static int refuse_address(const struct scan *scan, const struct step_spec *spec)
{
	uint64_t nearest = image_nearest(scan->image, spec->address);
	const struct elf_symbol *symbol = elf_symbols_at(&scan->image->symbols, nearest);

	if (nearest)
		log_err("--step %s: 0x%" PRIx64
			" is not where a function of %s begins; the nearest "
			"one before it begins at 0x%" PRIx64 "%s%s",
			spec->text, spec->address, scan->image->path, nearest, symbol ? ": " : "",
			symbol ? symbol->name : "");
	else
		log_err("--step %s: neither symbols nor the unwind table of %s know a function "
			"there",
			spec->text, scan->image->path);
	return -EINVAL;
}

static int scan_address(struct scan *scan, const struct step_spec *spec)
{
	const struct elf_symbol *symbol = elf_symbols_at(&scan->image->symbols, spec->address);
	struct step_function *function;
	char reason[RESOLVE_REASON_BYTES];
	struct code_range range;
	uint64_t offset;
	int err;

	if (is_known(scan, spec->address))
		return 0;
	err = check_go(scan);
	if (err)
		return err;
	if (!elf_file__offset(scan->image->elf, spec->address, true, &offset) && !symbol &&
	    (image_extent(scan->image, spec->address, &range) || range.address != spec->address))
		return refuse_address(scan, spec);
	err = resolve_function(&function, scan->image, symbol, spec->address,
			       scan->options->uretprobe, reason);
	if (err)
		return explain_resolve(scan, spec, "the function", err, reason);
	return add_function(scan, function, spec);
}

static int fill_usdt(struct step_function *function, const struct scan *scan,
		     const struct step_spec *spec, struct usdt_probe *begin, struct usdt_probe *end)
{
	function->usdt = true;
	function->path = strdup(scan->image->path);
	function->fd = fcntl(scan->image->fd, F_DUPFD_CLOEXEC, 0);
	if (asprintf(&function->name, "%s:%s", spec->provider, spec->begin_name) < 0)
		function->name = NULL;
	if (!function->path || !function->name || function->fd < 0)
		return -ENOMEM;
	function->device = scan->image->device;
	function->inode = scan->image->inode;
	function->address = begin->address;
	function->begin_offset = begin->offsets.items[0];
	function->begin_ref_ctr = begin->semaphore;
	function->end_ref_ctr = end->semaphore;
	for (size_t i = 0; i < begin->offsets.count; i++)
		if (vec_push(&function->usdt_begins, begin->offsets.items[i]))
			return -ENOMEM;
	for (size_t i = 0; i < end->offsets.count; i++)
		if (vec_push(&function->exit_offsets, end->offsets.items[i]))
			return -ENOMEM;
	return 0;
}

static int add_usdt(struct scan *scan, const struct step_spec *spec, struct usdt_probe *begin,
		    struct usdt_probe *end)
{
	struct step_function *function;
	int err;

	if (!begin->offsets.count && !end->offsets.count)
		return 0;
	if (!begin->offsets.count || !end->offsets.count) {
		log_err("--step %s: %s has the probe %s:%s but not %s:%s", spec->text,
			scan->image->path, spec->provider,
			begin->offsets.count ? spec->begin_name : spec->end_name, spec->provider,
			begin->offsets.count ? spec->end_name : spec->begin_name);
		return -EINVAL;
	}
	function = target_function_new();
	if (!function)
		return -ENOMEM;
	err = fill_usdt(function, scan, spec, begin, end);
	if (err) {
		target_function_free(function);
		return err;
	}
	return add_function(scan, function, spec);
}

static int scan_usdt(struct scan *scan, const struct step_spec *spec)
{
	struct usdt_probe begin = {0}, end = {0};
	int err;

	err = usdt_find(scan->image->elf, spec->provider, spec->begin_name, &begin);
	if (!err)
		err = usdt_find(scan->image->elf, spec->provider, spec->end_name, &end);
	if (!err)
		err = add_usdt(scan, spec, &begin, &end);
	else if (err == -EBADMSG) /* of a library nobody named, maybe */
		err = 0;
	usdt_clear(&begin);
	usdt_clear(&end);
	return err;
}

static int read_image(struct scan *scan)
{
	int err = image_read(scan->image, scan->tgid, scan->options->symbol_files,
			     scan->options->symbol_file_count);

	if (err)
		log_err("%s: %s", scan->image->path, strerror(-err));
	return err;
}

static int scan_spec(struct scan *scan, const struct step_spec *spec)
{
	int err;

	if (spec->form == STEP_SPEC_USDT)
		return scan_usdt(scan, spec);
	err = read_image(scan);
	if (err)
		return err;
	if (spec->form == STEP_SPEC_ADDRESS)
		return scan_address(scan, spec);
	return scan_symbols(scan, spec);
}

int image_scan(struct image *image, uint32_t tgid, const struct target_options *options,
	       function_vec *functions)
{
	struct scan scan = {.image = image, .tgid = tgid, .options = options};
	int err = 0;

	scan.functions = functions;
	scan.first = functions->count;
	for (size_t i = 0; i < options->spec_count && !err; i++)
		if (image_scan_wants(&options->specs[i], tgid, image->path, image->inode))
			err = scan_spec(&scan, &options->specs[i]);
	if (options->spec_count ||
	    !step_table_wants(image->path, elf_file__is_executable(image->elf)))
		return err;
	err = read_image(&scan);
	return err ? err : scan_symbols(&scan, NULL);
}

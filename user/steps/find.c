/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/find.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "base/format.h"
#include "base/log.h"
#include "proc/open.h"
#include "steps/engines.h"
#include "steps/ifunc.h"
#include "steps/image.h"
#include "steps/patched.h"
#include "steps/resolve.h"
#include "steps/search.h"
#include "steps/spec.h"
#include "elf/symbol_files.h"
#include "elf/symbols.h"
#include "steps/text_users.h"

#define CLOCK_EVERY 256 /* symbols */

/* Whether path is a link to the mapped file. /proc/PID/maps shows the target of a link. */
static bool leads_to(uint32_t tgid, const char *path, uint64_t inode)
{
	char rooted[PATH_MAX];
	struct stat status;

	if (*path != '/' || !proc_root_path(rooted, sizeof(rooted), tgid, path))
		return false;
	return !stat(rooted, &status) && status.st_ino == inode;
}

bool target_spec_means(const struct step_spec *spec, uint32_t tgid, const char *mapped_path,
		       uint64_t inode)
{
	if (spec->form == STEP_SPEC_PYTHON)
		return false;
	return !spec->path || step_spec_matches_path(spec->path, mapped_path) ||
	       leads_to(tgid, spec->path, inode);
}

bool search_is_known(const struct search *search, uint64_t address)
{
	for (size_t i = search->first; i < search->functions->count; i++)
		if (search->functions->items[i]->address == address)
			return true;
	return false;
}

static int refuse_many(const struct search *search, const struct step_spec *spec)
{
	tell_err(search, "--step %s: matches more than %d functions in %s; use a narrower pattern",
		 spec ? spec->text : "(built-in)", TARGET_FUNCTIONS_MAX, search->image->path);
	return -E2BIG;
}

void target_add_args(struct step_function *function, const struct image *image,
		     const struct target_options *options)
{
	struct step_arg arg;

	for (size_t i = 0; i < options->arg_count; i++)
		step_function_add_arg(function, &options->args[i]);
	if (function->symbol &&
	    engines_find_arg(function->symbol, elf_file__arch(image->elf), &arg))
		step_function_add_arg(function, &arg);
}

bool target_is_too_late(const struct target_options *options, size_t index)
{
	return options->deadline_ns && index % CLOCK_EVERY == 0 &&
	       clock_ns(CLOCK_MONOTONIC) > options->deadline_ns;
}

int search_add_function(struct search *search, struct step_function *function,
			const struct step_spec *spec)
{
	int err;

	if (search->functions->count - search->first >= TARGET_FUNCTIONS_MAX) {
		step_function_free(function);
		return refuse_many(search, spec);
	}
	function->builtin = !spec;
	target_add_args(function, search->image, search->options);
	err = vec_push(search->functions, function);
	if (err)
		step_function_free(function);
	return err;
}

int search_check_go(const struct search *search)
{
	if (!search->options->uretprobe || !elf_file__is_go(search->image->elf))
		return 0;
	tell_err(search,
		 "%s: a uretprobe would crash this Go program (Go moves its stacks); omit "
		 "--uretprobe",
		 search->image->path);
	return -ENOTSUP;
}

/* Without --step a function that cannot be probed is skipped with a warning, as nobody named it. */
int search_explain_resolve(const struct search *search, const struct step_spec *spec,
			   const char *name, int err, const char *reason)
{
	const char *hint =
		err == -ENOTSUP ? "; choose another function or PATH+0xADDR, or use --interval or "
				  "--uretprobe (an exception through the function then aborts "
				  "the engine)"
				: "";

	if (!spec && err != -ENOMEM) {
		tell_warn(search, "%s in %s: %s%s%s", name, search->image->path,
			  err == -ENOTSUP ? "no safe exit: " : "", reason, hint);
		return 0;
	}
	tell_err(search, "--step %s: %s in %s: %s%s%s", spec ? spec->text : "(built-in)", name,
		 search->image->path, err == -ENOTSUP ? "no safe exit: " : "", reason, hint);
	return err == -ENOTSUP || err == -ENOMEM ? err : -EINVAL;
}

static int take_symbol(struct search *search, const struct elf_symbol *symbol,
		       const struct step_spec *spec)
{
	char reason[RESOLVE_REASON_BYTES];
	struct step_function *function;
	char *name;
	int err;

	if (search_is_known(search, symbol->address))
		return 0;
	err = search_check_go(search);
	if (err)
		return err;
	err = resolve_function_in(&function, search->tgid, search->image, search->mapping, symbol,
				  symbol->address, search->options->uretprobe, reason);
	if (!err)
		return search_add_function(search, function, spec);
	name = demangle_symbol(symbol->name);
	err = search_explain_resolve(search, spec, name ? name : symbol->name, err, reason);
	free(name);
	return err;
}

/*
 * Checked before any match is resolved, so that the error says that there are too many, not that
 * one of hundreds cannot be probed.
 */
static bool matches_many(const struct search *search, const struct step_spec *spec)
{
	const struct elf_symbols *symbols = &search->image->symbols;
	uint64_t last = 0;
	size_t count = 0;

	for (size_t i = 0; i < symbols->count && count <= TARGET_FUNCTIONS_MAX; i++) {
		const struct elf_symbol *symbol = &symbols->items[i];

		if (target_is_too_late(search->options, i))
			return false;
		if (symbol->address == last || !step_spec_matches_symbol(spec, symbol->name))
			continue;
		last = symbol->address;
		count++;
	}
	return count > TARGET_FUNCTIONS_MAX;
}

/* Takes the implementation of an IFUNC that the process uses, under the name of the IFUNC. */
static int take_ifunc(struct search *search, const struct elf_symbol *ifunc,
		      const struct step_spec *spec)
{
	struct elf_symbol chosen = *ifunc;
	char choices[512];
	int err =
		ifunc_resolve(&chosen.address, search->tgid, search->image, search->mapping, ifunc);

	if (!err) {
		const struct elf_symbol *symbol =
			elf_symbols_at(&search->image->symbols, chosen.address);

		chosen.size = symbol ? symbol->size : 0;
		return take_symbol(search, &chosen, spec);
	}
	if (err == -ENOMEM || strcmp(spec->pattern, ifunc->name))
		return err == -ENOMEM ? err : 0;
	ifunc_choices(search->image, ifunc, choices, sizeof(choices));
	tell_err(search,
		 "--step %s: %s in %s is an IFUNC, and which implementation this process calls is "
		 "not known, as it has not called it yet: name one%s%s",
		 spec->text, ifunc->name, search->image->path, *choices ? ": " : "", choices);
	return -EINVAL;
}

/* Adds IFUNCs only if no ordinary function has the name. */
static int scan_ifuncs(struct search *search, const struct step_spec *spec, size_t before)
{
	int err = 0;

	if (search->functions->count > before)
		return 0;
	vec_for_each (ifunc, &search->image->symbols.ifuncs) {
		if (err)
			break;
		if (step_spec_matches_symbol(spec, ifunc->name))
			err = take_ifunc(search, ifunc, spec);
	}
	return err;
}

static int scan_symbols(struct search *search, const struct step_spec *spec)
{
	const struct elf_symbols *symbols = &search->image->symbols;
	bool is_program = elf_file__is_executable(search->image->elf);
	size_t before = search->functions->count;
	int err;

	if (spec && matches_many(search, spec))
		return refuse_many(search, spec);
	for (size_t i = 0; i < symbols->count; i++) {
		const char *name = symbols->items[i].name;

		if (target_is_too_late(search->options, i))
			return -ETIMEDOUT;
		if (spec ? !step_spec_matches_symbol(spec, name)
			 : !engines_know(name, search->image->path, is_program))
			continue;
		err = take_symbol(search, &symbols->items[i], spec);
		if (err)
			return err;
	}
	return spec ? scan_ifuncs(search, spec, before) : 0;
}

static int refuse_address(const struct search *search, const struct step_spec *spec)
{
	uint64_t nearest = image_nearest(search->image, spec->address);
	const struct elf_symbol *symbol = elf_symbols_at(&search->image->symbols, nearest);

	if (nearest)
		tell_err(search,
			 "--step %s: no function of %s begins at 0x%" PRIx64
			 "; the nearest one before begins at 0x%" PRIx64 "%s%s",
			 spec->text, search->image->path, spec->address, nearest,
			 symbol ? ": " : "", symbol ? symbol->name : "");
	else
		tell_err(search, "--step %s: %s has no function there, by symbols or unwind table",
			 spec->text, search->image->path);
	return -EINVAL;
}

static int scan_address(struct search *search, const struct step_spec *spec)
{
	const struct elf_symbol *symbol = elf_symbols_at(&search->image->symbols, spec->address);
	struct step_function *function;
	char reason[RESOLVE_REASON_BYTES];
	struct code_range range;
	uint64_t offset;
	int err;

	if (search_is_known(search, spec->address))
		return 0;
	err = search_check_go(search);
	if (err)
		return err;
	if (!elf_file__offset(search->image->elf, spec->address, true, &offset) && !symbol &&
	    (image_extent(search->image, spec->address, &range) || range.address != spec->address))
		return refuse_address(search, spec);
	err = resolve_function_in(&function, search->tgid, search->image, search->mapping, symbol,
				  spec->address, search->options->uretprobe, reason);
	if (err)
		return search_explain_resolve(search, spec, "the function", err, reason);
	return search_add_function(search, function, spec);
}

static int fill_usdt(struct step_function *function, const struct search *search,
		     const struct step_spec *spec, struct usdt_probe *begin, struct usdt_probe *end)
{
	function->usdt = true;
	if (asprintf(&function->name, "%s:%s", spec->provider, spec->begin_name) < 0)
		function->name = NULL;
	if (!function->name || step_function_set_file(function, search->image))
		return -ENOMEM;
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

static int add_usdt(struct search *search, const struct step_spec *spec, struct usdt_probe *begin,
		    struct usdt_probe *end)
{
	struct step_function *function;
	int err;

	if (!begin->offsets.count && !end->offsets.count)
		return 0;
	if (!begin->offsets.count || !end->offsets.count) {
		tell_err(search, "--step %s: %s has the probe %s:%s but not %s:%s", spec->text,
			 search->image->path, spec->provider,
			 begin->offsets.count ? spec->begin_name : spec->end_name, spec->provider,
			 begin->offsets.count ? spec->end_name : spec->begin_name);
		return -EINVAL;
	}
	function = step_function_new();
	if (!function)
		return -ENOMEM;
	err = fill_usdt(function, search, spec, begin, end);
	if (err) {
		step_function_free(function);
		return err;
	}
	return search_add_function(search, function, spec);
}

static int scan_usdt(struct search *search, const struct step_spec *spec)
{
	struct usdt_probe begin = {0}, end = {0};
	int err;

	err = usdt_find(search->image->elf, spec->provider, spec->begin_name, &begin);
	if (!err)
		err = usdt_find(search->image->elf, spec->provider, spec->end_name, &end);
	if (!err)
		err = add_usdt(search, spec, &begin, &end);
	else if (err == -EBADMSG) /* the notes may be those of a library that nobody named */
		err = 0;
	usdt_clear(&begin);
	usdt_clear(&end);
	return err;
}

static int read_image(struct search *search)
{
	int err = image_read(search->image, search->tgid, search->options->symbol_files,
			     search->options->symbol_file_count);

	if (err)
		tell_err(search, "%s: %s", search->image->path, strerror(-err));
	return err;
}

static int scan_spec(struct search *search, const struct step_spec *spec)
{
	int err;

	if (spec->form == STEP_SPEC_USDT)
		return scan_usdt(search, spec);
	err = read_image(search);
	if (err)
		return err;
	if (spec->form == STEP_SPEC_ADDRESS)
		return scan_address(search, spec);
	if (spec->form == STEP_SPEC_TEXT)
		return search_scan_text(search, spec);
	return scan_symbols(search, spec);
}

/* Adds the functions of the image that the options ask for. 0; -ETIMEDOUT; or -errno, logged. */
static int scan_image(struct search *search)
{
	const struct target_options *options = search->options;
	const struct image *image = search->image;
	int err = 0;

	search->first = search->functions->count;
	for (size_t i = 0; i < options->spec_count && !err; i++)
		if (target_spec_means(&options->specs[i], search->tgid, image->path, image->inode))
			err = scan_spec(search, &options->specs[i]);
	if (options->spec_count ||
	    !engines_may_be_in(image->path, elf_file__is_executable(image->elf)))
		return err;
	err = read_image(search);
	if (!err)
		err = scan_symbols(search, NULL);
	return err ? err : search_scan_known_texts(search);
}

struct target_seen *target_seen__new(void)
{
	return calloc(1, sizeof(struct target_seen));
}

void target_seen__free(struct target_seen *seen)
{
	if (!seen)
		return;
	maps_free(&seen->files);
	vec_free(&seen->texts);
	free(seen->symbols_used);
	free(seen);
}

void target_seen__restart(struct target_seen *seen)
{
	seen->texts.count = 0;
	seen->spent_ns = 0;
	seen->gave_up = false;
	seen->symbols_checked = false;
}

static bool has_seen(struct target_seen *seen, const struct mapping *mapping)
{
	vec_for_each (file, &seen->files) {
		if (mapping_is_same_file(file, mapping))
			return true;
	}
	return false;
}

static int remember(struct target_seen *seen, const struct mapping *mapping)
{
	struct mapping file = *mapping;
	int err;

	file.path = strdup(mapping->path);
	err = file.path ? vec_push(&seen->files, file) : -ENOMEM;
	if (err)
		free(file.path);
	return err;
}

/* Files from the first-th on are searched again. */
static void forget_files(struct target_seen *seen, size_t first)
{
	while (seen->files.count > first)
		free(seen->files.items[--seen->files.count].path);
}

void target_seen__forget(struct target_seen *seen)
{
	target_seen__restart(seen);
	forget_files(seen, 0);
}

/* Whether a --step names this file. */
static bool is_named(const struct search *search, const struct mapping *mapping)
{
	for (size_t i = 0; i < search->options->spec_count; i++) {
		const struct step_spec *spec = &search->options->specs[i];

		if (spec->path &&
		    target_spec_means(spec, search->tgid, mapping->path, mapping->inode))
			return true;
	}
	return false;
}

/*
 * Handles a file that cannot be opened or read: an error only if it is the program itself or a
 * --step names it. A file that is gone is searched again next time.
 */
static int skip_mapping(const struct search *search, const struct mapping *mapping, int err)
{
	bool refused = err == -EPERM || err == -EACCES;
	/* If permission is missing, it may also not be known which file is the program. */
	bool matters = mapping->inode == search->exe_inode || is_named(search, mapping) ||
		       (refused && !search->exe_inode);
	bool is_elf_error = err == -ENOEXEC || err == -EAFNOSUPPORT || err == -ENOSYS;

	if (err == -ENOMEM || err == -EMFILE || err == -ENFILE) {
		tell_err(search, "%s: %s", mapping->path, strerror(-err));
		return err;
	}
	if (matters && is_elf_error) {
		tell_err(search, "%s: is %s", mapping->path, elf_file_strerror(err));
		return -EINVAL;
	}
	if (matters && refused) {
		tell_err(search,
			 "%s: no permission to open it in process %u: run with sudo, or grant "
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
		if (!search->seen->symbols_used[i])
			search->seen->symbols_used[i] =
				debug_file_fits(search->options->symbol_files[i], image->elf);
}

/* Scans the current image, unless the time for this process is over. */
static int scan_in_time(struct search *search, const struct mapping *mapping)
{
	struct target_seen *seen = search->seen;
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	int err = -ETIMEDOUT;

	search->options->deadline_ns = start_ns + TARGET_SEARCH_NS_MAX - seen->spent_ns;
	if (seen->spent_ns < TARGET_SEARCH_NS_MAX)
		err = scan_image(search);
	seen->spent_ns += clock_ns(CLOCK_MONOTONIC) - start_ns;
	if (seen->spent_ns > TARGET_SEARCH_NS_MAX)
		seen->spent_ns = TARGET_SEARCH_NS_MAX;
	if (err != -ETIMEDOUT)
		return err;
	tell_warn(search,
		  "process %u: stopped looking for steps after %" PRIu64
		  " s, at %s; put PATH: before the name of the step",
		  search->tgid, TARGET_SEARCH_NS_MAX / NS_PER_S, mapping->path);
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
	image.quiet = search->options->tells != TARGET_TELLS_ALL;
	search->image = &image;
	search->mapping = mapping;
	err = scan_in_time(search, mapping);
	search->image = NULL;
	image_close(&image);
	return err ? err : remember(search->seen, mapping);
}

/*
 * A --symbols file that matches no mapped file is an error, but only after the dynamic loader has
 * mapped the libraries: before that only program and loader are mapped.
 */
static int check_symbol_files(struct search *search)
{
	if (search->seen->symbols_checked || (search->is_starting && search->images <= 2))
		return 0;
	search->seen->symbols_checked = true;
	for (size_t i = 0; i < search->options->symbol_file_count; i++) {
		if (search->seen->symbols_used[i] ||
		    symbol_file_is_folder(search->options->symbol_files[i]))
			continue;
		tell_err(search,
			 "--symbols %s: its build-id matches no file mapped by process %u; use the "
			 "symbols of the build that is running",
			 search->options->symbol_files[i], search->tgid);
		/* Of a process that is only followed, others have that file. */
		return search->options->tells == TARGET_TELLS_NOTHING ? 0 : -EINVAL;
	}
	return 0;
}

static int prepare_symbol_files(struct search *search)
{
	size_t count = search->options->symbol_file_count;
	int err = 0;

	if (!search->seen->symbols_used)
		search->seen->symbols_used = calloc(count + 1, sizeof(*search->seen->symbols_used));
	if (!search->seen->symbols_used)
		return -ENOMEM;
	for (size_t i = 0; i < count && !err && !search->seen->symbols_checked; i++)
		err = debug_file_check(search->options->symbol_files[i],
				       search->options->tells == TARGET_TELLS_NOTHING);
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
			tell_err(search,
				 "--step: more than %d functions match; use a narrower pattern, or "
				 "put PATH: before the name",
				 TARGET_FUNCTIONS_MAX);
			return -E2BIG;
		}
	}
	if (kill(search->tgid, 0) && errno == ESRCH) {
		tell_err(search, "process %u: has exited", search->tgid);
		return -ESRCH;
	}
	return check_symbol_files(search);
}

int target_find(uint32_t tgid, const struct target_options *options, struct target_seen *seen,
		function_vec *functions)
{
	struct target_options limited = *options;
	struct search search = {.tgid = tgid, .options = &limited, .seen = seen};
	size_t first = functions->count, files = seen->files.count;
	mapping_vec maps = {0};
	int err;

	search.functions = functions;
	err = prepare_symbol_files(&search);
	if (!err)
		err = limited.tells == TARGET_TELLS_NOTHING ? maps_read_quietly(tgid, &maps)
							    : maps_read(tgid, &maps);
	if (err)
		goto out;
	search.exe_inode = proc_exe_inode((struct proc_ref){.tgid = tgid});
	err = look_at_all(&search, &maps, first);
	err = err ? err : search_check_texts(&search);
out:
	while (err && functions->count > first)
		step_function_free(functions->items[--functions->count]);
	/* What was found in them is gone, so they are searched again. */
	if (err)
		forget_files(seen, files);
	maps_free(&maps);
	vec_free(&search.texts);
	return err ? err : (int)(functions->count - first);
}

bool target_may_have_engine(uint32_t tgid)
{
	mapping_vec maps = {0};
	bool found = false;

	if (maps_read_quietly(tgid, &maps))
		return false;
	vec_for_each (mapping, &maps)
		found |= engines_may_be_in(mapping->path, false);
	maps_free(&maps);
	return found;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/demangle.h"
#include "code/insn.h"
#include "steps/tails.h"

#define PIECES_MAX 16
#define NAMES_MAX  8 /* of one function; a constructor has two */
/* Most functions, and their code, that are looked at to see whether a jump comes back. */
#define AROUND_MAX	 16
#define AROUND_BYTES_MAX (64u << 10)

/* The function to resolve. */
struct subject {
	const struct image *image;
	const struct elf_symbol *names; /* all names at its address */
	size_t name_count;
};

struct step_function *step_function_new(void)
{
	struct step_function *function = calloc(1, sizeof(*function));

	if (function)
		function->fd = -1;
	return function;
}

void step_function_free(struct step_function *function)
{
	if (!function)
		return;
	if (function->fd >= 0)
		close(function->fd);
	free(function->name);
	free(function->symbol);
	free(function->alone);
	free(function->path);
	for (size_t i = 0; i < WAYS_NAMES; i++)
		free(function->tails[i]);
	vec_free(&function->exit_offsets);
	vec_free(&function->usdt_begins);
	free(function);
}

void step_functions_free(function_vec *functions)
{
	vec_for_each (function, functions)
		step_function_free(*function);
	vec_free(functions);
}

const char *step_function_alone(const struct step_function *function)
{
	return function->alone ? function->alone : function->name;
}

struct ways_out step_function_ways_out(const struct step_function *function)
{
	return (struct ways_out){
		.returns = function->returns,
		.tail_calls = function->tail_calls,
		.pointers = function->pointers,
		.targets = function->tail_count,
		.names = {function->tails[0], function->tails[1]},
	};
}

int step_function_set_file(struct step_function *function, const struct image *image)
{
	function->device = image->device;
	function->inode = image->inode;
	function->path = strdup(image->path);
	if (!function->path)
		return -ENOMEM;
	function->fd = fcntl(image->fd, F_DUPFD_CLOEXEC, 0);
	return function->fd < 0 ? -errno : 0;
}

void step_function_add_arg(struct step_function *function, const struct step_arg *arg)
{
	if (function->arg_count == FBT_ARG_COUNT)
		return;
	for (uint32_t i = 0; i < function->arg_count; i++)
		if (!strcmp(function->args[i].name, arg->name))
			return;
	function->args[function->arg_count++] = *arg;
}

static int read_code(void *ctx, uint64_t address, void *data, size_t size)
{
	const struct subject *subject = ctx;

	return elf_file__read(subject->image->elf, address, data, size);
}

/* Whether symbol is NAME.cold, NAME.cold.1, NAME.part.0 … */
static bool is_piece_of(const char *symbol, const char *name)
{
	size_t size = strlen(name);

	if (strncmp(symbol, name, size) || symbol[size] != '.')
		return false;
	return !strncmp(symbol + size, ".cold", 5) || !strncmp(symbol + size, ".part.", 6) ||
	       !strncmp(symbol + size, ".__part.", 8);
}

/* All names are tried: the cold part of a constructor has only one of the two names. */
static bool is_piece(const struct subject *subject, const char *symbol)
{
	for (size_t i = 0; i < subject->name_count; i++)
		if (is_piece_of(symbol, subject->names[i].name))
			return true;
	return false;
}

static void find_names(struct subject *subject, uint64_t address)
{
	const struct elf_symbols *symbols = &subject->image->symbols;

	subject->names = elf_symbols_at(symbols, address);
	if (!subject->names)
		return;
	while (subject->name_count < NAMES_MAX &&
	       subject->names + subject->name_count < symbols->items + symbols->count &&
	       subject->names[subject->name_count].address == address)
		subject->name_count++;
}

static enum region_kind find_region(void *ctx, uint64_t address, struct code_range *range)
{
	const struct subject *subject = ctx;
	const struct elf_symbols *symbols = &subject->image->symbols;
	const struct elf_symbol *symbol = elf_symbols_around(symbols, address);
	const struct elf_symbol *end;

	if (image_extent(subject->image, address, range))
		return REGION_UNKNOWN;
	if (!symbol)
		return image_has_frame(subject->image, address) ? REGION_FRAMED : REGION_NAMELESS;
	end = symbols->items + symbols->count;
	for (symbol = elf_symbols_at(symbols, symbol->address);
	     symbol < end && symbol->address == range->address; symbol++)
		if (is_piece(subject, symbol->name))
			return REGION_PART;
	return REGION_FUNCTION;
}

/*
 * Gathers the body and its cold parts. If several static functions have the same name, only the
 * code tells which cold part belongs to which, and exits_find() examines it.
 */
static size_t gather_ranges(const struct subject *subject, const struct code_range *body,
			    struct code_range *ranges)
{
	const struct elf_symbols *symbols = &subject->image->symbols;
	size_t count = 1, namesakes = 0;
	uint64_t most;

	ranges[0] = *body;
	for (size_t i = 0; i < symbols->count && subject->name_count; i++) {
		const struct elf_symbol *symbol = &symbols->items[i];

		namesakes += !strcmp(symbol->name, subject->names[0].name);
		if (count < PIECES_MAX && symbol->size && symbol_is_cold(symbol->name) &&
		    !symbol_is_part(symbol->name) && is_piece(subject, symbol->name) &&
		    !image_contradicts(subject->image, symbol->address, &most))
			ranges[count++] =
				(struct code_range){symbol->address, min_u64(symbol->size, most)};
	}
	return namesakes == 1 ? count : 1;
}

static int fill_exits(struct step_function *function, const struct image *image,
		      const struct exits *exits)
{
	uint64_t offset;
	int err = 0;

	for (size_t i = 0; i < exits->addresses.count && !err; i++) {
		err = elf_file__offset(image->elf, exits->addresses.items[i], true, &offset);
		if (!err)
			err = vec_push(&function->exit_offsets, offset);
	}
	return err;
}

static int fill_begin(struct step_function *function, const struct image *image,
		      const struct exits *exits)
{
	function->keeps_frame = exits->keeps_frame;
	function->begin_sp = exits->begin.sp;
	function->begin_emulated = exits->begin.emulated;
	function->may_repeat = exits->may_repeat;
	return elf_file__offset(image->elf, exits->begin.address, true, &function->begin_offset);
}

/* A uretprobe needs no exits, and has to be on the first instruction or its marker. */
static void find_marked_begin(const struct image *image, uint64_t address, struct exits *exits)
{
	uint8_t marker[4];

	exits->begin.address = address;
	if (!elf_file__read(image->elf, address, marker, sizeof(marker)))
		exits->begin.address +=
			insn_marker_size(elf_file__arch(image->elf), marker, sizeof(marker));
}

/*
 * A tail call ends the function but not its caller's step. So a function that makes one, or whose
 * exits are not certain, needs its call sites. Those of others cost less than their exits only on
 * x86-64: arm64's kernel emulates returns.
 */
static int find_places(struct step_function *function, const struct image *image,
		       struct subject *subject, const struct code_range *body, struct exits *exits)
{
	struct exits_source source = {.read = read_code, .region = find_region, .ctx = subject};
	struct code_range ranges[PIECES_MAX];
	bool needs_sites;
	int err;

	source.arch = elf_file__arch(image->elf);
	find_names(subject, body->address);
	err = exits_find(exits, &source, ranges, gather_ranges(subject, body, ranges));
	needs_sites = (err == -ENOTSUP && !exits->never_ends) || (!err && exits->tail_calls);
	function->has_sites = needs_sites || source.arch == FBT_ARCH_X86_64;
	if (needs_sites)
		return 0;
	return err ? err : fill_exits(function, image, exits);
}

int resolve_exits(struct exits *exits, const struct image *image, const struct code_range *body)
{
	struct subject subject = {.image = image};
	struct exits_source source = {
		.arch = elf_file__arch(image->elf),
		.follows = true,
		.read = read_code,
		.region = find_region,
		.ctx = &subject,
	};
	struct code_range ranges[PIECES_MAX];

	find_names(&subject, body->address);
	return exits_find(exits, &source, ranges, gather_ranges(&subject, body, ranges));
}

/* The code of functions of one file that lead to each other by direct jumps. */
struct around {
	uint64_t entry; /* of the step function */
	bool comes_back;
	uint64_t seen[AROUND_MAX];
	size_t count;
};

static void look_on(struct around *around, uint64_t address)
{
	around->comes_back |= address == around->entry;
	for (size_t i = 0; i < around->count; i++)
		if (around->seen[i] == address)
			return;
	if (around->count < AROUND_MAX)
		around->seen[around->count++] = address;
}

/*
 * Whether what it jumps to jumps back to its entry, which is hit again then in the same call. If it
 * cannot be told, it does not.
 */
static int find_repeat(struct step_function *function, const struct image *image,
		       const struct exits *exits)
{
	struct around around = {.entry = function->address};
	uint64_t bytes = 0;
	int err = 0;

	vec_for_each (tail, &exits->tails) {
		if (!tail->is_slot)
			look_on(&around, tail->address);
	}
	for (size_t i = 0; i < around.count && !around.comes_back && err != -ENOMEM; i++) {
		struct code_range body;
		struct exits other;

		if (image_extent(image, around.seen[i], &body) || body.address != around.seen[i] ||
		    body.size > AROUND_BYTES_MAX - bytes)
			continue;
		bytes += body.size;
		err = resolve_exits(&other, image, &body);
		vec_for_each (target, &other.targets) {
			if (*target && !err)
				look_on(&around, *target);
		}
		exits_clear(&other);
	}
	function->may_repeat |= around.comes_back;
	return err == -ENOMEM ? err : 0;
}

static int find_future(struct step_function *function, const struct image *image,
		       struct subject *subject, const struct code_range *body)
{
	struct exits_source source = {.read = read_code, .region = find_region, .ctx = subject};

	source.arch = elf_file__arch(image->elf);
	return future_find(&function->future, &source, body,
			   function->symbol ? function->name : NULL);
}

static void name_tails(struct step_function *function, const struct image *image,
		       const struct exits *exits)
{
	size_t named = 0;

	function->returns = exits->returns;
	function->tail_calls = exits->tail_calls;
	function->pointers = exits->pointers;
	function->tail_count = (unsigned int)exits->tails.count;
	for (size_t i = 0; i < exits->tails.count && named < WAYS_NAMES; i++) {
		function->tails[named] = tail_name(image, &exits->tails.items[i]);
		named += function->tails[named] != NULL;
	}
}

static int find_offsets(struct step_function *function, const struct image *image,
			const struct code_range *body, char reason[RESOLVE_REASON_BYTES])
{
	struct subject subject = {.image = image};
	struct exits exits = {0};
	int err = 0;

	if (function->uretprobe)
		find_marked_begin(image, body->address, &exits);
	else
		err = find_places(function, image, &subject, body, &exits);
	name_tails(function, image, &exits);
	if (!err)
		err = find_future(function, image, &subject, body);
	if (!err)
		err = fill_begin(function, image, &exits);
	if (!err && function->has_sites && !function->exit_offsets.count)
		err = find_repeat(function, image, &exits);
	if (err == -ENOTSUP)
		snprintf(reason, RESOLVE_REASON_BYTES, "%s%s%.80s", exits.reason,
			 function->tails[0] ? "; it goes on in " : "",
			 function->tails[0] ? function->tails[0] : "");
	else if (err)
		snprintf(reason, RESOLVE_REASON_BYTES, "its code cannot be read");
	exits_clear(&exits);
	return err;
}

/* Finds the extent of the function at address: from the symbol's size, or else the unwind table. */
static int find_body(const struct image *image, const struct elf_symbol *symbol, uint64_t address,
		     struct code_range *body, char reason[RESOLVE_REASON_BYTES])
{
	uint64_t offset, most;

	if (elf_file__offset(image->elf, address, true, &offset)) {
		snprintf(reason, RESOLVE_REASON_BYTES, "0x%" PRIx64 " is not in its code", address);
		return -ERANGE;
	}
	if (symbol && image_contradicts(image, address, &most)) {
		snprintf(reason, RESOLVE_REASON_BYTES,
			 "by the file's own unwind table no function begins there, as its debug "
			 "file says (--symbols names one to trust)");
		return -ENOENT;
	}
	if (symbol && symbol->size) {
		*body = (struct code_range){address, min_u64(symbol->size, most)};
		return 0;
	}
	if (!image_extent(image, address, body) && body->address == address)
		return 0;
	snprintf(
		reason, RESOLVE_REASON_BYTES,
		"neither a symbol nor the unwind table gives the end of the function at 0x%" PRIx64,
		address);
	return -ENOENT;
}

static int fill_names(struct step_function *function, const struct image *image,
		      const struct elf_symbol *symbol, uint64_t address)
{
	if (symbol) {
		function->symbol = strdup(symbol->name);
		function->name = demangle_symbol(symbol->name);
		if (!function->symbol)
			return -ENOMEM;
	} else if (asprintf(&function->name, "%s+0x%" PRIx64, image->path, address) < 0) {
		function->name = NULL;
	}
	return function->name ? 0 : -ENOMEM;
}

static int fill_function(struct step_function *function, const struct image *image,
			 const struct elf_symbol *symbol, uint64_t address,
			 char reason[RESOLVE_REASON_BYTES])
{
	struct code_range body;
	int err;

	err = find_body(image, symbol, address, &body, reason);
	if (err)
		return err;
	err = fill_names(function, image, symbol, address);
	if (err)
		return err;
	function->address = address;
	function->size = body.size;
	err = step_function_set_file(function, image);
	if (err) {
		snprintf(reason, RESOLVE_REASON_BYTES, "%s", strerror(-err));
		return err;
	}
	return find_offsets(function, image, &body, reason);
}

int resolve_function(struct step_function **result, const struct image *image,
		     const struct elf_symbol *symbol, uint64_t address, bool uretprobe,
		     char reason[RESOLVE_REASON_BYTES])
{
	struct step_function *function = step_function_new();
	int err;

	snprintf(reason, RESOLVE_REASON_BYTES, "%s", strerror(ENOMEM));
	if (!function)
		return -ENOMEM;
	function->uretprobe = uretprobe;
	err = fill_function(function, image, symbol, address, reason);
	if (err) {
		step_function_free(function);
		return err;
	}
	*result = function;
	return 0;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "code/exits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/machine.h"
#include "code/insn.h"

#define PARTS_MAX 64
/* Most code analyzed for one function; a MiB takes up to 0.5 s and 24 MiB of memory. */
#define CODE_BYTES_MAX (4u << 20)
#define LOOK_UP_BYTES  64
/* Each is probed: kernel memory, and before 6.6 a tenth of a second to remove it. */
#define EXITS_MAX 4096

struct part {
	struct code_range range;
	insn_vec insns;
};

struct search {
	const struct exits_source *source;
	struct exits *exits;
	struct part parts[PARTS_MAX];
	size_t count;
	struct part other; /* the range decoded last that is not a part, such as the PLT */
	uint64_t looked;   /* bytes analyzed so far, against CODE_BYTES_MAX */
	bool reach_known;
	bool reaches_all; /* result of exits_reach() for the parts */
};

/* Index of the first instruction at or after address. */
static size_t find_insn(const insn_vec *insns, uint64_t address)
{
	return first_index(i, insns->count, insns->items[i].address >= address);
}

struct spot {
	size_t piece;
	size_t index;
};

struct walk {
	const insn_vec *const *pieces;
	size_t count;
	bool **reached; /* per piece, per instruction */
	VEC(struct spot) todo;
};

/* Marks the instruction at address and queues it; ignores addresses outside of the pieces. */
static int mark(struct walk *walk, uint64_t address)
{
	for (size_t i = 0; i < walk->count; i++) {
		const insn_vec *insns = walk->pieces[i];
		size_t index = find_insn(insns, address);

		if (index == insns->count || insns->items[index].address != address)
			continue;
		if (walk->reached[i][index])
			return 0;
		walk->reached[i][index] = true;
		return vec_push(&walk->todo, ((struct spot){.piece = i, .index = index}));
	}
	return 0;
}

static int follow(struct walk *walk, const struct insn *insn)
{
	int err = 0;

	if (insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH)
		err = mark(walk, insn->target);
	if (!err && (insn->kind == INSN_NEXT || insn->kind == INSN_NOP || insn->kind == INSN_CALL ||
		     insn->kind == INSN_BRANCH))
		err = mark(walk, insn->address + insn->size);
	return err;
}

static bool is_all_reached(const struct walk *walk)
{
	for (size_t i = 0; i < walk->count; i++)
		for (size_t j = 0; j < walk->pieces[i]->count; j++)
			if (!walk->reached[i][j] && walk->pieces[i]->items[j].kind != INSN_NOP)
				return false;
	return true;
}

int exits_reach(const insn_vec *const *pieces, size_t count, bool *all)
{
	struct walk walk = {.pieces = pieces, .count = count};
	int err = -ENOMEM;

	walk.reached = calloc(count, sizeof(*walk.reached));
	if (!walk.reached)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		walk.reached[i] = calloc(pieces[i]->count + 1, sizeof(**walk.reached));
		if (!walk.reached[i])
			goto out;
	}
	err = pieces[0]->count ? mark(&walk, pieces[0]->items[0].address) : 0;
	while (!err && walk.todo.count) {
		struct spot spot = walk.todo.items[--walk.todo.count];

		err = follow(&walk, &pieces[spot.piece]->items[spot.index]);
	}
	if (!err)
		*all = is_all_reached(&walk);
out:
	for (size_t i = 0; i < count; i++)
		free(walk.reached[i]);
	free(walk.reached);
	vec_free(&walk.todo);
	return err;
}

static int refuse(struct search *search, const char *what, uint64_t address)
{
	snprintf(search->exits->reason, sizeof(search->exits->reason), "%s at 0x%" PRIx64, what,
		 address);
	return -ENOTSUP;
}

static bool is_within(const struct code_range *range, uint64_t address)
{
	return address >= range->address && address - range->address < range->size;
}

static const struct part *find_part(const struct search *search, uint64_t address)
{
	for (size_t i = 0; i < search->count; i++)
		if (is_within(&search->parts[i].range, address))
			return &search->parts[i];
	return NULL;
}

static bool is_instruction(const struct part *part, uint64_t address)
{
	size_t index = find_insn(&part->insns, address);

	return index < part->insns.count && part->insns.items[index].address == address;
}

/* Counts size bytes at address before they are analyzed; -ENOTSUP if they are too many. */
static int spend(struct search *search, uint64_t address, uint64_t size)
{
	if (size > CODE_BYTES_MAX - search->looked)
		return refuse(search, "too much code to analyze", address);
	search->looked += size;
	return 0;
}

/* Decodes range. -EBADMSG if not all of it is code; *bad is the place. */
static int decode_range(struct search *search, const struct code_range *range, insn_vec *insns,
			uint64_t *bad)
{
	const struct exits_source *source = search->source;
	uint8_t *code;
	int err;

	*bad = range->address;
	if (!range->size)
		return -EBADMSG;
	err = spend(search, range->address, range->size);
	if (err)
		return err;
	code = malloc(range->size);
	if (!code)
		return -ENOMEM;
	err = source->read(source->ctx, range->address, code, range->size);
	if (!err)
		err = insn_decode(source->arch, code, range->size, range->address, insns, bad);
	free(code);
	return err;
}

static int add_part(struct search *search, const struct code_range *range)
{
	struct part *part = &search->parts[search->count];
	uint64_t bad = range->address;
	int err;

	if (search->count == PARTS_MAX)
		return refuse(search, "too many pieces", range->address);
	*part = (struct part){.range = *range};
	err = decode_range(search, range, &part->insns, &bad);
	if (err) {
		vec_free(&part->insns);
		return err == -EBADMSG ? refuse(search, "code that cannot be decoded", bad) : err;
	}
	search->count++;
	vec_for_each (insn, &part->insns)
		search->exits->keeps_frame |= insn->frame;
	return 0;
}

static bool is_direct(const struct insn *insn)
{
	return insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH;
}

static bool may_leave(const struct code_range *range, const struct insn *insn)
{
	switch (insn->kind) {
	case INSN_RETURN:
	case INSN_LEAVE:
	case INSN_TABLE32:
	case INSN_TABLE64:
	case INSN_INDIRECT:
	case INSN_FAR:
		return true;
	case INSN_JUMP:
	case INSN_BRANCH:
		return !is_within(range, insn->target);
	default:
		return false;
	}
}

/*
 * Whether nameless code that the function jumps to is part of the function: it jumps back into the
 * middle of the function, or it never leaves. In the second case no exit depends on the answer.
 */
static bool belongs(const struct search *search, const struct code_range *range, insn_vec *insns)
{
	uint64_t entry = search->parts[0].range.address;
	bool leaves = false;

	vec_for_each (insn, insns) {
		if (is_direct(insn) && insn->target != entry && find_part(search, insn->target))
			return true;
		leaves |= may_leave(range, insn);
	}
	return !leaves;
}

/* Whether target is a stub of the PLT: a jump through the GOT, maybe after a marker. */
static bool is_stub(const insn_vec *insns, uint64_t target)
{
	size_t index = find_insn(insns, target);
	const struct insn *insn = insns->items + index;

	if (index == insns->count)
		return false;
	return insn->kind == INSN_LEAVE || (insn->kind == INSN_NEXT && insn->size == 4 &&
					    index + 1 < insns->count && insn[1].kind == INSN_LEAVE);
}

/* Decodes range to other, unless it is there: many jumps go to the PLT, which is one range. */
static int look_at(struct search *search, const struct code_range *range)
{
	struct part *other = &search->other;
	uint64_t bad;
	int err;

	if (other->range.address == range->address && other->range.size == range->size)
		return 0;
	vec_free(&other->insns);
	*other = (struct part){.range = *range};
	err = range->size > CODE_BYTES_MAX ? -EBADMSG
					   : decode_range(search, range, &other->insns, &bad);
	/* If it is not code, it is not a piece. */
	if (err)
		vec_free(&other->insns);
	return err == -ENOMEM || err == -ENOTSUP ? err : 0;
}

/* Adds the code at target to the parts if it is a piece of the function. */
static int adopt(struct search *search, uint64_t target)
{
	insn_vec *insns = &search->other.insns;
	struct code_range range;
	enum region_kind kind;
	/* To look a target up takes as long as to read so much code. */
	int err = spend(search, target, LOOK_UP_BYTES);

	if (err)
		return err;
	kind = search->source->region(search->source->ctx, target, &range);
	if (kind == REGION_PART)
		return add_part(search, &range);
	if (kind != REGION_NAMELESS && kind != REGION_FRAMED)
		return 0;
	err = look_at(search, &range);
	if (err || !insns->count || is_stub(insns, target))
		return err;
	if (kind == REGION_NAMELESS) {
		err = spend(search, target, range.size);
		if (err || !belongs(search, &range, insns))
			return err;
	}
	return add_part(search, &range);
}

static int gather_parts(struct search *search)
{
	int err;

	for (size_t i = 0; i < search->count; i++) {
		for (size_t j = 0; j < search->parts[i].insns.count; j++) {
			const struct insn *insn = &search->parts[i].insns.items[j];

			if (!is_direct(insn) || find_part(search, insn->target))
				continue;
			err = adopt(search, insn->target);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Whether the first entry of a jump table is in the function, as all entries of a switch are. */
static bool is_own_table(const struct search *search, const struct insn *insn)
{
	const struct exits_source *source = search->source;
	const struct part *part;
	uint64_t target = 0;
	int32_t relative;

	if (!insn->target)
		return false;
	if (insn->kind == INSN_TABLE32) {
		if (source->read(source->ctx, insn->target, &relative, sizeof(relative)))
			return false;
		target = insn->target + (int64_t)relative;
	} else if (source->read(source->ctx, insn->target, &target, sizeof(target))) {
		return false;
	}
	part = find_part(search, target);
	return part && is_instruction(part, target);
}

static int add_exit(struct search *search, const struct insn *insn)
{
	struct exits *exits = search->exits;
	uint64_t slot = insn->kind == INSN_LEAVE ? insn->target : 0;
	int err = exits->addresses.count < EXITS_MAX
			  ? 0
			  : refuse(search, "too many exits", insn->address);

	err = err ? err : vec_push(&exits->targets, is_direct(insn) ? insn->target : 0);

	err = err ? err : vec_push(&exits->slots, slot);
	err = err ? err : vec_push(&exits->kinds, insn->kind);
	/* Those whose targets are in the code are counted already. */
	if (insn->kind != INSN_RETURN && !is_direct(insn) && !slot) {
		exits->tail_calls++;
		exits->pointers++;
	}
	return err ? err : vec_push(&exits->addresses, insn->address);
}

static int check_direct(struct search *search, const struct insn *insn)
{
	const struct part *part = find_part(search, insn->target);

	if (!part) {
		if (insn->kind == INSN_BRANCH && !search->source->follows)
			return refuse(search, "a conditional jump out of the function",
				      insn->address);
		return add_exit(search, insn);
	}
	if (!is_instruction(part, insn->target))
		return refuse(search, "a jump into the middle of an instruction", insn->address);
	if (insn->target == search->parts[0].range.address && !search->source->follows)
		return refuse(search, "a jump back to the function's first instruction",
			      insn->address);
	return 0;
}

/* An indirect jump after an epilogue is an exit; any other if all code is reached without it. */
static int check_indirect(struct search *search, const struct insn *insn)
{
	const insn_vec *pieces[PARTS_MAX];
	int err = 0;

	for (size_t i = 0; i < search->count; i++)
		pieces[i] = &search->parts[i].insns;
	if (!insn->restored && !search->reach_known) {
		err = exits_reach(pieces, search->count, &search->reaches_all);
		search->reach_known = !err;
	}
	if (err)
		return err;
	if (insn->restored || search->reaches_all)
		return add_exit(search, insn);
	return refuse(search, "an indirect jump that may or may not leave the function",
		      insn->address);
}

static int check_insn(struct search *search, const struct insn *insn)
{
	switch (insn->kind) {
	case INSN_RETURN:
	case INSN_LEAVE:
		return add_exit(search, insn);
	case INSN_JUMP:
	case INSN_BRANCH:
		return check_direct(search, insn);
	case INSN_TABLE32:
	case INSN_TABLE64:
		if (is_own_table(search, insn))
			return 0;
		/* fallthrough */
	case INSN_INDIRECT:
		return check_indirect(search, insn);
	case INSN_FAR:
		return refuse(search, "a far or 16-bit jump, or a return such as retaa,",
			      insn->address);
	default:
		return 0;
	}
}

/*
 * Refuses code that continues after its end, because that exit would not be seen. The last
 * instruction may be a call, which then does not return.
 */
static int check_end(struct search *search, struct part *part)
{
	const struct insn *last = &part->insns.items[part->insns.count - 1];
	uint64_t end = part->range.address + part->range.size;

	if (find_part(search, end))
		return 0;
	while (last > part->insns.items && last->kind == INSN_NOP)
		last--;
	if (last->kind <= INSN_NOP || last->kind == INSN_BRANCH)
		return refuse(search, "code that runs on past the function's end", end);
	return 0;
}

static int check_parts(struct search *search)
{
	int err;

	for (size_t i = 0; i < search->count; i++) {
		struct part *part = &search->parts[i];

		vec_for_each (insn, &part->insns) {
			err = check_insn(search, insn);
			if (err)
				return err;
		}
		err = check_end(search, part);
		if (err)
			return err;
	}
	if (!search->exits->addresses.count)
		return refuse(search, "no return instruction and no tail call in the function",
			      search->parts[0].range.address);
	return 0;
}

static unsigned int avoid_calls(void)
{
	return machine_has_shadow_stacks() ? STRAIGHT_AVOIDS_CALLS : 0;
}

/* Where the entry is probed if no jump of the function leads to the code up to there. */
static int find_begin(const struct search *search, struct straight *begin)
{
	const struct exits_source *source = search->source;
	const struct code_range *body = &search->parts[0].range;
	uint64_t size = body->size < STRAIGHT_BYTES ? body->size : STRAIGHT_BYTES;
	uint8_t code[STRAIGHT_BYTES];
	size_t marker;
	int err;

	if (source->read(source->ctx, body->address, code, size))
		return 0;
	marker = insn_marker_size(source->arch, code, size);
	if (marker == size)
		return 0;
	begin->address += marker;
	err = straight_find(source->arch, code + marker, size - marker, begin->address,
			    STRAIGHT_KEEPS_ARGUMENTS | avoid_calls(), begin);
	return err == -ENOMEM ? err : 0;
}

/* Whether any instruction may leave the function; if none does, it never returns. */
static bool may_end(const struct search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		vec_for_each (insn, &search->parts[i].insns) {
			if (may_leave(&search->parts[i].range, insn) &&
			    !(is_direct(insn) && find_part(search, insn->target)))
				return true;
		}
	}
	return false;
}

static int choose_begin(struct search *search)
{
	uint64_t entry = search->parts[0].range.address;
	struct straight *begin = &search->exits->begin;
	int err = find_begin(search, begin);

	for (size_t i = 0; i < search->count && !err; i++) {
		vec_for_each (insn, &search->parts[i].insns) {
			if (is_direct(insn) && insn->target > entry &&
			    insn->target <= begin->address)
				*begin = (struct straight){.address = entry};
			search->exits->may_repeat |= (is_direct(insn) && insn->target == entry) ||
						     insn->kind == INSN_INDIRECT ||
						     insn->kind == INSN_TABLE64;
		}
	}
	return err;
}

static int add_tail(struct exits *exits, uint64_t address, bool is_slot)
{
	struct exit_tail tail = {address, is_slot};

	vec_for_each (known, &exits->tails) {
		if (known->address == address)
			return 0;
	}
	if (exits->tails.count == EXITS_TAILS_MAX)
		return 0;
	return vec_push(&exits->tails, tail);
}

/* What leaves the function, also where it is not certain that this is all. */
static int note_ways_out(struct search *search)
{
	struct exits *exits = search->exits;
	int err = 0;

	for (size_t i = 0; i < search->count; i++) {
		vec_for_each (insn, &search->parts[i].insns) {
			bool is_slot = insn->kind == INSN_LEAVE && insn->target;

			exits->returns += insn->kind == INSN_RETURN;
			if (!is_slot && (!is_direct(insn) || find_part(search, insn->target)))
				continue;
			exits->tail_calls++;
			err = err ? err : add_tail(exits, insn->target, is_slot);
		}
	}
	return err;
}

int exits_find(struct exits *exits, const struct exits_source *source,
	       const struct code_range *ranges, size_t count)
{
	struct search *search = calloc(1, sizeof(*search));
	int err = 0;

	memset(exits, 0, sizeof(*exits));
	exits->begin.address = ranges[0].address;
	if (!search)
		return -ENOMEM;
	search->source = source;
	search->exits = exits;
	exits->may_repeat = true; /* until all of it has been looked at */
	for (size_t i = 0; i < count && !err; i++)
		if (!find_part(search, ranges[i].address))
			err = add_part(search, &ranges[i]);
	if (err)
		goto out;
	err = gather_parts(search);
	if (!err) {
		exits->may_repeat = false;
		err = choose_begin(search);
	}
	exits->never_ends = !err && !may_end(search);
	if (!err)
		err = note_ways_out(search);
	if (!err)
		err = check_parts(search);
out:
	for (size_t i = 0; i < search->count; i++)
		vec_free(&search->parts[i].insns);
	vec_free(&search->other.insns);
	free(search);
	return err;
}

void exits_clear(struct exits *exits)
{
	vec_free(&exits->addresses);
	vec_free(&exits->targets);
	vec_free(&exits->slots);
	vec_free(&exits->kinds);
	vec_free(&exits->tails);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "exits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "flow.h"
#include "flow_reach.h"

#define PARTS_MAX 64
/* All code that is looked at for one function; a MiB takes up to 0.5 s and 24 MiB of memory. */
#define CODE_BYTES_MAX (4u << 20)

struct part {
	struct code_range range;
	flow_vec flows;
};

struct search {
	const struct exits_source *source;
	struct exits *exits;
	struct part parts[PARTS_MAX];
	size_t count;
	struct part other; /* what was looked at last and is none of them, maybe the PLT */
	uint64_t looked;   /* bytes decoded, or looked through again */
	bool reach_known;
	bool reaches_all; /* flow_reach of the parts */
};

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

/* Index of the first instruction at or behind address. */
static size_t find_flow(const flow_vec *flows, uint64_t address)
{
	size_t low = 0, high = flows->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (flows->items[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_instruction(const struct part *part, uint64_t address)
{
	size_t index = find_flow(&part->flows, address);

	return index < part->flows.count && part->flows.items[index].address == address;
}

/* To be called before size bytes at address are looked at. */
static int spend(struct search *search, uint64_t address, uint64_t size)
{
	if (size > CODE_BYTES_MAX - search->looked)
		return refuse(search, "too much code belongs to it or is jumped to", address);
	search->looked += size;
	return 0;
}

/* Decodes range. -EBADMSG: not all of it is code, *bad is where. */
static int decode_range(struct search *search, const struct code_range *range, flow_vec *flows,
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
		err = flow_decode(source->arch, code, range->size, range->address, flows, bad);
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
	err = decode_range(search, range, &part->flows, &bad);
	if (err) {
		vec_free(&part->flows);
		return err == -EBADMSG ? refuse(search, "code that cannot be decoded", bad) : err;
	}
	search->count++;
	vec_for_each (flow, &part->flows)
		search->exits->keeps_frame |= flow->frame;
	return 0;
}

static bool is_direct(const struct flow *flow)
{
	return flow->kind == FLOW_JUMP || flow->kind == FLOW_BRANCH;
}

static bool may_leave(const struct code_range *range, const struct flow *flow)
{
	switch (flow->kind) {
	case FLOW_RETURN:
	case FLOW_LEAVE:
	case FLOW_TABLE32:
	case FLOW_TABLE64:
	case FLOW_INDIRECT:
	case FLOW_FAR:
		return true;
	case FLOW_JUMP:
	case FLOW_BRANCH:
		return !is_within(range, flow->target);
	default:
		return false;
	}
}

/*
 * A nameless piece of code that is jumped to is part of the function if it jumps back into the
 * middle of it, or if it cannot return at all (then no end is missed or made up).
 */
static bool belongs(const struct search *search, const struct code_range *range, flow_vec *flows)
{
	uint64_t entry = search->parts[0].range.address;
	bool leaves = false;

	vec_for_each (flow, flows) {
		if (is_direct(flow) && flow->target != entry && find_part(search, flow->target))
			return true;
		leaves |= may_leave(range, flow);
	}
	return !leaves;
}

/* A stub that only jumps on through the GOT, as the PLT consists of; a marker may come first. */
static bool is_stub(const flow_vec *flows, uint64_t target)
{
	size_t index = find_flow(flows, target);
	const struct flow *flow = flows->items + index;

	if (index == flows->count)
		return false;
	return flow->kind == FLOW_LEAVE || (flow->kind == FLOW_NEXT && flow->size == 4 &&
					    index + 1 < flows->count && flow[1].kind == FLOW_LEAVE);
}

/* Decodes range, unless that was done last: many jumps go to the PLT, which is one range. */
static int look_at(struct search *search, const struct code_range *range)
{
	struct part *other = &search->other;
	uint64_t bad;
	int err;

	if (other->range.address == range->address && other->range.size == range->size)
		return 0;
	vec_free(&other->flows);
	*other = (struct part){.range = *range};
	err = range->size > CODE_BYTES_MAX ? -EBADMSG
					   : decode_range(search, range, &other->flows, &bad);
	/* What is not code is no piece. */
	if (err)
		vec_free(&other->flows);
	return err == -ENOMEM || err == -ENOTSUP ? err : 0;
}

/* Adds what lies at target if it is a piece of the function. */
static int adopt(struct search *search, uint64_t target)
{
	flow_vec *flows = &search->other.flows;
	struct code_range range;
	enum region_kind kind;
	int err;

	kind = search->source->region(search->source->ctx, target, &range);
	if (kind == REGION_PART)
		return add_part(search, &range);
	if (kind != REGION_NAMELESS && kind != REGION_FRAMED)
		return 0;
	err = look_at(search, &range);
	if (err || !flows->count || is_stub(flows, target))
		return err;
	if (kind == REGION_NAMELESS) {
		err = spend(search, target, range.size);
		if (err || !belongs(search, &range, flows))
			return err;
	}
	return add_part(search, &range);
}

static int gather_parts(struct search *search)
{
	int err;

	for (size_t i = 0; i < search->count; i++) {
		for (size_t j = 0; j < search->parts[i].flows.count; j++) {
			const struct flow *flow = &search->parts[i].flows.items[j];

			if (!is_direct(flow) || find_part(search, flow->target))
				continue;
			err = adopt(search, flow->target);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Whether the first entry of a table leads into the function, as all entries of a switch do. */
static bool is_own_table(const struct search *search, const struct flow *flow)
{
	const struct exits_source *source = search->source;
	const struct part *part;
	uint64_t target = 0;
	int32_t relative;

	if (!flow->target)
		return false;
	if (flow->kind == FLOW_TABLE32) {
		if (source->read(source->ctx, flow->target, &relative, sizeof(relative)))
			return false;
		target = flow->target + (int64_t)relative;
	} else if (source->read(source->ctx, flow->target, &target, sizeof(target))) {
		return false;
	}
	part = find_part(search, target);
	return part && is_instruction(part, target);
}

static int add_exit(struct search *search, const struct flow *flow)
{
	int err = vec_push(&search->exits->targets, flow->kind == FLOW_JUMP ? flow->target : 0);

	return err ? err : vec_push(&search->exits->addresses, flow->address);
}

static int check_direct(struct search *search, const struct flow *flow)
{
	const struct part *part = find_part(search, flow->target);

	if (!part) {
		if (flow->kind == FLOW_BRANCH)
			return refuse(search, "a conditional jump out of the function",
				      flow->address);
		return add_exit(search, flow);
	}
	if (!is_instruction(part, flow->target))
		return refuse(search, "a jump into the middle of an instruction", flow->address);
	if (flow->target == search->parts[0].range.address)
		return refuse(search, "a jump back to the function's first instruction",
			      flow->address);
	if (flow->target == search->exits->begin)
		search->exits->begin = search->parts[0].range.address;
	return 0;
}

/* A jump that no table and no epilogue explains leaves if nothing in the function needs it. */
static int check_indirect(struct search *search, const struct flow *flow)
{
	const flow_vec *pieces[PARTS_MAX];
	int err = 0;

	for (size_t i = 0; i < search->count; i++)
		pieces[i] = &search->parts[i].flows;
	if (!flow->restored && !search->reach_known) {
		err = flow_reach(pieces, search->count, &search->reaches_all);
		search->reach_known = !err;
	}
	if (err)
		return err;
	if (flow->restored || search->reaches_all)
		return add_exit(search, flow);
	return refuse(search, "an indirect jump that may or may not leave the function",
		      flow->address);
}

static int check_flow(struct search *search, const struct flow *flow)
{
	switch (flow->kind) {
	case FLOW_RETURN:
	case FLOW_LEAVE:
		return add_exit(search, flow);
	case FLOW_JUMP:
	case FLOW_BRANCH:
		return check_direct(search, flow);
	case FLOW_TABLE32:
	case FLOW_TABLE64:
		if (is_own_table(search, flow))
			return 0;
		/* fallthrough */
	case FLOW_INDIRECT:
		return check_indirect(search, flow);
	case FLOW_FAR:
		return refuse(search, "a far or 16-bit jump, or retaa,", flow->address);
	default:
		return 0;
	}
}

/* Code that runs on past its end would leave unseen. A call may be there if it does not return. */
static int check_end(struct search *search, struct part *part)
{
	const struct flow *last = &part->flows.items[part->flows.count - 1];
	uint64_t end = part->range.address + part->range.size;

	if (find_part(search, end))
		return 0;
	while (last > part->flows.items && last->kind == FLOW_NOP)
		last--;
	if (last->kind <= FLOW_NOP || last->kind == FLOW_BRANCH)
		return refuse(search, "code that runs on past the function's end", end);
	return 0;
}

static int check_parts(struct search *search)
{
	int err;

	for (size_t i = 0; i < search->count; i++) {
		struct part *part = &search->parts[i];

		vec_for_each (flow, &part->flows) {
			err = check_flow(search, flow);
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

int exits_find(struct exits *exits, const struct exits_source *source,
	       const struct code_range *ranges, size_t count)
{
	struct search *search = calloc(1, sizeof(*search));
	uint8_t marker[4];
	int err = 0;

	memset(exits, 0, sizeof(*exits));
	if (!search)
		return -ENOMEM;
	search->source = source;
	search->exits = exits;
	for (size_t i = 0; i < count && !err; i++)
		if (!find_part(search, ranges[i].address))
			err = add_part(search, &ranges[i]);
	if (err)
		goto out;
	exits->begin = ranges[0].address;
	if (ranges[0].size > sizeof(marker) &&
	    !source->read(source->ctx, exits->begin, marker, sizeof(marker)))
		exits->begin += flow_marker_size(source->arch, marker, sizeof(marker));
	err = gather_parts(search);
	if (!err)
		err = check_parts(search);
out:
	for (size_t i = 0; i < search->count; i++)
		vec_free(&search->parts[i].flows);
	vec_free(&search->other.flows);
	free(search);
	return err;
}

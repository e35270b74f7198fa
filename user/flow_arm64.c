/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* arm64: every instruction has 4 bytes, and few of them jump. Numbers are those of the Arm ARM, C4.
 */
#include "flow.h"

#include <errno.h>
#include <stdbool.h>

struct scan {
	bool restored; /* the last instruction that moved sp took the frame down */
	uint32_t sum;  /* register that the last add of a table entry made, 32 if none */
};

static int64_t sign_extend(uint32_t value, unsigned int bits)
{
	return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

static bool is_branch(uint32_t word, int64_t *offset)
{
	if ((word & 0xff000000) == 0x54000000 || /* b.cond, bc.cond */
	    (word & 0x7e000000) == 0x34000000) { /* cbz, cbnz */
		*offset = sign_extend(word >> 5 & 0x7ffff, 19) * 4;
		return true;
	}
	if ((word & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		*offset = sign_extend(word >> 5 & 0x3fff, 14) * 4;
		return true;
	}
	return false;
}

static void classify_indirect(const struct scan *scan, uint32_t word, struct flow *flow)
{
	flow->restored = scan->restored;
	if (scan->sum == (word >> 5 & 31))
		flow->kind = FLOW_SWITCH;
	else
		flow->kind = FLOW_INDIRECT;
}

/* add x29, sp, #imm, of which mov x29, sp is one: x29 and x30 were stored there (AAPCS64, 6.4.6).
 */
static bool is_frame(uint32_t word)
{
	return (word & 0xff8003ff) == 0x910003fd;
}

/* retaa, braa and the like, which no kernel lets be probed (arch/arm64, decode-insn.c). */
static bool is_authenticated(uint32_t word)
{
	return (word & 0xfffffbff) == 0xd65f0bff || (word & 0xfefff800) == 0xd61f0800;
}

static void classify(const struct scan *scan, uint32_t word, struct flow *flow)
{
	int64_t offset;

	flow->kind = FLOW_NEXT;
	if (is_authenticated(word) ||
	    (word & 0xfffff000) == 0xd69f0000) { /* eret, eretaa, eretab */
		flow->kind = FLOW_FAR;
	} else if ((word & 0xfffffc1f) == 0xd65f0000) { /* ret */
		flow->kind = FLOW_RETURN;
	} else if ((word & 0xfc000000) == 0x14000000) { /* b */
		flow->kind = FLOW_JUMP;
		flow->target = flow->address + sign_extend(word & 0x3ffffff, 26) * 4;
	} else if (is_branch(word, &offset)) {
		flow->kind = FLOW_BRANCH;
		flow->target = flow->address + offset;
	} else if ((word & 0xfc000000) == 0x94000000 || /* bl */
		   (word & 0xfefff000) == 0xd63f0000) { /* blr, blraa, … */
		flow->kind = FLOW_CALL;
	} else if ((word & 0xfefff000) == 0xd61f0000) { /* br, braa, … */
		classify_indirect(scan, word, flow);
	} else if (word == 0xd503201f) {
		flow->kind = FLOW_NOP;
	} else if (!(word >> 16) || (word & 0xffe0001f) == 0xd4200000) { /* udf, brk */
		flow->kind = FLOW_STOP;
	}
}

static void track(struct scan *scan, uint32_t word)
{
	/* add Xd, Xn, Wm, sxtb/sxth/sxtw/uxt… or add Xd, Xn, Xm: base plus table entry */
	if ((word & 0xffe00000) == 0x8b200000 || (word & 0xff200000) == 0x8b000000)
		scan->sum = word & 31;
	else if (scan->sum == (word & 31))
		scan->sum = 32;
	/* ldp/ldr …, [sp], #imm; add sp, sp|x29, #imm; mov sp, x29 */
	if ((word & 0xffc003e0) == 0xa8c003e0 || (word & 0xffe00fe0) == 0xf84007e0 ||
	    (word & 0xff8003ff) == 0x910003ff || (word & 0xff8003ff) == 0x910003bf)
		scan->restored = true;
	/* stp/str …, [sp, #-imm]!; sub sp, sp, #imm */
	else if ((word & 0xffc003e0) == 0xa98003e0 || (word & 0xffe00fe0) == 0xf8000fe0 ||
		 (word & 0xff8003ff) == 0xd10003ff)
		scan->restored = false;
}

int flow_decode_arm64(const uint8_t *code, size_t size, uint64_t address, flow_vec *flows,
		      uint64_t *bad)
{
	struct scan scan = {.sum = 32};

	for (; size >= 4; size -= 4, code += 4, address += 4) {
		struct flow flow = {.address = address, .size = 4};
		uint32_t word = code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24;

		classify(&scan, word, &flow);
		flow.frame = is_frame(word);
		if (flow.kind == FLOW_NEXT || flow.kind == FLOW_NOP)
			track(&scan, word);
		else
			scan = (struct scan){.sum = 32};
		if (vec_push(flows, flow))
			return -ENOMEM;
	}
	*bad = address;
	return size ? -EBADMSG : 0;
}

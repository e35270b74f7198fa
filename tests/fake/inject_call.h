/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A system call with known values in all that the kernel must preserve, and the values afterwards.
 * x86-64 only.
 */
#ifndef INJECT_CALL_H
#define INJECT_CALL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The assembler below knows the offsets. */
struct call {
	uint64_t rax;	  /* number of the call; then its result */
	uint64_t args[6]; /* rdi rsi rdx r10 r8 r9 */
	uint64_t kept[6]; /* rbx rbp r12-r15 */
	uint64_t flags;
	uint64_t mxcsr;
	uint64_t control;	 /* of the x87 */
	uint8_t st0[16];	 /* 10 of them */
	uint64_t zone[16];	 /* below the stack pointer */
	uint64_t masks[8];	 /* k0-k7 */
	uint64_t width;		 /* enum call_width */
	uint64_t reserved[5];	 /* the next is at 384 */
	uint64_t vectors[32][8]; /* zmm0-zmm31, or as much as there is of them */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct call, flags) == 104, "assembler");
_Static_assert(offsetof(struct call, st0) == 128, "assembler");
_Static_assert(offsetof(struct call, zone) == 144, "assembler");
_Static_assert(offsetof(struct call, masks) == 272, "assembler");
_Static_assert(offsetof(struct call, width) == 336, "assembler");
_Static_assert(offsetof(struct call, vectors) == 384, "assembler");

enum call_width { CALL_XMM = 0, CALL_YMM = 1, CALL_ZMM = 2 };

/* CF PF AF ZF SF DF OF */
#define CALL_FLAGS 0xcd5u

/* Makes the call with the values of in. out->width must equal that of in. */
void inject_call(const struct call *in, struct call *out);
/* The `syscall` instruction, and the address at which the program continues. */
extern const char inject_call_instruction[], inject_call_done[];

/* Between loading and storing the flags there are only moves, which do not change flags. */
__asm__(".pushsection .text\n"
	".type inject_call, @function\n"
	"inject_call:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	"
	"push %r15\n"
	"	push %rsi\n"
	"	sub $8, %rsp\n"
	"	stmxcsr (%rsp)\n"
	"	fnstcw 4(%rsp)\n"
	"	mov %rdi, %r11\n"
	"	cmpl $1, 336(%r11)\n"
	"	ja 2f\n"
	"	je 1f\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups 384+64*\\n(%r11), %xmm\\n\n"
	"	.endr\n"
	"	jmp 3f\n"
	"1:	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	vmovups 384+64*\\n(%r11), %ymm\\n\n"
	"	.endr\n"
	"	jmp 3f\n"
	"2:	.irp "
	"n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,"
	"29,30,31\n"
	"	vmovups 384+64*\\n(%r11), %zmm\\n\n"
	"	.endr\n"
	"	.irp n,1,2,3,4,5,6,7\n"
	"	kmovq 272+8*\\n(%r11), %k\\n\n"
	"	.endr\n"
	"3:	fninit\n"
	"	fldcw 120(%r11)\n"
	"	fldt 128(%r11)\n"
	"	ldmxcsr 112(%r11)\n"
	"	push 104(%r11)\n"
	"	popfq\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	mov 144+8*\\n(%r11), %rax\n"
	"	mov %rax, -128+8*\\n(%rsp)\n"
	"	.endr\n"
	"	mov 56(%r11), %rbx\n	mov 64(%r11), %rbp\n	mov 72(%r11), %r12\n"
	"	mov 80(%r11), %r13\n	mov 88(%r11), %r14\n	mov 96(%r11), %r15\n"
	"	mov 8(%r11), %rdi\n	mov 16(%r11), %rsi\n	mov 24(%r11), %rdx\n"
	"	mov 32(%r11), %r10\n	mov 40(%r11), %r8\n	mov 48(%r11), %r9\n"
	"	mov (%r11), %rax\n"
	"inject_call_instruction:\n"
	"	syscall\n"
	"inject_call_done:\n"
	"	mov 8(%rsp), %r11\n"
	"	mov %rax, (%r11)\n"
	"	mov %rdi, 8(%r11)\n	mov %rsi, 16(%r11)\n	mov %rdx, 24(%r11)\n"
	"	mov %r10, 32(%r11)\n	mov %r8, 40(%r11)\n	mov %r9, 48(%r11)\n"
	"	mov %rbx, 56(%r11)\n	mov %rbp, 64(%r11)\n	mov %r12, 72(%r11)\n"
	"	mov %r13, 80(%r11)\n	mov %r14, 88(%r11)\n	mov %r15, 96(%r11)\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	mov -128+8*\\n(%rsp), %rax\n"
	"	mov %rax, 144+8*\\n(%r11)\n"
	"	.endr\n"
	"	pushfq\n"
	"	pop 104(%r11)\n"
	"	cld\n"
	"	stmxcsr 112(%r11)\n"
	"	fnstcw 120(%r11)\n"
	"	fstpt 128(%r11)\n"
	"	cmpl $1, 336(%r11)\n"
	"	ja 5f\n"
	"	je 4f\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups %xmm\\n, 384+64*\\n(%r11)\n"
	"	.endr\n"
	"	jmp 6f\n"
	"4:	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	vmovups %ymm\\n, 384+64*\\n(%r11)\n"
	"	.endr\n"
	"	vzeroupper\n"
	"	jmp 6f\n"
	"5:	.irp "
	"n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,"
	"29,30,31\n"
	"	vmovups %zmm\\n, 384+64*\\n(%r11)\n"
	"	.endr\n"
	"	.irp n,1,2,3,4,5,6,7\n"
	"	kmovq %k\\n, 272+8*\\n(%r11)\n"
	"	.endr\n"
	"	vzeroupper\n"
	"6:	fninit\n"
	"	ldmxcsr (%rsp)\n"
	"	fldcw 4(%rsp)\n"
	"	add $16, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	"
	"pop %rbx\n"
	"	ret\n"
	".size inject_call, . - inject_call\n"
	".popsection\n");

static enum call_width call_width(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
		return CALL_ZMM;
	return __builtin_cpu_supports("avx") ? CALL_YMM : CALL_XMM;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Fills all registers with random values. The caller then sets the call. */
static void call_fill(struct call *in, struct call *out, enum call_width width, uint64_t *random)
{
	static const uint8_t bytes[] = {16, 32, 64};
	uint64_t *word = (uint64_t *)in;

	for (size_t i = 0; i < sizeof(*in) / sizeof(*word); i++)
		word[i] = next_random(random);
	in->width = width;
	out->width = width;
	in->flags = 0x202 | (in->flags & CALL_FLAGS);
	/*
	 * All exceptions are masked; rounding, flush to zero and sticky flags may have any value.
	 */
	in->mxcsr = 0x1f80 | (in->mxcsr & 0xe03f);
	in->control = 0x027f | (in->control & 0x0d00);
	in->st0[7] |= 0x80; /* a normal number: 1.x */
	in->st0[8] = 0xff;
	in->st0[9] = 0x3f;
	for (size_t i = 0; i < 32; i++) {
		size_t used = width == CALL_ZMM || i < 16 ? bytes[width] : 0;

		memset((uint8_t *)in->vectors[i] + used, 0, 64 - used);
		memset((uint8_t *)out->vectors[i] + used, 0, 64 - used);
	}
}

/* Name of the first register that has changed, or NULL; *got and *want are its values. */
static const char *call_compare(const struct call *in, const struct call *out, uint64_t *got,
				uint64_t *want)
{
	static const char *const names[] = {"rdi", "rsi", "rdx", "r10", "r8",  "r9",
					    "rbx", "rbp", "r12", "r13", "r14", "r15"};
	const uint64_t *before = in->args, *after = out->args;

	for (size_t i = 0; i < 12; i++) {
		*got = after[i];
		*want = before[i];
		if (*got != *want)
			return names[i];
	}
	*got = out->flags & CALL_FLAGS;
	*want = in->flags & CALL_FLAGS;
	if (*got != *want)
		return "flags";
	*got = (uint32_t)out->mxcsr;
	*want = (uint32_t)in->mxcsr;
	if (*got != *want)
		return "mxcsr";
	*got = (uint16_t)out->control;
	*want = (uint16_t)in->control;
	if (*got != *want)
		return "x87 control word";
	if (memcmp(in->st0, out->st0, 10))
		return "st0";
	if (memcmp(in->zone, out->zone, sizeof(in->zone)))
		return "red zone";
	if (in->width == CALL_ZMM && memcmp(in->masks + 1, out->masks + 1, 7 * sizeof(uint64_t)))
		return "k1-k7";
	for (size_t i = 0; i < 32; i++) {
		*want = i;
		if (memcmp(in->vectors[i], out->vectors[i], 64))
			return "vector register";
	}
	return NULL;
}

#endif

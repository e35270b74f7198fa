/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The stub of --gpu=inject in this process. It is entered with the registers that the kernel's
 * restart of a system call leaves. Its table of functions points to libc or to doubles. x86-64.
 * Include after cmocka.h.
 */
#ifndef FBT_INJECT_STUB_FIXTURE_H
#define FBT_INJECT_STUB_FIXTURE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fbt_inject.h"
#include "inject_code.h"

#define NONCE 0xa5c3e1f0u

/* The registers that a program may rely on across a call: all but rcx and r11. */
struct registers {
	uint64_t rax;
	uint64_t moved; /* the stack pointer's change */
	uint64_t token; /* r11 */
	uint64_t rbx, rdx, rsi, rdi, r8, r9, r10, r12, r13, r14, r15;
	uint64_t flags;
	uint64_t rbp;
	uint64_t red_zone[2]; /* the lowest and the highest word of the red zone */
	uint8_t xmm[16][16];
	uint32_t mxcsr;
	uint32_t reserved;
};

_Static_assert(offsetof(struct registers, rbx) == 24, "asm");
_Static_assert(offsetof(struct registers, flags) == 112, "asm");
_Static_assert(offsetof(struct registers, red_zone) == 128, "asm");
_Static_assert(offsetof(struct registers, xmm) == 144, "asm");
_Static_assert(offsetof(struct registers, mxcsr) == 400, "asm");

/*
 * Loads all registers from in, jumps to entry as the kernel would, and stores the registers after
 * the system call in out.
 */
void enter_stub(const void *entry, const struct registers *in, struct registers *out);

__asm__("	.text\n"
	"	.type enter_stub, @function\n"
	"enter_stub:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	"
	"push %r15\n"
	"	push %rdx\n"
	"	mov %rdi, kept_entry(%rip)\n"
	"	mov %rsp, kept_stack(%rip)\n"
	"	sub $264, %rsp\n"
	"	mov %rsi, %rcx\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups 144+16*\\n(%rcx), %xmm\\n\n"
	"	.endr\n"
	"	ldmxcsr 400(%rcx)\n"
	"	mov 128(%rcx), %rax\n	mov %rax, -128(%rsp)\n"
	"	mov 136(%rcx), %rax\n	mov %rax, -8(%rsp)\n"
	"	mov 24(%rcx), %rbx\n	mov 32(%rcx), %rdx\n	mov 40(%rcx), %rsi\n"
	"	mov 48(%rcx), %rdi\n	mov 56(%rcx), %r8\n	mov 64(%rcx), %r9\n"
	"	mov 72(%rcx), %r10\n	mov 80(%rcx), %r12\n	mov 88(%rcx), %r13\n"
	"	mov 96(%rcx), %r14\n	mov 104(%rcx), %r15\n	mov 120(%rcx), %rbp\n"
	"	mov 16(%rcx), %r11\n	mov 0(%rcx), %rax\n"
	"	lea after_call(%rip), %rcx\n"
	"	stc\n	std\n"
	"	jmp *kept_entry(%rip)\n"
	"	syscall\n"
	"after_call:\n" /* rcx and r11 are free; change no flags before they are saved */
	"	mov -8(%rsp), %rcx\n	mov %rcx, kept_high(%rip)\n"
	"	pushfq\n	pop kept_flags(%rip)\n"
	"	cld\n"
	"	mov %rsp, %r11\n"
	"	mov kept_stack(%rip), %rsp\n"
	"	mov (%rsp), %rcx\n"
	"	mov %rax, 0(%rcx)\n	mov %rbx, 24(%rcx)\n	mov %rdx, 32(%rcx)\n"
	"	mov %rsi, 40(%rcx)\n	mov %rdi, 48(%rcx)\n	mov %r8, 56(%rcx)\n"
	"	mov %r9, 64(%rcx)\n	mov %r10, 72(%rcx)\n	mov %r12, 80(%rcx)\n"
	"	mov %r13, 88(%rcx)\n	mov %r14, 96(%rcx)\n	mov %r15, 104(%rcx)\n"
	"	mov %rbp, 120(%rcx)\n"
	"	mov -128(%r11), %rax\n	mov %rax, 128(%rcx)\n"
	"	mov kept_high(%rip), %rax\n	mov %rax, 136(%rcx)\n"
	"	mov kept_flags(%rip), %rax\n	mov %rax, 112(%rcx)\n"
	"	lea 264(%r11), %rax\n	sub %rsp, %rax\n	mov %rax, 8(%rcx)\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups %xmm\\n, 144+16*\\n(%rcx)\n"
	"	.endr\n"
	"	stmxcsr 400(%rcx)\n"
	"	pop %rdx\n	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	"
	"pop %rbp\n	pop %rbx\n"
	"	ret\n"
	"	.size enter_stub, . - enter_stub\n"
	"	.local kept_entry, kept_stack, kept_flags, kept_high\n"
	"	.comm kept_entry, 8, 8\n	.comm kept_stack, 8, 8\n"
	"	.comm kept_flags, 8, 8\n	.comm kept_high, 8, 8\n");

#define FLAGS_CARRY	1u
#define FLAGS_DIRECTION 0x400u

/* A stub with the functions of libc. instead, if set, replaces one of them. */
static inline uint8_t *new_stub(enum fbt_inject_function which, void *instead)
{
	static const char *const names[] = FBT_INJECT_FUNCTION_NAMES;
	size_t size = (sizeof(inject_code) + 4095) & ~4095ul;
	uint8_t *stub =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fbt_inject_stub head;

	assert_true(stub != MAP_FAILED);
	memcpy(stub, inject_code, sizeof(inject_code));
	memcpy(&head, stub, sizeof(head));
	for (int i = 0; i < FBT_INJECT_FUNCTION_COUNT; i++)
		head.functions[i] = (uint64_t)dlsym(RTLD_DEFAULT, names[i]);
	if (instead)
		head.functions[which] = (uint64_t)instead;
	memcpy(stub, &head, sizeof(head));
	assert_int_equal(mprotect(stub, size, PROT_READ | PROT_EXEC), 0);
	return stub;
}

static inline void free_stub(uint8_t *stub)
{
	munmap(stub, (sizeof(inject_code) + 4095) & ~4095ul);
}

static inline struct registers full_registers(uint64_t rax, uint64_t token)
{
	struct registers registers;
	uint8_t *bytes = (uint8_t *)&registers;

	for (size_t i = 0; i < sizeof(registers); i++)
		bytes[i] = (uint8_t)(i * 7 + 3);
	registers.rax = rax;
	registers.token = token;
	registers.mxcsr = 0x1f80 | 0x6000; /* round towards zero */
	return registers;
}

/* Checks all registers but rax, which holds the result of the call. */
static inline void assert_kept(const struct registers *in, const struct registers *out)
{
	assert_int_equal(out->moved, 0);
	assert_memory_equal(&out->rbx, &in->rbx, offsetof(struct registers, flags) - 24);
	assert_true(out->flags & FLAGS_CARRY);
	assert_true(out->flags & FLAGS_DIRECTION);
	assert_int_equal(out->rbp, in->rbp);
	assert_memory_equal(out->red_zone, in->red_zone, sizeof(in->red_zone));
	assert_memory_equal(out->xmm, in->xmm, sizeof(in->xmm));
	assert_int_equal(out->mxcsr, in->mxcsr);
}

static inline size_t pages(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long count = 0;

	assert_int_equal(fscanf(file, "%lu", &count), 1);
	fclose(file);
	return count;
}

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What a thread of the engine runs instead of the restart of its system call: it starts the helper
 * thread (helper.c) and returns to the call, with every register as it was. include/fbt_inject.h
 * says what the registers hold on arrival.
 *
 * The stub uses some 300 bytes of the thread's own stack, below the red zone, because the stacks of
 * coroutines are small. Code that needs more runs on a stack that is mapped for it.
 */
#include <asm/unistd.h>
#include "stub.h"

/* The mapped memory: the stack for pthread_create, and below it the vector registers. */
#define STACK_BYTES 65536
#define RED_ZONE    128
/* XCR0 without the tiles of AMX, which are 8 KiB that nothing here changes. */
#define NO_TILES    0xfff9ffff

	.section .stub.head, "ax"
	.globl	ferrum_stub, ferrum_stub_functions
	.hidden	ferrum_stub_functions
ferrum_stub:
	jmp	.Lto_restart
	.org	ferrum_stub + 2		/* FBT_INJECT_ENTRY_INTERRUPTED: the jump above is short */
	jmp	.Lto_interrupted
	.balign	8
	.quad	STUB_MAGIC
	.long	STUB_VERSION
	.long	ferrum_stub_end - ferrum_stub
ferrum_stub_functions:
	.fill	STUB_FUNCTIONS, 8, 0
.Lto_restart:
	jmp	restart
.Lto_interrupted:
	jmp	interrupted

	.text
/*
 * All signals but those that a thread causes itself, and SIGSETXID: set*id() waits for the handler
 * of every thread.
 */
	.balign	8
mask:
	.quad	~(1 << (4 - 1) | 1 << (5 - 1) | 1 << (7 - 1) | 1 << (8 - 1) | 1 << (11 - 1) | \
		  1 << (31 - 1) | 1 << (33 - 1))

/* Flags are live across `syscall`, so nothing may change them before they are saved. */
interrupted:
	lea	-RED_ZONE(%rsp), %rsp
	pushfq
	lea	-FRAME_FLAGS(%rsp), %rsp
	movq	$1, FRAME_INTERRUPTED(%rsp)
	jmp	keep
restart:
	lea	-2(%rcx), %rcx		/* the `syscall` itself */
	lea	-RED_ZONE(%rsp), %rsp
	pushfq
	lea	-FRAME_FLAGS(%rsp), %rsp
	movq	$0, FRAME_INTERRUPTED(%rsp)
keep:
	mov	%rax, FRAME_RAX(%rsp)
	mov	%rcx, FRAME_RCX(%rsp)
	mov	%r11, FRAME_TOKEN(%rsp)
	mov	%rdx, FRAME_RDX(%rsp)
	mov	%rsi, FRAME_RSI(%rsp)
	mov	%rdi, FRAME_RDI(%rsp)
	mov	%r8, FRAME_R8(%rsp)
	mov	%r9, FRAME_R9(%rsp)
	mov	%r10, FRAME_R10(%rsp)
	mov	%rbx, FRAME_RBX(%rsp)
	mov	%rbp, FRAME_RBP(%rsp)
	mov	%r12, FRAME_R12(%rsp)
	mov	%r13, FRAME_R13(%rsp)
	cld
	mov	%rsp, %rbp
	and	$-16, %rsp

	mov	$2, %edi		/* SIG_SETMASK */
	lea	mask(%rip), %rsi
	lea	FRAME_MASK(%rbp), %rdx
	mov	$8, %r10d
	mov	$__NR_rt_sigprocmask, %eax
	syscall
	test	%eax, %eax
	jnz	give_back		/* a filter answers the call: do nothing at all */

	xor	%edi, %edi
	mov	$STACK_BYTES, %esi
	mov	$3, %edx		/* PROT_READ | PROT_WRITE */
	mov	$0x22, %r10d		/* MAP_PRIVATE | MAP_ANONYMOUS */
	mov	$-1, %r8
	xor	%r9d, %r9d
	mov	$__NR_mmap, %eax
	syscall
	cmp	$-4095, %rax
	jae	unblock
	mov	%rax, %rbx
	lea	STACK_BYTES(%rax), %rsp

	/* `syscall` preserves the vector registers, pthread_create does not. */
	xor	%ecx, %ecx
	xgetbv
	and	$NO_TILES, %eax
	mov	%eax, %r12d
	mov	%edx, %r13d
	xsave64	(%rbx)			/* fresh memory is zero, as the header must be */
	mov	%rbp, %rdi
	call	ferrum_stub_start
	mov	%r12d, %eax
	mov	%r13d, %edx
	xrstor64 (%rbx)

	mov	%rbp, %rsp
	and	$-16, %rsp
	mov	%rbx, %rdi
	mov	$STACK_BYTES, %esi
	mov	$__NR_munmap, %eax
	syscall
unblock:
	mov	%rbp, %rdi
	call	ferrum_stub_settle
	mov	$2, %edi
	lea	FRAME_MASK(%rbp), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	mov	$__NR_rt_sigprocmask, %eax
	syscall
give_back:
	mov	%rbp, %rsp
	mov	FRAME_RAX(%rsp), %rax
	mov	FRAME_RCX(%rsp), %rcx
	mov	FRAME_RDX(%rsp), %rdx
	mov	FRAME_RSI(%rsp), %rsi
	mov	FRAME_RDI(%rsp), %rdi
	mov	FRAME_R8(%rsp), %r8
	mov	FRAME_R9(%rsp), %r9
	mov	FRAME_R10(%rsp), %r10
	mov	FRAME_RBX(%rsp), %rbx
	mov	FRAME_RBP(%rsp), %rbp
	mov	FRAME_R12(%rsp), %r12
	mov	FRAME_R13(%rsp), %r13
	lea	FRAME_FLAGS(%rsp), %rsp
	popfq
	lea	RED_ZONE(%rsp), %rsp
	notrack jmp *%rcx

/* long ferrum_stub_syscall(long nr, long a, long b, long c, long d, long e, long f) */
	.globl	ferrum_stub_syscall
	.hidden	ferrum_stub_syscall
ferrum_stub_syscall:
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	mov	8(%rsp), %r9
	syscall
	ret

	.section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * late_step (see late_step.c) with a lock prefix at its first instruction, which the kernel refuses
 * to probe. It is also called llama_decode, which the tool finds by itself.
 */

__asm__(".text\n"
	".globl late_step, llama_decode\n"
	".type late_step, @function\n"
	".type llama_decode, @function\n"
	"late_step:\n"
	"llama_decode:\n"
	"	lock incl -64(%rsp)\n"
	"	sub $8, %rsp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	add $8, %rsp\n"
	"	ret\n"
	".size late_step, . - late_step\n"
	".size llama_decode, . - llama_decode\n"
	".section .note.GNU-stack,\"\",@progbits\n");

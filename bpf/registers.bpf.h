/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The registers of a thread in user mode, in the order of DWARF. */
#ifndef FBT_REGISTERS_BPF_H
#define FBT_REGISTERS_BPF_H

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "fbt_shared.h"

static __always_inline void read_registers(__u64 registers[FBT_REGISTERS], struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

#ifdef __TARGET_ARCH_x86
	registers[0] = regs->ax;
	registers[1] = regs->dx;
	registers[2] = regs->cx;
	registers[3] = regs->bx;
	registers[4] = regs->si;
	registers[5] = regs->di;
	registers[6] = regs->bp;
	registers[7] = regs->sp;
	registers[8] = regs->r8;
	registers[9] = regs->r9;
	registers[10] = regs->r10;
	registers[11] = regs->r11;
	registers[12] = regs->r12;
	registers[13] = regs->r13;
	registers[14] = regs->r14;
	registers[15] = regs->r15;
	registers[16] = regs->ip;
#else
	bpf_probe_read_kernel(registers, FBT_REGISTERS * sizeof(*registers), &regs->user_regs);
#endif
}

#endif

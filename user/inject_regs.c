/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_regs.h"

#if defined(__x86_64__)

#include <asm/unistd.h>
#include <errno.h>

#include "fbt_inject.h"

/* What a system call returns to the kernel alone, which restarts it (its linux/errno.h). */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

/* Segment of 64-bit code; under Xen. */
#define CS_64	  0x33
#define CS_64_XEN 0xe033

int inject_regs_class(const struct user_regs_struct *regs)
{
	switch ((int64_t)regs->rax) {
	case -ERESTARTSYS:
		return FBT_INJECT_SA;
	case -ERESTARTNOINTR:
		return FBT_INJECT_ALWAYS;
	case -ERESTARTNOHAND:
		return FBT_INJECT_NO_HAND;
	case -ERESTART_RESTARTBLOCK:
		return FBT_INJECT_BLOCK;
	case -EINTR:
		/* A handler has run in the middle of it: that one is to be seen. */
		return regs->orig_rax == __NR_restart_syscall ? -EAGAIN : FBT_INJECT_NO_HAND;
	}
	return -EAGAIN;
}

bool inject_regs_are_same(const struct user_regs_struct *regs, const struct inject_thread *thread)
{
	struct inject_thread now = *thread;

	if (regs->orig_rax != now.nr || regs->rsp != now.sp || regs->rip != now.pc ||
	    regs->rdi != now.args[0] || (regs->cs != CS_64 && regs->cs != CS_64_XEN) ||
	    inject_regs_class(regs) < 0)
		return false;
	now.args[1] = regs->rsi;
	now.args[2] = regs->rdx;
	now.args[3] = regs->r10;
	now.args[4] = regs->r8;
	now.args[5] = regs->r9;
	return inject_thread_rank(&now) != INJECT_RANK_NONE;
}

int inject_regs_divert(struct user_regs_struct *regs, uint64_t stub, uint32_t nonce)
{
	int class = inject_regs_class(regs);

	if (class < 0)
		return class;
	regs->rcx = regs->rip;
	regs->r11 = FBT_INJECT_TOKEN(nonce, class);
	regs->rip = stub + FBT_INJECT_ENTRY_INTERRUPTED;
	if ((int64_t)regs->rax == -EINTR)
		regs->rax = (uint64_t)-ERESTARTNOHAND;
	return 0;
}

/* Calls that have done nothing where they say EINTR, which the kernel leaves at that. */
static bool may_begin_anew(uint64_t nr)
{
	switch (nr) {
	case __NR_read:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_accept:
	case __NR_accept4:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
	case __NR_semop:
	case __NR_semtimedop:
	case __NR_rt_sigtimedwait:
	case __NR_io_getevents:
		return true;
	}
	return false;
}

bool inject_regs_hide(struct user_regs_struct *regs, uint64_t nr)
{
	if ((int64_t)regs->rax != -EINTR || regs->orig_rax == __NR_restart_syscall ||
	    (regs->orig_rax != nr && !may_begin_anew(regs->orig_rax)))
		return false;
	regs->rax = (uint64_t)-ERESTARTNOHAND;
	return true;
}

#endif

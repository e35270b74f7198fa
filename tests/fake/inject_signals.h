/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Numbered signals: each must be handled once and in order, and end the call that it interrupts in
 * the right way.
 */
#ifndef INJECT_SIGNALS_H
#define INJECT_SIGNALS_H

#include <sys/time.h>
#include <ucontext.h>
#include "inject_worker.h"

#define SIGNAL_PLAIN   (SIGRTMIN + 1)
#define SIGNAL_RESTART (SIGRTMIN + 2)

/* Symbols of the linker. */
extern const char __executable_start[], etext[];

/*
 * The interrupted address tells what the call must return. An address outside of the program's own
 * code is injected code: then the call may return EINTR, and a signal in its last instructions
 * looks like one from before the call. A call that the kernel is about to restart by
 * restart_syscall also returns EINTR, because it is not restarted after a handler.
 */
static void see_call(struct worker *w, const ucontext_t *context)
{
	const char *pc = (const char *)context->uc_mcontext.gregs[REG_RIP];
	greg_t rax = context->uc_mcontext.gregs[REG_RAX];

	if (!w->in_call)
		return;
	if ((pc == inject_call_done && rax == -EINTR) ||
	    (pc == inject_call_instruction && rax == SYS_restart_syscall))
		w->handler_saw_eintr = 1;
	else if ((pc < __executable_start || pc >= etext) &&
		 (w->kind->restart != RESTART_SA || !w->sa_restart))
		w->handler_in_stub = 1;
}

static void on_number(int signal, siginfo_t *info, void *context)
{
	struct worker *w = self;
	uint64_t number = atomic_fetch_add(&w->signals_handled, 1) + 1;

	if (info->si_code != SI_QUEUE || info->si_pid != getpid())
		complain(w, "a signal from nowhere", (uint64_t)info->si_code, (uint64_t)SI_QUEUE);
	else
		expect(w, "signal", (uint32_t)info->si_value.sival_int, (uint32_t)number);
	expect(w, "signal number", (uint64_t)signal, (uint64_t)w->signal);
	see_call(w, context);
}

static void on_alarm(int signal, siginfo_t *info, void *context)
{
	struct worker *w = self;

	(void)info;
	expect(w, "signal number", (uint64_t)signal, (uint64_t)w->signal);
	atomic_fetch_add(&w->signals_handled, 1);
	see_call(w, context);
}

static int signals_set_up(bool with_alarm)
{
	struct sigaction action = {.sa_sigaction = on_number, .sa_flags = SA_SIGINFO};
	struct itimerval often = {{0, 1000}, {0, 1000}};

	sigfillset(&action.sa_mask);
	if (sigaction(SIGNAL_PLAIN, &action, NULL))
		return -errno;
	action.sa_flags |= SA_RESTART;
	if (sigaction(SIGNAL_RESTART, &action, NULL))
		return -errno;
	action.sa_flags = SA_SIGINFO;
	action.sa_sigaction = on_alarm;
	if (sigaction(SIGALRM, &action, NULL))
		return -errno;
	return with_alarm && setitimer(ITIMER_REAL, &often, NULL) ? -errno : 0;
}

static void sender_check(struct worker *w, long result)
{
	struct target *target = w->target;

	expect(w, "result", (uint64_t)result, 0);
	for (size_t i = 0; i < target->count && !target->stopping; i++) {
		struct worker *to = target->workers[i];
		union sigval value = {.sival_int = (int)(to->signals_sent + 1)};

		if (!to->tid || !to->signal || to->signal == SIGALRM || random_below(w, 4) ||
		    to->signals_sent - to->signals_handled >= 32)
			continue;
		if (!pthread_sigqueue(to->thread, to->signal, value))
			atomic_fetch_add(&to->signals_sent, 1);
	}
}

#endif

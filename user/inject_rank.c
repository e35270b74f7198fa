/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_rank.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)

/* How it is told from the arguments that the second rank applies. */
enum told {
	TOLD_NEVER,
	TOLD_BY_POINTER, /* the argument is one */
	TOLD_BY_MS,	 /* it is a time-out of poll's kind: negative is none */
	TOLD_BY_FLAG,	 /* a bit of it is set */
	TOLD_BY_FUTEX,	 /* see futex_rules */
};

struct rule {
	uint16_t nr;
	uint8_t rank;
	uint8_t other; /* with a time-out, or that flag */
	uint8_t told;
	uint8_t arg;
	uint8_t file;
	uint32_t flag;
};

#define NONE	    INJECT_RANK_NONE
#define BLOCK	    INJECT_RANK_BLOCK
#define RESTART	    INJECT_RANK_RESTART
#define WRITTEN	    INJECT_RANK_WRITTEN
#define EINTR_FREE  INJECT_RANK_EINTR
#define EINTR_TIMED INJECT_RANK_EINTR_TIMED
#define ANY	    INJECT_FILE_ANY
#define SOCKET	    INJECT_FILE_SOCKET
#define QUEUE	    INJECT_FILE_QUEUE

/*
 * What is not here is not taken. Of those that wait:
 *  - semop, io_getevents, io_uring_enter, rt_sigtimedwait: -EINTR for good, as epoll_wait, but
 *    programs rely on it less often that they do not return it;
 *  - write, sendto, recvmmsg: a count of what is done so far;
 *  - connect: a second one is another call (EALREADY);
 *  - open of a FIFO, flock, fcntl: file systems with their own ideas of waiting (FUSE, NFS);
 *  - rt_sigsuspend: how a runtime that stops the world holds a thread, wherever that was;
 *  - ioctl: a driver's.
 */
static const struct rule rules[] = {
	/* -ERESTART_RESTARTBLOCK */
	{SYS_poll, BLOCK, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_nanosleep, BLOCK, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_clock_nanosleep, BLOCK, WRITTEN, TOLD_BY_FLAG, 1, ANY, TIMER_ABSTIME},
	{SYS_futex, NONE, NONE, TOLD_BY_FUTEX, 0, ANY, 0},
	/* -ERESTARTNOHAND; the kernel has written what is left of the time-out */
	{SYS_select, RESTART, WRITTEN, TOLD_BY_POINTER, 4, ANY, 0},
	{SYS_pselect6, RESTART, WRITTEN, TOLD_BY_POINTER, 4, ANY, 0},
	{SYS_ppoll, RESTART, WRITTEN, TOLD_BY_POINTER, 2, ANY, 0},
	{SYS_pause, RESTART, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_msgrcv, RESTART, NONE, TOLD_NEVER, 0, ANY, 0},
	/* -ERESTARTSYS */
	{SYS_read, RESTART, NONE, TOLD_NEVER, 0, QUEUE, 0},
	{SYS_readv, RESTART, NONE, TOLD_NEVER, 0, QUEUE, 0},
	{SYS_accept, RESTART, NONE, TOLD_NEVER, 0, SOCKET, 0},
	{SYS_accept4, RESTART, NONE, TOLD_NEVER, 0, SOCKET, 0},
	/* With that flag: a short count, if some has come already. */
	{SYS_recvfrom, RESTART, NONE, TOLD_BY_FLAG, 3, SOCKET, MSG_WAITALL},
	{SYS_recvmsg, RESTART, NONE, TOLD_BY_FLAG, 2, SOCKET, MSG_WAITALL},
	{SYS_wait4, RESTART, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_waitid, RESTART, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_mq_timedreceive, RESTART, NONE, TOLD_NEVER, 0, ANY, 0}, /* its time is absolute */
	/* -EINTR */
	{SYS_epoll_wait, EINTR_FREE, EINTR_TIMED, TOLD_BY_MS, 3, ANY, 0},
	{SYS_epoll_pwait, EINTR_FREE, EINTR_TIMED, TOLD_BY_MS, 3, ANY, 0},
	{SYS_epoll_pwait2, EINTR_FREE, EINTR_TIMED, TOLD_BY_POINTER, 3, ANY, 0},
};

/* Not PI, requeue, wake: their state is in the kernel and in the lock word at once. */
static const struct {
	uint8_t command;
	uint8_t rank;
	uint8_t timed;
} futex_rules[] = {
	{FUTEX_WAIT, RESTART, BLOCK},
	{FUTEX_WAIT_BITSET, RESTART, BLOCK},
};

static const struct rule *find_rule(uint64_t nr)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (rules[i].nr == nr)
			return &rules[i];
	}
	return NULL;
}

/*
 * Whether the thread waits for a lock, by the word it waits to change. 2 is what glibc writes into
 * its own ones (allocator, loader, threads) and into mutexes, and Rust, PartitionAlloc, Scudo and
 * tcmalloc into theirs. An odd word in a plain wait: spin locks of Abseil, locks of Zig,
 * pthread_once. It need not be a bad one; nothing tells.
 */
static bool is_lock_word(uint64_t command, uint64_t value)
{
	return (uint32_t)value == 2 || (command == FUTEX_WAIT && (value & 1));
}

static enum inject_rank rank_futex(const uint64_t args[6])
{
	uint64_t command = (uint32_t)args[1] & FUTEX_CMD_MASK;

	if (is_lock_word(command, args[2]))
		return NONE;
	for (size_t i = 0; i < sizeof(futex_rules) / sizeof(*futex_rules); i++) {
		if (futex_rules[i].command == command)
			return args[3] ? futex_rules[i].timed : futex_rules[i].rank;
	}
	return NONE;
}

/*
 * A call that was interrupted before goes on as restart_syscall. Which one it was is not shown; the
 * arguments are still those, and poll and the sleeps have none that look like such a futex.
 */
static enum inject_rank rank_restarted(const uint64_t args[6])
{
	uint64_t command = (uint32_t)args[1] & ~FUTEX_PRIVATE_FLAG;
	bool like_futex = args[3] && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ||
				      command == (FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME));

	return like_futex && is_lock_word(command & FUTEX_CMD_MASK, args[2]) ? NONE : BLOCK;
}

enum inject_rank inject_rank_of(uint64_t nr, const uint64_t args[6])
{
	const struct rule *rule = find_rule(nr);
	bool other = false;

	if (nr == SYS_restart_syscall)
		return rank_restarted(args);
	if (!rule)
		return NONE;
	switch (rule->told) {
	case TOLD_BY_FUTEX:
		return rank_futex(args);
	case TOLD_BY_POINTER:
		other = args[rule->arg];
		break;
	case TOLD_BY_MS:
		other = (int32_t)args[rule->arg] >= 0;
		break;
	case TOLD_BY_FLAG:
		other = args[rule->arg] & rule->flag;
		break;
	default:
		break;
	}
	return other ? rule->other : rule->rank;
}

enum inject_file inject_rank_file(uint64_t nr)
{
	const struct rule *rule = find_rule(nr);

	return rule ? rule->file : ANY;
}

#else

enum inject_rank inject_rank_of(uint64_t nr, const uint64_t args[6])
{
	return INJECT_RANK_NONE;
}

enum inject_file inject_rank_file(uint64_t nr)
{
	return INJECT_FILE_ANY;
}

#endif

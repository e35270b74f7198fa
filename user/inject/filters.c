/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/filters.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>

#include "base/vec.h"
#include "proc/status.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#define MFD_EXEC	0x10u
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* Any address: a seccomp filter cannot look at memory. */
#define AT    0x7f5a00001000ull
#define FD    100ull
#define NO_FD ((uint64_t)-1)
#define PAGE  4096ull
#define MASK  8ull /* bytes of a signal set */
#define RSEQ  0x53053053ull

/* The ioctl by which CUDA talks to NVIDIA's driver: _IOWR('F', 0x2a, 32 bytes). */
#define RM_CONTROL 0xc020462aull

#define RW	(PROT_READ | PROT_WRITE)
#define RX	(PROT_READ | PROT_EXEC)
#define FILE_AT (MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE)
#define MEMORY	(MAP_PRIVATE | MAP_ANONYMOUS)

#define THREAD                                                                                     \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

#define CALL(name, need) #name, SYS_##name, INJECT_##need

static const struct inject_call calls[] = {
	/* The diverted thread, in the stub. */
	{CALL(rt_sigprocmask, NEEDED), {SIG_SETMASK, AT, AT, MASK}},
	{CALL(mmap, NEEDED), {0, 65536, RW, MEMORY, NO_FD, 0}},
	{CALL(munmap, NEEDED), {AT, 65536}},
	/* Without these two the EINTR of a signal that arrives meanwhile would be lost. */
	{CALL(rt_sigpending, NEEDED), {AT, MASK}},
	{CALL(rt_sigaction, NEEDED), {SIGUSR1, 0, AT, MASK}},
	/*
	 * Made by the kernel for a thread that waits in poll, a sleep or a futex with a time-out
	 * when the process is stopped. The shim's thread waits like that all the time.
	 */
	{CALL(restart_syscall, NEEDED), {0}},

	/* pthread_create */
	/* SIGSETXID: without its handler setuid() would not reach all threads. */
	{CALL(rt_sigaction, NEEDED), {33, AT, 0, MASK}},
	{CALL(mmap, NEEDED), {0, 528384, PROT_NONE, MEMORY | MAP_STACK, NO_FD, 0}},
	{CALL(mprotect, NEEDED), {AT, 524288, RW}},
	{CALL(rt_sigprocmask, NEEDED), {SIG_BLOCK, AT, AT, MASK}},
	/* Docker's profile answers clone3 with ENOSYS, since a filter cannot see its flags. */
	{CALL(clone3, OR_NEXT_IF_ENOSYS), {AT, 88}},
	{CALL(clone, NEEDED), {THREAD, AT, AT, AT, AT}},
	/* The new thread registers its robust list and rseq area. It works without both. */
	{CALL(set_robust_list, IGNORED), {AT, 24}},
	{CALL(rseq, IGNORED), {AT, 32, 0, RSEQ}},
	{CALL(rt_sigprocmask, NEEDED), {SIG_UNBLOCK, AT, 0, MASK}},

	/* The helper. */
	{CALL(memfd_create, OR_NEXT), {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC}},
	{CALL(memfd_create, OR_NEXT), {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING}},
	{CALL(memfd_create, NEEDED), {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL}},
	{CALL(fstat, NEEDED), {FD, AT}},
	{CALL(pwrite64, NEEDED), {FD, AT, 1, PAGE - 1}},
	{CALL(fcntl, NEEDED), {FD, F_ADD_SEALS, F_SEAL_SHRINK}},
	{CALL(mmap, NEEDED), {0, PAGE, RW, MAP_SHARED, FD, 0}},
	{CALL(clock_gettime, NEEDED), {CLOCK_MONOTONIC, AT}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAKE, 0x7fffffff}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAIT_BITSET, 1, AT, 0, 0xffffffff}},
	{CALL(munmap, NEEDED), {AT, PAGE}},
	{CALL(close, NEEDED), {FD}},

	/* dlopen, dlsym, malloc */
	{CALL(openat, NEEDED), {(uint32_t)AT_FDCWD, AT, O_RDONLY | O_CLOEXEC}},
	{CALL(read, NEEDED), {FD, AT, 832}},
	{CALL(pread64, NEEDED), {FD, AT, 784, 64}},
	{CALL(newfstatat, NEEDED), {FD, AT, AT, 0x1000}}, /* AT_EMPTY_PATH */
	{CALL(mmap, NEEDED), {0, 172168, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE, FD, 0}},
	{CALL(mmap, NEEDED), {AT, 20480, RX, FILE_AT, FD, PAGE}},
	{CALL(mmap, NEEDED), {AT, 8192, PROT_READ, FILE_AT, FD, PAGE}},
	{CALL(mmap, NEEDED), {AT, 8192, RW, FILE_AT, FD, PAGE}},
	{CALL(mmap, NEEDED), {AT, 127112, RW, MEMORY | MAP_FIXED, NO_FD, 0}},
	{CALL(mprotect, NEEDED), {AT, PAGE, PROT_READ}},
	{CALL(mmap, NEEDED), {0, 1 << 27, PROT_NONE, MEMORY | MAP_NORESERVE, NO_FD, 0}},
	/* The first malloc of a process. glibc uses the clock instead if this fails. */
	{CALL(getrandom, IGNORED), {AT, 8, 1 /* GRND_NONBLOCK */}},
	/* malloc uses mmap if this fails. */
	{CALL(brk, IGNORED), {AT}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAIT_PRIVATE, 2}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAKE_PRIVATE, 1}},

	/* The shim. */
	{CALL(memfd_create, OR_NEXT_IF_EINVAL),
	 {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL}},
	{CALL(memfd_create, NEEDED), {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING}},
	/* If this fails, the descriptor keeps its low number. */
	{CALL(fcntl, IGNORED), {FD, F_DUPFD_CLOEXEC, 64}},
	{CALL(prlimit64, NEEDED), {0, RLIMIT_FSIZE, 0, AT}},
	{CALL(ftruncate, NEEDED), {FD, 8392704}},
	{CALL(fcntl, NEEDED), {FD, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL}},
	{CALL(fallocate, IGNORED), {FD, 0, 0, 20480}},
	{CALL(mmap, NEEDED), {0, 8392704, RW, MAP_SHARED, FD, 0}},
	/* Without these a forked child would write into its parent's ring. */
	{CALL(madvise, NEEDED), {AT, 8392704, MADV_DONTFORK}},
	{CALL(madvise, NEEDED), {AT, PAGE, MADV_WIPEONFORK}},
	{CALL(prctl, IGNORED), {PR_SET_NAME, AT}},
	{CALL(prctl, IGNORED), {PR_SET_TIMERSLACK, 50000}},
	{CALL(sched_setaffinity, IGNORED), {0, 128, AT}},
	{CALL(sched_getscheduler, IGNORED), {1}},
	{CALL(sched_setscheduler, IGNORED), {0, SCHED_OTHER, AT}},
	{CALL(getpriority, IGNORED), {PRIO_PROCESS, 1}},
	{CALL(setpriority, IGNORED), {PRIO_PROCESS, 0, 0}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAIT, 0, AT}},
	{CALL(clock_nanosleep, NEEDED), {CLOCK_REALTIME, 0, AT, AT}},
	/*
	 * CUPTI, in addition to what dlopen needs. An error from a filter becomes an error of
	 * CUPTI, which the shim reports. Other answers (a kill, SIGSYS) are refused.
	 */
	{CALL(ioctl, IGNORED), {FD, RM_CONTROL, AT}},
	{CALL(getpid, IGNORED), {0}},
	{CALL(gettid, IGNORED), {0}},
	{CALL(sched_getaffinity, IGNORED), {0, 128, AT}},
	{CALL(sched_yield, IGNORED), {0}},
	{CALL(lseek, IGNORED), {FD, 0, SEEK_SET}},

	/* The end of a thread. */
	{CALL(madvise, IGNORED), {AT, 507904, MADV_DONTNEED}},
	/* glibc calls exit in an endless loop if it returns. */
	{CALL(exit, NEEDED), {0}},
};

const struct inject_call *inject_calls(size_t *count)
{
	*count = sizeof(calls) / sizeof(*calls);
	return calls;
}

#define SHIFT_MASK 31u

/*
 * A classic BPF interpreter: first the checks that the kernel makes before it installs a filter,
 * then the run.
 */
struct machine {
	uint32_t a;
	uint32_t x;
	uint32_t memory[BPF_MEMWORDS];
};

static bool is_valid_load(const struct sock_filter *insn)
{
	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		return insn->k < sizeof(struct seccomp_data) && !(insn->k & 3);
	case BPF_LD | BPF_MEM:
	case BPF_LDX | BPF_MEM:
	case BPF_ST:
	case BPF_STX:
		return insn->k < BPF_MEMWORDS;
	case BPF_LD | BPF_W | BPF_LEN:
	case BPF_LDX | BPF_W | BPF_LEN:
	case BPF_LD | BPF_IMM:
	case BPF_LDX | BPF_IMM:
	case BPF_MISC | BPF_TAX:
	case BPF_MISC | BPF_TXA:
		return true;
	default:
		return false;
	}
}

/* seccomp does not allow BPF_MOD. */
static bool is_valid_sum(const struct sock_filter *insn)
{
	bool by_x = BPF_SRC(insn->code) == BPF_X;

	switch (insn->code & ~BPF_X) {
	case BPF_ALU | BPF_DIV:
		return by_x || insn->k != 0;
	case BPF_ALU | BPF_LSH:
	case BPF_ALU | BPF_RSH:
		return by_x || insn->k < 32;
	case BPF_ALU | BPF_NEG:
		return !by_x;
	case BPF_ALU | BPF_ADD: /* NOLINT: BPF_ADD is 0 */
	case BPF_ALU | BPF_SUB:
	case BPF_ALU | BPF_MUL:
	case BPF_ALU | BPF_AND:
	case BPF_ALU | BPF_OR:
	case BPF_ALU | BPF_XOR:
		return true;
	default:
		return false;
	}
}

/* Returns and jumps. left: number of instructions after this one. */
static bool is_valid_end(const struct sock_filter *insn, uint32_t left)
{
	switch (insn->code) {
	case BPF_RET | BPF_K:
	case BPF_RET | BPF_A:
		return true;
	case BPF_JMP | BPF_JA:
		return insn->k < left;
	}
	switch (insn->code & ~BPF_X) {
	case BPF_JMP | BPF_JEQ:
	case BPF_JMP | BPF_JGE:
	case BPF_JMP | BPF_JGT:
	case BPF_JMP | BPF_JSET:
		return insn->jt < left && insn->jf < left;
	default:
		return false;
	}
}

/* Whether every word of memory that is read was written before on all paths to the read. */
static bool is_memory_written(const struct sock_filter *code, uint32_t count)
{
	uint16_t written[BPF_MAXINSNS], now = 0;

	memset(written, 0xff, sizeof(written));
	for (uint32_t i = 0; i < count; i++) {
		const struct sock_filter *insn = &code[i];

		now &= written[i];
		switch (BPF_CLASS(insn->code)) {
		case BPF_ST:
		case BPF_STX:
			now |= (uint16_t)(1u << insn->k);
			break;
		case BPF_LD:
		case BPF_LDX:
			if (BPF_MODE(insn->code) == BPF_MEM && !(now >> insn->k & 1))
				return false;
			break;
		case BPF_JMP:
			if (BPF_OP(insn->code) == BPF_JA) {
				written[i + 1 + insn->k] &= now;
			} else {
				written[i + 1 + insn->jt] &= now;
				written[i + 1 + insn->jf] &= now;
			}
			now = 0xffff;
			break;
		default:
			break;
		}
	}
	return true;
}

static bool is_valid(const struct sock_filter *code, uint32_t count)
{
	if (!count || count > BPF_MAXINSNS || BPF_CLASS(code[count - 1].code) != BPF_RET)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!is_valid_load(&code[i]) && !is_valid_sum(&code[i]) &&
		    !is_valid_end(&code[i], count - i - 1))
			return false;
	}
	return is_memory_written(code, count);
}

static uint32_t load(const struct sock_filter *insn, const struct machine *machine,
		     const struct seccomp_data *data)
{
	uint32_t word = 0;

	switch (BPF_MODE(insn->code)) {
	case BPF_ABS:
		memcpy(&word, (const char *)data + insn->k, sizeof(word));
		return word;
	case BPF_MEM:
		return machine->memory[insn->k];
	case BPF_LEN:
		return sizeof(*data);
	default:
		return insn->k;
	}
}

/* The caller handles a division by zero, which ends the program. */
static uint32_t sum(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return a / b;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return a << (b & SHIFT_MASK);
	case BPF_RSH:
		return a >> (b & SHIFT_MASK);
	default:
		return -a;
	}
}

static uint32_t jump(const struct sock_filter *insn, uint32_t a, uint32_t b)
{
	switch (BPF_OP(insn->code)) {
	case BPF_JA:
		return insn->k;
	case BPF_JEQ:
		return a == b ? insn->jt : insn->jf;
	case BPF_JGE:
		return a >= b ? insn->jt : insn->jf;
	case BPF_JGT:
		return a > b ? insn->jt : insn->jf;
	default:
		return a & b ? insn->jt : insn->jf;
	}
}

static uint32_t run_filter(const struct sock_filter *code, const struct seccomp_data *data)
{
	struct machine machine = {0};

	for (const struct sock_filter *insn = code;; insn++) {
		uint32_t operand = BPF_SRC(insn->code) == BPF_X ? machine.x : insn->k;

		switch (BPF_CLASS(insn->code)) {
		case BPF_LD:
			machine.a = load(insn, &machine, data);
			break;
		case BPF_LDX:
			machine.x = load(insn, &machine, data);
			break;
		case BPF_ST:
			machine.memory[insn->k] = machine.a;
			break;
		case BPF_STX:
			machine.memory[insn->k] = machine.x;
			break;
		case BPF_ALU:
			if (BPF_OP(insn->code) == BPF_DIV && !operand)
				return 0;
			machine.a = sum(insn->code, machine.a, operand);
			break;
		case BPF_JMP:
			insn += jump(insn, machine.a, operand);
			break;
		case BPF_RET:
			return BPF_RVAL(insn->code) == BPF_A ? machine.a : insn->k;
		default:
			if (BPF_MISCOP(insn->code) == BPF_TAX)
				machine.x = machine.a;
			else
				machine.a = machine.x;
			break;
		}
	}
}

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "AUDIT_ARCH of this processor"
#endif

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

/* Values of rax in an interrupted call (linux/errno.h of the kernel, not exported). */
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

#define STRICT	 1
#define FILTERED 2

/* The filters of a thread. */
typedef VEC(struct sock_fprog) program_vec;

int inject_seccomp_run(const struct sock_filter *filter, uint32_t count,
		       const struct seccomp_data *data, uint32_t *action)
{
	if (!is_valid(filter, count))
		return -EINVAL;
	*action = run_filter(filter, data);
	return 0;
}

/* The kernel's order of precedence: actions are compared as signed numbers, and the lowest wins. */
static int32_t precedence(uint32_t action)
{
	return (int32_t)(action & SECCOMP_RET_ACTION_FULL);
}

static uint32_t normalize(uint32_t action)
{
	switch (action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_KILL_PROCESS:
	case SECCOMP_RET_KILL_THREAD:
	case SECCOMP_RET_TRAP:
	case SECCOMP_RET_ERRNO:
	case SECCOMP_RET_USER_NOTIF:
	case SECCOMP_RET_TRACE:
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_ALLOW:
		return action;
	default:
		return SECCOMP_RET_KILL_PROCESS;
	}
}

static bool are_valid(const struct sock_fprog *filters, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_valid(filters[i].filter, filters[i].len))
			return false;
	}
	return true;
}

static uint32_t run_all(const struct sock_fprog *filters, size_t count,
			const struct seccomp_data *data)
{
	uint32_t winner = SECCOMP_RET_ALLOW;

	/*
	 * Newest filter first, as in the kernel: of equal actions the first one counts, with its
	 * data.
	 */
	for (size_t i = count; i-- > 0;) {
		uint32_t action = run_filter(filters[i].filter, data);

		if (precedence(action) < precedence(winner))
			winner = action;
	}
	return normalize(winner);
}

int inject_seccomp_run_all(const struct sock_fprog *filters, size_t count,
			   const struct seccomp_data *data, uint32_t *action)
{
	if (!are_valid(filters, count))
		return -EINVAL;
	*action = run_all(filters, count, data);
	return 0;
}

static bool is_allowed(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

/*
 * Whether the call fails with an error. With errno 0 it would seem to succeed without being made.
 */
static bool is_error(uint32_t action)
{
	return (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO &&
	       (action & SECCOMP_RET_DATA);
}

static bool is_harmless(enum inject_need need, uint32_t action)
{
	uint32_t error = action & SECCOMP_RET_DATA;

	if (!is_error(action))
		return false;
	switch (need) {
	case INJECT_IGNORED:
	case INJECT_OR_NEXT:
		return true;
	case INJECT_OR_NEXT_IF_ENOSYS:
		return error == ENOSYS;
	case INJECT_OR_NEXT_IF_EINVAL:
		return error == EINVAL;
	default:
		return false;
	}
}

static uint32_t answer(const struct sock_fprog *filters, size_t count,
		       const struct inject_call *call)
{
	struct seccomp_data data = {.nr = (int)call->nr, .arch = OUR_ARCH};

	for (int arg = 0; arg < 6; arg++)
		data.args[arg] = call->args[arg];
	return run_all(filters, count, &data);
}

int inject_seccomp_judge(const struct sock_fprog *filters, size_t count, const char **call,
			 uint32_t *action)
{
	if (!are_valid(filters, count))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		*action = answer(filters, count, &calls[i]);
		if (is_allowed(*action)) {
			while (calls[i].need >= INJECT_OR_NEXT)
				i++;
			continue;
		}
		if (!is_harmless(calls[i].need, *action)) {
			*call = calls[i].name;
			return -EPERM;
		}
	}
	return 0;
}

static uint32_t read_mode(uint32_t tid)
{
	struct thread_status status;

	return thread_status_read(&status, (struct proc_ref){.tgid = tid}) ? FILTERED
									   : status.seccomp;
}

/* Reads filter number index, counted from the oldest. 0; -ENOENT there is none; -errno. */
static int read_program(struct sock_fprog *program, uint32_t tid, size_t index)
{
	long length = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, index, NULL);

	if (length < 0)
		return -errno;
	if (!length || length > BPF_MAXINSNS)
		return -EINVAL;
	program->filter = calloc((size_t)length, sizeof(*program->filter));
	if (!program->filter)
		return -ENOMEM;
	program->len = (unsigned short)length;
	/*
	 * The size cannot change between the two calls: the thread is stopped, and although another
	 * thread can add a filter to it (SECCOMP_FILTER_FLAG_TSYNC), the existing ones stay as they
	 * are.
	 */
	if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, index, program->filter) == length)
		return 0;
	free(program->filter);
	return -EIO;
}

static int read_programs(program_vec *programs, uint32_t tid)
{
	int err = 0;

	for (size_t i = 0; !err; i++) {
		struct sock_fprog program = {0};

		err = read_program(&program, tid, i);
		if (err)
			break;
		err = vec_push(programs, program);
		if (err)
			free(program.filter);
	}
	return err == -ENOENT ? 0 : err;
}

#if defined(__x86_64__)

/*
 * Turns a pending restart_syscall into a restart of the call itself, unless the filters are known
 * to allow restart_syscall.
 */
static void spare_restart(uint32_t tid, const struct sock_fprog *filters, size_t count)
{
	static const struct inject_call restart = {.name = "restart_syscall",
						   .nr = SYS_restart_syscall};
	struct user_regs_struct regs;
	struct iovec vec = {&regs, sizeof(regs)};

	if (count && are_valid(filters, count) && is_allowed(answer(filters, count, &restart)))
		return;
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &vec) ||
	    (int64_t)regs.rax != -ERESTART_RESTARTBLOCK || regs.orig_rax == SYS_restart_syscall)
		return;
	regs.rax = (uint64_t)-ERESTARTNOHAND;
	ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &vec);
}

#else

static void spare_restart(uint32_t tid, const struct sock_fprog *filters, size_t count)
{
}

#endif

int inject_seccomp_check(uint32_t tid, const char **call, uint32_t *action)
{
	uint32_t mode = read_mode(tid);
	program_vec programs = {0};
	int err;

	if (!mode)
		return 0;
	if (mode == STRICT) {
		*call = "mmap";
		*action = SECCOMP_RET_KILL_THREAD;
		return -EPERM;
	}
	err = read_programs(&programs, tid);
	if (!err && !programs.count)
		err = -EACCES; /* its status says that it has filters */
	if (!err)
		err = inject_seccomp_judge(programs.items, programs.count, call, action);
	else if (err == -EINVAL || err == -EMEDIUMTYPE || err == -EIO || err == -EPERM)
		err = -EACCES;
	if (err)
		spare_restart(tid, programs.items, programs.count);
	vec_for_each (program, &programs)
		free(program->filter);
	vec_free(&programs);
	return err;
}

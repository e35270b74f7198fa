/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Compares our interpreter of seccomp filters with the kernel's. The programs are random, with a
 * fixed seed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "inject/filters.h"
#include "../fake/seccomp_filters.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define SEED	  0x5eedull
#define PROGRAMS  250
#define CALLS	  8
#define JUDGED	  3000
#define LAYERS	  3
#define NO_ANSWER UINT32_MAX

/* A system call that does not exist: if it is allowed, the kernel returns ENOSYS. */
#define TRIED_NR 1000

#define TRAPPED 0x10000u /* SIGSYS with that number */
#define KILLED	0x20000u

struct shared {
	uint32_t answers[CALLS];
	int accepted[JUDGED];
	int next;
};

struct fixture {
	struct shared *shared;
	uint64_t random;
};

static volatile sig_atomic_t trapped;

static uint64_t next_random(struct fixture *fixture)
{
	uint64_t z = (fixture->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint32_t below(struct fixture *fixture, uint32_t bound)
{
	return (uint32_t)(next_random(fixture) % bound);
}

/*
 * Small numbers, single bits, numbers near the maximum, and others. Random words alone would hardly
 * ever equal an operand.
 */
static uint32_t some_word(struct fixture *fixture)
{
	switch (below(fixture, 4)) {
	case 0:
		return below(fixture, 40);
	case 1:
		return 1u << below(fixture, 32);
	case 2:
		return UINT32_MAX - below(fixture, 3);
	default:
		return (uint32_t)next_random(fixture);
	}
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	fixture->random = SEED;
	fixture->shared = mmap(NULL, sizeof(*fixture->shared), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*state = fixture;
	return fixture->shared == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	munmap(fixture->shared, sizeof(*fixture->shared));
	free(fixture);
	return 0;
}

static bool has_filters(void)
{
	/* With a null pointer, a kernel with seccomp filters returns EFAULT. */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) && errno == EFAULT;
}

static void add_random_return(struct fixture *fixture, struct filter *filter)
{
	static const uint32_t actions[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
					   SECCOMP_RET_TRAP,	     SECCOMP_RET_ERRNO,
					   SECCOMP_RET_USER_NOTIF,   SECCOMP_RET_TRACE,
					   SECCOMP_RET_ALLOW};

	/* Returns the value of A as an errno, with its 32 bits folded to 12. */
	if (below(fixture, 3)) {
		filter_add(filter, BPF_MISC | BPF_TAX, 0, 0, 0);
		filter_add(filter, BPF_ALU | BPF_RSH | BPF_K, 16, 0, 0);
		filter_add(filter, BPF_ALU | BPF_XOR | BPF_X, 0, 0, 0);
		filter_add(filter, BPF_ALU | BPF_AND | BPF_K, 0xfff, 0, 0);
		filter_add(filter, BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO, 0, 0);
		filter_add(filter, BPF_RET | BPF_A, 0, 0, 0);
	} else if (!below(fixture, 20)) {
		filter_return(filter, some_word(fixture));
	} else {
		filter_return(filter, actions[below(fixture, COUNT(actions))] |
					      (some_word(fixture) & SECCOMP_RET_DATA));
	}
}

static void add_random_step(struct fixture *fixture, struct filter *filter)
{
	static const uint8_t sums[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
				       BPF_OR,	BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG};
	uint16_t source = below(fixture, 2) ? BPF_X : BPF_K;
	uint32_t k = some_word(fixture);
	uint8_t sum;

	switch (below(fixture, 10)) {
	case 0:
	case 1:
		filter_load(filter, filter_low_word(0) + 4 * (size_t)below(fixture, 12));
		break;
	case 2:
		filter_add(filter, below(fixture, 2) ? BPF_LD | BPF_IMM : BPF_LDX | BPF_IMM, k, 0,
			   0);
		break;
	case 3:
		filter_add(filter,
			   below(fixture, 2) ? BPF_LD | BPF_W | BPF_LEN : BPF_LDX | BPF_W | BPF_LEN,
			   0, 0, 0);
		break;
	case 4:
		filter_add(filter, below(fixture, 2) ? BPF_MISC | BPF_TAX : BPF_MISC | BPF_TXA, 0,
			   0, 0);
		break;
	case 5:
		filter_add(filter, below(fixture, 2) ? BPF_ST : BPF_STX, below(fixture, 4), 0, 0);
		break;
	case 6:
		filter_add(filter, below(fixture, 2) ? BPF_LD | BPF_MEM : BPF_LDX | BPF_MEM,
			   below(fixture, 4), 0, 0);
		break;
	default:
		sum = sums[below(fixture, COUNT(sums))];
		if (source == BPF_K && (sum == BPF_LSH || sum == BPF_RSH))
			k &= 31;
		if (source == BPF_K && sum == BPF_DIV)
			k |= 1;
		filter_add(filter, BPF_ALU | sum | (sum == BPF_NEG ? BPF_K : source), k, 0, 0);
		break;
	}
}

/* The program only affects that call, so that the process which runs it can still exit. */
static void make_program(struct fixture *fixture, struct filter *filter)
{
	static const uint8_t tests[] = {BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JSET};
	uint32_t steps = below(fixture, 20);

	filter->count = 0;
	filter_load(filter, offsetof(struct seccomp_data, nr));
	filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, TRIED_NR, 1, 0);
	filter_return(filter, SECCOMP_RET_ALLOW);
	for (uint32_t word = 0; word < 4; word++)
		filter_add(filter, BPF_ST, word, 0, 0);
	for (uint32_t i = 0; i < steps; i++) {
		uint16_t source = below(fixture, 2) ? BPF_X : BPF_K;

		/* The jump skips up to two of the steps that follow, both of which exist. */
		if (!below(fixture, 4)) {
			filter_add(filter, BPF_JMP | tests[below(fixture, COUNT(tests))] | source,
				   some_word(fixture), (uint8_t)below(fixture, 3),
				   (uint8_t)below(fixture, 3));
			add_random_step(fixture, filter);
			add_random_step(fixture, filter);
		} else if (!below(fixture, 12)) {
			filter_add(filter, BPF_JMP | BPF_JA, 1, 0, 0);
			add_random_step(fixture, filter);
		} else {
			add_random_step(fixture, filter);
		}
	}
	add_random_return(fixture, filter);
}

static void on_sigsys(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	trapped = (sig_atomic_t)(TRAPPED | (uint32_t)info->si_errno);
}

static void try_calls(const struct filter *filters, size_t count, uint64_t args[CALLS][6],
		      struct shared *shared)
{
	struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	sigaction(SIGSYS, &action, NULL);
	for (size_t i = 0; i < count; i++) {
		if (filter_install(&filters[i]))
			_exit(1);
	}
	for (size_t i = 0; i < CALLS; i++) {
		uint64_t *arg = args[i];
		long result;

		trapped = 0;
		shared->answers[i] = KILLED; /* overwritten below, unless the process is killed */
		result = syscall(TRIED_NR, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
		shared->answers[i] = trapped ? (uint32_t)trapped : result ? (uint32_t)errno : 0;
	}
	_exit(0);
}

/* What a program that makes the call sees for the action. */
static uint32_t seen_of(uint32_t action)
{
	uint32_t number = action & SECCOMP_RET_DATA;

	switch (action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ERRNO:
		return number > 4095 ? 4095 : number;
	case SECCOMP_RET_TRAP:
		return TRAPPED | number;
	case SECCOMP_RET_USER_NOTIF: /* without a listener */
	case SECCOMP_RET_TRACE:
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_ALLOW:
		return ENOSYS;
	default:
		return KILLED;
	}
}

static uint32_t ask_us(const struct filter *filters, size_t count, const uint64_t args[6])
{
	struct seccomp_data data = {.nr = TRIED_NR, .arch = AUDIT_ARCH_X86_64};
	struct sock_fprog programs[LAYERS];
	uint32_t action;

	memcpy(data.args, args, sizeof(data.args));
	for (size_t i = 0; i < count; i++) {
		programs[i].len = filters[i].count;
		programs[i].filter = (struct sock_filter *)filters[i].code;
	}
	assert_int_equal(inject_seccomp_run_all(programs, count, &data, &action), 0);
	return seen_of(action);
}

static void compare(struct fixture *fixture, const struct filter *filters, size_t count)
{
	uint64_t args[CALLS][6];
	pid_t child;
	int status;

	for (size_t i = 0; i < CALLS; i++) {
		fixture->shared->answers[i] = NO_ANSWER;
		for (size_t arg = 0; arg < 6; arg++)
			args[i][arg] = (uint64_t)some_word(fixture) << 32 | some_word(fixture);
	}
	child = fork();
	assert_true(child >= 0);
	if (!child)
		try_calls(filters, count, args, fixture->shared);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_not_equal(fixture->shared->answers[0], NO_ANSWER);
	for (size_t i = 0; i < CALLS && fixture->shared->answers[i] != NO_ANSWER; i++)
		assert_int_equal(ask_us(filters, count, args[i]), fixture->shared->answers[i]);
}

static void a_program_says_to_us_what_it_says_to_the_kernel(void **state)
{
	struct filter filter;

	if (!has_filters())
		skip();
	for (int i = 0; i < PROGRAMS; i++) {
		make_program(*state, &filter);
		compare(*state, &filter, 1);
	}
}

static void of_several_programs_the_same_one_wins(void **state)
{
	struct filter filters[LAYERS];

	if (!has_filters())
		skip();
	for (int i = 0; i < PROGRAMS; i++) {
		for (int layer = 0; layer < LAYERS; layer++)
			make_program(*state, &filters[layer]);
		compare(*state, filters, LAYERS);
	}
}

/* Programs that are nearly valid. A fully random one would be refused for its first instruction. */
static void make_nearly_good(struct fixture *fixture, struct filter *filter)
{
	static const uint16_t codes[] = {
		BPF_LD | BPF_W | BPF_ABS,
		BPF_LD | BPF_H | BPF_ABS,
		BPF_LD | BPF_W | BPF_IND,
		BPF_LD | BPF_W | BPF_LEN,
		BPF_LDX | BPF_W | BPF_LEN,
		BPF_LDX | BPF_B | BPF_MSH,
		BPF_LD | BPF_MEM,
		BPF_LDX | BPF_MEM,
		BPF_ST,
		BPF_STX,
		BPF_ALU | BPF_MOD | BPF_K,
		BPF_ALU | BPF_DIV | BPF_K,
		BPF_ALU | BPF_LSH,
		BPF_ALU | BPF_RSH,
		BPF_ALU | BPF_NEG,
		BPF_ALU | BPF_XOR,
		BPF_JMP | BPF_JA,
		BPF_JMP | BPF_JEQ | BPF_K,
		BPF_JMP | BPF_JSET | BPF_X,
		BPF_RET | BPF_K,
		BPF_RET | BPF_A,
		BPF_RET | BPF_X,
		BPF_MISC | BPF_TAX,
		BPF_MISC | BPF_TXA,
	};
	uint32_t count = 1 + below(fixture, 6);

	filter->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint16_t code = codes[below(fixture, COUNT(codes))];

		if (!below(fixture, 40))
			code = (uint16_t)next_random(fixture);
		filter_add(filter, code,
			   below(fixture, 4) ? below(fixture, 70) & ~3u : some_word(fixture),
			   (uint8_t)below(fixture, 3), (uint8_t)below(fixture, 3));
	}
	if (below(fixture, 10))
		filter_return(filter, SECCOMP_RET_ALLOW);
}

/*
 * Offers the filters to the kernel, up to the first one that it accepts, since that one cannot be
 * removed.
 */
static void offer(const struct filter *filters, struct shared *shared)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	while (shared->next < JUDGED) {
		int i = shared->next++;

		shared->accepted[i] = !filter_install(&filters[i]);
		if (shared->accepted[i])
			break;
	}
	_exit(0);
}

static void what_the_kernel_refuses_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct filter *filters;
	int accepted = 0;

	if (!has_filters())
		skip();
	filters = calloc(JUDGED, sizeof(*filters));
	assert_non_null(filters);
	for (int i = 0; i < JUDGED; i++)
		make_nearly_good(fixture, &filters[i]);
	fixture->shared->next = 0;
	while (fixture->shared->next < JUDGED) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			offer(filters, fixture->shared);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
	for (int i = 0; i < JUDGED; i++) {
		struct seccomp_data data = {0};
		uint32_t action;
		int err = inject_seccomp_run(filters[i].code, filters[i].count, &data, &action);

		assert_int_equal(err, fixture->shared->accepted[i] ? 0 : -EINVAL);
		accepted += !err;
	}
	free(filters);
	/* With only refused or only accepted programs the test would prove nothing. */
	assert_in_range(accepted, JUDGED / 20, JUDGED - JUDGED / 20);
}

static void lengths_that_are_none_are_refused(void **state)
{
	struct sock_filter *code = calloc(BPF_MAXINSNS + 1, sizeof(*code));
	struct seccomp_data data = {0};
	uint32_t action = 0;

	assert_non_null(code);
	for (uint32_t i = 0; i <= BPF_MAXINSNS; i++)
		code[i] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	assert_int_equal(inject_seccomp_run(code, 0, &data, &action), -EINVAL);
	assert_int_equal(inject_seccomp_run(code, BPF_MAXINSNS + 1, &data, &action), -EINVAL);
	assert_int_equal(inject_seccomp_run(code, BPF_MAXINSNS, &data, &action), 0);
	assert_int_equal(action, SECCOMP_RET_ALLOW);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_says_to_us_what_it_says_to_the_kernel),
		cmocka_unit_test(of_several_programs_the_same_one_wins),
		cmocka_unit_test(what_the_kernel_refuses_is_refused),
		cmocka_unit_test(lengths_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

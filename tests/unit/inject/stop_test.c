/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Stops a child that waits in a system call. The child must then continue as if nothing had
 * happened.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child_fixture.h"
#include "fbt_inject.h"
#include "inject/stop.h"

#if defined(__x86_64__)

#define PATIENCE_S 60
#define NONCE	   0x12345678u
#define MS	   1000000ll

/*
 * The code that a diverted thread runs here: it stores the token and returns into the system call.
 * It leaves the flags unchanged.
 */
extern uint8_t test_stub[], test_stub_end[];
uint64_t test_token;

__asm__(".text\n"
	".balign 16\n"
	".globl test_stub, test_stub_end\n"
	"test_stub:\n"
	"	jmp 1f\n"
	"	jmp 2f\n"
	"	.balign 8\n"
	"	.quad 0x4a4e4954424d5246\n"
	"	.long 1, test_stub_end - test_stub\n"
	"	.fill 8, 8, 0\n"
	"1:	lea -2(%rcx), %rcx\n"
	"2:	mov %r11, test_token(%rip)\n"
	"	jmp *%rcx\n"
	"test_stub_end:\n");

enum call { SLEEP, EPOLL, READ, BUSY };

/* The outcome of the child's call. */
struct result {
	long value;
	int err;
	uint32_t handled;
	uint64_t token;
	int64_t ns;
};

struct fixture {
	pid_t child;
	int input[2];  /* the child's call waits for it */
	int output[2]; /* the outcome */
	int epoll;
	size_t groups; /* that the child is in */
	struct inject_thread thread;
	struct inject_stop *stop;
	struct inject_hook hook;
	unsigned int reached; /* bit per point */
	int last;
};

static volatile sig_atomic_t handled;

static void handle(int signo)
{
	(void)signo;
	handled++;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct epoll_event event = {.events = EPOLLIN};

	if (!fixture || pipe(fixture->input) || pipe(fixture->output))
		return -1;
	fixture->epoll = epoll_create1(0);
	if (epoll_ctl(fixture->epoll, EPOLL_CTL_ADD, fixture->input[0], &event))
		return -1;
	fixture->last = -1;
	alarm(PATIENCE_S);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	alarm(0);
	if (fixture->stop)
		inject_stop__let_go(fixture->stop);
	inject_stop__free(fixture->stop);
	if (fixture->child) {
		kill(fixture->child, SIGKILL);
		waitpid(fixture->child, NULL, 0);
	}
	for (int i = 0; i < 2; i++) {
		close(fixture->input[i]);
		close(fixture->output[i]);
	}
	close(fixture->epoll);
	free(fixture);
	return 0;
}

/* Time enough to divert it twice while it sleeps. */
#define SLEEP_S 3

static long make_call(const struct fixture *fixture, enum call call)
{
	struct timespec sleep = {.tv_sec = SLEEP_S};
	struct epoll_event event;
	char byte;

	switch (call) {
	case SLEEP:
		return syscall(SYS_nanosleep, &sleep, NULL);
	case EPOLL:
		return syscall(SYS_epoll_wait, fixture->epoll, &event, 1, -1);
	case READ:
		return syscall(SYS_read, fixture->input[0], &byte, 1);
	case BUSY:
		for (;;)
			continue;
	}
	return -1;
}

/* Their list in /proc has 11 characters for each. */
static void join_groups(size_t count)
{
	gid_t *groups = calloc(count, sizeof(*groups));

	for (size_t i = 0; groups && i < count; i++)
		groups[i] = (gid_t)(4000000000u + i);
	if (!groups || setgroups(count, groups))
		_exit(1);
	free(groups);
}

/* Makes one call and reports its outcome, then waits to be killed. */
static _Noreturn void play(const struct fixture *fixture, enum call call, int flags)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
	struct result result = {0};
	sigset_t blocked;

	if (fixture->groups)
		join_groups(fixture->groups);
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	result.ns = -now_ns();
	result.value = make_call(fixture, call);
	result.err = result.value < 0 ? errno : 0;
	result.ns += now_ns();
	result.handled = (uint32_t)handled;
	result.token = test_token;
	while (write(fixture->output[1], &result, sizeof(result)) > 0)
		pause();
	_exit(1);
}

/* Waits until the child is in that call. */
static void look(struct fixture *fixture, uint64_t nr)
{
	char path[64], line[256];
	int err = -EAGAIN;

	snprintf(path, sizeof(path), "/proc/%d/syscall", fixture->child);
	fixture->thread.tid = (uint32_t)fixture->child;
	while (err || fixture->thread.nr != nr) {
		FILE *file = fopen(path, "re");

		assert_non_null(file);
		if (fgets(line, sizeof(line), file))
			err = inject_thread_parse(&fixture->thread, line);
		fclose(file);
		usleep(1000);
	}
}

static void start(struct fixture *fixture, enum call call, int flags)
{
	static const uint64_t numbers[] = {SYS_nanosleep, SYS_epoll_wait, SYS_read};

	fixture->child = child_fork();
	assert_true(fixture->child >= 0);
	if (!fixture->child)
		play(fixture, call, flags);
	if (call != BUSY)
		look(fixture, numbers[call]);
}

static void note(void *ctx, enum inject_point point)
{
	struct fixture *fixture = ctx;

	assert_true((int)point > fixture->last);
	fixture->last = (int)point;
	fixture->reached |= 1u << point;
}

static int take(struct fixture *fixture)
{
	int err;

	fixture->last = -1;
	fixture->hook = (struct inject_hook){note, fixture};
	err = inject_stop__take(&fixture->stop, &fixture->thread, &fixture->hook);
	if (err)
		assert_null(fixture->stop);
	return err;
}

static int divert(struct fixture *fixture)
{
	return inject_stop__divert(fixture->stop, (uint64_t)(uintptr_t)test_stub, test_stub, NONCE);
}

static void let_go(struct fixture *fixture)
{
	inject_stop__let_go(fixture->stop);
	inject_stop__free(fixture->stop);
	fixture->stop = NULL;
}

/* Tries again while a signal or the machine's load prevents it. */
static void take_at_last(struct fixture *fixture)
{
	uint64_t nr = fixture->thread.nr;
	int err = take(fixture);

	if (err == -EPERM)
		skip();
	while (err == -EAGAIN) {
		look(fixture, nr);
		err = take(fixture);
	}
	assert_int_equal(err, 0);
}

static void let_it_end(struct fixture *fixture)
{
	assert_int_equal(write(fixture->input[1], "x", 1), 1);
}

static struct result result_of(struct fixture *fixture)
{
	struct result result;

	assert_int_equal(read(fixture->output[0], &result, sizeof(result)), sizeof(result));
	return result;
}

static bool is_traced(const struct fixture *fixture)
{
	unsigned int tracer = 1;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", fixture->child);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "TracerPid: %u", &tracer) != 1)
		continue;
	fclose(file);
	return tracer;
}

static char state_of(const struct fixture *fixture)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", fixture->child);
	file = fopen(path, "re");
	if (!file)
		return 'X';
	assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
	fclose(file);
	return state;
}

static void an_epoll_wait_does_not_see_that_it_was_stopped(void **state)
{
	struct fixture *fixture = *state;
	struct result result;

	start(fixture, EPOLL, 0);
	for (int i = 0; i < 20; i++) {
		look(fixture, SYS_epoll_wait);
		take_at_last(fixture);
		let_go(fixture);
	}
	let_it_end(fixture);
	result = result_of(fixture);
	assert_int_equal(result.value, 1);
	assert_int_equal(result.token, 0);
	assert_false(is_traced(fixture));
}

static void a_diverted_epoll_wait_goes_on_through_the_stub(void **state)
{
	struct fixture *fixture = *state;
	struct result result;

	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	assert_int_equal(divert(fixture), 0);
	inject_stop__let_go(fixture->stop);
	assert_true(inject_stop__ns(fixture->stop) > 0);
	let_go(fixture);
	let_it_end(fixture);
	result = result_of(fixture);
	assert_int_equal(result.value, 1);
	assert_int_equal(result.token, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
}

static void a_diverted_read_has_its_class(void **state)
{
	struct fixture *fixture = *state;
	struct result result;

	start(fixture, READ, 0);
	take_at_last(fixture);
	assert_int_equal(divert(fixture), 0);
	let_go(fixture);
	let_it_end(fixture);
	result = result_of(fixture);
	assert_int_equal(result.value, 1);
	assert_int_equal(result.token, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_SA));
}

/* The second time, the thread waits in restart_syscall. */
static void a_diverted_sleep_keeps_its_time(void **state)
{
	struct fixture *fixture = *state;
	struct result result;

	start(fixture, SLEEP, 0);
	for (int i = 0; i < 2; i++) {
		take_at_last(fixture);
		assert_int_equal(divert(fixture), 0);
		let_go(fixture);
		if (!i)
			look(fixture, SYS_restart_syscall);
	}
	result = result_of(fixture);
	assert_int_equal(result.value, 0);
	assert_true(result.ns >= SLEEP_S * 1000 * MS);
	assert_int_equal(result.token, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_BLOCK));
}

static void points_come_in_their_order(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	assert_int_equal(divert(fixture), 0);
	let_go(fixture);
	assert_int_equal(fixture->last, INJECT_AT_DETACHED);
	for (int point = INJECT_AT_SEIZED; point <= INJECT_AT_DETACHED; point++) {
		if (point != INJECT_AT_FILTERS_READ)
			assert_true(fixture->reached & 1u << point);
	}
}

static void a_signal_that_waits_is_handled_first(void **state)
{
	struct fixture *fixture = *state;
	struct result result;

	start(fixture, EPOLL, SA_RESTART);
	take_at_last(fixture);
	kill(fixture->child, SIGUSR1);
	assert_int_equal(divert(fixture), -EAGAIN);
	assert_false(fixture->reached & 1u << INJECT_AT_DIVERTED);
	let_go(fixture);
	result = result_of(fixture);
	assert_int_equal(result.err, EINTR);
	assert_int_equal(result.handled, 1);
	assert_int_equal(result.token, 0);
}

static void a_blocked_signal_is_not_in_the_way(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	kill(fixture->child, SIGUSR2);
	assert_int_equal(divert(fixture), 0);
	let_go(fixture);
	let_it_end(fixture);
	assert_int_equal(result_of(fixture).value, 1);
}

static void check_with_groups(struct fixture *fixture, size_t groups)
{
	if (geteuid())
		skip();
	fixture->groups = groups;
	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	kill(fixture->child, SIGUSR1);
	assert_int_equal(divert(fixture), -EAGAIN);
	let_go(fixture);
	assert_int_equal(result_of(fixture).handled, 1);
	kill(fixture->child, SIGKILL);
	waitpid(fixture->child, NULL, 0);
	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	assert_int_equal(divert(fixture), 0);
	let_go(fixture);
	let_it_end(fixture);
	assert_int_equal(result_of(fixture).value, 1);
}

static void signals_are_seen_behind_a_thousand_groups(void **state)
{
	check_with_groups(*state, 1000);
}

static void signals_are_seen_behind_the_most_groups_that_there_can_be(void **state)
{
	check_with_groups(*state, 65536);
}

/* The handler interrupts the stub, which therefore learns of it. */
static void a_signal_after_the_last_check_ends_the_call(void **state)
{
	struct fixture *fixture = *state;
	struct result result;

	start(fixture, EPOLL, SA_RESTART);
	take_at_last(fixture);
	assert_int_equal(divert(fixture), 0);
	kill(fixture->child, SIGUSR1);
	let_go(fixture);
	result = result_of(fixture);
	assert_int_equal(result.err, EINTR);
	assert_int_equal(result.handled, 1);
	assert_int_equal(result.token, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
}

static void a_signal_after_the_last_check_restarts_what_it_would(void **state)
{
	struct fixture *fixture = *state;
	struct result result;

	start(fixture, READ, (int)SA_RESTART);
	take_at_last(fixture);
	assert_int_equal(divert(fixture), 0);
	kill(fixture->child, SIGUSR1);
	let_go(fixture);
	let_it_end(fixture);
	result = result_of(fixture);
	assert_int_equal(result.value, 1);
	assert_int_equal(result.handled, 1);
	assert_int_equal(result.token, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_SA));
}

static void kill_there(void *ctx, enum inject_point point)
{
	struct fixture *fixture = ctx;

	if (point == INJECT_AT_DIVERTED)
		kill(fixture->child, SIGUSR1);
}

static void a_signal_between_the_checks_takes_it_back(void **state)
{
	struct fixture *fixture = *state;
	struct inject_hook hook = {kill_there, fixture};
	struct result result;

	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	let_go(fixture);
	look(fixture, SYS_epoll_wait);
	while (inject_stop__take(&fixture->stop, &fixture->thread, &hook) == -EAGAIN)
		continue;
	assert_int_equal(divert(fixture), -EAGAIN);
	let_go(fixture);
	result = result_of(fixture);
	assert_int_equal(result.err, EINTR);
	assert_int_equal(result.token, 0);
}

static void stop_by_signal(void *ctx, enum inject_point point)
{
	struct fixture *fixture = ctx;

	if (point != INJECT_AT_SEIZED)
		return;
	kill(fixture->child, SIGUSR1);
	while (state_of(fixture) != 't')
		usleep(1000);
}

static void a_signal_that_stops_it_first_is_handed_on(void **state)
{
	struct fixture *fixture = *state;
	struct inject_hook hook = {stop_by_signal, fixture};
	struct result result;
	int err;

	start(fixture, EPOLL, 0);
	err = inject_stop__take(&fixture->stop, &fixture->thread, &hook);
	if (err == -EPERM)
		skip();
	assert_int_equal(err, -EAGAIN);
	result = result_of(fixture);
	assert_int_equal(result.err, EINTR);
	assert_int_equal(result.handled, 1);
}

static void other_bytes_are_no_stub(void **state)
{
	struct fixture *fixture = *state;
	uint8_t bytes[512];
	size_t size = (size_t)(test_stub_end - test_stub);

	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	assert_true(size <= sizeof(bytes));
	memcpy(bytes, test_stub, size);
	bytes[size - 1] ^= 1;
	assert_int_equal(
		inject_stop__divert(fixture->stop, (uint64_t)(uintptr_t)test_stub, bytes, NONCE),
		-EAGAIN);
	assert_int_equal(inject_stop__divert(fixture->stop, 0x1000, test_stub, NONCE), -EAGAIN);
	let_go(fixture);
	let_it_end(fixture);
	assert_int_equal(result_of(fixture).value, 1);
}

static void a_thread_that_waits_elsewhere_is_let_be(void **state)
{
	struct fixture *fixture = *state;
	struct inject_thread seen;

	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	let_go(fixture);
	look(fixture, SYS_epoll_wait);
	seen = fixture->thread;
	fixture->thread.sp += 8;
	assert_int_equal(take(fixture), -EAGAIN);
	fixture->thread = seen;
	fixture->thread.pc += 1;
	assert_int_equal(take(fixture), -EAGAIN);
	fixture->thread = seen;
	fixture->thread.nr = SYS_poll;
	assert_int_equal(take(fixture), -EAGAIN);
	fixture->thread = seen;
	fixture->thread.args[0]++;
	assert_int_equal(take(fixture), -EAGAIN);
	let_it_end(fixture);
	assert_int_equal(result_of(fixture).value, 1);
}

static void a_thread_that_runs_is_let_be(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, BUSY, 0);
	fixture->thread.tid = (uint32_t)fixture->child;
	fixture->thread.nr = SYS_epoll_wait;
	if (take(fixture) == -EPERM)
		skip();
	assert_null(fixture->stop);
	assert_int_equal(state_of(fixture), 'R');
}

static void a_stopped_process_stays_stopped(void **state)
{
	struct fixture *fixture = *state;
	int status, err;

	start(fixture, READ, 0);
	kill(fixture->child, SIGSTOP);
	assert_int_equal(waitpid(fixture->child, &status, WUNTRACED), fixture->child);
	err = take(fixture);
	if (err == -EPERM)
		skip();
	assert_int_equal(err, -EAGAIN);
	/* The process is woken for the trace stop and must then stop again. */
	while (state_of(fixture) != 'T')
		usleep(1000);
	assert_false(is_traced(fixture));
	kill(fixture->child, SIGCONT);
	let_it_end(fixture);
	assert_int_equal(result_of(fixture).value, 1);
}

static void one_that_dies_while_it_is_stopped_is_not_kept(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	kill(fixture->child, SIGKILL);
	while (state_of(fixture) != 'Z')
		usleep(1000);
	assert_int_equal(divert(fixture), -EAGAIN);
	let_go(fixture);
	assert_int_equal(state_of(fixture), 'X');
	fixture->child = 0;
}

static void what_another_traces_is_not_taken(void **state)
{
	struct fixture *fixture = *state;
	pid_t tracer;
	char byte;

	start(fixture, EPOLL, 0);
	tracer = child_fork();
	if (!tracer) {
		byte = ptrace(PTRACE_SEIZE, fixture->child, 0, 0) ? 'n' : 'y';
		while (write(fixture->output[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fixture->output[0], &byte, 1), 1);
	if (byte == 'y')
		assert_int_equal(take(fixture), -EPERM);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
}

static void one_that_is_not_there_is_esrch(void **state)
{
	struct fixture *fixture = *state;

	fixture->thread.tid = 0x7fffffff;
	assert_int_equal(take(fixture), -ESRCH);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

static bool may_be_real_time(void)
{
	struct sched_param first = {.sched_priority = 1}, none = {0};

	return !sched_setscheduler(0, SCHED_FIFO, &first) &&
	       !sched_setscheduler(0, SCHED_OTHER, &none);
}

/* Only for as long as somebody waits for us, whether or not the thread can be taken. */
static void we_are_urgent_while_it_is_stopped(void **state)
{
	struct fixture *fixture = *state;
	int nice_before = getpriority(PRIO_PROCESS, 0);

	if (!may_be_real_time())
		skip();
	start(fixture, EPOLL, 0);
	take_at_last(fixture);
	assert_int_equal(sched_getscheduler(0), SCHED_FIFO);
	let_go(fixture);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice_before);
	fixture->thread.sp++;
	assert_int_equal(take(fixture), -EAGAIN);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

/* Keeps a CPU for itself for 50 ms, and says so when it begins. */
static _Noreturn void keep_cpu(const struct fixture *fixture, const cpu_set_t *one)
{
	struct sched_param high = {.sched_priority = 50};
	int64_t until_ns;

	if (sched_setaffinity(0, sizeof(*one), one) || sched_setscheduler(0, SCHED_FIFO, &high))
		_exit(1);
	until_ns = now_ns() + 50 * MS;
	if (write(fixture->output[1], "k", 1) != 1)
		_exit(1);
	while (now_ns() < until_ns)
		continue;
	_exit(0);
}

/* A thread that waits for a CPU is not stopped yet. */
static void a_wait_for_a_cpu_is_told_apart(void **state)
{
	struct fixture *fixture = *state;
	uint64_t waited_ns = 0;
	cpu_set_t all, one;

	if (!may_be_real_time() || sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		skip();
	CPU_ZERO(&one);
	for (int cpu = 0; !CPU_COUNT(&one); cpu++) {
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	}
	start(fixture, EPOLL, 0);
	assert_int_equal(sched_setaffinity(fixture->child, sizeof(one), &one), 0);
	/* We may be late ourselves. */
	for (int i = 0; i < 100 && waited_ns < 5 * MS; i++) {
		int64_t begin_ns, all_ns;
		char byte;
		pid_t keeper;

		look(fixture, SYS_epoll_wait);
		keeper = child_fork();
		if (!keeper)
			keep_cpu(fixture, &one);
		assert_int_equal(read(fixture->output[0], &byte, 1), 1);
		begin_ns = now_ns();
		take_at_last(fixture);
		inject_stop__let_go(fixture->stop);
		all_ns = now_ns() - begin_ns;
		waited_ns = inject_stop__waited_ns(fixture->stop);
		assert_true(inject_stop__ns(fixture->stop) > 0);
		assert_true((int64_t)(inject_stop__ns(fixture->stop) + waited_ns) <= all_ns);
		let_go(fixture);
		waitpid(keeper, NULL, 0);
	}
	assert_true(waited_ns >= 5 * MS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_epoll_wait_does_not_see_that_it_was_stopped),
		TEST(a_diverted_epoll_wait_goes_on_through_the_stub),
		TEST(a_diverted_read_has_its_class),
		TEST(a_diverted_sleep_keeps_its_time),
		TEST(points_come_in_their_order),
		TEST(a_signal_that_waits_is_handled_first),
		TEST(a_blocked_signal_is_not_in_the_way),
		TEST(signals_are_seen_behind_a_thousand_groups),
		TEST(signals_are_seen_behind_the_most_groups_that_there_can_be),
		TEST(a_signal_after_the_last_check_ends_the_call),
		TEST(a_signal_after_the_last_check_restarts_what_it_would),
		TEST(a_signal_between_the_checks_takes_it_back),
		TEST(a_signal_that_stops_it_first_is_handed_on),
		TEST(other_bytes_are_no_stub),
		TEST(a_thread_that_waits_elsewhere_is_let_be),
		TEST(a_thread_that_runs_is_let_be),
		TEST(a_stopped_process_stays_stopped),
		TEST(one_that_dies_while_it_is_stopped_is_not_kept),
		TEST(what_another_traces_is_not_taken),
		TEST(one_that_is_not_there_is_esrch),
		TEST(we_are_urgent_while_it_is_stopped),
		TEST(a_wait_for_a_cpu_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif

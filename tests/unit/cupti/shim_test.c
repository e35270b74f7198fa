/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "shim_fixture.h"

/*
 * The shim in an engine that runs on the doubles of CUDA and CUPTI. The double of CUPTI aborts the
 * engine if the shim breaks a rule of CUPTI, so these tests also check that the engine lives until
 * SIGTERM.
 */

#define SCRIPT "k20 K20 x10 l20 v10 h30 d20 b10 q10 p10 m10 g8 G6 s0 y0 e0 c50 k20 j20"
#define VARS   16

struct fixture {
	pid_t engine;
	struct peer peer;
	const char *script;
	char log[64];	/* file in which the double logs CUPTI's calls */
	char thief[64]; /* while this file exists, another profiler records */
	char text[1 << 20];
};

static struct fixture fixture;

static const char *build(void)
{
	const char *path = getenv("FBT_BUILD");

	return path ? path : "build/x86_64-gcc";
}

/* Runs the engine. variables are added to its environment; NULL ends them. */
static void run_engine(const char *cupti, const char *const *variables)
{
	char engine[600];
	char text[4][700];
	char *argv[] = {engine,		"--steps", "0", "--script", (char *)fixture.script,
			"--fork-every", "40",	   NULL};
	char *envp[VARS] = {text[0], text[1], text[2], text[3]};
	int count = 4;

	snprintf(engine, sizeof(engine), "%s/tests/gpu_engine", build());
	snprintf(text[0], sizeof(text[0]), "CUDA_INJECTION64_PATH=%s/libferrum_cupti.so", build());
	snprintf(text[1], sizeof(text[1]), "FERRUM_CUPTI_LIBRARY=%s/tests/%s", build(), cupti);
	snprintf(text[2], sizeof(text[2]), "LD_LIBRARY_PATH=%s/tests", build());
	snprintf(text[3], sizeof(text[3]), "FAKE_CUPTI_LOG=%s", fixture.log);
	while (variables && *variables)
		envp[count++] = (char *)*variables++;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execve(engine, argv, envp);
	_exit(127);
}

static void start(const char *cupti, const char *const *variables)
{
	fixture.engine = fork();
	if (fixture.engine == 0)
		run_engine(cupti, variables);
	assert_true(fixture.engine > 0);
	for (int i = 0; i < 10000 && !peer_open(&fixture.peer, fixture.engine); i++)
		peer_sleep_ms(1);
	assert_non_null(fixture.peer.shared);
}

/* Ends the engine by SIGTERM, and checks that nothing else has ended it. */
static void stop(void)
{
	int status = 0;

	kill(fixture.engine, SIGTERM);
	assert_int_equal(waitpid(fixture.engine, &status, 0), fixture.engine);
	fixture.engine = 0;
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	snprintf(fixture.log, sizeof(fixture.log), "/tmp/cupti_shim_test.%d.log", (int)getpid());
	snprintf(fixture.thief, sizeof(fixture.thief), "/tmp/cupti_shim_test.%d.thief",
		 (int)getpid());
	fixture.script = SCRIPT;
	unlink(fixture.log);
	unlink(fixture.thief);
	return 0;
}

static int teardown(void **state)
{
	if (fixture.engine > 0) {
		kill(fixture.engine, SIGKILL);
		waitpid(fixture.engine, NULL, 0);
	}
	peer_close(&fixture.peer);
	unlink(fixture.log);
	unlink(fixture.thief);
	return 0;
}

static const char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t length = file ? fread(fixture.text, 1, sizeof(fixture.text) - 1, file) : 0;

	fixture.text[length] = '\0';
	if (file)
		fclose(file);
	return fixture.text;
}

/* Whether the engine has called a CUPTI function of that name. */
static bool was_called(const char *call)
{
	return strstr(read_file(fixture.log), call) != NULL;
}

static uint32_t count_calls(const char *call)
{
	uint32_t count = 0;

	for (const char *at = read_file(fixture.log); (at = strstr(at, call)); at++)
		count++;
	return count;
}

static void arm(uint32_t wish)
{
	fixture.peer.shared->tail = fixture.peer.shared->head;
	peer_wish(&fixture.peer, wish);
	assert_true(peer_await(&fixture.peer, wish));
}

/* Sends a beat, as a living tracer does, and waits 1 ms. */
static void beat(void)
{
	__atomic_fetch_add(&fixture.peer.shared->beat, 1, __ATOMIC_RELEASE);
	peer_sleep_ms(1);
}

/* Reads until that many kernel records have come. */
static void await_kernels(uint64_t count)
{
	for (int i = 0; i < 100000 && fixture.peer.works[FBT_GPU_KERNEL] < count; i++) {
		assert_true(peer_read(&fixture.peer));
		beat();
	}
	assert_true(fixture.peer.works[FBT_GPU_KERNEL] >= count);
}

static void disarm(uint32_t wish)
{
	peer_wish(&fixture.peer, wish);
	assert_true(peer_await(&fixture.peer, wish));
	assert_int_equal(fixture.peer.shared->phase, FBT_GPU_DORMANT);
}

static void check_window(uint32_t method)
{
	const struct peer *peer = &fixture.peer;

	assert_int_equal(peer->state.status, FBT_GPU_ENDED);
	assert_int_equal(peer->flush.last, 1);
	assert_int_equal(peer->flush.ring_lost, 0);
	assert_int_equal(peer->flush.no_buffer, 0);
	assert_int_equal(peer->flush.unknown, 0);
	assert_int_equal(peer->flush.records, peer->counts[FBT_EVENT_GPU_WORK] +
						      peer->counts[FBT_EVENT_GPU_API] +
						      peer->counts[FBT_EVENT_GPU_SYNC] +
						      peer->counts[FBT_EVENT_GPU_OVERHEAD]);
	for (int i = 0; i < FBT_GPU_WORK_KIND_COUNT; i++)
		assert_true(peer->works[i] > 0);
	for (int i = FBT_GPU_API_LAUNCH; i <= FBT_GPU_API_SYNC; i++)
		assert_true(peer->apis[i] > 0);
	assert_int_equal(peer->apis[FBT_GPU_API_OTHER], 0);
	assert_int_equal(peer->unnamed, 0);
	assert_int_equal(peer->before_clock, 0);
	assert_int_equal(peer->clock.method, method);
	assert_int_equal(peer->counts[FBT_EVENT_GPU_DEVICE], 2);
}

/* Collects in two windows, with the given library. Checks its version and the clock's method. */
static void collect_twice(const char *cupti, const char *const *variables, uint32_t version,
			  uint32_t method)
{
	struct peer *peer = &fixture.peer;

	start(cupti, variables);
	for (uint32_t window = 0; window < 2; window++) {
		struct fbt_gpu_ring *shared = peer->shared;
		const uint8_t *bytes = peer->bytes;

		*peer = (struct peer){.shared = shared, .bytes = bytes};
		arm(2 * window + 1);
		assert_int_equal(peer->state.status, FBT_GPU_ARMED);
		assert_string_equal(peer->detail, "");
		assert_int_equal(peer->state.cupti_version, version);
		assert_int_equal(peer->state.driver_version, 13000);
		assert_int_equal(peer->state.shim_version, FBT_GPU_VERSION);
		assert_int_equal(peer->state.clock_method, method);
		assert_true(peer->state.arm_ns > 0);
		assert_int_equal(peer->shared->phase, FBT_GPU_WORKING);
		await_kernels(500);
		disarm(2 * window + 2);
		check_window(method);
	}
	assert_false(was_called("cuptiFinalize"));
	assert_true(was_called("cuptiActivitySetAttribute 5 1 = 0"));
	assert_true(was_called("cuptiActivitySetAttribute 5 0 = 0"));
	assert_false(was_called("cuptiActivitySetAttribute 9 1"));
	assert_true(was_called("cuptiSetThreadIdType 0 = 0"));
	stop();
}

static void test_cupti_13(void **state)
{
	collect_twice("libcupti.so.13", NULL, 130001, FBT_GPU_CLOCK_REALTIME);
	assert_true(was_called("cuptiSubscribe_v2 ferrum-bpftrace"));
}

static void test_cupti_13_1(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_VERSION=130100", NULL};

	collect_twice("libcupti.so.13", variables, 130100, FBT_GPU_CLOCK_CALLBACK);
}

/* cuptiSubscribe_v2 would require newer calls, so the shim uses the older one. */
static void test_cupti_13_2(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_VERSION=130200", NULL};

	collect_twice("libcupti.so.13", variables, 130200, FBT_GPU_CLOCK_CALLBACK);
	assert_true(was_called("cuptiSubscribe = 0"));
	assert_false(was_called("cuptiSubscribe_v2"));
}

static void test_cupti_12(void **state)
{
	collect_twice("libcupti.so.12", NULL, 26, FBT_GPU_CLOCK_REALTIME);
}

static void test_cupti_11_attached_early(void **state)
{
	static const char *const variables[] = {"FERRUM_CUPTI_EARLY=1", NULL};

	collect_twice("libcupti.so.11.8", variables, 18, FBT_GPU_CLOCK_CALLBACK);
	assert_false(was_called("cuptiUnsubscribe"));
}

/*
 * Buffers are late and out of order, some records have no times or are dropped, and the clock
 * settles late.
 */
static void test_at_its_worst(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_LATE=50",
						"FAKE_CUPTI_SKIP=30",
						"FAKE_CUPTI_ZERO=10",
						"FAKE_CUPTI_DROP=20",
						"FAKE_CUPTI_CLOCK_SETTLES=2000",
						NULL};

	collect_twice("libcupti.so.13", variables, 130001, FBT_GPU_CLOCK_REALTIME);
	assert_true(fixture.peer.flush.cupti_dropped > 0);
}

/* Arms a shim that refuses, and checks that no state of CUPTI was changed. */
static void assert_refused(enum fbt_gpu_status status, const char *detail)
{
	for (uint32_t wish = 1; wish <= 3; wish += 2) {
		arm(wish);
		assert_int_equal(fixture.peer.state.status, status);
		assert_non_null(strstr(fixture.peer.detail, detail));
		assert_int_equal(fixture.peer.shared->phase, FBT_GPU_DORMANT);
	}
	assert_false(was_called("cuptiActivitySetAttribute"));
	assert_false(was_called("cuptiActivityRegisterCallbacks"));
	assert_false(was_called("cuptiActivityEnable"));
	stop();
}

static void test_attached_too_late(void **state)
{
	start("libcupti.so.11.8", NULL);
	assert_refused(FBT_GPU_OLD_CUPTI, "FERRUM_CUPTI_EARLY=1");
	assert_false(was_called("cuptiSubscribe"));
}

static void test_too_old(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_VERSION=17", "FERRUM_CUPTI_EARLY=1",
						NULL};

	start("libcupti.so.11.8", variables);
	assert_refused(FBT_GPU_OLD_CUPTI, "11.8 or newer");
	assert_false(was_called("cuptiSubscribe"));
}

/* Before Hopper, with a driver before 580, CUPTI may hang cooperative launches under MPS. */
static void test_mps(void **state)
{
	static const char *const variables[] = {"FAKE_CUDA_MPS=8", "FAKE_CUDA_VERSION=12080", NULL};

	start("libcupti.so.12", variables);
	assert_refused(FBT_GPU_FAILED, "MPS");
	assert_false(was_called("cuptiSubscribe"));
}

static void collect_under_mps(const char *major, const char *driver)
{
	const char *const variables[] = {major, driver, NULL};

	start("libcupti.so.12", variables);
	arm(1);
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ARMED);
	stop();
}

static void test_mps_with_hopper(void **state)
{
	collect_under_mps("FAKE_CUDA_MPS=9", "FAKE_CUDA_VERSION=12080");
}

static void test_mps_with_driver_580(void **state)
{
	collect_under_mps("FAKE_CUDA_MPS=8", "FAKE_CUDA_VERSION=13000");
}

/* 13.0 U1 mends what may block or crash an engine. */
static void test_13_0(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_VERSION=130000", NULL};

	start("libcupti.so.13", variables);
	assert_refused(FBT_GPU_OLD_CUPTI, "FERRUM_CUPTI_ANY_VERSION=1");
	assert_false(was_called("cuptiSubscribe"));
}

static void test_13_0_all_the_same(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_VERSION=130000",
						"FERRUM_CUPTI_ANY_VERSION=1", NULL};

	collect_twice("libcupti.so.13", variables, 130000, FBT_GPU_CLOCK_REALTIME);
}

static void test_busy(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_HOLDER=Nsight Systems", NULL};

	start("libcupti.so.13", variables);
	assert_refused(FBT_GPU_BUSY, "held by Nsight Systems");
}

/* From 13.2 on, the older call subscribes, but only the newer one names the current subscriber. */
static void test_busy_13_2(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_HOLDER=Nsight Systems",
						"FAKE_CUPTI_VERSION=130200", NULL};

	start("libcupti.so.13", variables);
	assert_refused(FBT_GPU_BUSY, "held by Nsight Systems");
}

static void test_no_driver(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_NO_DRIVER=1", "FAKE_CUDA_NO_DEVICE=1",
						NULL};

	start("libcupti.so.13", variables);
	assert_refused(FBT_GPU_NO_DRIVER, "999");
}

/* CUDA works, so the driver is there. */
static void test_a_failure_that_passes(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_FAIL_FIRST=1", NULL};

	start("libcupti.so.13", variables);
	arm(1);
	assert_int_equal(fixture.peer.state.status, FBT_GPU_FAILED);
	assert_non_null(strstr(fixture.peer.detail, "999"));
	arm(3);
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ARMED);
	stop();
}

static void test_no_library(void **state)
{
	start("libcupti.so.99", NULL);
	assert_refused(FBT_GPU_NO_CUPTI, "FERRUM_CUPTI_LIBRARY: ");
	assert_string_equal(fixture.peer.path, "");
}

/* Awaits the shim's next pulse. tests/run.sh limits the time. */
static void await_turn(void)
{
	uint32_t pulse = fixture.peer.shared->pulse;

	while (fixture.peer.shared->pulse == pulse) {
		__atomic_fetch_add(&fixture.peer.shared->beat, 1, __ATOMIC_RELEASE);
		assert_true(peer_read(&fixture.peer));
		peer_sleep_ms(1);
	}
}

/* A flush promises that all records up to its time have come. */
struct promise {
	uint64_t time_ns; /* of the latest flush */
	uint32_t records;
	uint32_t broken; /* records that came after a flush had promised them */
};

static void hold_to_it(void *ctx, const struct fbt_header *frame)
{
	const struct fbt_gpu_work *work = (const void *)frame;
	const struct fbt_gpu_api *api = (const void *)frame;
	struct promise *promise = ctx;

	switch (frame->type) {
	case FBT_EVENT_GPU_FLUSH:
		promise->time_ns = ((const struct fbt_gpu_flush *)frame)->time_ns;
		break;
	case FBT_EVENT_GPU_WORK:
		promise->records++;
		promise->broken += work->end_ns && work->end_ns <= promise->time_ns;
		break;
	case FBT_EVENT_GPU_API:
		promise->records++;
		promise->broken += api->end_ns <= promise->time_ns;
		break;
	default:
		break;
	}
}

/*
 * A buffer that CUPTI holds keeps back the flush time of its records. This includes buffers that
 * come long after their flush, and the buffer that CUPTI keeps while its work runs. Times are on
 * CLOCK_MONOTONIC. A call ends just before its buffer is requested, unless its thread loses the CPU
 * in between. The double logs such records, and only they may break the promise.
 */
static void test_late_buffers_hold_back_the_time_of_a_flush(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_VERSION=130100", "FAKE_CUPTI_LATE=100",
						"FAKE_CUPTI_LATE_MS=150", NULL};
	struct promise promise = {0};

	start("libcupti.so.13", variables);
	arm(1);
	fixture.peer.on_frame = hold_to_it;
	fixture.peer.ctx = &promise;
	for (int turn = 0; turn < 6 || promise.records < 5000; turn++)
		await_turn();
	disarm(2);
	assert_in_range(promise.broken, 0, count_calls("Stalled"));
	stop();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void await_busy(void)
{
	for (int i = 0; i < 20000 && fixture.peer.state.status != FBT_GPU_BUSY; i++) {
		assert_true(peer_read(&fixture.peer));
		beat();
	}
	assert_int_equal(fixture.peer.state.status, FBT_GPU_BUSY);
	while (fixture.peer.shared->phase != FBT_GPU_DORMANT)
		peer_sleep_ms(1);
	assert_int_equal(fixture.peer.flush.last, 1);
	assert_true(fixture.peer.flush.no_buffer > 0);
	assert_true(was_called("cuptiUnsubscribe = 0"));
}

static void set_thief(bool there)
{
	FILE *file = there ? fopen(fixture.thief, "w") : NULL;

	if (file)
		fclose(file);
	else
		unlink(fixture.thief);
}

static const char *const *thief_variables(void)
{
	static char file[100];
	static const char *const variables[] = {file, NULL};

	snprintf(file, sizeof(file), "FAKE_CUPTI_THIEF_FILE=%s", fixture.thief);
	return variables;
}

/*
 * PyTorch's profiler does not subscribe. The time up to which all records have come stays where it
 * was when the profiler began.
 */
static void test_another_profiler_takes_the_records_over(void **state)
{
	start("libcupti.so.13", thief_variables());
	arm(1);
	await_kernels(500);
	for (int turn = 0; turn < 6; turn++)
		await_turn();
	set_thief(true);
	await_busy();
	assert_non_null(strstr(fixture.peer.detail, "taken it over"));
	assert_true(fixture.peer.flush.time_ns + 1500000000 < now_ns());
	assert_int_equal(fixture.peer.state.time_ns, fixture.peer.flush.time_ns);
	set_thief(false);
	arm(3);
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ARMED);
	await_kernels(fixture.peer.works[FBT_GPU_KERNEL] + 500);
	disarm(4);
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ENDED);
	stop();
}

static void test_another_profiler_was_there_first(void **state)
{
	set_thief(true);
	start("libcupti.so.13", thief_variables());
	arm(1);
	await_busy();
	assert_non_null(strstr(fixture.peer.detail, "recording already"));
	stop();
}

/* PyTorch's profiler leaves its clock in CUPTI, which counts ticks of the CPU. */
static void meet_ticks(const char *version)
{
	const char *const variables[] = {"FAKE_CUPTI_TICKS=1", version, NULL};

	start("libcupti.so.13", variables);
	arm(1);
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ARMED);
	for (int i = 0; i < 20000 && fixture.peer.state.status != FBT_GPU_FAILED; i++) {
		assert_true(peer_read(&fixture.peer));
		beat();
	}
	assert_int_equal(fixture.peer.state.status, FBT_GPU_FAILED);
	assert_non_null(strstr(fixture.peer.detail, "clock"));
	assert_true(fixture.peer.flush.ring_lost > 0);
	assert_int_equal(fixture.peer.works[FBT_GPU_KERNEL], 0);
	stop();
}

static void test_the_clock_of_another_tool_is_not_taken_for_ours(void **state)
{
	meet_ticks("FAKE_CUPTI_VERSION=130100");
}

static void test_the_clock_of_another_tool_is_not_taken_for_cuptis(void **state)
{
	meet_ticks("FAKE_CUPTI_VERSION=130001");
}

static void count_untimed(void *ctx, const struct fbt_header *frame)
{
	const struct fbt_gpu_work *work = (const void *)frame;
	uint64_t *untimed = ctx;

	*untimed += frame->type == FBT_EVENT_GPU_WORK && !work->end_ns;
}

/* The tool arms a shim again that has ended. */
static void meet_exhaustion(const char *script, const char *kernels)
{
	const char *const variables[] = {kernels, NULL};
	uint64_t untimed = 0;

	fixture.script = script;
	start("libcupti.so.13", variables);
	arm(1);
	fixture.peer.on_frame = count_untimed;
	fixture.peer.ctx = &untimed;
	for (int i = 0; i < 50000 && fixture.peer.state.status != FBT_GPU_ENDED; i++) {
		assert_true(peer_read(&fixture.peer));
		beat();
	}
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ENDED);
	assert_non_null(strstr(fixture.peer.detail, "no times"));
	assert_true(untimed > 0);
	arm(3);
	untimed = 0;
	await_kernels(fixture.peer.works[FBT_GPU_KERNEL] + 2000);
	assert_int_equal(untimed, 0);
	stop();
}

static void test_kernels_without_times_end_the_records(void **state)
{
	meet_exhaustion("g60 s", "FAKE_CUPTI_POOL_KERNELS=2000");
}

/* Less than 1,000 kernels in each of the shim's turns of 250 ms. */
static void test_so_do_those_of_an_engine_with_few_kernels(void **state)
{
	meet_exhaustion("g60 g60 g60 s z70000", "FAKE_CUPTI_POOL_KERNELS=1500");
}

/* An idle engine, and one whose GPU works for long, make no records either. */
static void test_silence_of_the_engine_is_no_takeover(void **state)
{
	fixture.script = "k4000000 z4000000 s z10000000";
	start("libcupti.so.13", NULL);
	arm(1);
	for (int turn = 0; turn < 30; turn++)
		await_turn();
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ARMED);
	assert_int_equal(fixture.peer.shared->phase, FBT_GPU_WORKING);
	stop();
}

/* A buffer that CUPTI never returns spoils its own window, not those after it. */
static void test_a_buffer_that_never_comes_back_spoils_one_window(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_SWALLOW=1", NULL};

	start("libcupti.so.13", variables);
	arm(1);
	await_kernels(500);
	disarm(2);
	assert_true(fixture.peer.flush.no_buffer > 0);
	arm(3);
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ARMED);
	for (int turn = 0; turn < 4; turn++)
		await_turn();
	assert_true(fixture.peer.flush.time_ns > fixture.peer.state.time_ns);
	disarm(4);
	assert_int_equal(fixture.peer.flush.no_buffer, 0);
	stop();
}

/* exit() during a flush: CUPTI must not be unloaded under it, and the last records still arrive. */
static void test_exit(void **state)
{
	static const char *const variables[] = {"FAKE_CUPTI_FLUSH_MS=200", NULL};
	uint64_t end_ns;

	start("libcupti.so.13", variables);
	arm(1);
	await_kernels(100);
	await_turn();
	peer_sleep_ms(350);
	end_ns = now_ns();
	stop();
	assert_true(peer_read(&fixture.peer));
	assert_true(fixture.peer.flush.time_ns >= end_ns);
}

/* With nothing to collect, exit() does not wait. */
static void test_exit_at_rest(void **state)
{
	uint64_t end_ns;

	start("libcupti.so.13", NULL);
	arm(1);
	await_kernels(100);
	disarm(2);
	assert_int_equal(fixture.peer.flush.last, 1);
	end_ns = fixture.peer.flush.time_ns;
	stop();
	assert_true(peer_read(&fixture.peer));
	assert_int_equal(fixture.peer.flush.time_ns, end_ns);
}

/* A killed tracer sends no more beats, so the shim stops. The next tracer finds it at rest. */
static void test_tracer_killed(void **state)
{
	start("libcupti.so.13", NULL);
	arm(1);
	for (int i = 0; i < 20000 && fixture.peer.shared->phase == FBT_GPU_WORKING; i++)
		peer_sleep_ms(1);
	assert_int_equal(fixture.peer.shared->phase, FBT_GPU_DORMANT);
	assert_int_equal(fixture.peer.shared->served, 1);
	assert_true(was_called("cuptiUnsubscribe"));
	arm(3);
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ARMED);
	await_kernels(100);
	stop();
}

/* A restarted tracer wishes for another odd value. */
static void test_armed_anew(void **state)
{
	start("libcupti.so.13", NULL);
	arm(1);
	arm(3);
	assert_int_equal(fixture.peer.state.status, FBT_GPU_ARMED);
	await_kernels(100);
	disarm(4);
	stop();
}

static void test_no_room(void **state)
{
	start("libcupti.so.13", NULL);
	arm(1);
	await_kernels(100);
	/* An engine that did not run in this time lost nothing; try again. */
	for (int i = 0; i < 30 && !fixture.peer.flush.ring_lost; i++) {
		/* With this tail the ring counts as full. */
		fixture.peer.shared->tail = UINT64_MAX;
		for (int ms = 0; ms < 600; ms++)
			beat();
		fixture.peer.shared->tail = fixture.peer.shared->head;
		await_kernels(fixture.peer.works[FBT_GPU_KERNEL] + 100);
	}
	disarm(2);
	assert_true(fixture.peer.flush.ring_lost > 0);
	assert_int_equal(fixture.peer.unnamed, 0);
	stop();
}

static void test_engine_killed(void **state)
{
	start("libcupti.so.13", NULL);
	arm(1);
	await_kernels(100);
	kill(fixture.engine, SIGKILL);
	waitpid(fixture.engine, NULL, 0);
	fixture.engine = 0;
	assert_true(peer_read(&fixture.peer));
	assert_int_equal(fixture.peer.shared->tail, fixture.peer.shared->head);
}

/* The shim's only thread blocks all signals but those of its own faults and those of libc. */
static void check_thread(const char *task)
{
	static const int open[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE,
				   SIGTRAP, SIGSYS,  32,      33}; /* the last two belong to libc */
	uint64_t mask = 0;
	char path[400];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", (int)fixture.engine, task);
	line = strstr(read_file(path), "SigBlk:");
	assert_non_null(line);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		mask |= UINT64_C(1) << (open[i] - 1);
	assert_int_equal(strtoull(line + 7, NULL, 16), ~mask);
}

/*
 * The number of threads of the shim. task is set to the number of one of them, as in
 * /proc/PID/task.
 */
static int count_threads(char task[32])
{
	char path[400];
	struct dirent *entry;
	int threads = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)fixture.engine);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", (int)fixture.engine,
			 entry->d_name);
		if (strcmp(read_file(path), "ferrum-cupti\n") != 0)
			continue;
		threads++;
		snprintf(task, 32, "%.20s", entry->d_name);
	}
	closedir(dir);
	return threads;
}

static void test_at_rest(void **state)
{
	char path[400], task[32];
	int fds;

	start("libcupti.so.13", NULL);
	while (!count_threads(task))
		peer_sleep_ms(1);
	/* Time for a second thread to start, if the shim has one. */
	peer_sleep_ms(200);
	assert_int_equal(count_threads(task), 1);
	/* It comes after the engine's own threads. */
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)atoi(task)),
			 getpriority(PRIO_PROCESS, (id_t)fixture.engine) + 1);
	check_thread(task);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)fixture.engine);
	assert_non_null(strstr(read_file(path), "libferrum_cupti.so"));
	assert_null(strstr(fixture.text, "libcupti.so"));
	peer_find_fd(fixture.engine, &fds);
	assert_int_equal(fds, 1);
	stop();
}

static const char *output_of(const char *format)
{
	char command[1000];
	FILE *pipe;
	size_t length;

	snprintf(command, sizeof(command), "%s %s/libferrum_cupti.so", format, build());
	pipe = popen(command, "r"); /* NOLINT: the command is ours */
	length = fread(fixture.text, 1, sizeof(fixture.text) - 1, pipe);
	fixture.text[length] = '\0';
	assert_int_equal(pclose(pipe), 0);
	return fixture.text;
}

/* The library works with any glibc from 2.34 on, and exports only its two entries. */
static void test_library(void **state)
{
	const char *at;

	output_of("nm -D --defined-only -f posix");
	assert_int_equal(strncmp(fixture.text, "InitializeInjection T", 21), 0);
	at = strchr(fixture.text, '\n');
	assert_int_equal(strncmp(at, "\nferrum_cupti_attach T", 22), 0);
	assert_string_equal(strchr(at + 1, '\n'), "\n");
	for (at = output_of("nm -D --undefined-only"); (at = strstr(at, "@GLIBC_2."));)
		assert_in_range(strtoul(at += 9, NULL, 10), 0, 34);
	for (at = output_of("readelf -dW"); (at = strstr(at, "(NEEDED)")); at++)
		assert_non_null(strstr(at, "[libc.so.6]"));
	assert_non_null(strstr(fixture.text, "NODELETE"));
	assert_non_null(strstr(fixture.text, "NOW"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_library, setup, teardown),
		cmocka_unit_test_setup_teardown(test_at_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cupti_13, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cupti_13_1, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cupti_13_2, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cupti_12, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cupti_11_attached_early, setup, teardown),
		cmocka_unit_test_setup_teardown(test_at_its_worst, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_buffers_hold_back_the_time_of_a_flush,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_profiler_takes_the_records_over, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_another_profiler_was_there_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_the_clock_of_another_tool_is_not_taken_for_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_clock_of_another_tool_is_not_taken_for_cuptis, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernels_without_times_end_the_records, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_so_do_those_of_an_engine_with_few_kernels,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence_of_the_engine_is_no_takeover, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_a_buffer_that_never_comes_back_spoils_one_window, setup, teardown),
		cmocka_unit_test_setup_teardown(test_attached_too_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_old, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mps_with_hopper, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mps_with_driver_580, setup, teardown),
		cmocka_unit_test_setup_teardown(test_13_0, setup, teardown),
		cmocka_unit_test_setup_teardown(test_13_0_all_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_13_2, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_driver, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_failure_that_passes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_library, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exit_at_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tracer_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_armed_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_engine_killed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Waiting for a GPU that works counts as work. Copies are named in the evidence. */
#include "judged_fixture.h"

#include "judge/cause.h"
#include "judge/text.h"
#include "model/gpu.h"

struct fixture {
	struct window *window;
	struct step_gpu *gpu; /* of the step; times count from the step's start */
	struct step step;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = new_window();
	fixture->gpu = calloc(1, sizeof(*fixture->gpu));
	assert_non_null(fixture->gpu);
	fixture->step = make_step(10 * MS);
	fixture->step.gpu = fixture->gpu;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	step_gpu_free(fixture->gpu);
	vec_free(&fixture->step.calls);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static void mark(struct fixture *fixture, gpu_interval_vec *set, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t start_ns = fixture->step.record.start_ns;
	struct gpu_interval interval = {start_ns + from_ns, start_ns + to_ns};

	assert_int_equal(gpu_interval_append(set, interval), 0);
}

static void work_from(struct fixture *fixture, uint64_t from_ns, uint64_t to_ns)
{
	mark(fixture, &fixture->gpu->busy, from_ns, to_ns);
}

static struct cause_times split(struct fixture *fixture)
{
	struct cause_times times;
	uint64_t sum = 0;

	cause_split(fixture->window, &fixture->step, &times);
	for (int i = 0; i < CAUSE_COUNT; i++)
		sum += times.ns[i];
	assert_int_equal(sum, step_total_ns(&fixture->step));
	assert_true(times.covered_ns <= times.ns[CAUSE_COMPUTE]);
	return times;
}

static struct fbt_call *add_blocked(struct fixture *fixture, const char *name, uint64_t ns)
{
	struct fbt_call *call = add_call(&fixture->step, name, ns);

	call->header.flags |= FBT_CALL_BLOCKED;
	return call;
}

static void a_blocked_call_is_work_as_far_as_the_gpu_works(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;

	add_blocked(fixture, "futex", 8 * MS);
	work_from(fixture, 1 * MS, 3 * MS);
	work_from(fixture, 4 * MS, 9 * MS);
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 2 * MS);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 8 * MS);
	assert_int_equal(cause_work_ns(&times), 8 * MS);
	assert_int_equal(times.covered_ns, 6 * MS);
}

static void a_blocked_call_is_what_it_is_while_the_gpu_is_idle(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;

	add_blocked(fixture, "futex", 6 * MS);
	work_from(fixture, 6 * MS, 9 * MS);
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 6 * MS);
	assert_int_equal(times.covered_ns, 0);
}

static void a_call_that_does_not_block_is_work_only_in_a_wait_for_the_gpu(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;

	add_call(&fixture->step, "ioctl", 2 * MS);
	add_call(&fixture->step, "ioctl", 4 * MS);
	work_from(fixture, 0, 10 * MS);
	mark(fixture, &fixture->gpu->sync_busy, 3 * MS, 5 * MS);
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_DRIVER_CALLS], 4 * MS);
	assert_int_equal(times.covered_ns, 2 * MS);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 6 * MS);
}

static void intervals_have_threads_that_always_wait(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;

	fixture->step.record.kind = 0;
	add_blocked(fixture, "futex", 6 * MS);
	work_from(fixture, 0, 10 * MS);
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 6 * MS);
	assert_int_equal(times.covered_ns, 0);
}

/*
 * The category sums include calls without records. The times of these calls are unknown, so they
 * cannot be matched with GPU work.
 */
static void calls_that_are_not_known_stay_what_they_are(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;

	add_blocked(fixture, "futex", 6 * MS);
	fixture->step.record.sums[FBT_FUTEX].ns += 1 * MS;
	fixture->step.record.lost_calls = 1;
	work_from(fixture, 0, 10 * MS);
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 1 * MS);
	assert_int_equal(times.covered_ns, 6 * MS);
}

/* Page faults, whose time is only estimated, do not take time that GPU work covers. */
static void covered_time_comes_before_estimates(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;

	add_blocked(fixture, "futex", 9 * MS);
	work_from(fixture, 0, 9 * MS);
	fixture->step.record.minor_faults = 1000;
	fixture->window->record.fault_ps = 5 * MS;
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 1 * MS);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 9 * MS);
}

static void roll_calls(struct fixture *fixture, uint64_t *seed)
{
	static const char *const names[] = {"futex", "ioctl", "mmap", "read", "getpid"};

	vec_free(&fixture->step.calls);
	memset(fixture->step.record.sums, 0, sizeof(fixture->step.record.sums));
	fixture->step.record.thread_ns = 100;
	while (random_below(seed, 6) &&
	       end_of_calls(&fixture->step) < fixture->step.record.start_ns + 80) {
		struct fbt_call *call = add_call(&fixture->step, names[random_below(seed, 5)],
						 random_below(seed, 20));

		call->start_ns += random_below(seed, 5);
		if (random_below(seed, 2))
			call->header.flags |= FBT_CALL_BLOCKED;
	}
}

static void roll_set(struct fixture *fixture, gpu_interval_vec *set, uint64_t *seed)
{
	uint64_t from = 0;

	vec_free(set);
	while (random_below(seed, 5)) {
		from += 1 + random_below(seed, 15);
		mark(fixture, set, from, from + 1 + random_below(seed, 15));
		from = set->items[set->count - 1].end_ns - fixture->step.record.start_ns;
	}
}

static bool is_in(const gpu_interval_vec *set, uint64_t at)
{
	vec_for_each (interval, set) {
		if (interval->start_ns <= at && at < interval->end_ns)
			return true;
	}
	return false;
}

static uint64_t count_covered(const struct step *step)
{
	uint64_t ns = 0;

	vec_for_each (call, &step->calls) {
		const gpu_interval_vec *set = call->header.flags & FBT_CALL_BLOCKED
						      ? &step->gpu->busy
						      : &step->gpu->sync_busy;

		for (uint64_t i = 0; i < call->duration_ns; i++)
			ns += is_in(set, call->start_ns + i);
	}
	return ns;
}

/* Compares covered time with a count of each nanosecond. Without covered time nothing changes. */
static void what_is_covered_is_exact(void **state)
{
	struct fixture *fixture = *state;
	uint64_t seed = 5;

	for (int i = 0; i < 5000; i++) {
		struct cause_times with, without;

		roll_calls(fixture, &seed);
		roll_set(fixture, &fixture->gpu->busy, &seed);
		roll_set(fixture, &fixture->gpu->sync_busy, &seed);
		with = split(fixture);
		assert_int_equal(with.covered_ns, count_covered(&fixture->step));
		fixture->step.gpu = NULL;
		without = split(fixture);
		fixture->step.gpu = fixture->gpu;
		assert_int_equal(without.covered_ns, 0);
		assert_true(with.ns[CAUSE_COMPUTE] >= without.ns[CAUSE_COMPUTE]);
		if (!with.covered_ns)
			assert_memory_equal(&with, &without, sizeof(with));
	}
}

static void check(struct fixture *fixture, const struct cause *cause, const char *expected)
{
	char text[256];

	cause_describe(cause, fixture->window, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void calls_that_are_covered_are_no_evidence(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times, usual = {0};
	struct cause cause;

	add_blocked(fixture, "futex", 4 * MS);
	add_blocked(fixture, "futex", 5 * MS);
	work_from(fixture, 0, 6 * MS);
	times = split(fixture);
	usual.ns[CAUSE_COMPUTE] = times.ns[CAUSE_COMPUTE];
	cause_find(fixture->window, &fixture->step, &times, &usual, &cause);
	assert_int_equal(cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(cause.time_ns, 3 * MS);
	assert_int_equal(cause.calls, 1);
	assert_int_equal(cause.nr_ns, 3 * MS);
	check(fixture, &cause, "futex 3.00 ms (usually none), 1 of 1 call blocked");
}

static void work_says_how_much_of_it_waited_for_the_gpu(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;
	struct cause cause;

	add_blocked(fixture, "futex", 9 * MS);
	work_from(fixture, 0, 8 * MS);
	times = split(fixture);
	cause_find(fixture->window, &fixture->step, &times, NULL, &cause);
	assert_int_equal(cause.kind, CAUSE_COMPUTE);
	check(fixture, &cause, "work 9.00 ms, 8.00 ms of it waiting for the busy GPU");
	cause.covered_ns = 0;
	check(fixture, &cause, "work 9.00 ms: outside of syscalls, not waiting for a CPU");
}

static void copies_are_told_by_bytes_and_direction(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_figures *all = &fixture->gpu->all;
	struct cause cause;

	all->transfer_ns = 6100 * US;
	cause_set_transfer(&fixture->step, &cause);
	assert_int_equal(cause.kind, CAUSE_GPU_TRANSFER);
	assert_false(cause.usual_known);
	check(fixture, &cause, "copies 6.10 ms of 10.0 ms");
	all->d2h_bytes = 4096;
	all->memcpys = 1200;
	cause_set_transfer(&fixture->step, &cause);
	check(fixture, &cause, "copies 6.10 ms of 10.0 ms: D2H 4.00 KiB");
	all->h2d_bytes = UINT64_C(1288490189);
	all->p2p_bytes = 17;
	all->d2d_bytes = 5;
	all->pageable = 3;
	cause_set_transfer(&fixture->step, &cause);
	check(fixture, &cause,
	      "copies 6.10 ms of 10.0 ms: H2D 1.20 GiB, D2H 4.00 KiB, P2P 17 B, 3 of 1,200 use "
	      "pageable memory");
	all->h2d_bytes = all->d2h_bytes = all->pageable = 0;
	cause_set_transfer(&fixture->step, &cause);
	check(fixture, &cause, "copies 6.10 ms of 10.0 ms: P2P 17 B");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_blocked_call_is_work_as_far_as_the_gpu_works),
		TEST(a_blocked_call_is_what_it_is_while_the_gpu_is_idle),
		TEST(a_call_that_does_not_block_is_work_only_in_a_wait_for_the_gpu),
		TEST(intervals_have_threads_that_always_wait),
		TEST(calls_that_are_not_known_stay_what_they_are),
		TEST(covered_time_comes_before_estimates),
		TEST(what_is_covered_is_exact),
		TEST(calls_that_are_covered_are_no_evidence),
		TEST(work_says_how_much_of_it_waited_for_the_gpu),
		TEST(copies_are_told_by_bytes_and_direction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

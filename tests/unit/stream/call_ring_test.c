/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "stream/call_ring.h"
#include "base/clock.h"
#include "shared_fixture.h"

#define CPUS  3
#define SHIFT 12
#define SLOTS 16
#define ROOM  ((1ull << SHIFT) - FBT_RING_MARGIN)

struct fixture {
	struct shared *shared;
	struct call_ring *ring;
	struct fbt_call calls[2 << SHIFT];
	uint64_t tails[2 << SHIFT]; /* of CPU 0, when each call was passed on */
	size_t count;
};

static int setup(void **state)
{
	struct fixture *fixture = shared_alloc(1, sizeof(*fixture));

	fixture->shared = shared_new(SLOTS, CPUS, SHIFT);
	fixture->ring = call_ring__new(fixture->shared);
	assert_non_null(fixture->ring);
	for (uint32_t i = 1; i < SLOTS; i++) {
		fixture->shared->slots[i].tgid = 100;
		fixture->shared->slots[i].tid = 100 + i;
	}
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	call_ring__free(fixture->ring);
	shared_free(fixture->shared);
	free(fixture);
	return 0;
}

static void keep_call(void *ctx, const struct fbt_call *call)
{
	struct fixture *fixture = ctx;

	assert_true(fixture->count < 2 << SHIFT);
	fixture->tails[fixture->count] = fixture->shared->heads[0].tail;
	fixture->calls[fixture->count++] = *call;
}

static uint64_t drain(struct fixture *fixture, uint64_t cutoff_ns)
{
	fixture->count = 0;
	return call_ring__drain(fixture->ring, cutoff_ns, keep_call, fixture);
}

/* The parts of send_call() in bpf/trace.bpf.c. The program may be preempted between them. */
static bool has_room(const struct shared *shared, uint32_t cpu)
{
	const volatile struct fbt_ring_heads *heads = &shared->heads[cpu];
	uint64_t mask = (1ull << shared->ring_shift) - 1;

	return heads->head - heads->tail <= mask - FBT_RING_MARGIN;
}

static void count_lost(struct shared *shared, uint32_t cpu, uint32_t slot)
{
	__sync_fetch_and_add(&shared->heads[cpu].lost, 1);
	shared->slots[slot].lost_calls++;
}

static uint64_t reserve(struct shared *shared, uint32_t cpu)
{
	return __sync_fetch_and_add(&shared->heads[cpu].head, 1);
}

static void fill(struct shared *shared, uint32_t cpu, uint64_t place,
		 const struct fbt_ring_call *from)
{
	uint64_t mask = (1ull << shared->ring_shift) - 1;
	struct fbt_ring_call *call =
		&shared->calls[((uint64_t)cpu << shared->ring_shift) + (place & mask)];

	call->start_ns = from->start_ns;
	call->duration_ns = from->duration_ns;
	call->ret = from->ret;
	call->nr = from->nr;
	call->slot = from->slot;
	call->flags = from->flags;
	call->args[0] = from->args[0];
	call->args[1] = from->args[1];
	call->file = from->file;
	__atomic_store_n(&call->lap, (uint32_t)(place >> shared->ring_shift) + 1, __ATOMIC_RELEASE);
}

static bool send_call(struct shared *shared, uint32_t cpu, const struct fbt_ring_call *call)
{
	if (!has_room(shared, cpu)) {
		count_lost(shared, cpu, call->slot);
		return false;
	}
	fill(shared, cpu, reserve(shared, cpu), call);
	return true;
}

/* Sends a call of slot 1 that returns at end_ns. */
static bool send_end(struct shared *shared, uint32_t cpu, uint64_t end_ns)
{
	struct fbt_ring_call call = {.start_ns = end_ns - 1, .duration_ns = 1, .slot = 1};

	return send_call(shared, cpu, &call);
}

static uint64_t end_of(const struct fbt_call *call)
{
	return call->start_ns + call->duration_ns;
}

static void free_accepts_null(void **state)
{
	call_ring__free(NULL);
}

static void drain_of_empty_rings_gives_nothing(void **state)
{
	assert_int_equal(drain(*state, UINT64_MAX), 0);
}

static void drain_stops_at_a_place_that_is_reserved_and_not_filled(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_ring_call late = {.start_ns = 1, .duration_ns = 1, .slot = 1};
	uint64_t place = reserve(fixture->shared, 0);

	send_end(fixture->shared, 0, 5);
	send_end(fixture->shared, 1, 6);
	assert_int_equal(drain(fixture, UINT64_MAX), 1);
	assert_int_equal(end_of(&fixture->calls[0]), 6);
	assert_int_equal(fixture->shared->heads[0].tail, 0);
	fill(fixture->shared, 0, place, &late);
	assert_int_equal(drain(fixture, UINT64_MAX), 2);
	assert_int_equal(end_of(&fixture->calls[0]), 2);
	assert_int_equal(end_of(&fixture->calls[1]), 5);
}

static void a_place_of_the_lap_before_is_not_valid(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 1; i <= 1 << SHIFT; i++) {
		send_end(fixture->shared, 0, (uint64_t)i);
		assert_int_equal(drain(fixture, UINT64_MAX), 1);
	}
	reserve(fixture->shared, 0);
	assert_int_equal(drain(fixture, UINT64_MAX), 0);
}

static void a_full_ring_loses_and_counts_the_newest(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 1; i <= ROOM + 5; i++)
		assert_int_equal(send_end(fixture->shared, 0, i), i <= ROOM);
	assert_true(send_end(fixture->shared, 1, 1));
	assert_int_equal(call_ring__lost(fixture->ring), 5);
	assert_int_equal(fixture->shared->slots[1].lost_calls, 5);
	assert_int_equal(drain(fixture, UINT64_MAX), ROOM + 1);
	assert_int_equal(end_of(&fixture->calls[ROOM]), ROOM);
	assert_true(send_end(fixture->shared, 0, ROOM + 6));
}

/*
 * As many programs as the margin allows have checked for room on one CPU, but not reserved it yet.
 */
static void the_margin_holds_what_had_seen_the_last_room(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_ring_call call = {.duration_ns = 1, .slot = 1};
	uint64_t sent = 0;

	while (sent < ROOM - 1)
		send_end(fixture->shared, 0, ++sent);
	for (int i = 0; i < FBT_RING_MARGIN; i++)
		assert_true(has_room(fixture->shared, 0));
	for (int i = 0; i < FBT_RING_MARGIN; i++) {
		call.start_ns = sent++;
		fill(fixture->shared, 0, reserve(fixture->shared, 0), &call);
	}
	assert_false(has_room(fixture->shared, 0));
	assert_int_equal(drain(fixture, UINT64_MAX), sent);
	for (uint64_t i = 0; i < sent; i++)
		assert_int_equal(end_of(&fixture->calls[i]), i + 1);
}

static void lost_sums_the_cpus_until_it_is_reset(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		fixture->shared->heads[cpu].lost = 10 + cpu;
	assert_int_equal(call_ring__lost(fixture->ring), 33);
	call_ring__reset_lost(fixture->ring);
	assert_int_equal(call_ring__lost(fixture->ring), 0);
}

static void drain_leaves_what_returned_after_the_cutoff(void **state)
{
	struct fixture *fixture = *state;

	send_end(fixture->shared, 0, 10);
	send_end(fixture->shared, 0, 11);
	send_end(fixture->shared, 1, 12);
	assert_int_equal(drain(fixture, 10), 1);
	assert_int_equal(end_of(&fixture->calls[0]), 10);
	assert_int_equal(drain(fixture, 12), 2);
	assert_int_equal(end_of(&fixture->calls[1]), 12);
}

static void drain_merges_the_cpus_in_order_of_return(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t end = 1; end <= 3000; end++)
		send_end(fixture->shared, (uint32_t)(end * 7919 % 13 % CPUS), end);
	assert_int_equal(drain(fixture, UINT64_MAX), 3000);
	for (uint64_t i = 0; i < 3000; i++)
		assert_int_equal(end_of(&fixture->calls[i]), i + 1);
}

/*
 * A program that is preempted between reading the clock and reserving sends a call after a later
 * one of its CPU.
 */
static void calls_of_a_cpu_stay_in_the_order_of_their_places(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t wanted[] = {30, 10, 40, 50};

	send_end(fixture->shared, 0, 30);
	send_end(fixture->shared, 0, 10);
	send_end(fixture->shared, 1, 40);
	send_end(fixture->shared, 0, 50);
	assert_int_equal(drain(fixture, UINT64_MAX), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(end_of(&fixture->calls[i]), wanted[i]);
}

static void a_call_is_handed_on_whole(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_ring_call call = {
		.start_ns = 5, .duration_ns = 7, .ret = -11, .nr = 202, .slot = 3};
	const struct fbt_call wanted = {
		.header = {.type = FBT_EVENT_CALL, .size = sizeof(wanted)},
		.tgid = 100,
		.tid = 103,
		.start_ns = 5,
		.duration_ns = 7,
		.ret = -11,
		.nr = 202,
	};

	send_call(fixture->shared, 2, &call);
	assert_int_equal(drain(fixture, UINT64_MAX), 1);
	assert_memory_equal(&fixture->calls[0], &wanted, sizeof(wanted));
}

static void a_call_in_a_step_has_its_arguments(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_ring_call call = {
		.start_ns = 5,
		.duration_ns = 7,
		.nr = 16,
		.slot = 3,
		.flags = FBT_CALL_ARGS | FBT_CALL_BLOCKED,
		.args = {9, 0xc0384627},
		.file = 12,
	};
	const struct fbt_call wanted = {
		.header = {.type = FBT_EVENT_CALL, .flags = call.flags, .size = sizeof(wanted)},
		.tgid = 100,
		.tid = 103,
		.start_ns = 5,
		.duration_ns = 7,
		.nr = 16,
		.file = 12,
		.args = {9, 0xc0384627},
	};

	send_call(fixture->shared, 2, &call);
	assert_int_equal(drain(fixture, UINT64_MAX), 1);
	assert_memory_equal(&fixture->calls[0], &wanted, sizeof(wanted));
}

static void a_row_of_calls_has_its_sums(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_ring_call call = {
		.start_ns = 5,
		.duration_ns = 9000,
		.nr = 24,
		.slot = 3,
		.flags = FBT_CALL_RUN,
		.args = {3000 | 70ull << 32, 6000},
		.file = 4,
	};

	send_call(fixture->shared, 2, &call);
	assert_int_equal(drain(fixture, UINT64_MAX), 1);
	assert_int_equal(fixture->calls[0].header.flags, FBT_CALL_RUN);
	assert_int_equal(fixture->calls[0].run.calls, 3000);
	assert_int_equal(fixture->calls[0].run.longest_ns, 70);
	assert_int_equal(fixture->calls[0].run.calls_ns, 6000);
	assert_int_equal(fixture->calls[0].file, 4);
	assert_int_equal(end_of(&fixture->calls[0]), 9005);
}

/* In such an entry, the kernel side leaves the arguments of the lap before. */
static void a_call_without_arguments_shows_nobody_elses(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_ring_call call = {.slot = 3, .args = {9, 10}, .file = 12};

	send_call(fixture->shared, 2, &call);
	assert_int_equal(drain(fixture, UINT64_MAX), 1);
	assert_int_equal(fixture->calls[0].header.flags, 0);
	assert_int_equal(fixture->calls[0].args[0], 0);
	assert_int_equal(fixture->calls[0].args[1], 0);
	assert_int_equal(fixture->calls[0].file, 0);
}

static void a_long_drain_makes_room_as_it_goes(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 1; i <= ROOM; i++)
		send_end(fixture->shared, 0, i);
	assert_int_equal(drain(fixture, UINT64_MAX), ROOM);
	assert_int_equal(fixture->tails[0], 0);
	assert_true(fixture->tails[ROOM - 1] >= ROOM - 1024);
	for (uint64_t i = 0; i < ROOM; i++)
		assert_true(fixture->tails[i] <= i);
	assert_int_equal(fixture->shared->heads[0].tail, ROOM);
}

/* Several programs on one CPU that may be preempted anywhere. */
#define WRITERS	      8
#define SMALL	      10
#define STRESS_NS     1200000000ull
#define STRESS_NS_MAX 60000000000ull
#define RESTING_NS    300000

struct writer {
	struct shared *shared;
	pthread_t thread;
	uint32_t slot;
	bool yield_before; /* between check and reservation */
	bool yield_after;  /* between reservation and the last store */
	const bool *stop;
	uint64_t made, lost;
	/* written by the reader */
	uint64_t seen, last;
};

/* Each field follows from the writer and its count, so that a mixed record is noticed. */
static struct fbt_ring_call make_call(uint32_t slot, uint64_t n)
{
	return (struct fbt_ring_call){
		.start_ns = n,
		.duration_ns = n * 31 + slot,
		.ret = (int64_t)(n * 0x9e3779b97f4a7c15ull) ^ slot,
		.nr = (uint16_t)(n * 7 + slot),
		.slot = (uint16_t)slot,
		.flags = FBT_CALL_ARGS,
		.args = {n * 13, ~n},
		.file = (uint32_t)(n * 3),
	};
}

static void *write_calls(void *arg)
{
	struct writer *writer = arg;
	struct shared *shared = writer->shared;

	while (!__atomic_load_n(writer->stop, __ATOMIC_RELAXED)) {
		struct fbt_ring_call call = make_call(writer->slot, ++writer->made);
		uint64_t place;

		if (!has_room(shared, 0)) {
			count_lost(shared, 0, writer->slot);
			writer->lost++;
			continue;
		}
		if (writer->yield_before && writer->made % 3 == 0)
			sched_yield();
		place = reserve(shared, 0);
		if (writer->yield_after && writer->made % 5 == 0)
			sched_yield();
		fill(shared, 0, place, &call);
	}
	return NULL;
}

struct stress {
	struct writer writers[WRITERS];
	uint64_t mixed, unordered;
};

static void check_call(void *ctx, const struct fbt_call *call)
{
	struct stress *stress = ctx;
	uint32_t slot = call->tid - 100;
	struct fbt_ring_call wanted = make_call(slot, call->start_ns);
	struct writer *writer;

	if (slot < 1 || slot > WRITERS || call->tgid != 100 ||
	    call->duration_ns != wanted.duration_ns || call->ret != wanted.ret ||
	    call->nr != wanted.nr || call->args[0] != wanted.args[0] ||
	    call->args[1] != wanted.args[1] || call->file != wanted.file) {
		stress->mixed++;
		return;
	}
	writer = &stress->writers[slot - 1];
	stress->unordered += call->start_ns <= writer->last;
	writer->last = call->start_ns;
	writer->seen++;
}

static void start_writers(struct stress *stress, struct shared *shared, const bool *stop)
{
	for (uint32_t i = 0; i < WRITERS; i++) {
		struct writer *writer = &stress->writers[i];

		writer->shared = shared;
		writer->slot = i + 1;
		writer->yield_before = i % 4 == 1;
		writer->yield_after = i % 4 >= 2;
		writer->stop = stop;
		shared->slots[i + 1].tgid = 100;
		shared->slots[i + 1].tid = 100 + i + 1;
		assert_int_equal(pthread_create(&writer->thread, NULL, write_calls, writer), 0);
	}
}

static void check_writers(const struct stress *stress, const struct shared *shared, uint64_t lost)
{
	uint64_t own_lost = 0, full = 0;

	for (uint32_t i = 0; i < WRITERS; i++) {
		const struct writer *writer = &stress->writers[i];

		/* Numbers rise and are as many as were sent, so each came exactly once. */
		assert_int_equal(writer->seen + writer->lost, writer->made);
		assert_int_equal(shared->slots[i + 1].lost_calls, writer->lost);
		assert_true(writer->seen > 0);
		own_lost += writer->lost;
		full += writer->lost > 0;
	}
	assert_int_equal(lost, own_lost);
	assert_true(full > 0);
}

static bool all_were_seen(const struct stress *stress)
{
	for (uint32_t i = 0; i < WRITERS; i++) {
		if (!stress->writers[i].seen)
			return false;
	}
	return true;
}

static void preempted_programs_of_one_cpu_lose_and_repeat_nothing(void **state)
{
	struct shared *shared = shared_new(SLOTS, 1, SMALL);
	struct call_ring *ring = call_ring__new(shared);
	uint64_t start = clock_ns(CLOCK_MONOTONIC), rest, drained = 0, seen = 0;
	struct stress stress = {0};
	bool stop = false;

	start_writers(&stress, shared, &stop);
	/* Runs longer on a busy machine, until the ring was filled several times and overflowed. */
	for (int i = 0;
	     clock_ns(CLOCK_MONOTONIC) < start + STRESS_NS ||
	     ((drained <= 10ull << SMALL || !call_ring__lost(ring) || !all_were_seen(&stress)) &&
	      clock_ns(CLOCK_MONOTONIC) < start + STRESS_NS_MAX);
	     i++) {
		drained += call_ring__drain(ring, UINT64_MAX, check_call, &stress);
		/* At times the reader rests, so that the ring fills up. */
		rest = clock_ns(CLOCK_MONOTONIC) + (i % 64 == 0 ? RESTING_NS : 0);
		while (clock_ns(CLOCK_MONOTONIC) < rest)
			sched_yield();
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < WRITERS; i++)
		pthread_join(stress.writers[i].thread, NULL);
	drained += call_ring__drain(ring, UINT64_MAX, check_call, &stress);
	assert_int_equal(stress.mixed, 0);
	assert_int_equal(stress.unordered, 0);
	for (uint32_t i = 0; i < WRITERS; i++)
		seen += stress.writers[i].seen;
	assert_int_equal(drained, seen);
	assert_true(drained > 10ull << SMALL);
	assert_int_equal(shared->heads[0].tail, shared->heads[0].head);
	check_writers(&stress, shared, call_ring__lost(ring));
	call_ring__free(ring);
	shared_free(shared);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_accepts_null),
		TEST(drain_of_empty_rings_gives_nothing),
		TEST(drain_stops_at_a_place_that_is_reserved_and_not_filled),
		TEST(a_place_of_the_lap_before_is_not_valid),
		TEST(a_full_ring_loses_and_counts_the_newest),
		TEST(the_margin_holds_what_had_seen_the_last_room),
		TEST(lost_sums_the_cpus_until_it_is_reset),
		TEST(drain_leaves_what_returned_after_the_cutoff),
		TEST(drain_merges_the_cpus_in_order_of_return),
		TEST(calls_of_a_cpu_stay_in_the_order_of_their_places),
		TEST(a_call_is_handed_on_whole),
		TEST(a_call_in_a_step_has_its_arguments),
		TEST(a_row_of_calls_has_its_sums),
		TEST(a_call_without_arguments_shows_nobody_elses),
		TEST(a_long_drain_makes_room_as_it_goes),
		cmocka_unit_test(preempted_programs_of_one_cpu_lose_and_repeat_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

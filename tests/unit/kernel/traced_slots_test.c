/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "shared_fixture.h"
#include "kernel/traced.h"

#define SLOTS 8

static int setup(void **state)
{
	struct shared *shared = shared_new(SLOTS, 1, 4);

	slots_init(shared);
	*state = shared;
	return 0;
}

static int teardown(void **state)
{
	shared_free(*state);
	return 0;
}

static void take_refuses_when_no_slot_is_free(void **state)
{
	struct shared *shared = *state;

	for (uint32_t tid = 10; tid < 10 + SLOTS - 1; tid++)
		assert_true(slots_take(shared, 10, tid, 1) > 0);
	assert_int_equal(slots_take(shared, 10, 99, 1), -ENOSPC);
	assert_int_equal(slots_find(shared, 99), 0);
}

static void take_refuses_a_thread_id_that_has_no_place(void **state)
{
	struct shared *shared = *state;
	uint32_t tid = shared->id_chunks * FBT_IDS;

	assert_int_equal(slots_take(shared, 10, tid, 1), -ENOSPC);
	assert_int_equal(shared->control->free_head, 0);
}

static void take_leaves_alone_a_thread_that_has_a_slot(void **state)
{
	struct shared *shared = *state;
	int slot = slots_take(shared, 10, 11, 1);

	assert_int_equal(slots_take(shared, 10, 11, 2), 0);
	assert_int_equal(slots_find(shared, 11), slot);
	assert_int_equal(shared->slots[slot].born_ns, 1);
	assert_int_equal(shared->control->free_head, 1);
}

static void end_of_an_unknown_thread_does_nothing(void **state)
{
	struct shared *shared = *state;

	slots_end(shared, 12, 5);
	slots_end(shared, UINT32_MAX, 5);
	for (int i = 0; i < SLOTS; i++)
		assert_int_equal(shared->slots[i].state, FBT_SLOT_FREE);
}

static void slot_zero_is_never_handed_out(void **state)
{
	struct shared *shared = *state;

	for (uint32_t tid = 10; tid < 10 + SLOTS - 1; tid++)
		assert_int_equal(slots_take(shared, 10, tid, 1), tid - 9);
}

static void take_fills_the_slot_in(void **state)
{
	struct shared *shared = *state;
	int index = slots_take(shared, 10, FBT_IDS + 3, 77);
	const struct fbt_slot *slot = &shared->slots[index];

	assert_int_equal(slots_find(shared, FBT_IDS + 3), index);
	assert_int_equal(slot->tgid, 10);
	assert_int_equal(slot->tid, FBT_IDS + 3);
	assert_int_equal(slot->born_ns, 77);
	assert_int_equal(slot->state, FBT_SLOT_LIVE);
	assert_int_equal(shared->tgids[index], 10);
}

static void end_keeps_the_slot_until_it_is_given_back(void **state)
{
	struct shared *shared = *state;
	int index = slots_take(shared, 10, 11, 1);

	slots_end(shared, 11, 9);
	assert_int_equal(slots_find(shared, 11), 0);
	assert_int_equal(shared->slots[index].state, FBT_SLOT_DEAD);
	assert_int_equal(shared->slots[index].died_ns, 9);
	assert_int_equal(shared->slots[index].tgid, 10);
	assert_int_equal(shared->tgids[index], 0);
}

static void a_slot_given_back_is_zero_and_comes_last(void **state)
{
	static const struct fbt_slot zero_slot;
	static const struct fbt_sum zero_row;
	struct shared *shared = *state;
	int index = slots_take(shared, 10, 11, 1);

	play_enter(shared, (uint32_t)index, 5, 10);
	play_exit(shared, (uint32_t)index, -1, 30);
	slots_end(shared, 11, 40);
	slots_give_back(shared, (uint32_t)index);
	assert_memory_equal(&shared->slots[index], &zero_slot, sizeof(zero_slot));
	assert_memory_equal(&shared->rows[index * FBT_NR_COUNT + 5], &zero_row, sizeof(zero_row));
	for (uint32_t tid = 20; tid < 20 + SLOTS - 2; tid++)
		assert_int_not_equal(slots_take(shared, 20, tid, 2), index);
	assert_int_equal(slots_take(shared, 20, 30, 2), index);
}

static void slots_go_round_the_free_list_many_times(void **state)
{
	struct shared *shared = *state;

	for (uint32_t i = 0; i < 10 * SLOTS; i++) {
		int index = slots_take(shared, 10, 11, i);

		assert_true(index > 0 && index < SLOTS);
		slots_end(shared, 11, i);
		slots_give_back(shared, (uint32_t)index);
	}
	for (uint32_t tid = 10; tid < 10 + SLOTS - 1; tid++)
		assert_true(slots_take(shared, 10, tid, 1) > 0);
	assert_int_equal(slots_take(shared, 10, 99, 1), -ENOSPC);
}

static struct process_sums *new_sums(void)
{
	return shared_alloc(1, sizeof(struct process_sums));
}

static void add_says_so_if_rows_and_time_never_agree(void **state)
{
	struct shared *shared = *state;
	struct process_sums *sums = new_sums();
	uint32_t index = (uint32_t)slots_take(shared, 10, 11, 1);

	play_enter(shared, index, 5, 10);
	play_exit(shared, index, 0, 30);
	shared->rows[index * FBT_NR_COUNT + 5].ns--;
	assert_false(slots_add(shared, index, 100, sums));
	free(sums);
}

static void add_says_so_if_a_call_is_half_entered(void **state)
{
	struct shared *shared = *state;
	struct process_sums *sums = new_sums();
	uint32_t index = (uint32_t)slots_take(shared, 10, 11, 1);

	shared->slots[index].start_ns = 10;
	assert_false(slots_add(shared, index, 100, sums));
	free(sums);
}

static void add_counts_an_open_call_beside_the_rows(void **state)
{
	struct shared *shared = *state;
	struct process_sums *sums = new_sums();
	uint32_t index = (uint32_t)slots_take(shared, 10, 11, 1);

	play_enter(shared, index, 5, 10);
	play_exit(shared, index, -4095, 30);
	play_enter(shared, index, 7, 40);
	assert_true(slots_add(shared, index, 100, sums));
	assert_int_equal(sums->rows[5].ns, 20);
	assert_int_equal(sums->rows[5].calls, 1);
	assert_int_equal(sums->rows[5].errors, 1);
	assert_int_equal(sums->rows[5].max_ns, 20);
	assert_int_equal(sums->rows[7].calls, 0);
	assert_int_equal(sums->unfinished[7], 1);
	assert_int_equal(sums->open_ns[7], 60);
	assert_int_equal(sums->thread_ns, 99);
	assert_int_equal(sums->threads, 1);
	free(sums);
}

static void add_takes_an_open_call_from_after_its_instant_for_no_time(void **state)
{
	struct shared *shared = *state;
	struct process_sums *sums = new_sums();
	uint32_t index = (uint32_t)slots_take(shared, 10, 11, 50);

	play_enter(shared, index, 7, 60);
	assert_true(slots_add(shared, index, 40, sums));
	assert_int_equal(sums->unfinished[7], 1);
	assert_int_equal(sums->open_ns[7], 0);
	assert_int_equal(sums->thread_ns, 0);
	free(sums);
}

static void add_puts_an_open_call_of_a_great_number_into_the_last_row(void **state)
{
	struct shared *shared = *state;
	struct process_sums *sums = new_sums();
	uint32_t index = (uint32_t)slots_take(shared, 10, 11, 1);

	play_enter(shared, index, FBT_NR_COUNT + 90, 60);
	assert_true(slots_add(shared, index, 100, sums));
	assert_int_equal(sums->unfinished[FBT_NR_COUNT - 1], 1);
	assert_int_equal(sums->open_ns[FBT_NR_COUNT - 1], 40);
	free(sums);
}

static void add_gives_an_ended_thread_its_life_and_no_open_time(void **state)
{
	struct shared *shared = *state;
	struct process_sums *sums = new_sums();
	uint32_t index = (uint32_t)slots_take(shared, 10, 11, 10);

	play_enter(shared, index, 231, 20);
	slots_end(shared, 11, 25);
	assert_true(slots_add(shared, index, 100, sums));
	assert_int_equal(sums->thread_ns, 15);
	assert_int_equal(sums->threads, 0);
	assert_int_equal(sums->unfinished[231], 1);
	assert_int_equal(sums->open_ns[231], 0);
	free(sums);
}

static void add_sums_threads_and_keeps_the_longest_call(void **state)
{
	struct shared *shared = *state;
	struct process_sums *sums = new_sums();

	for (uint32_t i = 1; i <= 3; i++) {
		uint32_t index = (uint32_t)slots_take(shared, 10, 10 + i, 1);

		play_enter(shared, index, 5, 10);
		play_exit(shared, index, 0, 10 + (i == 2 ? 50 : i));
		assert_true(slots_add(shared, index, 101, sums));
	}
	assert_int_equal(sums->rows[5].calls, 3);
	assert_int_equal(sums->rows[5].ns, 54);
	assert_int_equal(sums->rows[5].max_ns, 50);
	assert_int_equal(sums->thread_ns, 300);
	assert_int_equal(sums->threads, 3);
	free(sums);
}

/*
 * A thread that makes calls by a clock of its own. Call n has number n % KINDS, begins gap_of(n)
 * after the end of the call before, and takes length_of(n). So a reader of its rows can tell
 * exactly which calls they include.
 */
#define KINDS 5

struct worker {
	struct shared *shared;
	uint32_t index;
	uint64_t pause_ns; /* real time between two calls */
	uint64_t clock;
	uint64_t calls;
	bool stop;
};

static uint64_t gap_of(uint64_t n)
{
	return 1 + n % 3;
}

static uint64_t length_of(uint64_t n)
{
	return 1 + n * 7919 % 1009;
}

static bool fails(uint64_t n)
{
	return n % 11 == 0;
}

static void pause_for(uint64_t ns)
{
	uint64_t end = ns ? clock_ns(CLOCK_MONOTONIC) + ns : 0;

	while (ns && clock_ns(CLOCK_MONOTONIC) < end)
		;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	uint64_t n = 0;

	for (; !__atomic_load_n(&worker->stop, __ATOMIC_RELAXED); n++) {
		uint64_t now = worker->clock + gap_of(n);

		__atomic_store_n(&worker->clock, now, __ATOMIC_RELAXED);
		play_enter(worker->shared, worker->index, (uint32_t)(n % KINDS), now);
		pause_for(worker->pause_ns / 2);
		now += length_of(n);
		__atomic_store_n(&worker->clock, now, __ATOMIC_RELAXED);
		play_exit(worker->shared, worker->index, fails(n) ? -2 : 0, now);
		pause_for(worker->pause_ns / 2);
	}
	worker->calls = n;
	return NULL;
}

/* The expected rows after that many calls. */
struct model {
	uint64_t calls;
	uint64_t total_ns;
	uint64_t clock;
	struct fbt_sum rows[KINDS];
	struct fbt_sum before[KINDS]; /* one call earlier */
};

static void model_call(struct model *model)
{
	uint64_t n = model->calls++;
	struct fbt_sum *row = &model->rows[n % KINDS];

	memcpy(model->before, model->rows, sizeof(model->before));
	model->clock += gap_of(n) + length_of(n);
	model->total_ns += length_of(n);
	row->calls++;
	row->ns += length_of(n);
	row->errors += fails(n);
	if (length_of(n) > row->max_ns)
		row->max_ns = length_of(n);
}

/*
 * Whether the sums describe one instant of the worker. Times must be exact. Count, errors and
 * maximum may be one call off, because they are stored before or after the time.
 */
static bool is_an_instant(struct model *model, const struct process_sums *sums, uint64_t now)
{
	uint64_t total = 0, unfinished = 0, open_ns = 0, start;
	uint32_t next;

	for (int i = 0; i < FBT_NR_COUNT; i++) {
		total += sums->rows[i].ns;
		unfinished += sums->unfinished[i];
		open_ns += sums->open_ns[i];
	}
	while (model->total_ns < total)
		model_call(model);
	if (model->total_ns != total || unfinished > 1)
		return false;
	next = model->calls % KINDS;
	for (uint32_t i = 0; i < KINDS; i++) {
		const struct fbt_sum *row = &sums->rows[i], *is = &model->rows[i];
		const struct fbt_sum *was = &model->before[i];

		if (row->ns != is->ns ||
		    (row->calls != is->calls && (i != next || row->calls != is->calls + 1)) ||
		    (row->errors != is->errors && row->errors != was->errors) ||
		    (row->max_ns != is->max_ns && row->max_ns != was->max_ns))
			return false;
	}
	if (!unfinished)
		return open_ns == 0;
	start = model->clock + gap_of(model->calls);
	return sums->unfinished[next] == 1 && open_ns == (now > start ? now - start : 0);
}

struct reading {
	uint64_t agreed, wrong, backwards;
	uint64_t refused; /* number of the worker's instants at which a reading was refused */
	uint64_t refused_at;
	uint64_t last_rows_ns, last_ns;
};

static void read_once(struct worker *worker, struct model *model, struct reading *reading,
		      struct process_sums *sums)
{
	uint64_t now = __atomic_load_n(&worker->clock, __ATOMIC_RELAXED), rows_ns = 0, ns = 0;
	bool agreed;

	memset(sums, 0, sizeof(*sums));
	agreed = slots_add(worker->shared, worker->index, now, sums);
	for (int i = 0; i < FBT_NR_COUNT; i++) {
		rows_ns += sums->rows[i].ns;
		ns += sums->open_ns[i];
	}
	ns += rows_ns;
	reading->backwards += rows_ns < reading->last_rows_ns;
	reading->last_rows_ns = rows_ns;
	reading->agreed += agreed;
	if (!agreed) {
		/*
		 * A worker that is preempted between two stores counts once, however long it takes.
		 */
		reading->refused += now != reading->refused_at;
		reading->refused_at = now;
		return;
	}
	reading->wrong += !is_an_instant(model, sums, now);
	reading->backwards += ns < reading->last_ns;
	reading->last_ns = ns;
}

/*
 * Reads while a worker runs that rests pause_ns in each call and after it. Ends after that many
 * consistent readings.
 */
static void read_beside(struct shared *shared, uint64_t pause_ns, uint64_t agreed,
			struct reading *reading)
{
	struct worker worker = {.shared = shared, .pause_ns = pause_ns};
	struct process_sums *sums = new_sums();
	struct model model = {0};
	pthread_t thread;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), now = begin;

	memset(reading, 0, sizeof(*reading));
	worker.index = (uint32_t)slots_take(shared, 10, 11, 0);
	assert_int_equal(pthread_create(&thread, NULL, work, &worker), 0);
	while (now < begin + 300000000 || (reading->agreed < agreed && now < begin + 20000000000)) {
		read_once(&worker, &model, reading, sums);
		now = clock_ns(CLOCK_MONOTONIC);
	}
	worker.stop = true;
	pthread_join(thread, NULL);
	assert_true(reading->agreed >= agreed);
	/* When the worker has stopped, all its calls must be there. */
	memset(sums, 0, sizeof(*sums));
	assert_true(slots_add(shared, worker.index, worker.clock, sums));
	assert_true(is_an_instant(&model, sums, worker.clock));
	assert_int_equal(model.calls, worker.calls);
	assert_memory_equal(sums->rows, model.rows, sizeof(model.rows));
	free(sums);
	if (getenv("V") && *getenv("V") == '1')
		print_message("# pause %llu ns: %llu calls, %llu agreed, %llu refused\n",
			      (unsigned long long)pause_ns, (unsigned long long)worker.calls,
			      (unsigned long long)reading->agreed,
			      (unsigned long long)reading->refused);
}

/* The shortest time that one reading of an idle slot takes on this machine. */
static uint64_t reading_ns(struct shared *shared)
{
	struct process_sums *sums = new_sums();
	uint32_t slot = (uint32_t)slots_take(shared, 20, 21, 0);
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), ns;

		assert_true(slots_add(shared, slot, 0, sums));
		ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
		least_ns = ns < least_ns ? ns : least_ns;
	}
	free(sums);
	slots_end(shared, 21, 0);
	return least_ns;
}

static void add_beside_a_running_thread_gives_one_instant_of_it(void **state)
{
	struct reading reading;

	read_beside(*state, 4 * reading_ns(*state), 10000, &reading);
	assert_true(reading.refused < reading.agreed / 10);
	assert_int_equal(reading.wrong, 0);
	assert_int_equal(reading.backwards, 0);
}

static void add_beside_a_thread_that_never_rests_refuses_rather_than_guesses(void **state)
{
	struct reading reading;

	read_beside(*state, 0, 0, &reading);
	assert_int_equal(reading.wrong, 0);
	assert_int_equal(reading.backwards, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void a_blocked_thread_counts_from_when_its_call_is_over(void **state)
{
	struct shared *shared = *state;
	struct process_sums sums = {0};
	uint32_t slot = (uint32_t)slots_take(shared, 7, 8, 100);

	slots_mark_blocked(shared, slot);
	assert_true(slots_add(shared, slot, 200, &sums));
	assert_int_equal(sums.thread_ns, 0);
	play_enter(shared, slot, 3, 250);
	play_exit(shared, slot, 0, 260);
	assert_true(slots_add(shared, slot, 300, &sums));
	assert_int_equal(sums.thread_ns, 0);
	assert_true(slots_add(shared, slot, 400, &sums));
	assert_int_equal(sums.thread_ns, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(take_refuses_when_no_slot_is_free),
		TEST(take_refuses_a_thread_id_that_has_no_place),
		TEST(take_leaves_alone_a_thread_that_has_a_slot),
		TEST(end_of_an_unknown_thread_does_nothing),
		TEST(slot_zero_is_never_handed_out),
		TEST(take_fills_the_slot_in),
		TEST(a_blocked_thread_counts_from_when_its_call_is_over),
		TEST(end_keeps_the_slot_until_it_is_given_back),
		TEST(a_slot_given_back_is_zero_and_comes_last),
		TEST(slots_go_round_the_free_list_many_times),
		TEST(add_says_so_if_rows_and_time_never_agree),
		TEST(add_says_so_if_a_call_is_half_entered),
		TEST(add_counts_an_open_call_beside_the_rows),
		TEST(add_takes_an_open_call_from_after_its_instant_for_no_time),
		TEST(add_puts_an_open_call_of_a_great_number_into_the_last_row),
		TEST(add_gives_an_ended_thread_its_life_and_no_open_time),
		TEST(add_sums_threads_and_keeps_the_longest_call),
		TEST(add_beside_a_running_thread_gives_one_instant_of_it),
		TEST(add_beside_a_thread_that_never_rests_refuses_rather_than_guesses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

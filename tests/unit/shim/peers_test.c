/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "shim/peers.h"
#include "gpu_ring_fixture.h"
#include "base/log.h"
#include "record_keeper.h"
#include "stderr_fixture.h"

#define MS 1000000ull
#define S  1000000000ull

struct fixture {
	struct stderr_fixture *text;
	struct player players[3];
	struct record_keeper keeper;
	struct record_output output;
	struct gpu_link *link;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	log_set_level(LOG_INFO);
	if (!fixture || stderr_setup((void **)&fixture->text))
		return -1;
	fixture->output = keeper_output(&fixture->keeper);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	void *text = fixture->text;

	gpu_link__free(fixture->link);
	for (int i = 0; i < 3; i++) {
		if (fixture->players[i].shared)
			player_stop(&fixture->players[i]);
	}
	free(fixture);
	return stderr_teardown(&text);
}

static void make_link(struct fixture *fixture, enum gpu_mode mode)
{
	fixture->link = gpu_link__new(mode, &fixture->output);
	assert_non_null(fixture->link);
}

/* Plays a shim: serves wishes at once, and sends one kernel and one flush a millisecond. */
static void be_a_shim(struct player *player)
{
	uint32_t served = 0, sent = 0;

	for (;;) {
		uint32_t wish = __atomic_load_n(&player->shared->armed, __ATOMIC_ACQUIRE);

		if (wish != served && wish % 2) {
			player->shared->phase = FBT_GPU_WORKING;
			player_put_state(player, FBT_GPU_ARMED, "", "");
		} else if (wish != served) {
			player_put_kernel(player, ++sent, 10, 20);
			player_put_flush(player, clock_ns(CLOCK_MONOTONIC), 1);
			player_put_state(player, FBT_GPU_ENDED, "", "");
			player->shared->phase = FBT_GPU_DORMANT;
		} else if (wish % 2 && sent < 3) {
			player_put_kernel(player, ++sent, 10, 20);
			/* Further flushes within so short a time are not passed on. */
			if (sent == 1)
				player_put_flush(player, clock_ns(CLOCK_MONOTONIC), 0);
			player->shared->pulse++;
		}
		served = wish;
		__atomic_store_n(&player->shared->served, wish, __ATOMIC_RELEASE);
		usleep(1000);
	}
}

/* Plays a shim that collects but ignores the wish to stop. */
static void be_a_deaf_shim(struct player *player)
{
	while (!__atomic_load_n(&player->shared->armed, __ATOMIC_ACQUIRE))
		usleep(1000);
	player_put_state(player, FBT_GPU_ARMED, "", "");
	for (;;) {
		player->shared->pulse++;
		usleep(1000);
	}
}

static void start_shim(struct fixture *fixture, int index, void (*act)(struct player *player))
{
	struct player *player = &fixture->players[index];

	player_make(player, FBT_GPU_HEADER_BYTES + PLAYED_BYTES, PLAYED_SEALS);
	player_fill_header(player);
	player_fork(player, act);
}

/* A process without a shim. */
static void start_plain(struct fixture *fixture, int index)
{
	struct player *player = &fixture->players[index];

	player_make(player, 0, 0);
	player_fork(player, NULL);
}

static void take(struct fixture *fixture, int index)
{
	gpu_link__take(fixture->link, (uint32_t)fixture->players[index].child,
		       clock_ns(CLOCK_MONOTONIC));
}

/*
 * Polls until that many shims are armed and that many records have come. tests/run.sh limits the
 * time.
 */
static void poll_until(struct fixture *fixture, size_t armed, size_t records)
{
	while (gpu_link__armed(fixture->link) < armed || fixture->keeper.count < records) {
		gpu_link__poll(fixture->link, clock_ns(CLOCK_MONOTONIC));
		usleep(1000);
	}
}

static size_t count_states(const struct fixture *fixture, enum fbt_gpu_status status)
{
	size_t count = 0;

	for (size_t i = 0; i < fixture->keeper.count; i++) {
		const struct fbt_gpu_state *record =
			(const void *)(fixture->keeper.bytes + fixture->keeper.at[i]);

		count += record->header.type == FBT_EVENT_GPU_STATE && record->status == status;
	}
	return count;
}

static size_t count_of(const struct fixture *fixture, enum fbt_event_type type)
{
	size_t count = 0;

	for (size_t i = 0; i < fixture->keeper.count; i++)
		count +=
			((const struct fbt_header *)(fixture->keeper.bytes + fixture->keeper.at[i]))
				->type == type;
	return count;
}

static void free_accepts_null(void **state)
{
	gpu_link__free(NULL);
}

static void a_window_of_a_shim_from_arming_to_its_last_record(void **state)
{
	struct fixture *fixture = *state;

	start_shim(fixture, 0, be_a_shim);
	make_link(fixture, GPU_REQUIRE);
	take(fixture, 0);
	assert_true(gpu_link__is_waiting(fixture->link));
	assert_int_equal(gpu_link__check(fixture->link, false), 0);
	poll_until(fixture, 1, 5);
	assert_int_equal(gpu_link__armed(fixture->link), 1);
	assert_false(gpu_link__is_waiting(fixture->link));
	gpu_link__finish(fixture->link);
	assert_int_equal(count_of(fixture, FBT_EVENT_GPU_WORK), 4);
	assert_int_equal(count_of(fixture, FBT_EVENT_GPU_FLUSH), 2);
	assert_int_equal(count_states(fixture, FBT_GPU_ARMED), 1);
	assert_int_equal(count_states(fixture, FBT_GPU_ENDED), 1);
	assert_int_equal(fixture->keeper.count, 8);
	assert_int_equal(gpu_link__check(fixture->link, false), 0);
	assert_int_equal(fixture->players[0].shared->armed % 2, 0);
	assert_silent(fixture->text);
}

/* As with --flag: each window arms the shim again. */
static void a_second_window_is_as_the_first(void **state)
{
	struct fixture *fixture = *state;

	start_shim(fixture, 0, be_a_shim);
	for (size_t i = 1; i <= 2; i++) {
		make_link(fixture, GPU_AUTO);
		take(fixture, 0);
		poll_until(fixture, 1, 0);
		gpu_link__finish(fixture->link);
		gpu_link__free(fixture->link);
		fixture->link = NULL;
		assert_int_equal(count_states(fixture, FBT_GPU_ARMED), i);
		assert_int_equal(count_states(fixture, FBT_GPU_ENDED), i);
	}
}

static void several_processes_have_each_its_own(void **state)
{
	struct fixture *fixture = *state;

	start_shim(fixture, 0, be_a_shim);
	start_plain(fixture, 1);
	start_shim(fixture, 2, be_a_shim);
	make_link(fixture, GPU_AUTO);
	for (int i = 0; i < 3; i++)
		take(fixture, i);
	poll_until(fixture, 2, 0);
	gpu_link__finish(fixture->link);
	assert_int_equal(count_states(fixture, FBT_GPU_ENDED), 2);
	assert_int_equal(count_states(fixture, FBT_GPU_NOT_CUDA), 1);
}

static void a_process_that_is_killed_in_the_window_has_ended(void **state)
{
	struct fixture *fixture = *state;
	uint32_t tgid;

	start_shim(fixture, 0, be_a_shim);
	make_link(fixture, GPU_AUTO);
	take(fixture, 0);
	poll_until(fixture, 1, 3);
	tgid = (uint32_t)fixture->players[0].child;
	player_kill(&fixture->players[0]);
	gpu_link__end(fixture->link, tgid, clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(count_states(fixture, FBT_GPU_EXITED), 1);
	assert_int_equal(gpu_link__armed(fixture->link), 1);
	gpu_link__end(fixture->link, tgid, clock_ns(CLOCK_MONOTONIC));
	gpu_link__finish(fixture->link);
	assert_int_equal(count_states(fixture, FBT_GPU_EXITED), 1);
}

static void a_process_that_is_killed_before_the_end_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;
	uint64_t start_ns;

	start_shim(fixture, 0, be_a_deaf_shim);
	make_link(fixture, GPU_AUTO);
	take(fixture, 0);
	poll_until(fixture, 1, 0);
	player_kill(&fixture->players[0]);
	start_ns = clock_ns(CLOCK_MONOTONIC);
	gpu_link__finish(fixture->link);
	assert_true(clock_ns(CLOCK_MONOTONIC) - start_ns < 1900 * MS);
	assert_int_equal(count_states(fixture, FBT_GPU_EXITED), 1);
}

static void a_shim_that_does_not_stop_is_given_up_in_two_seconds(void **state)
{
	struct fixture *fixture = *state;
	uint64_t start_ns;

	start_shim(fixture, 0, be_a_deaf_shim);
	make_link(fixture, GPU_AUTO);
	take(fixture, 0);
	poll_until(fixture, 1, 0);
	start_ns = clock_ns(CLOCK_MONOTONIC);
	gpu_link__finish(fixture->link);
	assert_true(clock_ns(CLOCK_MONOTONIC) - start_ns >= 2 * S);
	assert_int_equal(count_states(fixture, FBT_GPU_STALLED), 1);
	assert_one_line(fixture->text, "last records");
}

static void off_looks_for_nothing(void **state)
{
	struct fixture *fixture = *state;

	start_shim(fixture, 0, be_a_shim);
	make_link(fixture, GPU_OFF);
	take(fixture, 0);
	take(fixture, 0);
	gpu_link__poll(fixture->link, clock_ns(CLOCK_MONOTONIC));
	gpu_link__finish(fixture->link);
	assert_int_equal(fixture->keeper.count, 1);
	assert_int_equal(count_states(fixture, FBT_GPU_OFF), 1);
	assert_int_equal(fixture->players[0].shared->armed, 0);
	assert_int_equal(gpu_link__check(fixture->link, false), 0);
}

static void without_a_shim_require_is_not_met(void **state)
{
	struct fixture *fixture = *state;

	start_plain(fixture, 0);
	make_link(fixture, GPU_REQUIRE);
	assert_int_equal(gpu_link__check(fixture->link, true), 0);
	take(fixture, 0);
	/* No look has been made yet. */
	assert_int_equal(gpu_link__check(fixture->link, false), 0);
	gpu_link__poll(fixture->link, clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(gpu_link__check(fixture->link, true), 0);
	assert_silent(fixture->text);
	assert_int_equal(gpu_link__check(fixture->link, false), -ENOENT);
	assert_int_equal(gpu_link__check(fixture->link, false), -ENOENT);
	assert_one_line(fixture->text, "--gpu require");
}

static void without_a_process_require_is_not_met(void **state)
{
	struct fixture *fixture = *state;

	make_link(fixture, GPU_REQUIRE);
	assert_int_equal(gpu_link__check(fixture->link, true), 0);
	assert_int_equal(gpu_link__check(fixture->link, false), -ENOENT);
}

static void auto_is_content_without_a_shim(void **state)
{
	struct fixture *fixture = *state;

	start_plain(fixture, 0);
	make_link(fixture, GPU_AUTO);
	take(fixture, 0);
	gpu_link__poll(fixture->link, clock_ns(CLOCK_MONOTONIC));
	gpu_link__finish(fixture->link);
	assert_int_equal(gpu_link__check(fixture->link, false), 0);
	assert_silent(fixture->text);
}

static void free_disarms_what_is_armed(void **state)
{
	struct fixture *fixture = *state;

	start_shim(fixture, 0, be_a_shim);
	make_link(fixture, GPU_AUTO);
	take(fixture, 0);
	poll_until(fixture, 1, 0);
	gpu_link__free(fixture->link);
	fixture->link = NULL;
	assert_int_equal(fixture->players[0].shared->armed % 2, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(a_window_of_a_shim_from_arming_to_its_last_record),
		TEST(a_second_window_is_as_the_first),
		TEST(several_processes_have_each_its_own),
		TEST(a_process_that_is_killed_in_the_window_has_ended),
		TEST(a_process_that_is_killed_before_the_end_is_not_waited_for),
		TEST(a_shim_that_does_not_stop_is_given_up_in_two_seconds),
		TEST(off_looks_for_nothing),
		TEST(without_a_shim_require_is_not_met),
		TEST(without_a_process_require_is_not_met),
		TEST(auto_is_content_without_a_shim),
		TEST(free_disarms_what_is_armed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

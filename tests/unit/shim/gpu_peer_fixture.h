/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A gpu_peer of a played process. Its records are kept, and the test sets the time. Include after
 * cmocka.h.
 */
#ifndef FBT_GPU_PEER_FIXTURE_H
#define FBT_GPU_PEER_FIXTURE_H

#include <stdio.h>

#include "shim/peer.h"
#include "gpu_ring_fixture.h"
#include "base/log.h"
#include "record_keeper.h"
#include "stderr_fixture.h"

#define MS 1000000ull
#define S  1000000000ull
/* The time between two looks is a hundred times the time that one look takes. */
#define LOOK_NS (100 * S)

struct fixture {
	struct stderr_fixture *text;
	struct player player;
	struct record_keeper keeper;
	struct record_output output;
	struct gpu_peer *peer;
	uint64_t now_ns;
};

static inline int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	log_set_level(LOG_INFO);
	if (!fixture || stderr_setup((void **)&fixture->text))
		return -1;
	fixture->output = keeper_output(&fixture->keeper);
	fixture->now_ns = clock_ns(CLOCK_MONOTONIC);
	*state = fixture;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *fixture = *state;
	void *text = fixture->text;

	gpu_peer__free(fixture->peer);
	if (fixture->player.shared)
		player_stop(&fixture->player);
	free(fixture);
	return stderr_teardown(&text);
}

static inline void make_peer(struct fixture *fixture)
{
	fixture->peer =
		gpu_peer__new((uint32_t)fixture->player.child, &fixture->output, fixture->now_ns);
	assert_non_null(fixture->peer);
}

/* The last state record. */
static inline const struct fbt_gpu_state *last_state(const struct fixture *fixture)
{
	for (size_t i = fixture->keeper.count; i-- > 0;) {
		const struct fbt_header *record =
			(const void *)(fixture->keeper.bytes + fixture->keeper.at[i]);

		if (record->type == FBT_EVENT_GPU_STATE)
			return (const struct fbt_gpu_state *)record;
	}
	fail_msg("nothing was said");
	return NULL;
}

/* Compares the last state record. detail: a part of its text; "" if it has no text. */
static inline void assert_said(const struct fixture *fixture, enum fbt_gpu_status status,
			       const char *detail)
{
	const struct fbt_gpu_state *said = last_state(fixture);

	assert_int_equal(said->status, status);
	assert_int_equal(said->tgid, fixture->player.child);
	if (detail[0])
		assert_non_null(strstr(kept_string(said, sizeof(*said), 0), detail));
	else
		assert_string_equal(kept_string(said, sizeof(*said), 0), "");
}

static inline void look(struct fixture *fixture)
{
	assert_true(gpu_peer__is_due(fixture->peer, fixture->now_ns));
	gpu_peer__look(fixture->peer, fixture->now_ns, S);
}

static inline void look_after(struct fixture *fixture, uint64_t ns)
{
	fixture->now_ns += ns;
	look(fixture);
}

static inline void poll_after(struct fixture *fixture, uint64_t ns)
{
	fixture->now_ns += ns;
	gpu_peer__poll(fixture->peer, fixture->now_ns);
}

/* A shim that the tool has asked to collect. */
static inline void ask(struct fixture *fixture)
{
	player_start(&fixture->player);
	make_peer(fixture);
	look(fixture);
	assert_int_equal(fixture->player.shared->armed, 1);
	assert_true(gpu_peer__is_waiting(fixture->peer));
}

static inline void answer(struct fixture *fixture, enum fbt_gpu_phase phase)
{
	fixture->player.shared->phase = phase;
	fixture->player.shared->served = fixture->player.shared->armed;
}

/* A shim that the tool has asked to collect, and that does. */
static inline void arm(struct fixture *fixture)
{
	ask(fixture);
	player_put_state(&fixture->player, FBT_GPU_ARMED, "", "/usr/lib/libcupti.so.12");
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
}

static inline void refuse(struct fixture *fixture, enum fbt_gpu_status status, const char *detail)
{
	ask(fixture);
	player_put_state(&fixture->player, status, detail, "");
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, status, detail);
	assert_false(gpu_peer__is_waiting(fixture->peer));
	assert_false(gpu_peer__was_armed(fixture->peer));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif

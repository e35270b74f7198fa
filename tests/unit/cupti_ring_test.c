/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "shim_fixture.h"
#include "shim_ring.h"

struct fixture {
	struct shim_ring ring;
	struct peer peer;
};

static struct fixture fixture;

static int setup(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	if (shim_ring__create(&fixture.ring) || shim_ring__reserve(&fixture.ring))
		return -1;
	return peer_open(&fixture.peer, getpid()) ? 0 : -1;
}

static int teardown(void **state)
{
	peer_close(&fixture.peer);
	shim_ring__destroy(&fixture.ring);
	return 0;
}

static bool put(uint64_t correlation, enum shim_frame_kind kind)
{
	struct fbt_gpu_work work = {
		.header = {.type = FBT_EVENT_GPU_WORK, .size = sizeof(work)},
		.start_ns = correlation,
	};

	return shim_ring__put(&fixture.ring, &work.header, kind);
}

static void test_header(void **state)
{
	const struct fbt_gpu_ring *shared = fixture.peer.shared;
	int seals;

	assert_int_equal(shared->magic, FBT_GPU_MAGIC);
	assert_memory_equal(&shared->magic, "FRMBTGPU", 8);
	assert_int_equal(shared->version, FBT_GPU_VERSION);
	assert_int_equal(shared->header_bytes, FBT_GPU_HEADER_BYTES);
	assert_int_equal(shared->ring_bytes, FBT_GPU_RING_BYTES);
	assert_int_equal(shared->phase, FBT_GPU_DORMANT);
	seals = fcntl(fixture.ring.fd, F_GET_SEALS);
	assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(fcntl(fixture.ring.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_true(fixture.ring.fd > STDERR_FILENO);
	assert_int_equal(ftruncate(fixture.ring.fd, 0), -1);
}

/* An engine may be started with its standard streams closed; fprintf shall not go to the ring. */
static void test_closed_streams(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct shim_ring ring;

		close(0);
		close(1);
		close(2);
		_exit(shim_ring__create(&ring) || ring.fd <= 2);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void check_frame(void *ctx, const struct fbt_header *frame)
{
	uint64_t *next = ctx;

	if (frame->type == FBT_EVENT_GPU_WORK)
		assert_int_equal(((const struct fbt_gpu_work *)frame)->start_ns, (*next)++);
}

/* Twice around, in bites of different length, so that frames lie across the end. */
static void test_wrap(void **state)
{
	uint64_t total = 2 * FBT_GPU_RING_BYTES / sizeof(struct fbt_gpu_work) + 17;
	uint64_t next = 0;

	fixture.peer.on_frame = check_frame;
	fixture.peer.ctx = &next;
	for (uint64_t i = 0; i < total; i++) {
		assert_true(put(i, SHIM_FRAME_RECORD));
		if (i % 1009)
			continue;
		shim_ring__publish(&fixture.ring);
		assert_true(peer_read(&fixture.peer));
	}
	shim_ring__publish(&fixture.ring);
	assert_true(peer_read(&fixture.peer));
	assert_int_equal(next, total);
	assert_int_equal(FBT_GPU_RING_BYTES % sizeof(struct fbt_gpu_work) != 0, 1);
}

static void test_unseen_before_published(void **state)
{
	assert_true(put(1, SHIM_FRAME_RECORD));
	assert_int_equal(fixture.peer.shared->head, 0);
	shim_ring__publish(&fixture.ring);
	assert_int_equal(fixture.peer.shared->head, sizeof(struct fbt_gpu_work));
}

/* As with a reader that was killed: no more than there is room for, and room for how things stand.
 */
static void test_full(void **state)
{
	uint64_t count = 0;

	while (put(count, SHIM_FRAME_RECORD))
		count++;
	assert_int_equal(count,
			 (FBT_GPU_RING_BYTES - SHIM_RING_RESERVE) / sizeof(struct fbt_gpu_work));
	assert_true(put(count, SHIM_FRAME_CONTROL));
	shim_ring__publish(&fixture.ring);
	assert_true(peer_read(&fixture.peer));
	assert_int_equal(fixture.peer.counts[FBT_EVENT_GPU_WORK], count + 1);
	assert_true(put(0, SHIM_FRAME_RECORD));
}

static void test_bad_tail(void **state)
{
	static const uint64_t tails[] = {1, 1ull << 40, UINT64_MAX, UINT64_MAX - 4096};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		fixture.peer.shared->tail = tails[i];
		assert_false(put(1, SHIM_FRAME_RECORD));
		assert_false(put(1, SHIM_FRAME_CONTROL));
	}
	fixture.peer.shared->tail = 0;
	assert_true(put(1, SHIM_FRAME_RECORD));
	/* One that is too far behind is a full ring as well. */
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(put(i, SHIM_FRAME_RECORD));
	fixture.peer.shared->tail = fixture.ring.head - FBT_GPU_RING_BYTES;
	assert_false(put(1, SHIM_FRAME_CONTROL));
}

/* What the tool writes over the header changes nothing for the writer. */
static void test_spoiled_header(void **state)
{
	fixture.peer.shared->ring_bytes = UINT64_MAX;
	fixture.peer.shared->header_bytes = 7;
	fixture.peer.shared->head = UINT64_MAX / 2;
	assert_true(put(1, SHIM_FRAME_RECORD));
	shim_ring__publish(&fixture.ring);
	assert_int_equal(fixture.peer.shared->head, sizeof(struct fbt_gpu_work));
	assert_true(peer_read(&fixture.peer));
	assert_int_equal(fixture.peer.counts[FBT_EVENT_GPU_WORK], 1);
}

static void test_strings(void **state)
{
	char longer[2 * FBT_GPU_FRAME_MAX];
	struct fbt_gpu_state record = {.status = FBT_GPU_BUSY};
	const char *strings[] = {"held by nsys", longer};

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_true(shim_ring__put_strings(&fixture.ring, &record, sizeof(record),
					   FBT_EVENT_GPU_STATE, SHIM_FRAME_CONTROL, strings, 2));
	strings[1] = strings[0];
	strings[0] = longer;
	assert_true(shim_ring__put_strings(&fixture.ring, &record, sizeof(record),
					   FBT_EVENT_GPU_STATE, SHIM_FRAME_CONTROL, strings, 2));
	strings[0] = "";
	assert_true(shim_ring__put_strings(&fixture.ring, &record, sizeof(record),
					   FBT_EVENT_GPU_STATE, SHIM_FRAME_CONTROL, strings, 2));
	shim_ring__publish(&fixture.ring);
	assert_int_equal(fixture.ring.head % 8, 0);
	assert_true(peer_read(&fixture.peer));
	assert_int_equal(fixture.peer.counts[FBT_EVENT_GPU_STATE], 3);
	assert_string_equal(fixture.peer.detail, "");
	assert_string_equal(fixture.peer.path, "held by nsys");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed_streams, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unseen_before_published, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_tail, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spoiled_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strings, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

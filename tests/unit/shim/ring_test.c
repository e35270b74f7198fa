/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>

#include "shim/ring.h"
#include "gpu_ring_fixture.h"

#define SOUND_BYTES (FBT_GPU_HEADER_BYTES + PLAYED_BYTES)

/* What read_ring() has delivered. */
struct reading {
	size_t count;
	uint32_t last; /* correlation of the last record */
	bool in_order; /* each correlation is the one before plus 1 */
	bool sound;
};

struct fixture {
	struct player player;
	struct gpu_ring *ring;
	uint32_t version; /* of the ring that was opened last */
	struct reading reading;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	fixture->reading.in_order = true;
	fixture->reading.sound = true;
	*state = fixture;
	return 0;
}

static void close_ring(struct fixture *fixture)
{
	gpu_ring__free(fixture->ring);
	fixture->ring = NULL;
}

/* Closes the ring and ends its process, so that the fixture can have another one. */
static void end(struct fixture *fixture)
{
	close_ring(fixture);
	if (fixture->player.shared)
		player_stop(&fixture->player);
	fixture->player.shared = NULL;
}

static int teardown(void **state)
{
	end(*state);
	free(*state);
	return 0;
}

static int open_ring(struct fixture *fixture)
{
	uint32_t holder;

	return gpu_ring__open(&fixture->ring, (uint32_t)fixture->player.child, &fixture->version,
			      &holder);
}

/* Opens a sound ring and arms it. */
static void open_sound(struct fixture *fixture)
{
	player_start(&fixture->player);
	assert_int_equal(open_ring(fixture), 0);
	gpu_ring__arm(fixture->ring);
}

static void take(void *ctx, struct fbt_header *record)
{
	struct reading *reading = ctx;
	const struct fbt_gpu_work *work = (const struct fbt_gpu_work *)record;

	reading->count++;
	if (record->type != FBT_EVENT_GPU_WORK)
		return;
	reading->in_order &= work->correlation == reading->last + 1;
	reading->sound &= work->kind < FBT_GPU_WORK_KIND_COUNT && work->end_ns >= work->start_ns;
	reading->last = work->correlation;
}

static int read_ring(struct fixture *fixture)
{
	return gpu_ring__read(fixture->ring, take, &fixture->reading);
}

static void free_accepts_null(void **state)
{
	gpu_ring__free(NULL);
}

static void a_process_without_a_shim_has_no_ring(void **state)
{
	struct fixture *fixture = *state;

	player_make(&fixture->player, FBT_GPU_HEADER_BYTES, 0);
	close(fixture->player.fd);
	madvise(fixture->player.shared, FBT_GPU_HEADER_BYTES, MADV_DONTFORK);
	player_fork(&fixture->player, NULL);
	assert_int_equal(open_ring(fixture), -ENOENT);
	assert_null(fixture->ring);
	player_kill(&fixture->player);
}

static void a_process_that_is_gone_is_esrch(void **state)
{
	struct fixture *fixture = *state;
	uint32_t version, holder;
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(gpu_ring__open(&fixture->ring, (uint32_t)child, &version, &holder),
			 -ESRCH);
}

static void a_ring_is_found_among_thousands_of_files(void **state)
{
	struct fixture *fixture = *state;
	int fds[2000], count = 0;

	while (count < 2000 && (fds[count] = open("/dev/null", O_RDONLY)) >= 0)
		count++;
	close(fds[--count]);
	player_start(&fixture->player);
	while (count)
		close(fds[--count]);
	assert_int_equal(open_ring(fixture), 0);
}

static void hostile_names_are_passed_over(void **state)
{
	static const char *const names[] = {"ferrum-cupti (deleted)", "ferrum-cuptix",
					    "ferrum-cupt", "ferrum-cupti\n", ""};
	struct fixture *fixture = *state;
	int fds[5];

	for (int i = 0; i < 5; i++)
		fds[i] = memfd_create(names[i], MFD_ALLOW_SEALING);
	player_make(&fixture->player, FBT_GPU_HEADER_BYTES, 0);
	close(fixture->player.fd);
	player_fork(&fixture->player, NULL);
	for (int i = 0; i < 5; i++)
		close(fds[i]);
	assert_int_equal(open_ring(fixture), -ENOENT);
	player_kill(&fixture->player);
}

struct header {
	uint64_t magic;
	uint32_t version, header_bytes;
	uint64_t ring_bytes;
};

static const struct header sound = {FBT_GPU_MAGIC, FBT_GPU_VERSION, FBT_GPU_HEADER_BYTES,
				    PLAYED_BYTES};

/* The result of opening a memfd of that size with those seals and that header. */
static int open_with(struct fixture *fixture, size_t bytes, int seals, struct header header)
{
	struct fbt_gpu_ring *shared;
	int err;

	player_make(&fixture->player, bytes, 0);
	shared = fixture->player.shared;
	if (bytes >= FBT_GPU_HEADER_BYTES) {
		shared->magic = header.magic;
		shared->version = header.version;
		shared->header_bytes = header.header_bytes;
		shared->ring_bytes = header.ring_bytes;
	}
	if (seals)
		assert_int_equal(fcntl(fixture->player.fd, F_ADD_SEALS, seals), 0);
	player_fork(&fixture->player, NULL);
	err = open_ring(fixture);
	end(fixture);
	return err;
}

static void an_unsealed_file_is_refused(void **state)
{
	static const int seals[] = {0, F_SEAL_GROW, F_SEAL_SHRINK};

	for (size_t i = 0; i < sizeof(seals) / sizeof(seals[0]); i++)
		assert_int_equal(open_with(*state, SOUND_BYTES, seals[i], sound), -EBADMSG);
}

static void a_file_that_is_too_small_is_refused(void **state)
{
	static const size_t bytes[] = {0, 64, FBT_GPU_HEADER_BYTES, SOUND_BYTES - 1};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		assert_int_equal(open_with(*state, bytes[i], PLAYED_SEALS, sound), -EBADMSG);
}

static void a_file_that_cannot_be_written_is_refused(void **state)
{
	assert_int_equal(open_with(*state, SOUND_BYTES, PLAYED_SEALS | F_SEAL_FUTURE_WRITE, sound),
			 -EBADMSG);
}

static void a_header_that_lies_is_refused(void **state)
{
	static const struct header lies[] = {
		{FBT_GPU_MAGIC ^ 1, FBT_GPU_VERSION, FBT_GPU_HEADER_BYTES, PLAYED_BYTES},
		{FBT_GPU_MAGIC, FBT_GPU_VERSION, 64, PLAYED_BYTES},
		{FBT_GPU_MAGIC, FBT_GPU_VERSION, FBT_GPU_HEADER_BYTES - 8, PLAYED_BYTES},
		{FBT_GPU_MAGIC, FBT_GPU_VERSION, 0xfffff000u, PLAYED_BYTES},
		{FBT_GPU_MAGIC, FBT_GPU_VERSION, FBT_GPU_HEADER_BYTES, 4096},
		{FBT_GPU_MAGIC, FBT_GPU_VERSION, FBT_GPU_HEADER_BYTES, 0},
		{FBT_GPU_MAGIC, FBT_GPU_VERSION, FBT_GPU_HEADER_BYTES, PLAYED_BYTES - 8},
		{FBT_GPU_MAGIC, FBT_GPU_VERSION, FBT_GPU_HEADER_BYTES, PLAYED_BYTES + 4096},
		{FBT_GPU_MAGIC, FBT_GPU_VERSION, FBT_GPU_HEADER_BYTES, ~0ull << 12},
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		assert_int_equal(open_with(*state, SOUND_BYTES, PLAYED_SEALS, lies[i]), -EBADMSG);
}

static void a_ring_that_is_being_made_is_none_yet(void **state)
{
	struct header header = sound;

	header.magic = 0;
	assert_int_equal(open_with(*state, SOUND_BYTES, PLAYED_SEALS, header), -ENOENT);
	assert_int_equal(open_with(*state, SOUND_BYTES, 0, header), -ENOENT);
	assert_int_equal(open_with(*state, 0, 0, header), -ENOENT);
}

static void another_version_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct header header = sound;

	header.version = 77;
	assert_int_equal(open_with(fixture, SOUND_BYTES, PLAYED_SEALS, header), -EPROTONOSUPPORT);
	assert_int_equal(fixture->version, 77);
}

static void a_child_that_has_only_the_descriptor_has_no_ring(void **state)
{
	struct fixture *fixture = *state;

	player_make(&fixture->player, SOUND_BYTES, PLAYED_SEALS);
	player_fill_header(&fixture->player);
	madvise(fixture->player.shared, SOUND_BYTES, MADV_DONTFORK);
	player_fork(&fixture->player, NULL);
	assert_int_equal(open_ring(fixture), -ENOENT);
}

/* Invalid memfds before and after a sound one do not hide it. */
static void the_sound_one_of_several_is_taken(void **state)
{
	struct fixture *fixture = *state;
	struct player bad, worse;

	player_make(&bad, SOUND_BYTES, PLAYED_SEALS);
	player_fill_header(&bad);
	bad.shared->magic++;
	player_make(&fixture->player, SOUND_BYTES, PLAYED_SEALS);
	player_fill_header(&fixture->player);
	player_make(&worse, SOUND_BYTES, 0);
	player_fork(&fixture->player, NULL);
	assert_int_equal(open_ring(fixture), 0);
	player_stop(&bad);
	player_stop(&worse);
}

static void a_second_tracer_is_told_who_is_first(void **state)
{
	struct fixture *fixture = *state;
	uint32_t version, holder = 0;
	struct gpu_ring *second;
	int status;
	pid_t other;

	open_sound(fixture);
	other = fork();
	if (!other) {
		int err =
			gpu_ring__open(&second, (uint32_t)fixture->player.child, &version, &holder);

		_exit(err == -EBUSY && holder == (uint32_t)getppid() ? 0 : 1);
	}
	waitpid(other, &status, 0);
	assert_int_equal(status, 0);
}

/* With -a another tracer is a target too. The ring that it has mapped belongs to its own target. */
static void a_tracer_has_no_ring_of_its_own(void **state)
{
	struct fixture *fixture = *state;
	uint32_t version, holder;
	struct gpu_ring *ring;
	int status;
	pid_t other;

	open_sound(fixture);
	other = fork();
	if (!other)
		_exit(gpu_ring__open(&ring, (uint32_t)getppid(), &version, &holder) == -ENOENT ? 0
											       : 1);
	waitpid(other, &status, 0);
	assert_int_equal(status, 0);
}

static void a_tracer_that_was_killed_holds_nothing(void **state)
{
	struct fixture *fixture = *state;
	uint32_t version, holder;
	int ends[2];
	pid_t other;
	char byte;

	player_start(&fixture->player);
	assert_int_equal(pipe(ends), 0);
	other = fork();
	if (!other) {
		struct gpu_ring *ring;

		if (gpu_ring__open(&ring, (uint32_t)fixture->player.child, &version, &holder))
			_exit(1);
		gpu_ring__arm(ring);
		if (write(ends[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(open_ring(fixture), -EBUSY);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	assert_int_equal(open_ring(fixture), 0);
	/* The dead tracer left the ring armed, so the wish must change for the shim to see it. */
	assert_int_equal(fixture->player.shared->armed, 1);
	gpu_ring__arm(fixture->ring);
	assert_int_equal(fixture->player.shared->armed, 3);
	close(ends[0]);
	close(ends[1]);
}

static void arming_counts_up_and_disarming_too(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_ring *shared;
	uint32_t beat;

	open_sound(fixture);
	shared = fixture->player.shared;
	assert_int_equal(shared->armed, 1);
	/* The shim may check for the tracer's beat as soon as it wakes up. */
	assert_int_equal(shared->beat, 1);
	assert_false(gpu_ring__is_dormant(fixture->ring));
	shared->phase = FBT_GPU_WORKING;
	shared->served = 1;
	assert_false(gpu_ring__is_dormant(fixture->ring));
	gpu_ring__disarm(fixture->ring);
	gpu_ring__disarm(fixture->ring);
	assert_int_equal(shared->armed, 2);
	assert_false(gpu_ring__is_dormant(fixture->ring));
	shared->phase = FBT_GPU_DORMANT;
	assert_false(gpu_ring__is_dormant(fixture->ring));
	shared->served = 2;
	assert_true(gpu_ring__is_dormant(fixture->ring));
	beat = shared->beat;
	gpu_ring__beat(fixture->ring);
	assert_int_equal(shared->beat, beat + 1);
	shared->pulse = 42;
	assert_int_equal(gpu_ring__pulse(fixture->ring), 42);
	shared->phase = FBT_GPU_DEAD;
	assert_true(gpu_ring__is_dead(fixture->ring));
	assert_true(gpu_ring__is_dormant(fixture->ring));
}

static void free_disarms(void **state)
{
	struct fixture *fixture = *state;

	open_sound(fixture);
	close_ring(fixture);
	assert_int_equal(fixture->player.shared->armed, 2);
}

static void free_leaves_a_wish_alone_that_is_not_ours(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	fixture->player.shared->armed = 5;
	assert_int_equal(open_ring(fixture), 0);
	close_ring(fixture);
	assert_int_equal(fixture->player.shared->armed, 5);
}

static void arming_skips_what_was_there_before(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	player_put_kernel(&fixture->player, 1, 10, 20);
	assert_int_equal(open_ring(fixture), 0);
	player_put_kernel(&fixture->player, 2, 10, 20);
	gpu_ring__arm(fixture->ring);
	assert_int_equal(read_ring(fixture), 0);
	assert_int_equal(fixture->reading.count, 0);
	assert_int_equal(fixture->player.shared->tail, fixture->player.head);
	player_put_kernel(&fixture->player, 1, 10, 20);
	assert_int_equal(read_ring(fixture), 0);
	assert_int_equal(fixture->reading.count, 1);
	assert_int_equal(fixture->player.shared->tail, fixture->player.head);
}

static void what_a_shim_said_before_can_be_read_without_arming(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	player_put_state(&fixture->player, FBT_GPU_NO_DRIVER, "", "");
	assert_int_equal(open_ring(fixture), 0);
	assert_int_equal(read_ring(fixture), 0);
	assert_int_equal(fixture->reading.count, 1);
}

static void frames_go_around_the_end_in_order(void **state)
{
	struct fixture *fixture = *state;
	uint32_t sent = 0;

	open_sound(fixture);
	/* Three times around the ring, whose size is no multiple of a frame's 104 bytes. */
	while (fixture->player.head < 3 * PLAYED_BYTES) {
		for (int i = 0; i < 1000; i++)
			player_put_kernel(&fixture->player, ++sent, 10, 20);
		assert_int_equal(read_ring(fixture), 0);
	}
	assert_int_equal(fixture->reading.count, sent);
	assert_true(fixture->reading.in_order);
	assert_int_equal(gpu_ring__skipped(fixture->ring), 0);
}

static void a_full_ring_is_read_whole(void **state)
{
	struct fixture *fixture = *state;
	uint32_t sent = 0;

	open_sound(fixture);
	while (fixture->player.head + sizeof(struct fbt_gpu_work) <= PLAYED_BYTES)
		player_put_kernel(&fixture->player, ++sent, 10, 20);
	assert_int_equal(read_ring(fixture), 0);
	assert_int_equal(fixture->reading.count, sent);
}

static void what_is_not_published_is_not_read(void **state)
{
	struct fbt_gpu_work work = {.header = {FBT_EVENT_GPU_WORK, 0, sizeof(work)}};
	struct fixture *fixture = *state;

	open_sound(fixture);
	player_write(&fixture->player, &work, sizeof(work));
	assert_int_equal(read_ring(fixture), 0);
	assert_int_equal(fixture->reading.count, 0);
}

/* Impossible sizes, and 4160, which ends where another frame begins. */
static void a_size_that_lies_ends_the_reading(void **state)
{
	static const uint32_t sizes[] = {0,    4,    7,	      12,	   105,
					 4160, 8192, 1 << 20, 0xfffffff8u, 0xffffffffu};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fixture *fixture = *state;
		struct fbt_gpu_work work = {.header = {FBT_EVENT_GPU_WORK, 0, sizes[i]}};

		open_sound(fixture);
		player_put_kernel(&fixture->player, 1, 10, 20);
		player_write(&fixture->player, &work, sizeof(work));
		for (int j = 0; j < 100; j++)
			player_put_kernel(&fixture->player, 2, 10, 20);
		fixture->reading.count = 0;
		assert_int_equal(read_ring(fixture), -EBADMSG);
		/* Records before the bad frame are delivered; nothing after it is. */
		assert_int_equal(fixture->reading.count, 1);
		assert_int_equal(read_ring(fixture), -EBADMSG);
		assert_int_equal(fixture->reading.count, 1);
		end(fixture);
	}
}

static void a_size_that_is_no_multiple_of_8_ends_the_reading_whatever_follows(void **state)
{
	struct fbt_gpu_work work = {.header = {FBT_EVENT_GPU_WORK, 0, sizeof(work) + 4}};
	struct fixture *fixture = *state;

	open_sound(fixture);
	player_put_kernel(&fixture->player, 1, 10, 20);
	player_write(&fixture->player, &work, sizeof(work));
	player_write(&fixture->player, "1234", 4);
	work.header.size = sizeof(work);
	player_write(&fixture->player, &work, sizeof(work));
	player_write(&fixture->player, "1234", 4);
	player_publish(&fixture->player);
	assert_int_equal(read_ring(fixture), -EBADMSG);
	assert_int_equal(fixture->reading.count, 1);
}

static void a_frame_longer_than_what_is_there_ends_the_reading(void **state)
{
	struct fbt_gpu_work work = {.header = {FBT_EVENT_GPU_WORK, 0, sizeof(work)}};
	struct fixture *fixture = *state;

	open_sound(fixture);
	player_write(&fixture->player, &work, sizeof(work) - 8);
	player_publish(&fixture->player);
	assert_int_equal(read_ring(fixture), -EBADMSG);
	assert_int_equal(fixture->reading.count, 0);
}

static void unsound_frames_are_skipped_and_counted(void **state)
{
	struct fbt_gpu_work backwards = {.start_ns = 20, .end_ns = 10};
	struct fbt_gpu_work no_kind = {.kind = 99};
	struct fbt_step step = {.end_ns = 1};
	struct fbt_gpu_work unknown = {.start_ns = 1, .end_ns = 2};
	struct {
		struct fbt_gpu_name name;
		char text[8];
	} unended = {.name = {.id = 1}, .text = "12345678"};
	struct fixture *fixture = *state;
	struct player *player = &fixture->player;

	open_sound(fixture);
	player_put(player, &backwards, sizeof(backwards), FBT_EVENT_GPU_WORK);
	player_put(player, &no_kind, sizeof(no_kind), FBT_EVENT_GPU_WORK);
	player_put(player, &step, sizeof(step), FBT_EVENT_STEP);
	player_put(player, &unknown, sizeof(unknown), (enum fbt_event_type)23);
	player_put(player, &unknown, sizeof(unknown), (enum fbt_event_type)60000);
	player_put(player, &unknown, 8, FBT_EVENT_GPU_WORK);
	player_put(player, &unended, sizeof(unended), FBT_EVENT_GPU_NAME);
	player_put_kernel(player, 1, 10, 20);
	assert_int_equal(read_ring(fixture), 0);
	assert_int_equal(fixture->reading.count, 1);
	assert_int_equal(gpu_ring__skipped(fixture->ring), 7);
}

static void a_head_that_cannot_be_ends_the_reading(void **state)
{
	static const uint64_t moves[] = {(uint64_t)-8, 4, PLAYED_BYTES + 8, 1ull << 63,
					 (uint64_t)-1};

	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		struct fixture *fixture = *state;

		open_sound(fixture);
		player_put_kernel(&fixture->player, 1, 10, 20);
		assert_int_equal(read_ring(fixture), 0);
		fixture->player.head += moves[i];
		player_publish(&fixture->player);
		assert_int_equal(read_ring(fixture), -EBADMSG);
		end(fixture);
	}
}

static void a_head_that_goes_back_over_what_was_not_read_yet_is_seen(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	for (uint32_t i = 1; i <= 3; i++)
		player_put_kernel(&fixture->player, i, 10, 20);
	assert_int_equal(open_ring(fixture), 0);
	fixture->player.head -= sizeof(struct fbt_gpu_work);
	player_publish(&fixture->player);
	assert_int_equal(read_ring(fixture), -EBADMSG);
}

/* This size divides the size of any ring: wherever a frame may begin, one does. */
struct even_frame {
	struct fbt_gpu_name name;
	char text[40];
};

static const struct even_frame even_frame = {
	.name = {.header = {FBT_EVENT_GPU_NAME, 0, sizeof(even_frame)}, .id = 1},
	.text = "a name of as many bytes as it takes"};

static void what_a_writer_has_written_over_is_not_read(void **state)
{
	struct fixture *fixture = *state;

	open_sound(fixture);
	while (fixture->player.head <= PLAYED_BYTES)
		player_write(&fixture->player, &even_frame, sizeof(even_frame));
	player_publish(&fixture->player);
	assert_int_equal(read_ring(fixture), -EBADMSG);
	assert_int_equal(fixture->reading.count, 0);
}

/* A ring twice as large as a shim's, full of frames. */
static void open_large(struct fixture *fixture)
{
	struct even_frame frames[1024];
	struct player *player = &fixture->player;

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		frames[i] = even_frame;
	player_make(player, FBT_GPU_HEADER_BYTES + 2 * FBT_GPU_RING_BYTES, PLAYED_SEALS);
	for (off_t at = 0; at < 2 * FBT_GPU_RING_BYTES; at += sizeof(frames))
		assert_int_equal(
			pwrite(player->fd, frames, sizeof(frames), FBT_GPU_HEADER_BYTES + at),
			sizeof(frames));
	player_fill_header(player);
	player->shared->ring_bytes = 2 * FBT_GPU_RING_BYTES;
	player_fork(player, NULL);
	assert_int_equal(open_ring(fixture), 0);
	gpu_ring__arm(fixture->ring);
	player->head = 2 * FBT_GPU_RING_BYTES;
	player_publish(player);
}

static void so_much_is_read_at_once_and_then_the_rest(void **state)
{
	struct fixture *fixture = *state;

	open_large(fixture);
	for (size_t read = 1; read <= 2; read++) {
		assert_int_equal(read_ring(fixture), 0);
		assert_int_equal(fixture->reading.count,
				 read * FBT_GPU_RING_BYTES / sizeof(even_frame));
	}
}

static void a_head_that_goes_back_over_the_rest_is_seen(void **state)
{
	struct fixture *fixture = *state;

	open_large(fixture);
	assert_int_equal(read_ring(fixture), 0);
	fixture->player.head -= sizeof(even_frame);
	player_publish(&fixture->player);
	assert_int_equal(read_ring(fixture), -EBADMSG);
}

/* Only records from before arming need the tail. Later ones are read from the head at arming. */
static void from_a_tail_of_nonsense_nothing_is_read(void **state)
{
	static const uint64_t tails[] = {4, 1ull << 63, PLAYED_BYTES};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct fixture *fixture = *state;

		player_start(&fixture->player);
		player_put_state(&fixture->player, FBT_GPU_NO_DRIVER, "", "");
		fixture->player.shared->tail = tails[i];
		assert_int_equal(open_ring(fixture), 0);
		assert_int_equal(read_ring(fixture), 0);
		assert_int_equal(fixture->reading.count, 0);
		end(fixture);
	}
}

static void a_tail_of_nonsense_is_not_believed(void **state)
{
	static const uint64_t tails[] = {8, 4, ~0ull, 1ull << 63, PLAYED_BYTES};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct fixture *fixture = *state;

		player_start(&fixture->player);
		fixture->player.shared->tail = tails[i];
		assert_int_equal(open_ring(fixture), 0);
		fixture->player.shared->tail = ~tails[i];
		gpu_ring__arm(fixture->ring);
		player_put_kernel(&fixture->player, 1, 10, 20);
		fixture->reading.count = 0;
		assert_int_equal(read_ring(fixture), 0);
		assert_int_equal(fixture->reading.count, 1);
		end(fixture);
	}
}

static void positions_far_on_are_as_good_as_any(void **state)
{
	struct fixture *fixture = *state;
	uint32_t sent = 0;

	player_start(&fixture->player);
	fixture->player.head = (1ull << 62) + PLAYED_BYTES - 8;
	player_publish(&fixture->player);
	assert_int_equal(open_ring(fixture), 0);
	gpu_ring__arm(fixture->ring);
	for (int i = 0; i < 100; i++)
		player_put_kernel(&fixture->player, ++sent, 10, 20);
	assert_int_equal(read_ring(fixture), 0);
	assert_int_equal(fixture->reading.count, 100);
	assert_true(fixture->reading.in_order);
}

/* Writes kernel records until it is killed. head stays within one ring of tail. */
static void write_for_ever(struct player *player)
{
	for (uint32_t sent = 1;; sent++) {
		while (player->head + 4096 -
			       __atomic_load_n(&player->shared->tail, __ATOMIC_ACQUIRE) >
		       PLAYED_BYTES)
			;
		player_put_kernel(player, sent, sent, sent + 1);
	}
}

static void all_that_a_killed_writer_published_is_read(void **state)
{
	struct fixture *fixture = *state;

	srand(4);
	for (int i = 0; i < 20; i++) {
		uint64_t head;

		player_make(&fixture->player, SOUND_BYTES, PLAYED_SEALS);
		player_fill_header(&fixture->player);
		player_fork(&fixture->player, write_for_ever);
		/* Not armed: arming would skip the records that are already there. */
		while (open_ring(fixture))
			;
		fixture->reading = (struct reading){.in_order = true, .sound = true};
		usleep((useconds_t)(rand() % 3000));
		assert_int_equal(read_ring(fixture), 0);
		usleep((useconds_t)(rand() % 3000));
		player_kill(&fixture->player);
		assert_int_equal(read_ring(fixture), 0);
		head = fixture->player.shared->head;
		assert_int_equal(fixture->player.shared->tail, head);
		assert_int_equal(fixture->reading.count, head / sizeof(struct fbt_gpu_work));
		assert_true(fixture->reading.in_order);
		assert_true(fixture->reading.sound);
		end(fixture);
	}
}

static void a_killed_reader_leaves_the_writer_going(void **state)
{
	struct fixture *fixture = *state;
	uint64_t head;
	pid_t reader;

	player_start(&fixture->player);
	reader = fork();
	if (!reader) {
		if (open_ring(fixture))
			_exit(1);
		gpu_ring__arm(fixture->ring);
		for (;;)
			read_ring(fixture);
	}
	while (!__atomic_load_n(&fixture->player.shared->armed, __ATOMIC_ACQUIRE))
		usleep(100);
	for (uint32_t i = 1; i <= 1000; i++)
		player_put_kernel(&fixture->player, i, 1, 2);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	/* The writer does not wait for a dead reader: it stays within one ring of the tail. */
	head = fixture->player.head;
	assert_true(head - fixture->player.shared->tail <= PLAYED_BYTES);
	assert_int_equal(open_ring(fixture), 0);
	gpu_ring__arm(fixture->ring);
	for (uint32_t i = 1; i <= 1000; i++)
		player_put_kernel(&fixture->player, i, 1, 2);
	assert_int_equal(read_ring(fixture), 0);
	assert_int_equal(fixture->reading.count, 1000);
	assert_true(fixture->reading.in_order);
}

struct scribbler {
	struct player *player;
	bool stop;
};

/* Writes frames that are partly valid, and keeps changing their bytes. */
static void *scribble(void *ctx)
{
	struct scribbler *scribbler = ctx;
	struct player *player = scribbler->player;
	unsigned int seed = 7;

	while (!__atomic_load_n(&scribbler->stop, __ATOMIC_RELAXED)) {
		uint64_t tail = __atomic_load_n(&player->shared->tail, __ATOMIC_RELAXED);

		for (int i = 0; i < 64; i++) {
			struct fbt_header *frame =
				(void *)(player->bytes +
					 (tail + 104 * (uint64_t)i) % PLAYED_BYTES / 8 * 8);

			frame->type = (uint16_t)(FBT_EVENT_GPU_STATE + rand_r(&seed) % 10);
			frame->size = rand_r(&seed) % 3 ? 104 : (uint32_t)(rand_r(&seed) % 5000);
			((unsigned char *)frame)[8 + rand_r(&seed) % 32] = (unsigned char)seed;
		}
		__atomic_store_n(&player->shared->head,
				 tail + 104 * (uint64_t)(rand_r(&seed) % 5000), __ATOMIC_RELEASE);
	}
	return NULL;
}

static void check_sound(void *ctx, struct fbt_header *record)
{
	struct reading *reading = ctx;
	const struct fbt_gpu_work *work = (const struct fbt_gpu_work *)record;

	reading->count++;
	assert_in_range(record->type, FBT_EVENT_GPU_STATE, FBT_EVENT_GPU_CLOCK);
	assert_true(record->size <= FBT_GPU_FRAME_MAX);
	if (record->type == FBT_EVENT_GPU_WORK)
		reading->sound &=
			work->kind < FBT_GPU_WORK_KIND_COUNT && work->end_ns >= work->start_ns;
	/* The record is a copy in the tool's memory, which the process cannot change. */
	memset(record, 0, record->size);
}

static void a_ring_that_is_rewritten_while_it_is_read_does_no_harm(void **state)
{
	struct fixture *fixture = *state;
	struct scribbler scribbler = {.player = &fixture->player};
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + 300000000ull;
	pthread_t thread;

	player_start(&fixture->player);
	assert_int_equal(pthread_create(&thread, NULL, scribble, &scribbler), 0);
	while (clock_ns(CLOCK_MONOTONIC) < until_ns) {
		assert_int_equal(open_ring(fixture), 0);
		for (int i = 0; i < 100; i++) {
			if (gpu_ring__read(fixture->ring, check_sound, &fixture->reading))
				break;
		}
		close_ring(fixture);
	}
	__atomic_store_n(&scribbler.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(fixture->reading.sound);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(a_process_without_a_shim_has_no_ring),
		TEST(a_process_that_is_gone_is_esrch),
		TEST(a_ring_is_found_among_thousands_of_files),
		TEST(hostile_names_are_passed_over),
		TEST(an_unsealed_file_is_refused),
		TEST(a_file_that_is_too_small_is_refused),
		TEST(a_file_that_cannot_be_written_is_refused),
		TEST(a_header_that_lies_is_refused),
		TEST(a_ring_that_is_being_made_is_none_yet),
		TEST(another_version_is_told),
		TEST(a_child_that_has_only_the_descriptor_has_no_ring),
		TEST(the_sound_one_of_several_is_taken),
		TEST(a_second_tracer_is_told_who_is_first),
		TEST(a_tracer_has_no_ring_of_its_own),
		TEST(a_tracer_that_was_killed_holds_nothing),
		TEST(arming_counts_up_and_disarming_too),
		TEST(free_disarms),
		TEST(free_leaves_a_wish_alone_that_is_not_ours),
		TEST(arming_skips_what_was_there_before),
		TEST(what_a_shim_said_before_can_be_read_without_arming),
		TEST(frames_go_around_the_end_in_order),
		TEST(a_full_ring_is_read_whole),
		TEST(what_is_not_published_is_not_read),
		TEST(a_size_that_lies_ends_the_reading),
		TEST(a_size_that_is_no_multiple_of_8_ends_the_reading_whatever_follows),
		TEST(a_frame_longer_than_what_is_there_ends_the_reading),
		TEST(unsound_frames_are_skipped_and_counted),
		TEST(a_head_that_cannot_be_ends_the_reading),
		TEST(a_head_that_goes_back_over_what_was_not_read_yet_is_seen),
		TEST(what_a_writer_has_written_over_is_not_read),
		TEST(so_much_is_read_at_once_and_then_the_rest),
		TEST(a_head_that_goes_back_over_the_rest_is_seen),
		TEST(from_a_tail_of_nonsense_nothing_is_read),
		TEST(a_tail_of_nonsense_is_not_believed),
		TEST(positions_far_on_are_as_good_as_any),
		TEST(all_that_a_killed_writer_published_is_read),
		TEST(a_killed_reader_leaves_the_writer_going),
		TEST(a_ring_that_is_rewritten_while_it_is_read_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

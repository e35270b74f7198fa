/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
		.graph_node = correlation,
		.copy.bytes = correlation,
	};

	return shim_ring__put(&fixture.ring, &work.header, kind);
}

static void test_header(void **state)
{
	const struct fbt_gpu_ring *shared = fixture.peer.shared;
	int seals, count;

	peer_find_fd(getpid(), &count);
	assert_int_equal(count, 1);
	assert_int_equal(shared->magic, FBT_GPU_MAGIC);
	assert_memory_equal(&shared->magic, "FRMBTGPU", 8);
	assert_int_equal(shared->version, FBT_GPU_VERSION);
	assert_int_equal(shared->header_bytes, FBT_GPU_HEADER_BYTES);
	assert_int_equal(shared->ring_bytes, FBT_GPU_RING_BYTES);
	assert_int_equal(shared->phase, FBT_GPU_DORMANT);
	seals = fcntl(fixture.ring.file.fd, F_GET_SEALS);
	assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(fcntl(fixture.ring.file.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_true(fixture.ring.file.fd > STDERR_FILENO);
	assert_int_equal(ftruncate(fixture.ring.file.fd, 0), -1);
}

static void in_child(int (*act)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(act());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int create_without_streams(void)
{
	struct shim_ring ring;

	close(0);
	close(1);
	close(2);
	return shim_ring__create(&ring) || ring.file.fd <= 2;
}

/* An engine may start with its standard streams closed. Its output must not go to the ring. */
static void test_closed_streams(void **state)
{
	in_child(create_without_streams);
}

static int create_with_few_numbers(void)
{
	const struct rlimit limit = {.rlim_cur = 32, .rlim_max = 32};

	return setrlimit(RLIMIT_NOFILE, &limit) ? 77 : create_without_streams();
}

/* The same, where the limit allows no high descriptor numbers. */
static void test_closed_streams_and_few_numbers(void **state)
{
	in_child(create_with_few_numbers);
}

/* Plays a kernel before 6.3, which refuses MFD_NOEXEC_SEAL. */
static int create_on_old_kernel(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 8, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	struct shim_ring ring;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	return shim_ring__create(&ring) != 0;
}

static void test_old_kernel(void **state)
{
	in_child(create_on_old_kernel);
}

static int create_where_files_are_small(void)
{
	const struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
	struct shim_ring ring;
	int count;

	close(fixture.ring.file.fd);
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 77;
	if (shim_ring__create(&ring) != -EFBIG)
		return 1;
	peer_find_fd(getpid(), &count);
	return count;
}

static int look_for_memory(void)
{
	unsigned char page;

	return mincore(fixture.ring.shared, 1, &page) != -1 || errno != ENOMEM;
}

/* A child must not have its parent's ring mapped. */
static void test_fork(void **state)
{
	in_child(look_for_memory);
}

/* RLIMIT_FSIZE applies to memfds too: exceeding it would kill the process. */
static void test_small_files(void **state)
{
	in_child(create_where_files_are_small);
}

/* Without a reservation, control frames fill only the memory that was allocated at creation. */
static void test_nothing_reserved(void **state)
{
	struct fbt_gpu_work work = {.header = {FBT_EVENT_GPU_WORK, 0, sizeof(work)}};
	struct shim_ring ring;
	uint64_t count = 0;

	assert_int_equal(shim_ring__create(&ring), 0);
	while (shim_ring__put(&ring, &work.header, SHIM_FRAME_CONTROL))
		count++;
	assert_int_equal(count,
			 (SHIM_RING_FIRST - FBT_GPU_FRAME_MAX) / sizeof(struct fbt_gpu_work) + 1);
	shim_ring__destroy(&ring);
}

/*
 * The engine has closed the descriptor, and its number is now another file's. The shim must neither
 * grow nor close that file.
 */
static void test_number_of_another_file(void **state)
{
	int fd = (int)syscall(SYS_memfd_create, "engine's", 0), number = fixture.ring.file.fd;
	struct stat stat;

	assert_int_equal(dup2(fd, number), number);
	assert_int_equal(shim_ring__reserve(&fixture.ring), 0);
	assert_int_equal(fstat(fd, &stat), 0);
	assert_int_equal(stat.st_size, 0);
	shim_ring__close_in_child(&fixture.ring);
	assert_int_equal(fcntl(number, F_GETFD), 0);
	close(number);
	close(fd);
}

static void check_frame(void *ctx, const struct fbt_header *frame)
{
	const struct fbt_gpu_work *work = (const struct fbt_gpu_work *)frame;
	uint64_t *next = ctx;

	if (frame->type != FBT_EVENT_GPU_WORK)
		return;
	/* The value is in the first and in the second half of the frame. */
	assert_int_equal(work->start_ns, *next);
	assert_int_equal(work->graph_node, *next);
	assert_int_equal(work->copy.bytes, *next);
	++*next;
}

/* Twice around the ring, with reads of various lengths, so that frames wrap around its end. */
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

/*
 * The reader does not read, like one that was killed. Records stop at the reserve, which control
 * frames may use.
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

/* A frame may fill the ring to the last byte. */
static void test_exact_room(void **state)
{
	while (put(0, SHIM_FRAME_CONTROL))
		;
	fixture.peer.shared->tail =
		fixture.ring.head + sizeof(struct fbt_gpu_work) - FBT_GPU_RING_BYTES - 8;
	assert_false(put(0, SHIM_FRAME_CONTROL));
	fixture.peer.shared->tail += 8;
	assert_true(put(0, SHIM_FRAME_CONTROL));
	assert_false(put(0, SHIM_FRAME_CONTROL));
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
	/* A tail that lies one whole ring back means a full ring. */
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(put(i, SHIM_FRAME_RECORD));
	fixture.peer.shared->tail = fixture.ring.head - FBT_GPU_RING_BYTES;
	assert_false(put(1, SHIM_FRAME_CONTROL));
}

/* The writer ignores what the tool writes over the header. */
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
		cmocka_unit_test_setup_teardown(test_closed_streams_and_few_numbers, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_old_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_small_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_reserved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_number_of_another_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unseen_before_published, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exact_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_tail, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spoiled_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strings, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

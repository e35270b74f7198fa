/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What two processes share, of a child that really shares it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/ipc.h"

enum { BYTES = 4096 };

struct fixture {
	char *shared; /* of both */
	char *own;    /* the child has unmapped it */
	int pipe[2], back[2];
	int sockets[2]; /* the child has the second one only */
	pid_t child;
};

static char *map(int flags, int fd)
{
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int ready[2];
	char byte;

	assert_non_null(fixture);
	fixture->shared = map(MAP_SHARED | MAP_ANONYMOUS, -1);
	fixture->own = map(MAP_SHARED | MAP_ANONYMOUS, -1);
	assert_int_equal(pipe(fixture->pipe) | pipe(fixture->back) | pipe(ready), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fixture->sockets), 0);
	fixture->child = fork();
	assert_true(fixture->child >= 0);
	if (!fixture->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		munmap(fixture->own, BYTES);
		close(fixture->pipe[0]);
		close(fixture->back[1]);
		close(fixture->sockets[0]);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	close(fixture->pipe[1]);
	close(fixture->sockets[1]);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	kill(fixture->child, SIGKILL);
	waitpid(fixture->child, NULL, 0);
	munmap(fixture->shared, BYTES);
	munmap(fixture->own, BYTES);
	close(fixture->pipe[0]);
	close(fixture->back[0]);
	close(fixture->back[1]);
	close(fixture->sockets[0]);
	free(fixture);
	return 0;
}

static void memory_is_shared_if_both_may_write_to_it(void **state)
{
	struct fixture *fixture = *state;
	shared_memory_vec memory = {0};
	const struct shared_memory *shared, *own;

	assert_true(shared_memory_read((uint32_t)getpid(), &memory));
	shared = shared_memory_at(&memory, (uint64_t)(uintptr_t)fixture->shared + 8);
	own = shared_memory_at(&memory, (uint64_t)(uintptr_t)fixture->own);
	assert_non_null(shared);
	assert_non_null(own);
	assert_null(shared_memory_at(&memory, (uint64_t)(uintptr_t)&memory));
	assert_true(shared_memory_is_mapped((uint32_t)fixture->child, shared, 1));
	assert_false(shared_memory_is_mapped((uint32_t)fixture->child, own, 1));
	assert_false(shared_memory_is_mapped((uint32_t)fixture->child, shared, 0));
	assert_false(shared_memory_is_mapped(UINT32_MAX, shared, 1));
	vec_free(&memory);
}

static void devices_and_private_memory_are_not_shared(void **state)
{
	struct fixture *fixture = *state;
	shared_memory_vec memory = {0};
	int fd = open("/dev/zero", O_RDWR);
	char *zero = map(MAP_PRIVATE, fd), *own = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);

	(void)fixture;
	close(fd);
	(void)shared_memory_read((uint32_t)getpid(), &memory);
	assert_null(shared_memory_at(&memory, (uint64_t)(uintptr_t)zero));
	assert_null(shared_memory_at(&memory, (uint64_t)(uintptr_t)own));
	munmap(zero, BYTES);
	munmap(own, BYTES);
	vec_free(&memory);
}

/* Its inode is an id, which a segment of another IPC namespace may have, too. */
static void a_sysv_segment_is_not_told_apart(void **state)
{
	shared_memory_vec memory = {0};
	int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
	char *segment = shmat(id, NULL, 0);

	(void)state;
	assert_true(segment != (void *)-1);
	shmctl(id, IPC_RMID, NULL);
	(void)shared_memory_read((uint32_t)getpid(), &memory);
	assert_null(shared_memory_at(&memory, (uint64_t)(uintptr_t)segment));
	shmdt(segment);
	vec_free(&memory);
}

static void a_pipe_is_held_by_who_may_write_to_it(void **state)
{
	struct fixture *fixture = *state;
	struct far_end end;

	assert_true(far_end_find((uint32_t)getpid(), (uint32_t)fixture->pipe[0], -1, &end));
	assert_true(end.is_pipe);
	assert_true(far_ends_are_held((uint32_t)fixture->child, &end, 1));
	assert_false(far_ends_are_held((uint32_t)getpid(), &end, 1));
	/* The child may only read from this one. */
	assert_true(far_end_find((uint32_t)getpid(), (uint32_t)fixture->back[0], -1, &end));
	assert_false(far_ends_are_held((uint32_t)fixture->child, &end, 1));
}

static void what_is_no_pipe_and_no_socket_has_no_other_end(void **state)
{
	struct far_end end;
	int fd = open("/proc/self/stat", O_RDONLY);

	(void)state;
	assert_false(far_end_find((uint32_t)getpid(), (uint32_t)fd, -1, &end));
	assert_false(far_end_find((uint32_t)getpid(), 1000000, -1, &end));
	assert_false(far_end_find(UINT32_MAX, 0, -1, &end));
	close(fd);
}

static void the_kernel_knows_the_peer_of_a_socket(void **state)
{
	struct fixture *fixture = *state;
	int diag = unix_diag_open();
	struct far_end end;

	if (diag < 0)
		skip();
	if (!far_end_find((uint32_t)getpid(), (uint32_t)fixture->sockets[0], diag, &end)) {
		close(diag);
		skip(); /* a kernel without unix_diag */
	}
	assert_false(end.is_pipe);
	assert_true(far_ends_are_held((uint32_t)fixture->child, &end, 1));
	assert_false(far_ends_are_held((uint32_t)getpid(), &end, 1));
	assert_int_equal(unix_diag_peer(diag, 1), 0);
	assert_true(far_end_find((uint32_t)getpid(), (uint32_t)fixture->sockets[0], diag, &end));
	close(diag);
	assert_false(far_end_find((uint32_t)getpid(), (uint32_t)fixture->sockets[0], -1, &end));
}

static void what_is_watched_is_known(void **state)
{
	struct fixture *fixture = *state;
	struct epoll_event event = {.events = EPOLLIN};
	struct pollfd watched[3] = {{.fd = 7}, {.fd = -1}, {.fd = 9}};
	uint64_t address = (uint64_t)(uintptr_t)watched;
	uint32_t fds[8], self = (uint32_t)getpid();
	struct memory *memory = memory__new();
	int epoll = epoll_create1(0);

	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fixture->pipe[0], &event), 0);
	assert_int_equal(epoll_watched(self, (uint32_t)epoll, fds, 8), 1);
	assert_int_equal(fds[0], fixture->pipe[0]);
	assert_int_equal(epoll_watched(self, (uint32_t)fixture->pipe[0], fds, 8), 0);
	close(epoll);
	/* On a busy machine a read may take longer than it may. */
	for (int i = 0; i < 200 && poll_watched(memory, self, address, 3, fds, 8) != 2; i++)
		usleep(1000);
	assert_int_equal(poll_watched(memory, self, address, 3, fds, 8), 2);
	assert_int_equal(fds[0], 7);
	assert_int_equal(fds[1], 9);
	assert_int_equal(poll_watched(memory, self, address, 3, fds, 1), 1);
	assert_int_equal(poll_watched(memory, self, address, 0, fds, 8), 0);
	assert_int_equal(poll_watched(memory, self, 0, 1u << 30, fds, 8), 0);
	assert_int_equal(poll_watched(memory, self, UINT64_MAX - 4, UINT64_MAX, fds, 8), 0);
	memory__free(memory);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(memory_is_shared_if_both_may_write_to_it),
		TEST(devices_and_private_memory_are_not_shared),
		TEST(a_sysv_segment_is_not_told_apart),
		TEST(a_pipe_is_held_by_who_may_write_to_it),
		TEST(what_is_no_pipe_and_no_socket_has_no_other_end),
		TEST(the_kernel_knows_the_peer_of_a_socket),
		TEST(what_is_watched_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

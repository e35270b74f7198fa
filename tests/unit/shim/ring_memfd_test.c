/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Looking at the files of a process must not wait for it, nor let go of what is had already. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "shim/ring.h"
#include "gpu_ring_fixture.h"

#define SOUND_BYTES (FBT_GPU_HEADER_BYTES + PLAYED_BYTES)
/* Less than /proc/sys/fs/lease-break-time; whoever hangs is killed. */
#define PATIENCE_S 120

struct fixture {
	struct player player;
	int ready[2];
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture || pipe(fixture->ready))
		return -1;
	alarm(PATIENCE_S);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	alarm(0);
	player_stop(&fixture->player);
	close(fixture->ready[0]);
	close(fixture->ready[1]);
	free(fixture);
	return 0;
}

static void make_sound(struct fixture *fixture)
{
	player_make(&fixture->player, SOUND_BYTES, PLAYED_SEALS);
	player_fill_header(&fixture->player);
}

/* What the child says when it has done what it was to do: 'y', or 'n' where it may not. */
static char start(struct fixture *fixture, char (*act)(struct fixture *fixture))
{
	char said = 'n';

	fixture->player.child = fork();
	assert_true(fixture->player.child >= 0);
	if (!fixture->player.child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		said = act(fixture);
		while (write(fixture->ready[1], &said, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fixture->ready[0], &said, 1), 1);
	return said;
}

static int open_of(pid_t tgid)
{
	struct gpu_memfd found;

	return gpu_memfd_open((uint32_t)tgid, &found);
}

/* Whoever opens a file that is leased out waits until it is given back, or for 45 s. */
static char lease_out(struct fixture *fixture)
{
	char path[64];
	int fd;

	signal(SIGIO, SIG_IGN);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fixture->player.fd);
	fd = open(path, O_RDONLY);
	return fcntl(fd, F_SETLEASE, F_RDLCK) ? 'n' : 'y';
}

static void a_lease_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;

	make_sound(fixture);
	if (start(fixture, lease_out) == 'n')
		skip();
	assert_int_equal(open_of(fixture->player.child), -EBADMSG);
}

/* A file of a server that never answers, with the name that a memfd has. */
static char serve_never(struct fixture *fixture)
{
	static const char name[] = "memfd:" FBT_GPU_MEMFD " (deleted)";
	char options[128];
	int fuse = open("/dev/fuse", O_RDWR), file;

	if (fuse < 0 || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 'n';
	if (mount("test", "/", "tmpfs", 0, NULL) || chdir("/..") || chroot("."))
		return 'n';
	file = open(name, O_CREAT | O_RDWR, 0600);
	close(file);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100000,user_id=0,group_id=0", fuse);
	if (file < 0 || mount("test", name, "fuse", 0, options))
		return 'n';
	/* Before the one that is a ring. */
	close(fixture->player.fd);
	fixture->player.fd = open(name, O_PATH);
	return fixture->player.fd >= 0 ? 'y' : 'n';
}

static void a_file_whose_server_never_answers_is_passed_over(void **state)
{
	struct fixture *fixture = *state;
	int hidden, found;

	make_sound(fixture);
	hidden = dup(fixture->player.fd);
	if (start(fixture, serve_never) == 'n')
		skip();
	found = open_of(fixture->player.child);
	assert_true(found >= 0);
	close(found);
	close(hidden);
}

static char do_nothing(struct fixture *fixture)
{
	(void)fixture;
	return 'y';
}

/* Another tracer, which has not mapped what the shim here has. */
static int open_in_another(const struct fixture *fixture, pid_t tgid)
{
	int status;
	pid_t other = fork();

	if (!other) {
		int fd;

		munmap(fixture->player.shared, SOUND_BYTES);
		fd = open_of(tgid);

		_exit(fd < 0 ? -fd : 0);
	}
	waitpid(other, &status, 0);
	return -WEXITSTATUS(status);
}

/* As between vfork and execve: two processes, one memory. */
static void a_ring_that_two_processes_have_is_of_the_first(void **state)
{
	struct fixture *fixture = *state;
	pid_t first;
	int fd;

	make_sound(fixture);
	start(fixture, do_nothing);
	first = fixture->player.child;
	start(fixture, do_nothing);
	fd = open_of(first);
	assert_true(fd >= 0);
	assert_int_equal(open_of(fixture->player.child), -ENOENT);
	assert_int_equal(open_in_another(fixture, first), -EBUSY);
	close(fd);
	assert_int_equal(open_in_another(fixture, first), 0);
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
}

static char lock_it(struct fixture *fixture)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fixture->player.fd, F_OFD_SETLK, &lock) ? 'n' : 'y';
}

static void a_lock_without_a_process_is_of_nobody(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_memfd found;

	make_sound(fixture);
	assert_int_equal(start(fixture, lock_it), 'y');
	/* It would be ours if it could not be told from one that we have. */
	munmap(fixture->player.shared, SOUND_BYTES);
	assert_int_equal(gpu_memfd_open((uint32_t)fixture->player.child, &found), -EBUSY);
	assert_int_equal(found.holder, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lease_is_not_waited_for),
		TEST(a_file_whose_server_never_answers_is_passed_over),
		TEST(a_ring_that_two_processes_have_is_of_the_first),
		TEST(a_lock_without_a_process_is_of_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

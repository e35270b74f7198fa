/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Opening the files of a process must not block on that process, nor release a ring that is already
 * open.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "proc/maps.h"
#include "shim/ring.h"
#include "gpu_ring_fixture.h"

#define SOUND_BYTES (FBT_GPU_HEADER_BYTES + PLAYED_BYTES)
/*
 * Ends a test that hangs. A blocked open() of a leased file returns sooner, after
 * fs.lease-break-time (45 s).
 */
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

/*
 * Forks a child that calls act(). Returns what act() returned: 'y', or 'n' if the child lacks the
 * rights.
 */
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

/* An open() of a file with a lease blocks until the lease is released, for up to 45 s. */
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

/* Mounts a FUSE file whose server never answers, under the name of a shim's memfd. */
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
	/* Takes a lower descriptor number than the sound ring, so that it is looked at first. */
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

/* Opens the ring in another process, which has not mapped it. */
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

/* As between vfork() and execve(), two processes share one ring. */
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
	/* A ring that this process has mapped would be taken for its own, not for a locked one. */
	munmap(fixture->player.shared, SOUND_BYTES);
	assert_int_equal(gpu_memfd_open((uint32_t)fixture->player.child, &found), -EBUSY);
	assert_int_equal(found.holder, 0);
}

/* A daemon closes all of its descriptors. Needs rights that not everybody has who runs this. */
static void a_ring_whose_descriptor_is_closed_is_found_where_it_is_mapped(void **state)
{
	struct fixture *fixture = *state;
	int fd;

	make_sound(fixture);
	close(fixture->player.fd);
	start(fixture, do_nothing);
	fd = open_of(fixture->player.child);
	if (fd == -EACCES)
		skip();
	assert_true(fd >= 0);
	close(fd);
}

static void a_mapped_file_that_can_shrink_is_refused(void **state)
{
	struct fixture *fixture = *state;
	int fd;

	player_make(&fixture->player, SOUND_BYTES, 0);
	player_fill_header(&fixture->player);
	close(fixture->player.fd);
	start(fixture, do_nothing);
	fd = open_of(fixture->player.child);
	if (fd == -EACCES)
		skip();
	assert_int_equal(fd, -EBADMSG);
}

#define MANY 17000 /* more descriptors than are searched */

/*
 * Maps a file of that name that is no ring, at a lower address than the ring, and gives the ring a
 * descriptor behind many others.
 */
static char hide_behind_many(struct fixture *fixture)
{
	struct fbt_gpu_ring *decoy;
	struct rlimit limit;
	int fd;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max < MANY + 64)
		return 'n';
	limit.rlim_cur = limit.rlim_max;
	fd = memfd_create(FBT_GPU_MEMFD, MFD_CLOEXEC);
	if (setrlimit(RLIMIT_NOFILE, &limit) || ftruncate(fd, FBT_GPU_HEADER_BYTES))
		return 'n';
	decoy = mmap((void *)0x10000000, FBT_GPU_HEADER_BYTES, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	close(fd);
	if (decoy == MAP_FAILED)
		return 'n';
	decoy->magic = FBT_GPU_MAGIC;
	while ((fd = dup(fixture->ready[0])) >= 0 && fd < MANY)
		;
	fd = dup(fixture->player.fd);
	close(fixture->player.fd);
	return fd > MANY ? 'y' : 'n';
}

/* Each descriptor costs a microsecond or more, and the rings of other processes wait. */
static void of_many_descriptors_the_first_are_searched(void **state)
{
	struct fixture *fixture = *state;
	int fd;

	make_sound(fixture);
	if (start(fixture, hide_behind_many) == 'n')
		skip();
	fd = memfd_open_mapped((uint32_t)fixture->player.child, FBT_GPU_MEMFD);
	if (fd == -EACCES)
		skip();
	close(fd);
	assert_int_equal(open_of(fixture->player.child), -EBADMSG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lease_is_not_waited_for),
		TEST(a_file_whose_server_never_answers_is_passed_over),
		TEST(a_ring_that_two_processes_have_is_of_the_first),
		TEST(a_lock_without_a_process_is_of_nobody),
		TEST(a_ring_whose_descriptor_is_closed_is_found_where_it_is_mapped),
		TEST(a_mapped_file_that_can_shrink_is_refused),
		TEST(of_many_descriptors_the_first_are_searched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

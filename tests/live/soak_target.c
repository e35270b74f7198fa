/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * soak_target TRUTH KIND COUNT FOLDER: what a server does for hours, without its pauses. KIND is
 * threads or children: COUNT of them make a step each and end. Or KIND is files: COUNT steps, each
 * on a new file in FOLDER and on a descriptor of another type. The program rests after half of them
 * and at the end, so that the tool can process everything.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "program.h"
#include "small_threads.h"

#define AT_ONCE	     8
#define EXEC_EVERY   64
#define LINGER_EVERY 8 /* a child that lives long enough for the tool to look at it */
#define LINGER_US    150000
#define ALIVE_MAX    48
#define REST_S	     2

long soak_step(const char *folder, long number);

static void write_to(int fd)
{
	if (fd >= 0 && write(fd, "12345678", 8) != 8)
		_exit(EXIT_FAILURE);
}

/* Uses a descriptor that is no file in a folder. */
static void use_descriptor(long number)
{
	int fds[2] = {-1, -1};

	switch (number % 4) {
	case 0:
		if (pipe(fds))
			_exit(EXIT_FAILURE);
		break;
	case 1:
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
			_exit(EXIT_FAILURE);
		break;
	case 2:
		fds[1] = eventfd(0, 0);
		break;
	default:
		fds[1] = memfd_create("soak", 0);
	}
	write_to(fds[1]);
	close(fds[1]);
	if (fds[0] >= 0)
		close(fds[0]);
}

/* Most files are in memory, because only their names have to be new. */
static void use_file(const char *folder, long number)
{
	char path[4096];
	struct stat file;
	int fd;

	snprintf(path, sizeof(path), "%s/request-%08ld", folder, number);
	if (number % 4)
		fd = memfd_create(strrchr(path, '/') + 1, 0);
	else
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		_exit(EXIT_FAILURE);
	write_to(fd);
	fstat(fd, &file);
	close(fd);
	if (number % 4 == 0)
		unlink(path);
}

STEP long soak_step(const char *folder, long number)
{
	if (folder) {
		use_file(folder, number);
		if (number % 16 == 0)
			use_descriptor(number / 16);
	}
	for (int i = 0; i < 3; i++)
		syscall(SYS_getppid);
	STAY();
	return number;
}

static void *run_thread(void *arg)
{
	soak_step(NULL, 0);
	return arg;
}

/* Some children call execve, as workers do; their steps are then those of the new program. */
static void run_child(long number)
{
	char *const again[] = {"soak_target", "", "child", NULL}, *const none[] = {NULL};

	soak_step(NULL, number);
	if (number % LINGER_EVERY == 0)
		usleep(LINGER_US);
	if (number % EXEC_EVERY == 0)
		execve("/proc/self/exe", again, none);
	_exit(EXIT_SUCCESS);
}

/* Up to ALIVE_MAX children run at once. */
static long make_children(long first, long count, long *alive)
{
	long made = 0;

	while (made < count) {
		pid_t child = fork();

		if (child < 0)
			break;
		if (!child)
			run_child(first + made);
		made++;
		++*alive;
		while (*alive && waitpid(-1, NULL, *alive < ALIVE_MAX ? WNOHANG : 0) > 0)
			--*alive;
	}
	return made;
}

static long make_some(const char *kind, const char *folder, long first, long left, long *alive)
{
	long count = left < AT_ONCE ? left : AT_ONCE;

	if (!strcmp(kind, "threads"))
		return run_small_threads(count, run_thread);
	if (!strcmp(kind, "children"))
		return make_children(first, count, alive);
	for (long i = 0; i < count; i++)
		soak_step(folder, first + i);
	return count;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[2] : "", *folder = argc > 4 ? argv[4] : ".";
	long count = argc > 3 ? number_at(argv, 3, 0) : 0, made = 0, alive = 0;
	FILE *truth;

	if (!strcmp(kind, "child"))
		return 0;
	wait_for_go();
	while (made < count) {
		long now = make_some(kind, folder, made, count - made, &alive);

		if (!now)
			return EXIT_FAILURE;
		if (made < count / 2 && made + now >= count / 2)
			sleep(REST_S);
		made += now;
	}
	while (wait(NULL) > 0)
		;
	sleep(REST_S);
	truth = open_truth(argv);
	fprintf(truth, "{\"steps\": %ld}\n", made);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * hostile TRUTH FOLDER LIBRARY [SECONDS]: a process that does to its tracer whatever a process can.
 * Its steps are calls of a function of LIBRARY, whose address get_step there returns. A slow step
 * waits for a file in FOLDER whose name contains terminal control sequences. Meanwhile names,
 * arguments and mapped files change all the time. Ends after SECONDS or at SIGTERM, with status 0.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "program.h"

/*
 * Clears the screen, sets a title, sends C1 codes, reverses the text's direction, is no UTF-8, ends
 * the line.
 */
#define NASTY                                                                                      \
	"\033[2J\033]0;evil\a\xc2\x9b"                                                             \
	"31m\xe2\x80\xae\xff\xfe\n\r\b\x7f"
#define ARGUMENTS_BYTES (64u << 20)
#define SLOW_EVERY	16
#define THREADS_EACH	8

struct hostile {
	const char *folder;
	char pipe[512];
	char *arguments; /* where the kernel finds the arguments */
	size_t arguments_size;
	volatile bool stop;
};

static volatile sig_atomic_t asked_to_end;

static void on_term(int signo)
{
	(void)signo;
	asked_to_end = 1;
}

static void sleep_us(long us)
{
	const struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&time, NULL);
}

/* Changes the thread's name and what ps shows. */
static void *rename_thread(void *ctx)
{
	static const char *const names[] = {NASTY, "a) R 1 1 1",   "\033[31mred",
					    "",	   "\xe2\x80\xae", "x\ny (deleted)"};
	struct hostile *self = ctx;

	for (unsigned int i = 0; !self->stop; i++) {
		const char *name = names[i % (sizeof(names) / sizeof(*names))];
		size_t size = strlen(name);

		prctl(PR_SET_NAME, name);
		for (size_t at = 0; at + size + 1 < self->arguments_size && at < 4096;
		     at += size + 1)
			memcpy(self->arguments + at, name, size + 1);
		sleep_us(500);
	}
	return NULL;
}

static void write_all(int fd, const void *data, size_t size)
{
	while (size) {
		ssize_t written = write(fd, data, size);

		if (written <= 0)
			return;
		data = (const char *)data + written;
		size -= (size_t)written;
	}
}

/* Maps a copy of the beginning of this program, of any size, as code that is never run. */
static void map_copy(const struct hostile *self, const char *name, off_t size, bool remove)
{
	static char image[1 << 16];
	char path[512];
	ssize_t got;
	void *code;
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd;

	snprintf(path, sizeof(path), "%s/%s", self->folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	if (fd < 0 || from < 0)
		goto out;
	got = read(from, image, sizeof(image));
	write_all(fd, image, got > 0 ? (size_t)got : 0);
	if (size && ftruncate(fd, size))
		goto out;
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	sleep_us(2000);
	/* Reading the mapping now raises SIGBUS. */
	if (ftruncate(fd, 0))
		sleep_us(1);
	write_all(fd, image, 4096);
	if (remove)
		unlink(path);
	sleep_us(2000);
	if (code != MAP_FAILED)
		munmap(code, 4096);
out:
	if (from >= 0)
		close(from);
	if (fd >= 0)
		close(fd);
}

/* memfds that look like the shim's ring and like its library. */
static void make_memfds(void)
{
	static const char *const names[] = {"ferrum-cupti", "libferrum_cupti.so", NASTY,
					    "ferrum-cupti"};
	static char junk[8192];
	int fds[sizeof(names) / sizeof(*names)];

	memset(junk, 0x7f, sizeof(junk));
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		fds[i] = memfd_create(names[i], MFD_CLOEXEC | MFD_ALLOW_SEALING);
		write_all(fds[i], junk, i ? sizeof(junk) : 100);
		if (i == 3)
			fcntl(fds[i], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	}
	sleep_us(3000);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		close(fds[i]);
}

static void *change_files(void *ctx)
{
	static const char *const names[] = {
		"libllama\n.so",
		"libllama" NASTY,
		"libllama.so (deleted)",
		"libllama \\012 .so",
		"7f00-8000 r-xp 00000000 00:00 0 libllama",
		"\xe2\x80\xaelibllama.so\t",
		"..libllama.so",
	};
	struct hostile *self = ctx;

	for (unsigned int i = 0; !self->stop; i++) {
		map_copy(self, names[i % (sizeof(names) / sizeof(*names))],
			 i % 3 ? 0 : (off_t)1 << 42, i % 2);
		if (i % 4 == 0)
			make_memfds();
	}
	return NULL;
}

static void *end_at_once(void *ctx)
{
	prctl(PR_SET_NAME, ctx);
	return NULL;
}

/* Threads and processes that end before a tracer can look at them. */
static void *come_and_go(void *ctx)
{
	struct hostile *self = ctx;

	while (!self->stop) {
		pthread_t threads[THREADS_EACH];
		int count = 0;
		pid_t child;

		while (count < THREADS_EACH &&
		       !pthread_create(&threads[count], NULL, end_at_once, NASTY))
			count++;
		while (count)
			pthread_join(threads[--count], NULL);
		child = vfork();
		if (!child)
			_exit(0);
		if (child > 0)
			waitpid(child, NULL, 0);
		sleep_us(1000);
	}
	return NULL;
}

/* Tells the kernel that the arguments are 64 MiB of NASTY; needs CAP_SYS_RESOURCE. */
static void move_arguments(struct hostile *self, char **argv)
{
	char *memory = mmap(NULL, ARGUMENTS_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	self->arguments = argv[0];
	self->arguments_size = strlen(argv[0]) + 1;
	if (memory == MAP_FAILED)
		return;
	for (size_t at = 0; at + sizeof(NASTY) <= ARGUMENTS_BYTES; at += sizeof(NASTY))
		memcpy(memory + at, NASTY, sizeof(NASTY));
	/* The order matters: the end must not be before the start. */
	if (!prctl(PR_SET_MM, PR_SET_MM_ARG_START, memory, 0, 0) &&
	    !prctl(PR_SET_MM, PR_SET_MM_ARG_END, memory + ARGUMENTS_BYTES, 0, 0)) {
		self->arguments = memory;
		self->arguments_size = ARGUMENTS_BYTES;
	}
}

/* Makes readers of the pipe wait. */
static void *feed_pipe(void *ctx)
{
	struct hostile *self = ctx;

	while (!self->stop) {
		int fd = open(self->pipe, O_WRONLY | O_CLOEXEC);

		sleep_us(5000);
		if (fd < 0)
			continue;
		write_all(fd, "x", 1);
		close(fd);
	}
	return NULL;
}

static long run_steps(const struct hostile *self, void (*step)(const char *path), long seconds)
{
	struct timespec start, now;
	long count = 0;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		step(++count % SLOW_EVERY ? NULL : self->pipe);
		sleep_us(500);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!asked_to_end && now.tv_sec - start.tv_sec < seconds);
	return count;
}

int main(int argc, char **argv)
{
	static void *(*const works[])(void *ctx) = {feed_pipe, rename_thread, change_files,
						    come_and_go};
	struct hostile self = {.folder = argv[2]};
	pthread_t threads[sizeof(works) / sizeof(*works)];
	long seconds = number_at(argv, 4, 5), steps;
	const char *truth = argv[1];
	void *library = argc > 3 ? dlopen(argv[3], RTLD_NOW) : NULL;
	void *(*get_step)(void) = NULL;
	FILE *out;

	if (library)
		*(void **)&get_step = dlsym(library, "get_step");
	if (!get_step) {
		fprintf(stderr, "hostile: %s\n", dlerror());
		return EXIT_FAILURE;
	}
	snprintf(self.pipe, sizeof(self.pipe), "%s/weights" NASTY, self.folder);
	unlink(self.pipe);
	if (mkfifo(self.pipe, 0600))
		return EXIT_FAILURE;
	move_arguments(&self, argv);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, on_term);
	wait_for_go();
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
		if (pthread_create(&threads[i], NULL, works[i], &self))
			return EXIT_FAILURE;
	steps = run_steps(&self, (void (*)(const char *path))get_step(), seconds);
	self.stop = true;
	/* With this reader, opening the pipe for writing does not block. */
	if (open(self.pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC) < 0)
		return EXIT_FAILURE;
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
		pthread_join(threads[i], NULL);
	out = fopen(truth, "w");
	if (!out || fprintf(out, "{\"steps\": %ld}\n", steps) < 0 || fclose(out))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * args TRUTH FOLDER: an engine whose steps (args_step) make known calls, file accesses, waits and
 * page faults; it writes all of them to TRUTH. FOLDER must be empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include "program.h"

#define CALLS_MAX  256
#define TEXT	   "0123456789"
#define ODD_NAME   "odd\n\"\xff name"
#define DEEP	   40 /* folders: deeper than the tool follows a path */
#define FRESH	   300
#define COMMAND	   0x1234
#define RING_INDEX 16	     /* IORING_ENTER_REGISTERED_RING */
#define SPINS	   400000000 /* most of a second */

struct call {
	long nr;
	unsigned long args[2];
	long ret;
	const char *path; /* NULL: the call names no file */
	enum { NO, YES, MAYBE } blocked;
};

struct step {
	const char *name;
	void (*body)(void);
	int first, end; /* of the step's calls */
	long minor, major;
	unsigned long long run_delay;
};

static struct call calls[CALLS_MAX];
static int call_count;
static char paths[32][PATH_MAX];
static int path_count;
static char folder[PATH_MAX];
static int pipe_fds[2], socket_fds[2], null_fd, deleted_fd, moved_fd, mounted_fd;
static char *fresh, *populated, *file_pages;
static size_t page;

void args_step(void (*body)(void));

/* Makes a call and notes it down. */
static long make(long nr, const char *path, int blocked, unsigned long a, unsigned long b,
		 unsigned long c, unsigned long d)
{
	struct call *call = &calls[call_count++];
	long ret = syscall(nr, a, b, c, d, 0, 0);

	call->nr = nr;
	call->args[0] = a;
	call->args[1] = b;
	call->ret = ret < 0 ? -errno : ret;
	call->path = path;
	call->blocked = blocked;
	return ret;
}

#define MAKE(name, path, blocked, a, b, c, d)                                                      \
	make(SYS_##name, path, blocked, (unsigned long)(a), (unsigned long)(b),                    \
	     (unsigned long)(c), (unsigned long)(d))

__attribute__((format(printf, 1, 2))) static const char *text(const char *format, ...)
{
	char *path = paths[path_count++];
	va_list args;

	va_start(args, format);
	vsnprintf(path, PATH_MAX, format, args);
	va_end(args);
	return path;
}

static const char *in_folder(const char *name)
{
	return text("%s/%s", folder, name);
}

static const char *of_inode(const char *kind, int fd)
{
	struct stat stat;

	fstat(fd, &stat);
	return text("%s:[%lu]", kind, (unsigned long)stat.st_ino);
}

static int new_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, TEXT, strlen(TEXT)) != (ssize_t)strlen(TEXT)) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	return fd;
}

STEP void args_step(void (*body)(void))
{
	body();
	STAY();
}

/* Bodies of steps make no calls but those of make(). */
static const char *plain, *odd, *deep, *deep_seen, *deleted, *moved, *mounted;
static const char *socket_name, *pipe_name;
static char bytes[64];

static void open_read_close(const char *path, const char *seen)
{
	int fd = (int)MAKE(openat, seen, MAYBE, AT_FDCWD, path, O_RDONLY, 0);

	MAKE(read, seen, MAYBE, fd, bytes, sizeof(bytes), 0);
	MAKE(read, seen, MAYBE, fd, bytes, sizeof(bytes), 0);
	MAKE(close, seen, MAYBE, fd, 0, 0, 0);
	MAKE(read, NULL, MAYBE, fd, bytes, sizeof(bytes), 0);
}

/* Each call gets the descriptor that the one before it returned. */
static void use_files(void)
{
	open_read_close(plain, plain);
	open_read_close(odd, odd);
	open_read_close(plain, plain);
	open_read_close(deep, deep_seen);
	MAKE(openat, NULL, MAYBE, AT_FDCWD, "/nothing/there", O_RDONLY, 0);
	MAKE(read, NULL, MAYBE, -1, bytes, 1, 0);
	MAKE(read, NULL, MAYBE, 100000, bytes, 1, 0);
}

/* An ioctl whose command is recorded as that. */
static void ask_driver(unsigned long command, const void *argument, unsigned long recorded)
{
	MAKE(ioctl, "/dev/null", NO, null_fd, command, argument, 0);
	calls[call_count - 1].args[1] = recorded;
}

#define RM(number) (0xc0200000UL | 'F' << 8 | (number)) /* _IOWR('F', number, 32 bytes) */

/* /dev/null refuses the commands of NVIDIA's driver; the tool reads what they ask for before. */
static void use_driver(void)
{
	static const uint32_t control[] = {0xc1d00001, 2, 0x2080014a, 0};
	static const uint32_t alloc[] = {0xc1d00001, 2, 3, 0x40};
	static uint32_t transfer[4];
	const void *nowhere = (const void *)8;
	uintptr_t inner = (uintptr_t)control;

	ask_driver(RM(0x2a), control, 0x2080014aUL << 32 | RM(0x2a));
	ask_driver(0xffffffffUL << 32 | RM(0x2a), control, 0x2080014aUL << 32 | RM(0x2a));
	ask_driver(RM(0x2b), alloc, 0x40UL << 32 | RM(0x2b));
	ask_driver(RM(0x4e), control, RM(0x4e));
	ask_driver(RM(0x2a), nowhere, RM(0x2a));
	ask_driver(RM(0x2a) & 0xffff, control, RM(0x2a) & 0xffff);
	transfer[0] = 0x2a;
	transfer[1] = 32;
	transfer[2] = (uint32_t)inner;
	transfer[3] = (uint32_t)(inner >> 32);
	ask_driver(RM(211), transfer, 0x2080014aUL << 32 | 0xc000462aUL);
	ask_driver(RM(211), nowhere, RM(211));
	transfer[2] = transfer[3] = 0;
	ask_driver(RM(211), transfer, 0xc000462aUL);
	ask_driver(0xffffffffUL << 32 | COMMAND, NULL, COMMAND);
}

static void use_devices(void)
{
	int copy;

	MAKE(ioctl, "/dev/null", NO, null_fd, COMMAND, 0, 0);
	MAKE(write, "/dev/null", NO, null_fd, bytes, 7, 0);
	copy = (int)MAKE(dup, "/dev/null", NO, null_fd, 0, 0, 0);
	MAKE(ioctl, "/dev/null", NO, copy, COMMAND + 1, bytes, 0);
	MAKE(close, "/dev/null", NO, copy, 0, 0, 0);
	MAKE(ioctl, NULL, NO, copy, COMMAND, 0, 0);
	/* Two descriptors that collide in the kernel side's cache. */
	copy = (int)MAKE(dup3, "/dev/null", NO, null_fd, null_fd + 8, 0, 0);
	MAKE(ioctl, "/dev/null", NO, null_fd, COMMAND, 0, 0);
	MAKE(ioctl, "/dev/null", NO, copy, COMMAND, 0, 0);
}

static void use_nameless(void)
{
	static struct itimerspec never;
	int fd;

	MAKE(write, socket_name, NO, socket_fds[0], TEXT, 10, 0);
	MAKE(write, pipe_name, NO, pipe_fds[1], TEXT, 4, 0);
	MAKE(read, pipe_name, NO, pipe_fds[0], bytes, 4, 0);
	/* The same inode and the same descriptor, used for two files in turn. */
	fd = (int)MAKE(eventfd2, "anon_inode:[eventfd]", NO, 1, EFD_CLOEXEC, 0, 0);
	MAKE(read, "anon_inode:[eventfd]", NO, fd, bytes, 8, 0);
	MAKE(close, "anon_inode:[eventfd]", MAYBE, fd, 0, 0, 0);
	fd = (int)MAKE(timerfd_create, "anon_inode:[timerfd]", NO, CLOCK_MONOTONIC, 0, 0, 0);
	MAKE(timerfd_gettime, "anon_inode:[timerfd]", NO, fd, &never, 0, 0);
	MAKE(close, "anon_inode:[timerfd]", MAYBE, fd, 0, 0, 0);
	fd = (int)MAKE(memfd_create, "/memfd:weights", MAYBE, "weights", 0, 0, 0);
	MAKE(ftruncate, "/memfd:weights", MAYBE, fd, 8192, 0, 0);
	MAKE(close, "/memfd:weights", MAYBE, fd, 0, 0, 0);
}

/* With this flag, the first argument is an index instead of a descriptor. */
static void use_ring(void)
{
	static unsigned char params[120];
	const char *name = "anon_inode:[io_uring]";
	int fd = (int)MAKE(io_uring_setup, name, MAYBE, 4, params, 0, 0);

	if (fd < 0) { /* not in this kernel, or not allowed */
		calls[call_count - 1].path = NULL;
		return;
	}
	MAKE(io_uring_enter, name, NO, fd, 0, 0, 0);
	MAKE(io_uring_enter, NULL, NO, fd, 0, 0, RING_INDEX);
	MAKE(close, name, MAYBE, fd, 0, 0, 0);
}

static void use_changed(void)
{
	MAKE(pread64, deleted, MAYBE, deleted_fd, bytes, 5, 0);
	MAKE(pread64, moved, MAYBE, moved_fd, bytes, 5, 0);
	if (mounted_fd >= 0)
		MAKE(pread64, mounted, MAYBE, mounted_fd, bytes, 5, 0);
}

static void use_waits(void)
{
	/*
	 * Long enough that it cannot end before the thread sleeps, even if the thread loses its CPU
	 * first.
	 */
	static const struct timespec pause = {.tv_nsec = 20000000};
	static uint32_t word = 1;

	MAKE(futex, NULL, YES, &word, FUTEX_WAIT_PRIVATE, 1, &pause);
	MAKE(futex, NULL, NO, &word, FUTEX_WAIT_PRIVATE, 2, &pause);
	MAKE(futex, NULL, NO, &word, FUTEX_WAKE_PRIVATE, 1, 0);
	MAKE(sched_yield, NULL, NO, 0, 0, 0, 0);
	MAKE(nanosleep, NULL, YES, &pause, 0, 0, 0);
}

static void use_memory(void)
{
	char *map = (char *)MAKE(mmap, NULL, MAYBE, NULL, 40 * 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS);

	MAKE(mprotect, NULL, MAYBE, map, 4096, PROT_READ, 0);
	MAKE(munmap, NULL, MAYBE, map, 40 * 4096, 0, 0);
}

static void touch_pages(void)
{
	for (size_t i = 0; i < FRESH; i++)
		*(volatile char *)(fresh + i * page) = 1;
	(void)*(volatile char *)file_pages;
}

/* Page faults within a call are in the call's time. */
static void populate(void)
{
	make(SYS_madvise, NULL, MAYBE, (unsigned long)populated, FRESH * page, MADV_POPULATE_WRITE,
	     0);
}

static void do_nothing(void)
{
}

static void burn(void)
{
	for (volatile long i = 0; i < SPINS; i = i + 1)
		;
}

/* A thread that wakes up here waits for a CPU within its call. */
static void doze(void)
{
	static const struct timespec pause = {.tv_nsec = 300000};

	for (int i = 0; i < 60; i++)
		MAKE(nanosleep, NULL, MAYBE, &pause, 0, 0, 0);
}

static void leave_root(void)
{
	MAKE(chroot, NULL, MAYBE, folder, 0, 0, 0);
	open_read_close("/new", "/new");
	MAKE(pread64, "/dev/null", MAYBE, null_fd, bytes, 1, 0);
}

static void wait_for_ever(void)
{
	MAKE(read, pipe_name, YES, pipe_fds[0], bytes, 3, 0);
}

/*
 * The wait comes before the ring: the kernel tears a ring down later, which interrupts such a wait.
 */
static struct step steps[] = {
	{.name = "warm", .body = do_nothing},
	{.name = "files", .body = use_files},
	{.name = "devices", .body = use_devices},
	{.name = "driver", .body = use_driver},
	{.name = "nameless", .body = use_nameless},
	{.name = "waits", .body = use_waits},
	{.name = "ring", .body = use_ring},
	{.name = "changed", .body = use_changed},
	{.name = "renamed", .body = use_changed},
	{.name = "memory", .body = use_memory},
	{.name = "touch", .body = touch_pages},
	{.name = "populate", .body = populate},
	{.name = "burn", .body = burn},
	{.name = "doze", .body = doze},
	{.name = "root", .body = leave_root},
	{.name = "end", .body = wait_for_ever},
};
#define STEPS (int)(sizeof(steps) / sizeof(steps[0]))

static void prepare_deep(void)
{
	char path[PATH_MAX], seen[PATH_MAX] = "\xe2\x80\xa6";
	size_t length = (size_t)snprintf(path, sizeof(path), "%s", folder);

	for (int i = 0; i < DEEP; i++) {
		length += (size_t)snprintf(path + length, sizeof(path) - length, "/d%d", i);
		mkdir(path, 0700);
		if (i > DEEP - 32)
			snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "/d%d", i);
	}
	deep = text("%s/leaf", path);
	deep_seen = text("%s/leaf", seen);
	close(new_file(deep));
}

/* Makes a bind mount in a mount namespace of its own, if that is allowed. */
static void prepare_mount(void)
{
	const char *target = in_folder("target");

	mounted_fd = -1;
	mkdir(target, 0700);
	mkdir(in_folder("source"), 0700);
	mkdir(in_folder("source/inner"), 0700);
	close(new_file(in_folder("source/inner/file")));
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(in_folder("source"), target, NULL, MS_BIND, NULL))
		return;
	mounted = in_folder("target/inner/file");
	mounted_fd = open(mounted, O_RDONLY | O_CLOEXEC);
}

static void prepare_files(void)
{
	plain = in_folder("plain");
	close(new_file(plain));
	odd = in_folder(ODD_NAME);
	close(new_file(odd));
	deleted = in_folder("gone (deleted)");
	deleted_fd = new_file(in_folder("gone"));
	unlink(in_folder("gone"));
	moved = in_folder("before");
	moved_fd = new_file(moved);
	close(new_file(in_folder("new")));
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (pipe(pipe_fds) || socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fds))
		exit(EXIT_FAILURE);
	pipe_name = of_inode("pipe", pipe_fds[0]);
	socket_name = of_inode("socket", socket_fds[0]);
	prepare_deep();
	prepare_mount();
}

static void prepare_pages(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	page = (size_t)sysconf(_SC_PAGESIZE);
	fresh = mmap(NULL, FRESH * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	populated = mmap(NULL, FRESH * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	file_pages = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fresh == MAP_FAILED || populated == MAP_FAILED || file_pages == MAP_FAILED)
		exit(EXIT_FAILURE);
	madvise(fresh, FRESH * page, MADV_NOHUGEPAGE);
	madvise(populated, FRESH * page, MADV_NOHUGEPAGE);
	close(fd);
	memset(calls, 0, sizeof(calls));
}

static void pin(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* This thread's wait for a CPU, from its schedstat. */
static unsigned long long read_run_delay(int fd)
{
	unsigned long long delay = 0;
	char line[128] = "";

	if (pread(fd, line, sizeof(line) - 1, 0) > 0)
		sscanf(line, "%*u %llu", &delay);
	return delay;
}

static pid_t start_spinning(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

static void run_step(struct step *step, int schedstat)
{
	struct rusage before, after;
	unsigned long long delay;
	pid_t spinning = 0;

	if (step->body == burn || step->body == doze) {
		pin();
		spinning = start_spinning();
	}
	/* With this policy the thread does not preempt any other when it wakes up. */
	if (step->body == doze)
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
	if (step->body == use_changed && step[-1].body == use_changed) {
		rename(in_folder("before"), in_folder("after"));
		moved = in_folder("after");
	}
	step->first = call_count;
	delay = read_run_delay(schedstat);
	getrusage(RUSAGE_THREAD, &before);
	args_step(step->body);
	getrusage(RUSAGE_THREAD, &after);
	step->run_delay = read_run_delay(schedstat) - delay;
	step->end = call_count;
	step->minor = after.ru_minflt - before.ru_minflt;
	step->major = after.ru_majflt - before.ru_majflt;
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
	if (spinning) {
		kill(spinning, SIGKILL);
		waitpid(spinning, NULL, 0);
	}
}

static void write_text(FILE *truth, const char *string)
{
	if (!string) {
		fputs("null", truth);
		return;
	}
	/* Each byte of the path becomes one character of the text. */
	putc('"', truth);
	for (; *string; string++)
		fprintf(truth, "\\u%04x", (unsigned char)*string);
	putc('"', truth);
}

static void write_step(FILE *truth, const struct step *step)
{
	fprintf(truth,
		"%s{\"name\": \"%s\", \"minor\": %ld, \"major\": %ld, \"run_delay_ns\": %llu, "
		"\"calls\": [",
		step == steps ? "" : ",\n", step->name, step->minor, step->major, step->run_delay);
	for (int i = step->first; i < step->end; i++) {
		const struct call *call = &calls[i];

		fprintf(truth,
			"%s{\"nr\": %ld, \"args\": [%lu, %lu], \"ret\": %ld, \"blocked\": %d, "
			"\"path\": ",
			i == step->first ? "" : ",\n  ", call->nr, call->args[0], call->args[1],
			call->ret, call->blocked);
		write_text(truth, call->path);
		putc('}', truth);
	}
	fputs("]}", truth);
}

static void write_truth(FILE *truth)
{
	/* The last call does not return. */
	calls[call_count] =
		(struct call){.nr = SYS_read,
			      .args = {(unsigned long)pipe_fds[0], (unsigned long)bytes},
			      .path = pipe_name,
			      .blocked = YES};
	steps[STEPS - 1].first = call_count;
	steps[STEPS - 1].end = call_count + 1;
	fprintf(truth, "{\"fresh\": %d, \"mounted\": %d, \"steps\": [", FRESH, mounted_fd >= 0);
	for (int i = 0; i < STEPS; i++)
		write_step(truth, &steps[i]);
	fputs("]}\n", truth);
}

int main(int argc, char **argv)
{
	FILE *truth = open_truth(argv);
	int schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	if (argc < 3 || !realpath(argv[2], folder))
		return EXIT_FAILURE;
	prepare_files();
	prepare_pages();
	wait_for_go();
	for (int i = 0; i < STEPS - 1; i++)
		run_step(&steps[i], schedstat);
	write_truth(truth);
	fclose(truth);
	args_step(wait_for_ever);
	return EXIT_SUCCESS;
}

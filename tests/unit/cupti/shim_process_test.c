/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "buffers.h"
#include "shim_fixture.h"

/*
 * The shim in unusual processes. The shim is linked into this test, so that the test can call its
 * callbacks as CUPTI would. Each fact runs in a process of its own, because a process has only one
 * shim, for good.
 */

int InitializeInjection(void);
int ferrum_cupti_attach(void);

static struct peer peer;

/*
 * LeakSanitizer calls this function when a process exits. In a forked child its check may wait
 * forever for an allocator lock that another thread of the parent held at the fork.
 */
static bool is_copy;

int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return is_copy;
}

/* Runs the function in a new process. The function returns 0 on success. */
static void in_process(int (*function)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(60);
		_exit(function());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/*
 * Arms the shim of this process, on the doubles of libcuda and libcupti. Returns 0 or a line
 * number.
 */
static int arm_own(void)
{
	const char *build = getenv("FBT_BUILD");
	char path[600];

	snprintf(path, sizeof(path), "%s/tests/libcuda.so.1", build ? build : "build/x86_64-gcc");
	/* RTLD_GLOBAL, because libcupti's double looks the library's symbols up. */
	if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL))
		return __LINE__;
	snprintf(path, sizeof(path), "%s/tests/libcupti.so.13", build ? build : "build/x86_64-gcc");
	setenv("FERRUM_CUPTI_LIBRARY", path, 1);
	if (InitializeInjection() != 1 || !peer_open(&peer, getpid()))
		return __LINE__;
	peer_wish(&peer, 1);
	if (!peer_await(&peer, 1) || peer.state.status != FBT_GPU_ARMED)
		return __LINE__;
	return 0;
}

/* Holds in every child, however it was created: no CUPTI call is made, or its double aborts. */
static int check_child(void)
{
	uint8_t *buffer = NULL;
	size_t size = 0;
	size_t records = 1;

	for (int i = 0; i < 3 * (int)BUFFER_POOL_COUNT; i++) {
		buffers__request(&buffer, &size, &records);
		if (buffer != buffer_pool__scrap() || size != BUFFER_SCRAP_BYTES || records)
			return __LINE__;
		memset(buffer, 1, size);
		buffers__complete(NULL, 0, buffer, size, size);
	}
	/* The shim does not start again: a child cannot use its parent's CUDA context. */
	return InitializeInjection() == 1 ? 0 : __LINE__;
}

static int await_child(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return __LINE__;
	return WIFEXITED(status) ? WEXITSTATUS(status) : __LINE__;
}

static int check_fork(void)
{
	uint32_t pulse;
	pid_t pid;
	int count;
	int err = arm_own();

	if (err)
		return err;
	pid = fork();
	if (pid == 0) {
		is_copy = true;
		err = check_child();
		/* Otherwise the tool would find the parent's ring in the child. */
		if (!err && peer_find_fd(getpid(), &count) >= 0)
			err = __LINE__;
		/* exit() runs handlers and destructors. */
		exit(err);
	}
	err = await_child(pid);
	if (err)
		return err;
	/* The parent's shim continues. */
	pulse = peer.shared->pulse;
	for (int i = 0; i < 5000 && peer.shared->pulse == pulse; i++) {
		__atomic_fetch_add(&peer.shared->beat, 1, __ATOMIC_RELEASE);
		peer_sleep_ms(1);
	}
	if (peer.shared->pulse == pulse || peer_find_fd(getpid(), &count) < 0)
		return __LINE__;
	peer_wish(&peer, 2);
	return peer_await(&peer, 2) && peer.state.status == FBT_GPU_ENDED ? 0 : __LINE__;
}

/* A raw clone() runs no fork handlers. */
static int check_raw_fork(void)
{
	int err = arm_own();
	pid_t pid;

	if (err)
		return err;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(check_child());
	return await_child(pid);
}

/* The engine has closed all descriptors that it does not know, and reused the number. */
static int check_descriptor_reused(void)
{
	int err = arm_own();
	int count;
	int fd = peer_find_fd(getpid(), &count);
	int other = open("/dev/null", O_RDONLY);
	pid_t pid;

	if (err || count != 1)
		return __LINE__;
	if (dup2(other, fd) != fd)
		return __LINE__;
	pid = fork();
	if (pid == 0)
		_exit(fcntl(fd, F_GETFD) < 0);
	return await_child(pid);
}

static int check_exec(void)
{
	int err = arm_own();

	if (err)
		return err;
	execlp("sh", "sh", "-c", "! ls -l /proc/$$/fd | grep -q ferrum-cupti", (char *)NULL);
	return __LINE__;
}

static int check_twice(void)
{
	int count;

	for (int i = 0; i < 3; i++)
		if (InitializeInjection() != 1)
			return __LINE__;
	peer_find_fd(getpid(), &count);
	return count == 1 ? 0 : __LINE__;
}

/* A sandbox without memfd_create(). */
static int check_seccomp(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	int count;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return __LINE__;
	errno = 4711;
	if (InitializeInjection() != 1 || InitializeInjection() != 1 || errno != 4711)
		return __LINE__;
	peer_find_fd(getpid(), &count);
	return count ? __LINE__ : 0;
}

/* RLIMIT_FSIZE applies to memfds too: exceeding it would kill the process. */
static int check_file_limit(void)
{
	struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
	int count;

	if (setrlimit(RLIMIT_FSIZE, &limit) || InitializeInjection() != 1)
		return __LINE__;
	peer_find_fd(getpid(), &count);
	return count ? __LINE__ : 0;
}

/* Only the first pages of the ring can be allocated. The shim must not touch the others. */
static int check_no_memory(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 1 << 20, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return __LINE__;
	arm_own();
	if (peer.state.status != FBT_GPU_FAILED || !strstr(peer.detail, "no memory"))
		return __LINE__;
	for (uint32_t wish = 3; wish < 1000; wish += 2) {
		peer_wish(&peer, wish);
		if (!peer_await(&peer, wish))
			return __LINE__;
	}
	return peer.shared->head < 16384 && peer.counts[FBT_EVENT_GPU_STATE] > 10 ? 0 : __LINE__;
}

/* The shim's thread, after it has set its name. 0: there is none. */
static pid_t find_thread(void)
{
	char path[64], name[32];
	pid_t found = 0;

	for (int i = 0; i < 5000 && !found; i++) {
		struct dirent *entry;
		DIR *dir = opendir("/proc/self/task");

		while (dir && (entry = readdir(dir))) {
			FILE *file;

			snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", entry->d_name);
			file = fopen(path, "r");
			if (file && fgets(name, sizeof(name), file) &&
			    strcmp(name, FBT_GPU_MEMFD "\n") == 0)
				found = atoi(entry->d_name);
			if (file)
				fclose(file);
		}
		if (dir)
			closedir(dir);
		if (!found)
			peer_sleep_ms(1);
	}
	return found;
}

static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int count = -2;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

/* An injected shim starts like one that the driver loads, but loads CUPTI only on a wish. */
static int check_late(void)
{
	const char *build = getenv("FBT_BUILD");
	char path[600];
	int count;

	setenv("FERRUM_CUPTI_EARLY", "1", 1);
	snprintf(path, sizeof(path), "%s/tests/libcuda.so.1", build ? build : "build/x86_64-gcc");
	if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL))
		return __LINE__;
	snprintf(path, sizeof(path), "%s/tests/libcupti.so.13", build ? build : "build/x86_64-gcc");
	setenv("FERRUM_CUPTI_LIBRARY", path, 1);
	if (ferrum_cupti_attach() || ferrum_cupti_attach() || InitializeInjection() != 1)
		return __LINE__;
	peer_find_fd(getpid(), &count);
	if (count != 1 || !find_thread() || count_threads() != 2 || !peer_open(&peer, getpid()))
		return __LINE__;
	if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) || shim__bound()->attached_early)
		return __LINE__;
	peer_wish(&peer, 1);
	if (!peer_await(&peer, 1) || peer.state.status != FBT_GPU_ARMED)
		return __LINE__;
	peer_wish(&peer, 2);
	if (!peer_await(&peer, 2) || shim__bound()->subscriber)
		return __LINE__;
	return 0;
}

/* In an injected shim FERRUM_CUPTI_EARLY does not excuse a version that is too old for graphs. */
static int check_late_and_old(void)
{
	const char *build = getenv("FBT_BUILD");
	char path[600];

	setenv("FERRUM_CUPTI_EARLY", "1", 1);
	snprintf(path, sizeof(path), "%s/tests/libcupti.so.11.8",
		 build ? build : "build/x86_64-gcc");
	setenv("FERRUM_CUPTI_LIBRARY", path, 1);
	if (ferrum_cupti_attach() || !peer_open(&peer, getpid()))
		return __LINE__;
	peer_wish(&peer, 1);
	if (!peer_await(&peer, 1) || peer.state.status != FBT_GPU_OLD_CUPTI)
		return __LINE__;
	return 0;
}

static void *attach_niced(void *result)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(*(int *)result, &one);
	*(int *)result = sched_setaffinity(0, sizeof(one), &one) ||
			 setpriority(PRIO_PROCESS, 0, 19) || prctl(PR_SET_TIMERSLACK, 1000000000) ||
			 ferrum_cupti_attach();
	return NULL;
}

/*
 * The shim's thread gets the settings of the first thread, not those of the thread that was
 * diverted.
 */
static int check_late_thread(void)
{
	cpu_set_t before, after;
	char path[64], text[32] = "";
	pthread_t thread;
	FILE *file;
	int result = 0;
	pid_t tid;

	if (geteuid())
		return 0;
	sched_getaffinity(0, sizeof(before), &before);
	while (!CPU_ISSET(result, &before))
		result++;
	setpriority(PRIO_PROCESS, 0, 3);
	if (pthread_create(&thread, NULL, attach_niced, &result) || pthread_join(thread, NULL) ||
	    result)
		return __LINE__;
	tid = find_thread();
	snprintf(path, sizeof(path), "/proc/%d/timerslack_ns", (int)tid);
	/* It has its name before the rest. */
	for (int i = 0; i < 5000 &&
			(strcmp(text, "50000\n") != 0 || getpriority(PRIO_PROCESS, (id_t)tid) != 4);
	     i++) {
		peer_sleep_ms(1);
		file = fopen(path, "r");
		if (!file || !fgets(text, sizeof(text), file))
			return __LINE__;
		fclose(file);
	}
	if (sched_getaffinity(tid, sizeof(after), &after) || !CPU_EQUAL(&before, &after))
		return __LINE__;
	return getpriority(PRIO_PROCESS, (id_t)tid) == 4 && !strcmp(text, "50000\n") ? 0 : __LINE__;
}

/* Loads a second copy of the shim from a file of its own. Returns its entry; NULL: it failed. */
static int (*load_copy(const char *entry))(void)
{
	const char *build = getenv("FBT_BUILD");
	int copy = memfd_create("libferrum_cupti.so", MFD_CLOEXEC), source, (*function)(void);
	char path[600];
	ssize_t got;
	void *handle;

	snprintf(path, sizeof(path), "%s/libferrum_cupti.so", build ? build : "build/x86_64-gcc");
	source = open(path, O_RDONLY | O_CLOEXEC);
	while ((got = read(source, path, sizeof(path))) > 0)
		if (write(copy, path, (size_t)got) != got)
			return NULL;
	close(source);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return NULL;
	*(void **)&function = dlsym(handle, entry);
	return function;
}

/* The first copy creates the ring and the thread. The others do nothing and report success. */
static int check_copies(void)
{
	int (*early)(void) = load_copy("InitializeInjection");
	int (*late)(void) = load_copy("ferrum_cupti_attach");
	int count;

	if (!early || !late || early() != 1 || late() || late() || ferrum_cupti_attach() ||
	    InitializeInjection() != 1)
		return __LINE__;
	peer_find_fd(getpid(), &count);
	if (count != 1 || !find_thread() || count_threads() != 2 || !peer_open(&peer, getpid()))
		return __LINE__;
	return shim__bound() ? __LINE__ : 0;
}

struct start {
	pthread_t thread;
	pthread_barrier_t *barrier;
	int (*function)(void);
};

static void *start_copy(void *arg)
{
	struct start *start = arg;

	pthread_barrier_wait(start->barrier);
	start->function();
	return NULL;
}

/* The same, with all copies starting at once. */
static int check_copies_at_once(void)
{
	enum { COPIES = 8 };
	struct start starts[COPIES];
	pthread_barrier_t barrier;
	int count;

	pthread_barrier_init(&barrier, NULL, COPIES);
	for (int i = 0; i < COPIES; i++) {
		starts[i].barrier = &barrier;
		starts[i].function =
			load_copy(i % 2 ? "InitializeInjection" : "ferrum_cupti_attach");
		if (!starts[i].function)
			return __LINE__;
	}
	for (int i = 0; i < COPIES; i++)
		pthread_create(&starts[i].thread, NULL, start_copy, &starts[i]);
	for (int i = 0; i < COPIES; i++)
		pthread_join(starts[i].thread, NULL);
	peer_find_fd(getpid(), &count);
	/* Threads that were joined are in /proc for a moment longer. */
	for (int i = 0; i < 5000 && count_threads() != 2; i++)
		peer_sleep_ms(1);
	return count == 1 && find_thread() && count_threads() == 2 ? 0 : __LINE__;
}

/* A line of /proc/self/maps that is split between two reads must be read whole. */
static int check_copy_among_many(void)
{
	int (*late)(void) = load_copy("ferrum_cupti_attach");
	int (*early)(void) = load_copy("InitializeInjection");
	int count;

	/* The kernel cannot merge these mappings. */
	for (int i = 0; i < 1000; i++)
		if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) == MAP_FAILED)
			return __LINE__;
	if (!late || !early || late())
		return __LINE__;
	for (int i = 0; i < 200; i++)
		if (!mmap(NULL, 4096 * (size_t)(i % 7 + 1), i % 2 ? PROT_READ : PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ||
		    early() != 1)
			return __LINE__;
	peer_find_fd(getpid(), &count);
	return count == 1 ? 0 : __LINE__;
}

/* The tool learns why there is no ring. */
static int check_late_refused(void)
{
	struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};

	if (setrlimit(RLIMIT_FSIZE, &limit))
		return __LINE__;
	return ferrum_cupti_attach() == EFBIG ? 0 : __LINE__;
}

/* The signals that the shim's thread blocks; 0: there is no such thread. */
static uint64_t read_blocked(void)
{
	char line[256];
	uint64_t blocked = 0;
	bool ours = false;
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/task");

	while (dir && (entry = readdir(dir))) {
		FILE *file;

		snprintf(line, sizeof(line), "/proc/self/task/%.20s/status", entry->d_name);
		file = fopen(line, "r");
		while (file && fgets(line, sizeof(line), file)) {
			if (!strncmp(line, "Name:", 5))
				ours = strstr(line, FBT_GPU_MEMFD);
			if (ours && !strncmp(line, "SigBlk:", 7))
				blocked = strtoull(line + 7, NULL, 16);
		}
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return blocked;
}

/*
 * The shim's thread blocks the engine's signals. Its own faults still reach the engine's handlers.
 */
static int check_signals(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	const int libc = 33; /* setuid() sends this signal to all threads and waits for them */
	uint64_t blocked = 0;

	if (InitializeInjection() != 1)
		return __LINE__;
	for (int i = 0; i < 5000 && !blocked; i++) {
		peer_sleep_ms(1);
		blocked = read_blocked();
	}
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (blocked & UINT64_C(1) << (faults[i] - 1))
			return faults[i];
	if (blocked & UINT64_C(1) << (libc - 1) || setuid(65534))
		return libc;
	return blocked & UINT64_C(1) << (SIGTERM - 1) && blocked & UINT64_C(1) << (SIGPROF - 1)
		       ? 0
		       : __LINE__;
}

/* With little address space left, the shim uses less memory or stays off. */
static int check_address_space(void)
{
	int mappings = 0;

	for (size_t room = 32u << 20; room >= 1u << 20; room -= 1u << 20) {
		pid_t pid = fork();
		unsigned long pages = 0;
		struct rlimit limit;
		FILE *file;

		if (pid) {
			int err = await_child(pid);

			if (err > 1)
				return err;
			mappings += err;
			continue;
		}
		alarm(60);
		file = fopen("/proc/self/statm", "r");
		if (!file || fscanf(file, "%lu", &pages) != 1)
			_exit(2);
		limit.rlim_cur = pages * 4096 + room;
		limit.rlim_max = limit.rlim_cur;
		if (setrlimit(RLIMIT_AS, &limit) || InitializeInjection() != 1)
			_exit(3);
		_exit(peer_find_fd(getpid(), &(int){0}) >= 0);
	}
	return mappings > 20 ? 0 : __LINE__;
}

/* Requests more buffers than there are, and returns them. The shortage must be counted. */
static int use_up_buffers(bool gets_none)
{
	uint8_t *buffers[BUFFER_POOL_COUNT + 2];
	size_t size;
	size_t records;
	int err = arm_own();

	if (err)
		return err;
	for (size_t i = 0; i < BUFFER_POOL_COUNT + 2; i++) {
		errno = 4711;
		buffers__request(&buffers[i], &size, &records);
		if (records || (uintptr_t)buffers[i] % 8 || errno != 4711)
			return __LINE__;
		if (buffer_pool__owns(&shim__bound()->pool, buffers[i]) != (i < BUFFER_POOL_COUNT))
			return __LINE__;
		if (i >= BUFFER_POOL_COUNT &&
		    buffers[i] != (gets_none ? NULL : buffer_pool__scrap()))
			return __LINE__;
	}
	memset(buffer_pool__scrap(), 1, BUFFER_SCRAP_BYTES);
	for (size_t i = 0; i < BUFFER_POOL_COUNT + 2; i++)
		if (buffers[i])
			buffers__complete(NULL, 0, buffers[i], size, 0);
	/* CUPTI was promised cleared buffers. */
	for (size_t i = 0; i < BUFFER_SCRAP_BYTES && !gets_none; i++)
		if (buffer_pool__scrap()[i])
			return __LINE__;
	peer_wish(&peer, 2);
	if (!peer_await(&peer, 2))
		return __LINE__;
	return peer.flush.no_buffer == 2 && peer.flush.records == 0 ? 0 : __LINE__;
}

static int check_buffers(void)
{
	setenv("FAKE_CUPTI_VERSION", "27", 1);
	return use_up_buffers(true);
}

/* Before 12.9 CUPTI crashes if it gets no buffer, so it gets the scrap buffer. */
static int check_buffers_of_12_8(void)
{
	setenv("FAKE_CUPTI_VERSION", "26", 1);
	return use_up_buffers(false);
}

#define PROCESS_TEST(name)                                                                         \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		in_process(check_##name);                                                          \
	}

PROCESS_TEST(fork)
PROCESS_TEST(raw_fork)
PROCESS_TEST(descriptor_reused)
PROCESS_TEST(exec)
PROCESS_TEST(twice)
PROCESS_TEST(seccomp)
PROCESS_TEST(file_limit)
PROCESS_TEST(no_memory)
PROCESS_TEST(late)
PROCESS_TEST(late_and_old)
PROCESS_TEST(late_thread)
PROCESS_TEST(late_refused)
PROCESS_TEST(copies)
PROCESS_TEST(copies_at_once)
PROCESS_TEST(copy_among_many)
PROCESS_TEST(signals)
PROCESS_TEST(address_space)
PROCESS_TEST(buffers)
PROCESS_TEST(buffers_of_12_8)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_raw_fork),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_descriptor_reused),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_seccomp),
		cmocka_unit_test(test_file_limit),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_address_space),
		cmocka_unit_test(test_buffers),
		cmocka_unit_test(test_buffers_of_12_8),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_late_and_old),
		cmocka_unit_test(test_late_thread),
		cmocka_unit_test(test_late_refused),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_copies_at_once),
		cmocka_unit_test(test_copy_among_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

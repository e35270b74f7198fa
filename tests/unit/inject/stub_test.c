/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The stub of --gpu=inject in this process. It is entered with the registers that the kernel's
 * restart of a system call leaves. Its table of functions points to libc or to doubles.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fbt_inject.h"
#include "inject_code.h"

#if defined(__x86_64__)
#include "inject_stub_fixture.h"

#define NONCE	  0xa5c3e1f0u
#define SIGCANCEL 32

/* A stub with the functions of libc. instead, if set, replaces one of them. */
static uint8_t *new_stub(enum fbt_inject_function which, void *instead)
{
	static const char *const names[] = FBT_INJECT_FUNCTION_NAMES;
	size_t size = (sizeof(inject_code) + 4095) & ~4095ul;
	uint8_t *stub =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fbt_inject_stub head;

	assert_true(stub != MAP_FAILED);
	memcpy(stub, inject_code, sizeof(inject_code));
	memcpy(&head, stub, sizeof(head));
	for (int i = 0; i < FBT_INJECT_FUNCTION_COUNT; i++)
		head.functions[i] = (uint64_t)dlsym(RTLD_DEFAULT, names[i]);
	if (instead)
		head.functions[which] = (uint64_t)instead;
	memcpy(stub, &head, sizeof(head));
	assert_int_equal(mprotect(stub, size, PROT_READ | PROT_EXEC), 0);
	return stub;
}

static void free_stub(uint8_t *stub)
{
	munmap(stub, (sizeof(inject_code) + 4095) & ~4095ul);
}

static struct registers full_registers(uint64_t rax, uint64_t token)
{
	struct registers registers;
	uint8_t *bytes = (uint8_t *)&registers;

	for (size_t i = 0; i < sizeof(registers); i++)
		bytes[i] = (uint8_t)(i * 7 + 3);
	registers.rax = rax;
	registers.token = token;
	registers.mxcsr = 0x1f80 | 0x6000; /* round towards zero */
	return registers;
}

/* Checks all registers but rax, which holds the result of the call. */
static void assert_kept(const struct registers *in, const struct registers *out)
{
	assert_int_equal(out->moved, 0);
	assert_memory_equal(&out->rbx, &in->rbx, offsetof(struct registers, flags) - 24);
	assert_true(out->flags & FLAGS_CARRY);
	assert_true(out->flags & FLAGS_DIRECTION);
	assert_int_equal(out->rbp, in->rbp);
	assert_memory_equal(out->red_zone, in->red_zone, sizeof(in->red_zone));
	assert_memory_equal(out->xmm, in->xmm, sizeof(in->xmm));
	assert_int_equal(out->mxcsr, in->mxcsr);
}

/* --- doubles of pthread_create --------------------------------------------------------------- */

static int refuse_to_create(void *thread, const void *attributes, void *start, void *arg)
{
	/* Function calls may clobber these registers and errno, but a system call may not. */
	__asm__ volatile("pcmpeqb %%xmm0, %%xmm0\n"
			 "movaps %%xmm0, %%xmm7\n"
			 "movaps %%xmm0, %%xmm15\n" ::
				 : "xmm0", "xmm7", "xmm15");
	errno = EAGAIN;
	return EAGAIN;
}

static int raise_usr1(void *thread, const void *attributes, void *start, void *arg)
{
	raise(SIGUSR1);
	return EAGAIN;
}

/* Sends the signal of pthread_cancel() by hand, because libc refuses to send it. */
static int raise_cancel(void *thread, const void *attributes, void *start, void *arg)
{
	syscall(SYS_tgkill, getpid(), gettid(), SIGCANCEL);
	return EAGAIN;
}

/* All signals must be blocked but those of the thread's own faults and SIGSETXID. */
static int look_at_mask(void *thread, const void *attributes, void *start, void *arg)
{
	unsigned long mask = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
	if (mask != ~(1ul << (SIGILL - 1) | 1ul << (SIGTRAP - 1) | 1ul << (SIGBUS - 1) |
		      1ul << (SIGFPE - 1) | 1ul << (SIGSEGV - 1) | 1ul << (SIGSYS - 1) |
		      1ul << (33 - 1) | 1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1)))
		abort();
	return EAGAIN;
}

static volatile sig_atomic_t handled;

static void count_signal(int signal)
{
	handled++;
}

static void handle_usr1(int flags)
{
	struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};

	handled = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_restart_issues_the_call_with_all_registers_as_they_were(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, refuse_to_create);
	struct registers in =
		full_registers(SYS_getppid, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	struct registers out;

	errno = 4711;
	enter_stub(stub + FBT_INJECT_ENTRY_RESTART, &in, &out);
	assert_int_equal(errno, 4711);
	assert_kept(&in, &out);
	assert_int_equal(out.rax, getppid());
	free_stub(stub);
}

static void an_interrupted_call_is_not_issued_and_says_so(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, refuse_to_create);
	struct registers in =
		full_registers((uint64_t)-EINTR, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	struct registers out;

	enter_stub(stub + FBT_INJECT_ENTRY_INTERRUPTED, &in, &out);
	assert_kept(&in, &out);
	assert_int_equal((int64_t)out.rax, -EINTR);
	free_stub(stub);
}

static void signals_wait_but_for_faults_and_setxid(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, look_at_mask);
	struct registers in =
		full_registers(SYS_getppid, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	struct registers out;
	unsigned long before = 1, after = 2;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &before, 8);
	enter_stub(stub, &in, &out);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &after, 8);
	assert_int_equal(before, after);
	free_stub(stub);
}

static void a_signal_after_an_interrupted_call_changes_nothing(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, raise_usr1);
	struct registers in =
		full_registers((uint64_t)-EINTR, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	struct registers out;

	handle_usr1(0);
	enter_stub(stub + FBT_INJECT_ENTRY_INTERRUPTED, &in, &out);
	assert_kept(&in, &out);
	assert_int_equal((int64_t)out.rax, -EINTR);
	assert_int_equal(handled, 1);
	signal(SIGUSR1, SIG_DFL);
	free_stub(stub);
}

/* Whether the program sees EINTR after a signal came while the thread was in the stub. */
static bool is_interrupted_by(void *raise_it, enum fbt_inject_class class, uint64_t nr)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, raise_it);
	struct registers in = full_registers(nr, FBT_INJECT_TOKEN(NONCE, class));
	struct registers out;

	enter_stub(stub, &in, &out);
	assert_kept(&in, &out);
	free_stub(stub);
	if ((int64_t)out.rax == -EINTR)
		return true;
	assert_int_equal(out.rax, getppid());
	return false;
}

static bool is_interrupted(enum fbt_inject_class class, uint64_t nr)
{
	return is_interrupted_by(raise_usr1, class, nr);
}

static void a_signal_that_came_meanwhile_interrupts_what_it_would_have(void **state)
{
	handle_usr1(SA_RESTART);
	assert_false(is_interrupted(FBT_INJECT_ALWAYS, SYS_getppid));
	assert_false(is_interrupted(FBT_INJECT_SA, SYS_getppid));
	assert_true(is_interrupted(FBT_INJECT_NO_HAND, SYS_getppid));
	assert_true(is_interrupted(FBT_INJECT_BLOCK, SYS_getppid));
	assert_int_equal(handled, 4);
	handle_usr1(0);
	assert_false(is_interrupted(FBT_INJECT_ALWAYS, SYS_getppid));
	assert_true(is_interrupted(FBT_INJECT_SA, SYS_getppid));
	assert_true(is_interrupted(FBT_INJECT_NO_HAND, SYS_getppid));
	assert_int_equal(handled, 3);
	assert_true(is_interrupted(FBT_INJECT_BLOCK, SYS_restart_syscall));
	assert_int_equal(handled, 4);
	signal(SIGUSR1, SIG_IGN);
	assert_false(is_interrupted(FBT_INJECT_NO_HAND, SYS_getppid));
	signal(SIGUSR1, SIG_DFL);
}

/* glibc 2.41 only records a cancellation whose signal arrives outside of a cancellation point. */
static void a_cancellation_interrupts_though_its_handler_restarts(void **state)
{
	struct {
		void (*handler)(int signal);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} action;

	handle_usr1(SA_RESTART);
	assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, 8), 0);
	assert_int_equal(syscall(SYS_rt_sigaction, SIGCANCEL, &action, NULL, 8), 0);
	assert_true(is_interrupted_by(raise_cancel, FBT_INJECT_SA, SYS_getppid));
	assert_false(is_interrupted_by(raise_cancel, FBT_INJECT_ALWAYS, SYS_getppid));
	assert_int_equal(handled, 2 * 2); /* two stack sizes are tried */
	action.handler = SIG_DFL;
	assert_int_equal(syscall(SYS_rt_sigaction, SIGCANCEL, &action, NULL, 8), 0);
	signal(SIGUSR1, SIG_DFL);
}

static size_t pages(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long count = 0;

	assert_int_equal(fscanf(file, "%lu", &count), 1);
	fclose(file);
	return count;
}

static void the_memory_it_runs_on_is_given_back(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, refuse_to_create);
	struct registers in =
		full_registers(SYS_getppid, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	size_t before = pages();
	struct registers out;

	for (int i = 0; i < 50; i++)
		enter_stub(stub, &in, &out);
	assert_int_equal(pages(), before);
	free_stub(stub);
}

static void a_signal_that_is_blocked_interrupts_nothing(void **state)
{
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	handle_usr1(0);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	assert_false(is_interrupted(FBT_INJECT_NO_HAND, SYS_getppid));
	assert_int_equal(handled, 0);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	assert_int_equal(handled, 1);
	signal(SIGUSR1, SIG_DFL);
}

/* --- the helper --------------------------------------------------------------------------------
 */

static size_t count_of(const char *folder)
{
	DIR *dir = opendir(folder);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void await_count(const char *folder, size_t count)
{
	for (int i = 0; i < 1000 && count_of(folder) != count; i++)
		usleep(10000);
	assert_int_equal(count_of(folder), count);
}

/* The helper's page with that nonce, or NULL. */
static struct fbt_inject_page *find_page(uint32_t nonce)
{
	char wanted[64], path[300], link[128];
	struct fbt_inject_page *page = NULL;
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	snprintf(wanted, sizeof(wanted), "/memfd:" FBT_INJECT_PAGE_NAME "%08x (deleted)", nonce);
	while (!page && (entry = readdir(dir))) {
		ssize_t length;
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		length = readlink(path, link, sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		if (strcmp(link, wanted))
			continue;
		fd = open(path, O_RDWR | O_CLOEXEC);
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		if (page == MAP_FAILED)
			page = NULL;
	}
	closedir(dir);
	return page;
}

static struct fbt_inject_page *await_page(uint32_t nonce)
{
	struct fbt_inject_page *page = NULL;

	for (int i = 0; i < 1000 && !page; i++) {
		usleep(1000);
		page = find_page(nonce);
	}
	assert_non_null(page);
	for (int i = 0; i < 1000 && !page->state; i++)
		usleep(1000);
	assert_int_equal(page->state, FBT_INJECT_READY);
	assert_int_equal(page->magic, FBT_INJECT_MAGIC);
	assert_int_equal(page->version, FBT_INJECT_VERSION);
	return page;
}

static void send_through(uint8_t *stub, uint32_t nonce)
{
	struct registers in =
		full_registers(SYS_getppid, FBT_INJECT_TOKEN(nonce, FBT_INJECT_NO_HAND));
	struct registers out;

	enter_stub(stub, &in, &out);
	assert_kept(&in, &out);
	assert_int_equal(out.rax, getppid());
}

static void wake(struct fbt_inject_page *page, uint32_t state)
{
	__atomic_store_n(&page->state, state, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void await_done(struct fbt_inject_page *page)
{
	for (int i = 0; i < 2000 && page->state != FBT_INJECT_DONE; i++)
		usleep(5000);
	assert_int_equal(page->state, FBT_INJECT_DONE);
}

static void write_library(const struct fbt_inject_page *page, const char *path)
{
	char buffer[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	assert_true(fd >= 0);
	while ((got = read(fd, buffer, sizeof(buffer))) > 0)
		assert_int_equal(write((int)page->library_fd, buffer, (size_t)got), got);
	close(fd);
}

/* The probe library lies beside this program. */
static void probe_path(char path[512])
{
	ssize_t length = readlink("/proc/self/exe", path, 400);

	assert_true(length > 0);
	path[length] = '\0';
	strcpy(strrchr(path, '/') + 1, "inject_probe.so");
}

static size_t loads(void)
{
	char line[512];
	size_t count = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "/memfd:" FBT_INJECT_LIBRARY_NAME) && strstr(line, " r-xp ");
	fclose(maps);
	return count;
}

static void the_helper_loads_what_it_is_given_each_time_anew(void **state)
{
	size_t threads = count_of("/proc/self/task"), files = count_of("/proc/self/fd");
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, NULL);
	size_t before = loads();
	char path[512];

	probe_path(path);
	for (uint32_t i = 0; i < 5; i++) {
		struct fbt_inject_page *page;

		send_through(stub, NONCE + i);
		page = await_page(NONCE + i);
		assert_int_equal(page->token, FBT_INJECT_TOKEN(NONCE + i, FBT_INJECT_NO_HAND));
		write_library(page, path);
		strcpy(page->entry, "inject_probe");
		wake(page, FBT_INJECT_FILLED);
		await_done(page);
		assert_int_equal(page->stage, FBT_INJECT_STAGE_DONE);
		assert_string_equal(page->text, "");
		assert_int_equal(page->result, 7);
		munmap(page, 4096);
		await_count("/proc/self/task", threads);
		await_count("/proc/self/fd", files);
		assert_int_equal(loads(), before + i + 1);
	}
	free_stub(stub);
}

static void what_is_no_library_or_has_no_such_entry_is_explained(void **state)
{
	size_t threads = count_of("/proc/self/task"), files = count_of("/proc/self/fd");
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, NULL);
	struct fbt_inject_page *page;
	char path[512];

	send_through(stub, 1);
	page = await_page(1);
	assert_int_equal(write((int)page->library_fd,
			       "not an ELF file, but long enough: "
			       "................................",
			       66),
			 66);
	wake(page, FBT_INJECT_FILLED);
	await_done(page);
	assert_int_equal(page->stage, FBT_INJECT_STAGE_LOAD);
	assert_non_null(strstr(page->text, "invalid ELF header"));
	munmap(page, 4096);
	await_count("/proc/self/task", threads);

	send_through(stub, 2);
	page = await_page(2);
	probe_path(path);
	write_library(page, path);
	strcpy(page->entry, "no_such_function");
	wake(page, FBT_INJECT_FILLED);
	await_done(page);
	assert_int_equal(page->stage, FBT_INJECT_STAGE_ENTRY);
	assert_non_null(strstr(page->text, "no_such_function"));
	munmap(page, 4096);
	await_count("/proc/self/task", threads);
	await_count("/proc/self/fd", files);
	free_stub(stub);
}

static void refuse_library(uint8_t *stub, uint32_t nonce, size_t threads)
{
	struct fbt_inject_page *page;

	send_through(stub, nonce);
	page = await_page(nonce);
	wake(page, FBT_INJECT_FILLED);
	await_done(page);
	assert_int_equal(page->stage, FBT_INJECT_STAGE_LOAD);
	munmap(page, 4096);
	await_count("/proc/self/task", threads);
}

static void a_helper_leaves_neither_its_stack_nor_its_page(void **state)
{
	size_t threads = count_of("/proc/self/task"), before;
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, NULL);

	/* libc keeps one stack for the next thread, and the loader keeps what it has allocated. */
	for (uint32_t i = 0; i < 3; i++)
		refuse_library(stub, 100 + i, threads);
	before = pages();
	for (uint32_t i = 0; i < 5; i++)
		refuse_library(stub, 200 + i, threads);
	assert_int_equal(pages(), before);
	free_stub(stub);
}

static void a_helper_to_whom_nobody_comes_gives_up(void **state)
{
	size_t threads = count_of("/proc/self/task"), files = count_of("/proc/self/fd");
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, NULL);
	struct fbt_inject_page *page;

	send_through(stub, 3);
	page = await_page(3);
	for (int i = 0; i < 1000 && page->state == FBT_INJECT_READY; i++)
		usleep(10000);
	assert_int_equal(page->state, FBT_INJECT_LATE);
	munmap(page, 4096);
	await_count("/proc/self/task", threads);
	await_count("/proc/self/fd", files);
	free_stub(stub);
}

/* The tool has died after it gave up. */
static void a_helper_that_is_sent_away_goes(void **state)
{
	size_t threads = count_of("/proc/self/task"), files = count_of("/proc/self/fd");
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, NULL);
	struct fbt_inject_page *page;
	int library;

	send_through(stub, 4);
	page = await_page(4);
	library = (int)page->library_fd;
	/* The program has closed the descriptor, and its number is now another file's. */
	assert_int_equal(dup2(STDERR_FILENO, library), library);
	wake(page, FBT_INJECT_LATE);
	await_count("/proc/self/task", threads);
	await_count("/proc/self/fd", files + 1);
	assert_int_equal(close(library), 0);
	assert_int_equal(page->state, FBT_INJECT_LATE);
	munmap(page, 4096);
	free_stub(stub);
}

static void it_fits_into_what_libc_leaves_free(void **state)
{
	struct fbt_inject_stub head;

	memcpy(&head, inject_code, sizeof(head));
	assert_int_equal(head.size, sizeof(inject_code));
	/*
	 * Free bytes after libc's code: 2499 in glibc 2.41 (Debian 13), 3844 in 2.36 (Debian 12).
	 */
	assert_true(sizeof(inject_code) <= 2499 - 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_restart_issues_the_call_with_all_registers_as_they_were),
		cmocka_unit_test(an_interrupted_call_is_not_issued_and_says_so),
		cmocka_unit_test(signals_wait_but_for_faults_and_setxid),
		cmocka_unit_test(a_signal_after_an_interrupted_call_changes_nothing),
		cmocka_unit_test(a_signal_that_came_meanwhile_interrupts_what_it_would_have),
		cmocka_unit_test(a_cancellation_interrupts_though_its_handler_restarts),
		cmocka_unit_test(the_memory_it_runs_on_is_given_back),
		cmocka_unit_test(a_signal_that_is_blocked_interrupts_nothing),
		cmocka_unit_test(the_helper_loads_what_it_is_given_each_time_anew),
		cmocka_unit_test(what_is_no_library_or_has_no_such_entry_is_explained),
		cmocka_unit_test(a_helper_leaves_neither_its_stack_nor_its_page),
		cmocka_unit_test(a_helper_to_whom_nobody_comes_gives_up),
		cmocka_unit_test(a_helper_that_is_sent_away_goes),
		cmocka_unit_test(it_fits_into_what_libc_leaves_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("SKIP the stub is for x86-64 only");
	return 77;
}

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The helper's page, played by this process itself, and what a hostile process may put there. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/page.h"

#define PAGE	   4096
#define PATIENCE_S 60
#define NONCE	   0x00c0ffeeu
#define TOKEN	   FBT_INJECT_TOKEN(NONCE, FBT_INJECT_BLOCK)
#define ASKED	   FBT_INJECT_TOKEN(NONCE, 0)
#define NAME	   FBT_INJECT_PAGE_NAME "00c0ffee"

struct fixture {
	int page_fd;
	int library_fd;
	struct fbt_inject_page *helper; /* the helper's mapping */
	struct inject_page *page;
	int own; /* pidfd of this process */
	unsigned int reached;
	int last;
};

static int new_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	return fd;
}

/* Creates a page as the helper does. */
static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct fbt_inject_page *helper;

	if (!fixture)
		return -1;
	alarm(PATIENCE_S);
	fixture->library_fd = new_memfd(FBT_INJECT_LIBRARY_NAME);
	fixture->page_fd = new_memfd(NAME);
	fixture->own = (int)syscall(SYS_pidfd_open, getpid(), 0);
	fixture->last = -1;
	if (pwrite(fixture->page_fd, "", 1, PAGE - 1) != 1 ||
	    fcntl(fixture->page_fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return -1;
	helper = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fixture->page_fd, 0);
	if (helper == MAP_FAILED)
		return -1;
	helper->magic = FBT_INJECT_MAGIC;
	helper->version = FBT_INJECT_VERSION;
	helper->token = TOKEN;
	helper->library_fd = (uint32_t)fixture->library_fd;
	helper->state = FBT_INJECT_READY;
	fixture->helper = helper;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	alarm(0);
	inject_page__free(fixture->page);
	munmap(fixture->helper, PAGE);
	close(fixture->page_fd);
	close(fixture->library_fd);
	close(fixture->own);
	free(fixture);
	return 0;
}

static struct proc_ref self(void)
{
	return (struct proc_ref){(uint32_t)getpid(), (uint32_t)getpid()};
}

static int open_page(struct fixture *fixture)
{
	int err = inject_page__open(&fixture->page, self(), ASKED);

	if (err)
		assert_null(fixture->page);
	return err;
}

static void note(void *ctx, enum inject_point point)
{
	struct fixture *fixture = ctx;

	assert_true((int)point > fixture->last);
	fixture->last = (int)point;
	fixture->reached |= 1u << point;
}

static int fill(struct fixture *fixture, const char *bytes, const char *entry)
{
	struct inject_library library = {.bytes = bytes, .size = strlen(bytes), .entry = entry};
	struct inject_hook hook = {note, fixture};

	return inject_page__fill(fixture->page, &library, &hook);
}

static uint64_t in_ms(uint64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec + ms * 1000000ull;
}

static void free_accepts_null(void **state)
{
	(void)state;
	inject_page__free(NULL);
}

static void a_page_is_found_by_its_token(void **state)
{
	struct fixture *fixture = *state;
	struct inject_page *other;

	assert_int_equal(open_page(fixture), 0);
	assert_int_equal(inject_page__open(&other, self(), FBT_INJECT_TOKEN(NONCE + 1, 0)),
			 -ENOENT);
	assert_null(other);
}

static void a_process_that_is_gone_is_esrch(void **state)
{
	const struct proc_ref gone = {0x7fffffff, 0x7fffffff};
	struct inject_page *page;

	(void)state;
	assert_int_equal(inject_page__open(&page, gone, ASKED), -ESRCH);
}

static void a_page_that_is_not_ready_is_not_there(void **state)
{
	struct fixture *fixture = *state;

	fixture->helper->state = FBT_INJECT_NONE;
	assert_int_equal(open_page(fixture), -ENOENT);
	fixture->helper->state = FBT_INJECT_READY;
	assert_int_equal(open_page(fixture), 0);
}

static void replace_page(struct fixture *fixture, off_t size, int seals)
{
	close(fixture->page_fd);
	fixture->page_fd = new_memfd(NAME);
	assert_int_equal(pwrite(fixture->page_fd, fixture->helper, (size_t)size, 0), size);
	if (seals)
		assert_int_equal(fcntl(fixture->page_fd, F_ADD_SEALS, seals), 0);
}

/* Reading a page that has shrunk would raise SIGBUS in the tool. */
static void a_page_that_could_become_shorter_is_not_mapped(void **state)
{
	struct fixture *fixture = *state;

	replace_page(fixture, PAGE, F_SEAL_GROW);
	assert_int_equal(open_page(fixture), -ENOENT);
	replace_page(fixture, PAGE - 1, F_SEAL_SHRINK);
	assert_int_equal(open_page(fixture), -ENOENT);
	replace_page(fixture, PAGE, F_SEAL_SHRINK);
	assert_int_equal(open_page(fixture), 0);
}

static void a_page_that_may_not_be_written_is_none(void **state)
{
	struct fixture *fixture = *state;

	replace_page(fixture, PAGE, F_SEAL_SHRINK | F_SEAL_WRITE);
	assert_int_equal(open_page(fixture), -EBADMSG);
}

static void another_head_is_none(void **state)
{
	struct fixture *fixture = *state;

	fixture->helper->magic++;
	assert_int_equal(open_page(fixture), -EBADMSG);
	fixture->helper->magic--;
	fixture->helper->version++;
	assert_int_equal(open_page(fixture), -EBADMSG);
	fixture->helper->version--;
	fixture->helper->token = FBT_INJECT_TOKEN(NONCE + 1, 0);
	assert_int_equal(open_page(fixture), -EBADMSG);
}

static void a_sound_page_is_found_after_a_bad_one(void **state)
{
	struct fixture *fixture = *state;
	int bad = new_memfd(NAME), moved = fcntl(fixture->page_fd, F_DUPFD_CLOEXEC, bad + 1);

	close(fixture->page_fd);
	fixture->page_fd = moved;
	assert_int_equal(open_page(fixture), 0);
	close(bad);
}

/* An open() of a file with a lease blocks until the lease is released, for up to 45 s. */
static void a_lease_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;
	char path[64];
	int fd;

	signal(SIGIO, SIG_IGN);
	munmap(fixture->helper, PAGE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fixture->page_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	close(fixture->page_fd);
	fixture->page_fd = fd;
	fixture->helper = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (fcntl(fd, F_SETLEASE, F_RDLCK))
		skip();
	assert_int_equal(open_page(fixture), -EBADMSG);
}

/* Opening a file that is no memfd may block or have side effects. */
static void a_file_of_that_name_is_not_opened(void **state)
{
	static const char name[] = "/memfd:" NAME " (deleted)";
	struct fixture *fixture = *state;
	int fd, err = -EBADMSG;

	close(fixture->page_fd);
	fixture->page_fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fixture->page_fd >= 0)
		assert_int_equal(open_page(fixture), -EBADMSG);
	close(fixture->page_fd);
	fixture->page_fd = -1;
	/* In most containers only root can create this file. */
	fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (pwrite(fd, fixture->helper, PAGE, 0) == PAGE)
		err = open_page(fixture);
	close(fd);
	unlink(name);
	assert_int_equal(err, -EBADMSG);
}

static void a_library_of_another_name_is_none(void **state)
{
	struct fixture *fixture = *state;

	fixture->helper->library_fd = (uint32_t)fixture->page_fd;
	assert_int_equal(open_page(fixture), -EBADMSG);
	fixture->helper->library_fd = 0x7fffffff;
	assert_int_equal(open_page(fixture), -EBADMSG);
	fixture->helper->library_fd = ~0u;
	assert_int_equal(open_page(fixture), -EBADMSG);
}

/* The file may belong to another process that has lent it for reading. */
static void a_library_that_is_not_empty_is_not_written(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(write(fixture->library_fd, "x", 1), 1);
	assert_int_equal(open_page(fixture), -EBADMSG);
}

static void what_is_filled_is_there(void **state)
{
	struct fixture *fixture = *state;
	char bytes[16] = "";

	assert_int_equal(open_page(fixture), 0);
	assert_int_equal(fill(fixture, "library", "entry"), 0);
	assert_int_equal(fixture->helper->state, FBT_INJECT_FILLED);
	assert_string_equal(fixture->helper->entry, "entry");
	assert_int_equal(pread(fixture->library_fd, bytes, sizeof(bytes), 0), 7);
	assert_string_equal(bytes, "library");
	assert_int_equal(fixture->reached, 1u << INJECT_AT_LIBRARY_PART |
						   1u << INJECT_AT_LIBRARY_WRITTEN |
						   1u << INJECT_AT_FILLED);
}

static void a_helper_that_has_given_up_is_not_filled(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(open_page(fixture), 0);
	fixture->helper->state = FBT_INJECT_LATE;
	assert_int_equal(fill(fixture, "library", NULL), -ETIMEDOUT);
	assert_int_equal(fixture->helper->state, FBT_INJECT_LATE);
	fixture->helper->state = FBT_INJECT_DONE;
	fixture->last = -1;
	assert_int_equal(fill(fixture, "library", NULL), -EBADMSG);
}

static void what_cannot_be_written_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(open_page(fixture), 0);
	assert_int_equal(fcntl(fixture->library_fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_int_equal(fill(fixture, "library", "entry"), -EPERM);
	assert_int_equal(fixture->helper->state, FBT_INJECT_LATE);
}

static void an_entry_has_to_fit(void **state)
{
	struct fixture *fixture = *state;
	char entry[sizeof(fixture->helper->entry) + 1] = "";

	memset(entry, 'x', sizeof(entry) - 1);
	assert_int_equal(open_page(fixture), 0);
	assert_int_equal(fill(fixture, "library", entry), -ENAMETOOLONG);
	assert_int_equal(fixture->helper->state, FBT_INJECT_LATE);
	fixture->helper->state = FBT_INJECT_READY;
	fixture->last = -1;
	entry[sizeof(entry) - 2] = '\0';
	assert_int_equal(fill(fixture, "library", entry), 0);
	assert_string_equal(fixture->helper->entry, entry);
}

static int await_for(struct fixture *fixture, uint64_t ms, struct inject_answer *answer)
{
	return inject_page__await(fixture->page, fixture->own, in_ms(ms), answer);
}

static void an_answer_is_read(void **state)
{
	struct fixture *fixture = *state;
	struct inject_answer answer;

	assert_int_equal(open_page(fixture), 0);
	fixture->helper->state = FBT_INJECT_DONE;
	fixture->helper->stage = FBT_INJECT_STAGE_LOAD;
	fixture->helper->result = -3;
	memset(fixture->helper->text, 'x', sizeof(fixture->helper->text));
	assert_int_equal(await_for(fixture, 0, &answer), 0);
	assert_int_equal(answer.stage, FBT_INJECT_STAGE_LOAD);
	assert_int_equal(answer.result, -3);
	assert_int_equal(strlen(answer.text), sizeof(answer.text) - 1);
}

static void an_answer_that_is_none_is_ebadmsg(void **state)
{
	struct fixture *fixture = *state;
	struct inject_answer answer;

	assert_int_equal(open_page(fixture), 0);
	fixture->helper->state = FBT_INJECT_DONE;
	fixture->helper->stage = FBT_INJECT_STAGE_ENTRY + 1;
	assert_int_equal(await_for(fixture, 0, &answer), -EBADMSG);
	fixture->helper->state = FBT_INJECT_READY;
	assert_int_equal(await_for(fixture, 1000, &answer), -EBADMSG);
	fixture->helper->state = 77;
	assert_int_equal(await_for(fixture, 1000, &answer), -EBADMSG);
	fixture->helper->state = FBT_INJECT_LATE;
	assert_int_equal(await_for(fixture, 1000, &answer), -ETIMEDOUT);
}

static void an_answer_that_does_not_come_is_etimedout(void **state)
{
	struct fixture *fixture = *state;
	struct inject_answer answer;
	uint64_t until_ns = in_ms(120);

	assert_int_equal(open_page(fixture), 0);
	fixture->helper->state = FBT_INJECT_FILLED;
	assert_int_equal(await_for(fixture, 120, &answer), -ETIMEDOUT);
	assert_true(in_ms(0) >= until_ns);
}

static void the_end_of_the_process_is_esrch(void **state)
{
	struct fixture *fixture = *state;
	struct inject_answer answer;
	pid_t child = fork();
	int pidfd;

	if (!child) {
		pause();
		_exit(0);
	}
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_int_equal(open_page(fixture), 0);
	fixture->helper->state = FBT_INJECT_FILLED;
	kill(child, SIGKILL);
	assert_int_equal(
		inject_page__await(fixture->page, pidfd, in_ms(PATIENCE_S * 2000ull), &answer),
		-ESRCH);
	waitpid(child, NULL, 0);
	close(pidfd);
}

static void an_answer_ends_the_wait(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_inject_page *helper = fixture->helper;
	struct inject_answer answer;
	pid_t child;

	assert_int_equal(open_page(fixture), 0);
	assert_int_equal(fill(fixture, "library", "entry"), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		usleep(30000);
		helper->result = 7;
		__atomic_store_n(&helper->state, FBT_INJECT_DONE, __ATOMIC_RELEASE);
		syscall(SYS_futex, &helper->state, FUTEX_WAKE, 1, NULL, NULL, 0);
		_exit(0);
	}
	assert_int_equal(await_for(fixture, PATIENCE_S * 2000ull, &answer), 0);
	assert_int_equal(answer.result, 7);
	assert_int_equal(answer.stage, FBT_INJECT_STAGE_DONE);
	waitpid(child, NULL, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_accepts_null),
		cmocka_unit_test(a_process_that_is_gone_is_esrch),
		TEST(a_page_is_found_by_its_token),
		TEST(a_page_that_is_not_ready_is_not_there),
		TEST(a_page_that_could_become_shorter_is_not_mapped),
		TEST(a_page_that_may_not_be_written_is_none),
		TEST(another_head_is_none),
		TEST(a_sound_page_is_found_after_a_bad_one),
		TEST(a_lease_is_not_waited_for),
		TEST(a_file_of_that_name_is_not_opened),
		TEST(a_library_of_another_name_is_none),
		TEST(a_library_that_is_not_empty_is_not_written),
		TEST(what_is_filled_is_there),
		TEST(a_helper_that_has_given_up_is_not_filled),
		TEST(what_cannot_be_written_is_not_waited_for),
		TEST(an_entry_has_to_fit),
		TEST(an_answer_is_read),
		TEST(an_answer_that_is_none_is_ebadmsg),
		TEST(an_answer_that_does_not_come_is_etimedout),
		TEST(the_end_of_the_process_is_esrch),
		TEST(an_answer_ends_the_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

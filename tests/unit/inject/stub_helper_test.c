/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The helper that the stub starts: it loads a library, or gives up, and leaves nothing behind. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

#include "inject_stub_fixture.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_helper_loads_what_it_is_given_each_time_anew),
		cmocka_unit_test(what_is_no_library_or_has_no_such_entry_is_explained),
		cmocka_unit_test(a_helper_leaves_neither_its_stack_nor_its_page),
		cmocka_unit_test(a_helper_to_whom_nobody_comes_gives_up),
		cmocka_unit_test(a_helper_that_is_sent_away_goes),
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

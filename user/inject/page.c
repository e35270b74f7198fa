/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/open.h"

/* A memfd's link in /proc/PID/fd is prefix, name, suffix. */
#define MEMFD_PREFIX   "/memfd:"
#define MEMFD_SUFFIX   " (deleted)"
#define LINK_MAX_BYTES 64

#define PAGE 4096
/* How often to check, while the helper works, that the process is alive. */
#define LOOK_NS 50000000ull

struct inject_page {
	struct fbt_inject_page *shared;
	int library_fd;
};

/* The open files of a process. */
struct files {
	int folder;   /* of /proc/PID/fd */
	dev_t device; /* of memfds, see memfd_device */
};

static int files_open(struct files *files, struct proc_ref process)
{
	int err = memfd_device(&files->device);

	if (err)
		return err;
	files->folder = proc_open(process, "fd", O_RDONLY | O_DIRECTORY);
	return files->folder < 0 ? files->folder : 0;
}

static bool has_name(const struct files *files, const char *number, const char *name)
{
	char link[LINK_MAX_BYTES], expected[LINK_MAX_BYTES];
	ssize_t length = readlinkat(files->folder, number, link, sizeof(link));
	int wanted = snprintf(expected, sizeof(expected), MEMFD_PREFIX "%s" MEMFD_SUFFIX, name);

	return length == wanted && !memcmp(link, expected, (size_t)length);
}

/* -EBADMSG: the file has the name of a memfd but is not one. */
static int open_memory(const struct files *files, const char *number)
{
	int fd = memfd_open(files->folder, number, files->device);

	return fd == -ENOENT ? -EBADMSG : fd;
}

/*
 * -ENOENT: the helper has not finished the page. Only a page sealed against shrinking is safe to
 * touch.
 */
static int map_page(int fd, struct inject_page *page)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;
	void *memory;

	if (seals < 0 || fstat(fd, &status))
		return -EBADMSG;
	if (status.st_size < PAGE || !(seals & F_SEAL_SHRINK))
		return -ENOENT;
	memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return errno == EPERM ? -EBADMSG : -ENOMEM;
	page->shared = memory;
	return 0;
}

static uint32_t state_of(const struct inject_page *page)
{
	return __atomic_load_n(&page->shared->state, __ATOMIC_ACQUIRE);
}

/* Changes the state and wakes the helper. false: the state was not from. */
static bool change_state(struct inject_page *page, uint32_t from, uint32_t to)
{
	if (!__atomic_compare_exchange_n(&page->shared->state, &from, to, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return false;
	syscall(SYS_futex, &page->shared->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return true;
}

static int check_head(const struct inject_page *page, uint64_t token)
{
	const volatile struct fbt_inject_page *shared = page->shared;

	if (state_of(page) == FBT_INJECT_NONE)
		return -ENOENT;
	return shared->magic == FBT_INJECT_MAGIC && shared->version == FBT_INJECT_VERSION &&
			       shared->token >> 32 == token >> 32
		       ? 0
		       : -EBADMSG;
}

/*
 * Opens the memfd whose number is in the page. The helper's library is empty; a file with contents
 * is not the helper's.
 */
static int open_library(const struct files *files, const struct inject_page *page)
{
	const volatile struct fbt_inject_page *shared = page->shared;
	struct stat status;
	char number[16];
	int fd;

	snprintf(number, sizeof(number), "%u", shared->library_fd);
	if (!has_name(files, number, FBT_INJECT_LIBRARY_NAME))
		return -EBADMSG;
	fd = open_memory(files, number);
	if (fd < 0)
		return fd;
	if (!fstat(fd, &status) && !status.st_size)
		return fd;
	close(fd);
	return -EBADMSG;
}

static int try_file(const struct files *files, const char *number, uint64_t token,
		    struct inject_page *page)
{
	int fd = open_memory(files, number), err;

	if (fd < 0)
		return fd;
	err = map_page(fd, page);
	close(fd);
	if (err)
		return err;
	err = check_head(page, token);
	if (!err) {
		page->library_fd = open_library(files, page);
		err = page->library_fd < 0 ? page->library_fd : 0;
	}
	if (err) {
		munmap(page->shared, PAGE);
		page->shared = NULL;
	}
	return err;
}

/* Takes the first usable page. If there is none: the first error that is not -ENOENT. */
static int search(const struct files *files, uint64_t token, struct inject_page *page)
{
	int found = -ENOENT, folder = dup(files->folder);
	struct dirent *entry;
	char name[32];
	DIR *list = folder < 0 ? NULL : fdopendir(folder);

	if (!list) {
		found = -errno;
		if (folder >= 0)
			close(folder);
		return found;
	}
	snprintf(name, sizeof(name), FBT_INJECT_PAGE_NAME "%08x", (unsigned int)(token >> 32));
	while (found && (entry = readdir(list))) {
		int err;

		if (!has_name(files, entry->d_name, name))
			continue;
		err = try_file(files, entry->d_name, token, page);
		if (!err || found == -ENOENT)
			found = err;
	}
	closedir(list);
	return found;
}

int inject_page__open(struct inject_page **result, struct proc_ref process, uint64_t token)
{
	struct inject_page *page = calloc(1, sizeof(*page));
	struct files files = {.folder = -1};
	int err;

	*result = NULL;
	if (!page)
		return -ENOMEM;
	page->library_fd = -1;
	err = files_open(&files, process);
	if (!err) {
		err = search(&files, token, page);
		close(files.folder);
	}
	if (err) {
		inject_page__free(page);
		return err;
	}
	*result = page;
	return 0;
}

static int write_all(int fd, const char *bytes, size_t from, size_t to)
{
	while (from < to) {
		ssize_t written = pwrite(fd, bytes + from, to - from, (off_t)from);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		from += (size_t)written;
	}
	return 0;
}

static void write_entry(struct inject_page *page, const char *name)
{
	char *entry = page->shared->entry;
	size_t length = name ? strlen(name) : 0;

	memset(entry, 0, sizeof(page->shared->entry));
	memcpy(entry, name ? name : "", length);
}

int inject_page__fill(struct inject_page *page, const struct inject_library *library,
		      const struct inject_hook *hook)
{
	int err = -ENAMETOOLONG;

	if (!library->entry || strlen(library->entry) < sizeof(page->shared->entry))
		err = write_all(page->library_fd, library->bytes, 0, library->size / 2);
	inject_reach(hook, INJECT_AT_LIBRARY_PART);
	if (!err)
		err = write_all(page->library_fd, library->bytes, library->size / 2, library->size);
	if (err) {
		change_state(page, FBT_INJECT_READY, FBT_INJECT_LATE);
		return err;
	}
	inject_reach(hook, INJECT_AT_LIBRARY_WRITTEN);
	write_entry(page, library->entry);
	if (!change_state(page, FBT_INJECT_READY, FBT_INJECT_FILLED))
		return state_of(page) == FBT_INJECT_LATE ? -ETIMEDOUT : -EBADMSG;
	inject_reach(hook, INJECT_AT_FILLED);
	return 0;
}

/*
 * The process may change the page while it is read, so the answer is copied first and the copy is
 * checked.
 */
static int read_answer(const struct inject_page *page, struct inject_answer *answer)
{
	const volatile struct fbt_inject_page *shared = page->shared;
	uint32_t stage = shared->stage;

	answer->result = shared->result;
	for (size_t i = 0; i < sizeof(answer->text); i++)
		answer->text[i] = shared->text[i];
	answer->text[sizeof(answer->text) - 1] = '\0';
	if (stage > FBT_INJECT_STAGE_ENTRY)
		return -EBADMSG;
	answer->stage = (enum fbt_inject_stage)stage;
	return 0;
}

static bool has_ended(int pidfd)
{
	struct pollfd end = {.fd = pidfd, .events = POLLIN};

	return poll(&end, 1, 0) > 0;
}

int inject_page__await(struct inject_page *page, int pidfd, uint64_t deadline_ns,
		       struct inject_answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	for (;;) {
		uint32_t state = state_of(page);
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), wait_ns = deadline_ns - now_ns;
		struct timespec wait = clock_timespec(wait_ns < LOOK_NS ? wait_ns : LOOK_NS);

		if (state == FBT_INJECT_DONE)
			return read_answer(page, answer);
		if (state == FBT_INJECT_LATE)
			return -ETIMEDOUT;
		if (state != FBT_INJECT_FILLED)
			return -EBADMSG;
		if (has_ended(pidfd))
			return -ESRCH;
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		syscall(SYS_futex, &page->shared->state, FUTEX_WAIT, state, &wait, NULL, 0);
	}
}

void inject_page__free(struct inject_page *page)
{
	if (!page)
		return;
	if (page->shared)
		munmap(page->shared, PAGE);
	if (page->library_fd >= 0)
		close(page->library_fd);
	free(page);
}

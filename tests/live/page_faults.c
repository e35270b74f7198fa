/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * page_faults TRUTH FILE: steps that touch new pages: anonymous pages, pages of a cached file, of
 * the stack, of an uncached file, some within a system call, and some of a cached file where the
 * step had anonymous pages before. The row of each step has the
 * kernel's own counts of faults, and how long the touching took: by the wall clock, and by the
 * thread's CPU clock. The latter includes the rest of the step. After the first step the program
 * waits for a second go. With a third argument only every
 * RARE_EVERY-th step touches pages, anonymous ones.
 */
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "judge/engine.h"

enum {
	PAGE_BYTES = 4096,
	PAGES = 4096,
	STACK_PAGES = 512,
	COLD_PAGES = 4096,
	FIRST_PAGES = 64, /* touched of the mapping that was at an address before */
	WORK_US = 1000,
	ROUNDS = 12,
	WARM_UP = 3,
	RARE_ROUNDS = 20,
	RARE_EVERY = 12,
	ROWS_MAX = RARE_ROUNDS * RARE_EVERY,
};

enum way { NONE, ANON, WARM_FILE, STACK, COLD_FILE, IN_CALL, REMAPPED, WAYS };

static const char *const names[WAYS] = {"none", "anon",	   "file",    "stack",
					"cold", "in_call", "remapped"};

struct row {
	enum way way;
	long minor, major;
	uint64_t touch_ns, cpu_ns, own_ns;
};

struct memory {
	char *anon, *file, *cold;
	char *place; /* of mappings that a step makes and removes */
	int file_fd, zero_fd;
};

void faults_step(enum way way, const struct memory *memory, struct row *row);

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

__attribute__((noinline)) static void touch(volatile char *at, long pages)
{
	for (long i = 0; i < pages; i++)
		at[i * PAGE_BYTES] = 1;
}

__attribute__((noinline)) static void touch_stack(void)
{
	volatile char pages[STACK_PAGES * PAGE_BYTES];

	touch(pages, STACK_PAGES);
}

/* The step maps anonymous memory, touches a little of it, and then has a file in its place. */
static void map_again(const struct memory *memory)
{
	const int how = MAP_PRIVATE | MAP_FIXED, access = PROT_READ | PROT_WRITE;
	size_t bytes = (size_t)PAGES * PAGE_BYTES;

	must(mmap(memory->place, bytes, access, how | MAP_ANONYMOUS, -1, 0) == memory->place,
	     "mmap");
	madvise(memory->place, bytes, MADV_NOHUGEPAGE);
	touch(memory->place, FIRST_PAGES);
	munmap(memory->place, bytes);
	must(mmap(memory->place, bytes, access, how, memory->file_fd, 0) == memory->place, "mmap");
}

STEP void faults_step(enum way way, const struct memory *memory, struct row *row)
{
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), touch_ns, cpu_ns;

	work(WORK_US);
	if (way == REMAPPED)
		map_again(memory);
	touch_ns = now_ns();
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	switch (way) {
	case ANON:
		touch(memory->anon, PAGES);
		break;
	case WARM_FILE:
		touch(memory->file, PAGES);
		break;
	case STACK:
		touch_stack();
		break;
	case COLD_FILE:
		for (long i = 0; i < COLD_PAGES; i++)
			(void)*(volatile char *)&memory->cold[i * PAGE_BYTES];
		break;
	case IN_CALL:
		must(read(memory->zero_fd, memory->anon, (size_t)PAGES * PAGE_BYTES) ==
			     (ssize_t)PAGES * PAGE_BYTES,
		     "read");
		break;
	case REMAPPED:
		touch(memory->place, PAGES);
		break;
	case NONE:
	case WAYS:
		break;
	}
	row->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	row->touch_ns = now_ns() - touch_ns;
	work(WORK_US);
	row->own_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns - row->cpu_ns;
}

/* Makes the pages new again. */
static void give_back(const struct memory *memory)
{
	char here, *page = &here - (uintptr_t)&here % PAGE_BYTES;
	long stack_bytes = (STACK_PAGES + 16) * PAGE_BYTES;

	madvise(memory->anon, (size_t)PAGES * PAGE_BYTES, MADV_DONTNEED);
	madvise(memory->file, (size_t)PAGES * PAGE_BYTES, MADV_DONTNEED);
	madvise(memory->cold, (size_t)COLD_PAGES * PAGE_BYTES, MADV_DONTNEED);
	mmap(memory->place, (size_t)PAGES * PAGE_BYTES, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	posix_fadvise(memory->file_fd, 0, 0, POSIX_FADV_WILLNEED);
	madvise(page - PAGE_BYTES - stack_bytes, (size_t)stack_bytes, MADV_DONTNEED);
}

static void cool(const struct memory *memory, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)memory;
	must(fd >= 0, path);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

static int make_pages(const char *path, long pages)
{
	static char block[1 << 20];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd >= 0, path);
	memset(block, 1, sizeof(block));
	for (long done = 0; done < pages * PAGE_BYTES; done += (long)sizeof(block))
		must(write(fd, block, sizeof(block)) == (long)sizeof(block), path);
	must(fsync(fd) == 0, path);
	return fd;
}

static void set_up(struct memory *memory, const char *path, const char *cold_path)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	int cold_fd = make_pages(cold_path, COLD_PAGES);

	memory->file_fd = make_pages(path, PAGES);
	memory->zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	memory->anon = mmap(NULL, (size_t)PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
	memory->file = mmap(NULL, (size_t)PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			    memory->file_fd, 0);
	memory->cold =
		mmap(NULL, (size_t)COLD_PAGES * PAGE_BYTES, PROT_READ, MAP_SHARED, cold_fd, 0);
	memory->place = mmap(NULL, (size_t)PAGES * PAGE_BYTES, PROT_NONE, flags, -1, 0);
	must(memory->place != MAP_FAILED && memory->anon != MAP_FAILED &&
		     memory->file != MAP_FAILED && memory->cold != MAP_FAILED &&
		     memory->zero_fd >= 0,
	     "mmap");
	madvise(memory->anon, (size_t)PAGES * PAGE_BYTES, MADV_NOHUGEPAGE);
}

static void make_step(enum way way, const struct memory *memory, const char *cold_path,
		      struct row *row)
{
	struct rusage before, after;

	row->way = way;
	give_back(memory);
	if (way == COLD_FILE)
		cool(memory, cold_path);
	getrusage(RUSAGE_THREAD, &before);
	faults_step(way, memory, row);
	getrusage(RUSAGE_THREAD, &after);
	row->minor = after.ru_minflt - before.ru_minflt;
	row->major = after.ru_majflt - before.ru_majflt;
	/* The tool looks at most every 10 ms. */
	pause_us(30000);
}

static void make_rare_steps(const struct memory *memory, struct row *rows)
{
	for (long i = 0; i < ROWS_MAX; i++) {
		if (i % RARE_EVERY == RARE_EVERY - 1) {
			make_step(ANON, memory, NULL, &rows[i]);
			continue;
		}
		faults_step(NONE, memory, &rows[i]);
		pause_us(3000);
	}
}

static void write_truth(FILE *truth, const struct row *rows, long count)
{
	fprintf(truth, "[\n");
	for (long i = 0; i < count; i++)
		fprintf(truth,
			"%s{\"name\": \"%s\", \"minor\": %ld, \"major\": %ld, \"touch_ns\": %llu, "
			"\"cpu_ns\": %llu, \"own_ns\": %llu}\n",
			i ? "," : "", i < WARM_UP ? "first" : names[rows[i].way], rows[i].minor,
			rows[i].major, (unsigned long long)rows[i].touch_ns,
			(unsigned long long)rows[i].cpu_ns, (unsigned long long)rows[i].own_ns);
	fprintf(truth, "]\n");
	fclose(truth);
}

int main(int argc, char **argv)
{
	static struct row rows[ROWS_MAX];
	FILE *truth = open_truth(argv);
	struct memory memory;
	char cold_path[4096];
	long count = 0;

	must(argc == 3 || argc == 4, "page_faults TRUTH FILE [rare]");
	snprintf(cold_path, sizeof(cold_path), "%s.cold", argv[2]);
	set_up(&memory, argv[2], cold_path);
	wait_for_go();
	if (argc > 3) {
		make_rare_steps(&memory, rows);
		write_truth(truth, rows, ROWS_MAX);
		return 0;
	}
	while (count < WARM_UP) {
		make_step(ANON, &memory, cold_path, &rows[count++]);
		if (count == 1)
			getchar();
	}
	for (long i = 0; i < ROUNDS; i++) {
		for (int way = 0; way < WAYS; way++)
			make_step((enum way)way, &memory, cold_path, &rows[count++]);
	}
	write_truth(truth, rows, count);
	return 0;
}

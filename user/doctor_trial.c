/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor_trial.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "loading.h"
#include "report_format.h"
#include "step_probes.h"

/* Pages of functions that are mapped to try probes on. */
#define PAGES_MAX 4096

void doctor_trial_run(struct doctor_trial *trial, const struct options *options)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), mapped_bytes;
	int err;

	*trial = (struct doctor_trial){.err = 0};
	doctor_listen(&trial->words);
	err = loading_open(&trial->loader, options);
	if (!err)
		err = loader__attach_threads(trial->loader);
	if (!err)
		err = loading_attach_syscalls(trial->loader, true, &trial->cost);
	doctor_listen_end();
	trial->err = err;
	if (err) {
		doctor_trial_clear(trial);
		return;
	}
	trial->ring_bytes = loader__ring_bytes(trial->loader, &mapped_bytes);
	loader__detach(trial->loader);
	trial->took_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
}

void doctor_trial_clear(struct doctor_trial *trial)
{
	loader__free(trial->loader);
	trial->loader = NULL;
}

static void advise(const struct doctor_trial *trial, struct doctor_checks *checks)
{
	if (trial->err == -ENOMEM)
		doctor_advise(checks, "free some memory, raise the memory limit of this cgroup, or "
				      "lower --ring-records (131072)");
	else if (trial->err == -EMFILE || trial->err == -ENFILE)
		doctor_advise(checks, "raise the limit of open files (ulimit -n)");
	else
		doctor_advise(checks, "ferrum-bpftrace -v doctor shows the kernel's own words");
}

void doctor_trial_judge(const struct doctor_trial *trial, struct doctor_checks *checks)
{
	char took[FORMAT_MAX], call[FORMAT_MAX], step[FORMAT_MAX], rings[FORMAT_MAX];

	if (trial->skipped) {
		doctor_say(checks, DOCTOR_NOTE, "trial",
			   "programs were not loaded: see what stands in the way above");
		return;
	}
	if (trial->err) {
		doctor_say(checks, DOCTOR_NO, "trial", "%s",
			   doctor_words_text(&trial->words, 0, trial->err));
		advise(trial, checks);
		return;
	}
	doctor_say(checks, DOCTOR_OK, "trial",
		   "loaded, attached and run in %s; costs here %s a call, %s a step, rings %s",
		   format_time(took, (double)trial->took_ns),
		   format_time(call, (double)trial->cost.call_ps / 1e3),
		   format_time(step, (double)trial->cost.step_ns),
		   format_bytes(rings, trial->ring_bytes));
}

/* Pages of our own, by place; the kernel looks at code only where it is mapped. */
struct pages {
	size_t size;
	VEC(void *) items;
	uint64_t last; /* offset of the one before */
};

static bool map_page(struct pages *pages, int fd, uint64_t place)
{
	uint64_t offset = place & ~((uint64_t)pages->size - 1);
	void *page;

	if (pages->items.count && offset == pages->last)
		return true;
	if (pages->items.count == PAGES_MAX)
		return false;
	page = mmap(NULL, pages->size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)offset);
	if (page == MAP_FAILED)
		return false;
	if (vec_push(&pages->items, page)) {
		munmap(page, pages->size);
		return false;
	}
	pages->last = offset;
	return true;
}

static bool map_function(struct pages *pages, const struct step_function *function)
{
	bool mapped;

	pages->last = UINT64_MAX;
	mapped = function->usdt || map_page(pages, function->fd, function->begin_offset);
	vec_for_each (begin, &function->usdt_begins)
		mapped = mapped && map_page(pages, function->fd, *begin);
	vec_for_each (exit, &function->exit_offsets)
		mapped = mapped && map_page(pages, function->fd, *exit);
	return mapped;
}

static void unmap(struct pages *pages)
{
	vec_for_each (page, &pages->items)
		munmap(*page, pages->size);
	vec_free(&pages->items);
}

static int attach_to_ourselves(struct doctor_trial *trial, const function_vec *functions)
{
	struct uprobes *links = uprobes__new(loader__has_multi(trial->loader));
	struct step_probe probes[FBT_KIND_COUNT];
	size_t count = 0;
	int err;

	if (!links)
		return -ENOMEM;
	vec_for_each (function, functions) {
		if (count < FBT_KIND_COUNT - 2) {
			probes[count] = (struct step_probe){*function, (uint32_t)count + 1};
			count++;
		}
	}
	err = step_probes_attach(links, loader__step_program(trial->loader), probes, count,
				 (uint32_t)getpid());
	uprobes__free(links);
	return err;
}

int doctor_trial_probe(struct doctor_trial *trial, const function_vec *functions,
		       struct doctor_words *words)
{
	struct pages pages = {.size = (size_t)sysconf(_SC_PAGESIZE)};
	bool mapped = true;
	int err = 0;

	if (!trial->loader || !functions->count)
		return 0;
	vec_for_each (function, functions)
		mapped = mapped && map_function(&pages, *function);
	if (mapped) {
		doctor_listen(words);
		err = attach_to_ourselves(trial, functions);
		doctor_listen_end();
	}
	unmap(&pages);
	return err;
}

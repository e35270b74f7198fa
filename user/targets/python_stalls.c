/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/python_stalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/traced.h"
#include "kernel/uprobes.h"
#include "python/interpreter.h"
#include "steps/image.h"

/*
 * What the probes of one collection cost, measured on 6.18 in a virtual machine: USDT probes are on
 * nops; a function ends in returns, which the kernel has to single-step.
 */
#define USDT_COST_NS   2000
#define SYMBOL_COST_NS 10000
#define TURN_NS	       NS_PER_S
/* Without a change for so long, the next one is another writing. */
#define SETTLED_NS NS_PER_S
/* How long a file is kept that no process uses: removing its probes takes tens of milliseconds. */
#define UNUSED_NS (10 * NS_PER_S)

typedef VEC(struct uprobe_place) place_vec;

/* The interpreter of a process. */
struct runtime {
	uint32_t tgid;
	size_t file; /* in files */
	uint64_t gil_start;
	uint64_t time_ns; /* since when it is measured; 0: not yet */
	enum fbt_collector collector;
	bool is_sent;
	bool is_offered;
	struct uprobes *links; /* NULL: those of the file, or none */
	bool has_place;
	struct python_place place;
};

/* A file that has an interpreter in it. */
struct interpreter_file {
	struct python_interpreter *interpreter;
	struct file_stamp stamp;
	bool is_probed;	       /* in all processes */
	struct uprobes *links; /* for that; NULL: none */
	uint64_t unused_ns;    /* since when no process uses it; 0: one does */
};

struct python_stalls {
	const struct live *live;
	VEC(struct interpreter_file) files;
	VEC(struct runtime) runtimes;
	struct uprobes *links; /* for all processes, until they are given to their file */
	uint64_t turn_ns;
	uint64_t rewritten_ns; /* when a file was last seen to have changed */
	uint64_t collections;  /* as of the last turn */
	uint64_t released_ns;  /* the cost of each with the dearest file that was released */
	uint32_t cost_ns;      /* of each; 0: their probes were not switched off */
};

struct python_stalls *python_stalls__new(const struct live *live)
{
	struct python_stalls *stalls = calloc(1, sizeof(*stalls));

	if (stalls)
		stalls->live = live;
	return stalls;
}

/* All probes are removed with those of steps: that waits once. */
static void give_links(const struct python_stalls *stalls, struct uprobes **links)
{
	if (*links)
		uprobes__merge(loader__uprobes(stalls->live->loader), *links);
	*links = NULL;
}

void python_stalls__free(struct python_stalls *stalls)
{
	if (!stalls)
		return;
	vec_for_each (runtime, &stalls->runtimes)
		give_links(stalls, &runtime->links);
	give_links(stalls, &stalls->links);
	vec_for_each (file, &stalls->files) {
		give_links(stalls, &file->links);
		python_interpreter_free(file->interpreter);
	}
	vec_free(&stalls->runtimes);
	vec_free(&stalls->files);
	free(stalls);
}

static struct runtime *find(struct python_stalls *stalls, uint32_t tgid)
{
	vec_for_each (runtime, &stalls->runtimes) {
		if (runtime->tgid == tgid)
			return runtime;
	}
	return NULL;
}

/* The index of the file with an interpreter that a process has mapped; or -errno. */
static int find_file(struct python_stalls *stalls, uint32_t tgid, const struct mapping *mapping)
{
	struct interpreter_file file = {.is_probed = false};
	int err;

	for (size_t i = 0; i < stalls->files.count; i++) {
		if (python_interpreter_is(stalls->files.items[i].interpreter, mapping))
			return (int)i;
	}
	err = python_interpreter_open(&file.interpreter, tgid, mapping);
	if (err) {
		log_debug("process %u: %s: %s", tgid, mapping->path, strerror(-err));
		return err;
	}
	file.stamp = file_stamp_of(file.interpreter->fd);
	/* The files that were there before were switched off. */
	if (stalls->cost_ns)
		file.interpreter->collector = FBT_COLLECTOR_OFF;
	err = vec_push(&stalls->files, file);
	if (err)
		python_interpreter_free(file.interpreter);
	return err ? err : (int)stalls->files.count - 1;
}

int python_stalls__search(struct python_stalls *stalls, uint32_t tgid)
{
	struct runtime runtime = {.tgid = tgid};
	struct mapping mapping = {.path = NULL};
	int file;

	if (stalls->live->options->python == PYTHON_OFF || find(stalls, tgid) ||
	    !python_mapping_find(tgid, &mapping))
		return 0;
	file = find_file(stalls, tgid, &mapping);
	if (file >= 0) {
		const struct python_interpreter *interpreter =
			stalls->files.items[file].interpreter;

		runtime.file = (size_t)file;
		if (!python_is_musl(tgid))
			runtime.gil_start = python_interpreter_runtime(interpreter, &mapping);
		runtime.collector = interpreter->collector;
		runtime.has_place = python_interpreter_place(interpreter, &mapping, &runtime.place);
	}
	free(mapping.path);
	if (file < 0)
		return file == -ENOMEM ? file : 0;
	if (vec_push(&stalls->runtimes, runtime))
		return -ENOMEM;
	stalls->files.items[file].unused_ns = 0;
	return 0;
}

static int add_places(place_vec *places, const struct python_interpreter *interpreter)
{
	bool is_usdt = interpreter->collector == FBT_COLLECTOR_USDT;
	const struct python_generation *generation = &interpreter->generation;
	uint64_t common = FBT_PROBE_GC | (is_usdt ? FBT_PROBE_NO_SP : 0);
	int32_t high = is_usdt ? generation->offset : interpreter->begin_sp;
	int err = 0;

	/* The ends first: a begin without an end would be a collection that never ends. */
	for (size_t i = 0; i < interpreter->ends.count && !err; i++)
		err = vec_push(places, ((struct uprobe_place){.offset = interpreter->ends.items[i],
							      .ref_ctr = interpreter->end_ref_ctr,
							      .cookie = common | FBT_PROBE_END}));
	for (size_t i = 0; i < interpreter->begins.count && !err; i++)
		err = vec_push(places,
			       ((struct uprobe_place){
				       .offset = interpreter->begins.items[i],
				       .ref_ctr = interpreter->begin_ref_ctr,
				       .cookie = common | generation->where |
						 (generation->in_memory ? FBT_PROBE_GC_MEMORY : 0) |
						 (uint64_t)high << FBT_PROBE_SP_SHIFT}));
	return err;
}

static int probe(const struct python_stalls *stalls, struct uprobes **links,
		 const struct python_interpreter *interpreter, uint32_t tgid_limit)
{
	place_vec places = {0};
	int err = add_places(&places, interpreter);

	if (!err && !*links)
		*links = uprobes__new(loader__has_multi(stalls->live->loader));
	if (!err && !*links)
		err = -ENOMEM;
	if (!err) {
		uprobes__set_quiet(*links, log_level() < LOG_DEBUG);
		err = uprobes__attach(*links, loader__step_program(stalls->live->loader),
				      interpreter->fd, interpreter->path, places.items,
				      places.count, tgid_limit, false);
	}
	vec_free(&places);
	return err;
}

/* Not where there is none, nor once the probes were found to cost too much. */
static bool is_probeable(const struct python_interpreter *interpreter)
{
	return interpreter->collector == FBT_COLLECTOR_USDT ||
	       interpreter->collector == FBT_COLLECTOR_SYMBOL;
}

/* So that they can be removed with it. In another process of a file that has its own, none are new.
 */
static void give_to_file(struct python_stalls *stalls, struct interpreter_file *file)
{
	if (file->is_probed)
		return;
	file->links = stalls->links;
	stalls->links = NULL;
	file->is_probed = true;
}

/* What of them could be attached is not measured: another file is not to have it. */
static void give_up(struct python_stalls *stalls, struct runtime *runtime)
{
	uprobes__free(stalls->links);
	stalls->links = NULL;
	runtime->collector = FBT_COLLECTOR_FAILED;
}

void python_stalls__attach(struct python_stalls *stalls, uint32_t tgid, bool all,
			   uint32_t tgid_limit)
{
	struct runtime *runtime = find(stalls, tgid);
	const struct python_interpreter *interpreter;
	struct interpreter_file *file;
	int err = 0;

	if (!runtime || runtime->time_ns)
		return;
	file = &stalls->files.items[runtime->file];
	interpreter = file->interpreter;
	if (runtime->gil_start &&
	    loader__set_runtime(stalls->live->loader, tgid, runtime->gil_start,
				runtime->gil_start + interpreter->size))
		runtime->gil_start = 0;
	all |= !tgid_limit;
	if (is_probeable(interpreter) && !(all && file->is_probed))
		err = probe(stalls, all ? &stalls->links : &runtime->links, interpreter,
			    all ? 0 : tgid_limit);
	if (err)
		give_up(stalls, runtime);
	else if (all)
		give_to_file(stalls, file);
	runtime->time_ns = clock_ns(CLOCK_MONOTONIC);
}

static void send(const struct python_stalls *stalls, struct runtime *runtime)
{
	const struct python_interpreter *interpreter =
		stalls->files.items[runtime->file].interpreter;
	const char *strings[] = {interpreter->path};
	struct fbt_python record = {
		.tgid = runtime->tgid,
		.minor = interpreter->minor,
		.time_ns = runtime->time_ns,
		.gil_start = runtime->gil_start,
		.gil_end = runtime->gil_start ? runtime->gil_start + interpreter->size : 0,
		.collector = runtime->collector,
		.flags = runtime->is_offered ? FBT_PYTHON_OFFERED : 0,
	};

	runtime->is_sent = !record_send_strings(stalls->live->output, &record, sizeof(record),
						FBT_EVENT_PYTHON, strings, 1);
}

void python_stalls__note_offer(struct python_stalls *stalls, uint32_t tgid)
{
	struct runtime *runtime = find(stalls, tgid);

	if (!runtime)
		return;
	runtime->is_offered = true;
	runtime->is_sent = false;
}

static uint64_t count_collections(const struct python_stalls *stalls)
{
	const struct shared *shared = loader__shared(stalls->live->loader);
	uint64_t count = 0;

	for (uint32_t i = 0; i < shared->cpu_count; i++)
		count += __atomic_load_n(&shared->hits[i].ends[0], __ATOMIC_RELAXED);
	return count;
}

/* Of several interpreters the dearest. */
static uint64_t each_ns(const struct python_stalls *stalls)
{
	vec_for_each (file, &stalls->files) {
		if (file->interpreter->collector == FBT_COLLECTOR_SYMBOL)
			return SYMBOL_COST_NS;
	}
	return USDT_COST_NS;
}

void python_stalls__charge(const struct python_stalls *stalls, struct fbt_cost *cost)
{
	uint64_t collections = count_collections(stalls);

	cost->collections = collections < UINT32_MAX ? (uint32_t)collections : UINT32_MAX;
	cost->collection_ns = stalls->cost_ns
				      ? stalls->cost_ns
				      : (uint32_t)max_u64(each_ns(stalls), stalls->released_ns);
}

/* What the probes cost per second may be this much: the share that those of steps may take, of a
 * CPU. */
static bool is_too_much(const struct python_stalls *stalls, uint64_t collections, uint64_t ns)
{
	double percent = stalls->live->options->windows.rate_guard_percent;

	return percent > 0 &&
	       (double)collections * (double)each_ns(stalls) * 100 > percent * (double)ns;
}

static void switch_off(struct python_stalls *stalls, uint64_t collections)
{
	log_warn(
		"garbage is collected so often (%llu times in a second) that probing it would cost "
		"more than --rate-guard allows: collections are not measured any more",
		(unsigned long long)collections);
	stalls->cost_ns = (uint32_t)each_ns(stalls);
	vec_for_each (file, &stalls->files) {
		uprobes__free(file->links);
		file->links = NULL;
	}
	vec_for_each (runtime, &stalls->runtimes) {
		uprobes__free(runtime->links);
		runtime->links = NULL;
		if (runtime->collector == FBT_COLLECTOR_USDT ||
		    runtime->collector == FBT_COLLECTOR_SYMBOL)
			runtime->collector = FBT_COLLECTOR_OFF;
		runtime->is_sent = false;
	}
	vec_for_each (file, &stalls->files)
		file->interpreter->collector = FBT_COLLECTOR_OFF;
}

static void guard(struct python_stalls *stalls, uint64_t now_ns)
{
	uint64_t collections = count_collections(stalls);
	uint64_t count = collections - stalls->collections;

	if (stalls->turn_ns && is_too_much(stalls, count, now_ns + TURN_NS - stalls->turn_ns))
		switch_off(stalls, count);
	stalls->collections = collections;
	stalls->turn_ns = now_ns + TURN_NS;
}

static void release(struct python_stalls *stalls, size_t index)
{
	size_t last = stalls->files.count - 1;

	stalls->released_ns = max_u64(stalls->released_ns, each_ns(stalls));
	uprobes__free(stalls->files.items[index].links);
	python_interpreter_free(stalls->files.items[index].interpreter);
	stalls->files.items[index] = stalls->files.items[last];
	stalls->files.count--;
	vec_for_each (runtime, &stalls->runtimes) {
		if (runtime->file == last)
			runtime->file = index;
	}
}

/* One at a time: with -a, interpreters of containers come and go for days. */
static void release_unused(struct python_stalls *stalls, uint64_t now_ns)
{
	for (size_t i = 0; i < stalls->files.count; i++) {
		uint64_t unused_ns = stalls->files.items[i].unused_ns;

		if (!unused_ns || now_ns < unused_ns + UNUSED_NS)
			continue;
		release(stalls, i);
		return;
	}
}

static bool is_rewritten(const struct interpreter_file *file)
{
	return !file_stamps_are_equal(file->stamp, file_stamp_of(file->interpreter->fd));
}

/*
 * Its processes are searched again. What one that runs has mapped is not known: the file may have
 * been written anew under it.
 */
static void forget_processes(struct python_stalls *stalls, size_t file)
{
	for (size_t i = stalls->runtimes.count; i-- > 0;) {
		struct traced *traced;

		if (stalls->runtimes.items[i].file != file)
			continue;
		traced = traced_set__find(stalls->live->traced, stalls->runtimes.items[i].tgid);
		if (traced)
			traced->rescan = true;
		python_stalls__forget(stalls, stalls->runtimes.items[i].tgid);
	}
}

/*
 * A file that is written anew in place has other code where the probes are: the kernel keeps them
 * by inode and offset, also for processes that are yet to begin (targets/rewritten.h).
 */
static void release_rewritten(struct python_stalls *stalls, uint64_t now_ns)
{
	for (size_t i = stalls->files.count; i-- > 0;) {
		if (!is_rewritten(&stalls->files.items[i]))
			continue;
		if (now_ns >= stalls->rewritten_ns + SETTLED_NS)
			log_warn("%s was written anew in place: it is looked at again for the GIL "
				 "and for collections of garbage",
				 stalls->files.items[i].interpreter->path);
		stalls->rewritten_ns = now_ns;
		forget_processes(stalls, i);
		release(stalls, i);
	}
}

void python_stalls__turn(struct python_stalls *stalls, uint64_t now_ns)
{
	release_rewritten(stalls, now_ns);
	if (now_ns >= stalls->turn_ns) {
		guard(stalls, now_ns);
		release_unused(stalls, now_ns);
	}
	vec_for_each (runtime, &stalls->runtimes) {
		if (runtime->time_ns && !runtime->is_sent)
			send(stalls, runtime);
	}
}

bool python_stalls__place(struct python_stalls *stalls, uint32_t tgid, struct python_place *place)
{
	const struct runtime *runtime = find(stalls, tgid);

	if (!runtime || !runtime->has_place)
		return false;
	*place = runtime->place;
	return true;
}

bool python_stalls__is_gil(struct python_stalls *stalls, uint32_t tgid, uint64_t address)
{
	const struct runtime *runtime = find(stalls, tgid);

	return runtime && runtime->gil_start && address >= runtime->gil_start &&
	       address - runtime->gil_start < stalls->files.items[runtime->file].interpreter->size;
}

static bool is_used(const struct python_stalls *stalls, size_t file)
{
	vec_for_each (runtime, &stalls->runtimes) {
		if (runtime->file == file)
			return true;
	}
	return false;
}

void python_stalls__forget(struct python_stalls *stalls, uint32_t tgid)
{
	struct runtime *runtime = find(stalls, tgid);
	size_t file;

	if (!runtime)
		return;
	file = runtime->file;
	loader__set_runtime(stalls->live->loader, tgid, 0, 0);
	uprobes__free(runtime->links);
	*runtime = stalls->runtimes.items[--stalls->runtimes.count];
	if (!is_used(stalls, file))
		stalls->files.items[file].unused_ns = clock_ns(CLOCK_MONOTONIC);
}

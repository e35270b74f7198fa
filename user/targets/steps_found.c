/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/steps_found.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/step_probes.h"
#include "proc/process.h"
#include "inject/python_use.h"
#include "python/guest.h"
#include "python/inject.h"
#include "python/steps.h"
#include "python/tree.h"
#include "shim/library.h"
#include "steps/find.h"
#include "steps/python_spec.h"
#include "search/candidates.h"
#include "targets/kind_record.h"
#include "targets/late_files.h"
#include "targets/python_frames.h"
#include "targets/python_stalls.h"
#include "search/text_rates.h"

/* Kind 0 is the interval; the last kind is used for calibration. */
#define KINDS_MAX (FBT_KIND_COUNT - 2)

/*
 * A function of Python is known by its name, and its markers are those of the library in each
 * process: of an injected one, every process has a file of its own.
 */
struct copy {
	uint32_t tgid, kind;
	bool is_probed; /* used only where links cover all processes */
	struct step_function *function;
};

struct steps_found {
	const struct live *live;
	struct target_options target_options;
	struct python_steps *python;
	struct python_stalls *stalls;
	struct python_frames *frames;
	uint32_t torch_window;	 /* of PyTorch's profiler; 0: none */
	function_vec functions;	 /* functions[i] is kind i + 1 */
	VEC(struct copy) copies; /* where they are not functions[kind - 1]; probed by own_links */
	VEC(uint32_t) tgids;	 /* for each function, the process in which it was found first */
	size_t described;
	bool is_probing;
	bool many_told;		     /* that there are more functions than kinds */
	bool probed[FBT_KIND_COUNT]; /* used only where links cover all processes */
	uint64_t off_kinds;	     /* kinds that are switched off … */
	uint64_t gone_kinds;	     /* … for ever */
	uint64_t site_kinds;	     /* kinds whose exits are not probed */
	uint64_t exit_kinds;	     /* kinds whose call sites are not probed */
};

struct steps_found *steps_found__new(const struct live *live)
{
	struct steps_found *found = calloc(1, sizeof(*found));

	if (!found)
		return NULL;
	found->live = live;
	found->target_options = target_options_of(live->options);
	found->python = python_steps__new(live->options->specs.items, live->options->specs.count);
	found->stalls = python_stalls__new(live);
	found->frames = python_frames__new(found->stalls);
	if (!found->python || !found->stalls || !found->frames) {
		steps_found__free(found);
		return NULL;
	}
	if (live->options->python == PYTHON_SHARE)
		python_steps__share(found->python);
	return found;
}

void steps_found__free(struct steps_found *found)
{
	if (!found)
		return;
	python_frames__free(found->frames);
	python_stalls__free(found->stalls);
	python_steps__free(found->python);
	step_functions_free(&found->functions);
	vec_for_each (copy, &found->copies)
		step_function_free(copy->function);
	vec_free(&found->copies);
	vec_free(&found->tgids);
	free(found);
}

struct script_reader steps_found__scripts(struct steps_found *found)
{
	return python_frames__reader(found->frames);
}

size_t steps_found__count(const struct steps_found *found)
{
	return found->functions.count;
}

bool steps_found__is_probing(const struct steps_found *found)
{
	return found->is_probing;
}

/* Links must cover all processes if new ones may come at any time. */
bool steps_found__probes_all(const struct steps_found *found)
{
	return found->live->options->all || found->live->options->follow ||
	       found->live->options->command ||
	       (!found->live->options->perf_uprobes && !uprobes_multi_can_filter());
}

static uint64_t begin_of(const struct step_function *function)
{
	return function->usdt && function->usdt_begins.count ? function->usdt_begins.items[0]
							     : function->begin_offset;
}

static bool is_same_place(const struct step_function *a, const struct step_function *b)
{
	return a->device == b->device && a->inode == b->inode && begin_of(a) == begin_of(b);
}

static bool is_same(const struct step_function *a, const struct step_function *b)
{
	if (a->is_python && b->is_python)
		return !strcmp(a->alone, b->alone);
	return is_same_place(a, b);
}

/* The index of the same function among the first limit ones; limit: it is new. */
static size_t find_known(const struct steps_found *found, const struct step_function *function,
			 size_t limit)
{
	for (size_t i = 0; i < limit; i++) {
		/* One that was given up may be other code by now. */
		if (!(found->gone_kinds & kind_bit((uint32_t)i + 1)) &&
		    is_same(found->functions.items[i], function))
			return i;
	}
	return limit;
}

const struct step_function *steps_found__function(const struct steps_found *found, uint32_t kind)
{
	return found->functions.items[kind - 1];
}

/* Said once: a program may have hundreds. */
static void tell_too_many(struct steps_found *found, const struct step_function *function,
			  uint32_t tgid)
{
	if (found->live->quiet || found->many_told)
		return;
	found->many_told = true;
	log_warn("process %u: %s, and each function that is found after it: not probed: there are "
		 "more than %d step functions",
		 tgid, function->name, KINDS_MAX);
}

/* Keeps the function for one process, or frees it if it is where the known one is. */
static int keep_copy(struct steps_found *found, uint32_t tgid, size_t index,
		     struct step_function *function)
{
	struct copy copy = {.tgid = tgid, .kind = (uint32_t)index + 1, .function = function};
	int err = 0;

	if (is_same_place(found->functions.items[index], function) ||
	    (err = vec_push(&found->copies, copy)))
		step_function_free(function);
	return err;
}

/*
 * Makes a kind of each new function. A function of a file that another process maps too is known
 * already.
 */
static int take_functions(struct steps_found *found, size_t before, struct traced *traced)
{
	size_t kept = before;
	int err = 0;

	for (size_t i = before; i < found->functions.count; i++) {
		struct step_function *function = found->functions.items[i];
		size_t index = find_known(found, function, kept);

		if (index == kept && kept < KINDS_MAX) {
			found->functions.items[kept++] = function;
			err = err ? err : vec_push(&found->tgids, traced->tgid);
		} else if (index < kept) {
			err = err ? err : keep_copy(found, traced->tgid, index, function);
		} else {
			tell_too_many(found, function, traced->tgid);
			step_function_free(function);
		}
		if (index < kept)
			err = err ? err : vec_push(&traced->kinds, (uint32_t)index + 1);
	}
	found->functions.count = kept;
	return err;
}

/* Except with -v, says nothing about why a process that was not named cannot be probed. */
static enum target_tells choose_tells(const struct steps_found *found, const struct traced *traced)
{
	if (log_level() >= LOG_DEBUG)
		return TARGET_TELLS_ALL;
	if (!traced->wanted)
		return TARGET_TELLS_NOTHING;
	return found->live->quiet ? TARGET_TELLS_ERRORS : TARGET_TELLS_ALL;
}

/* In a window that is open, late_engines looks for them, without waiting for the GIL. */
static bool searches_python(const struct steps_found *found)
{
	return !found->live->is_open && found->live->options->python != PYTHON_OFF;
}

void steps_found__ask_python(struct steps_found *found, uint32_t tgid)
{
	if (searches_python(found))
		python_steps__ask(found->python, tgid);
}

/* Adds the functions of an interpreter that is in the process, unless it was searched before. */
static int add_python(struct steps_found *found, const struct traced *traced, int added)
{
	const struct python_search search = {
		.tgid = traced->tgid,
		.is_named = traced->wanted,
		.quiet = found->target_options.tells != TARGET_TELLS_ALL,
	};
	int python = searches_python(found)
			     ? python_steps__search(found->python, &search, &found->functions)
			     : 0;

	return python < 0 ? python : added + python;
}

/* --python=inject: before the window, for the processes that are selected then. */
static void inject_python(struct steps_found *found, const struct traced *traced)
{
	const struct options *options = found->live->options;
	char *path;
	int err = 0;

	if (!found->live->may_inject || options->all || options->python != PYTHON_INJECT ||
	    python_guest_is_there(traced->tgid))
		return;
	/* What multiprocessing starts for itself has no step, so nothing is put into it. */
	if (!traced->wanted && python_tree_is_helper(traced->tgid))
		return;
	path = python_library_path();
	if (!path && !found->live->quiet)
		log_warn("--python=inject: " PYTHON_LIBRARY_MISSING);
	if (path)
		err = python_inject(traced->tgid, path, options->gpu.inject_timeout_ns);
	/* --inject is for what there is, --python=inject for Python. */
	if (err == -ENOENT && traced->wanted && !options->inject && !found->live->quiet)
		log_warn("process %u: --python=inject: no CPython: no file of it is called "
			 "python3.N or libpython3.N, or exports what python3 does",
			 traced->tgid);
	free(path);
}

bool steps_found__has_python(const struct steps_found *found)
{
	vec_for_each (function, &found->functions) {
		if ((*function)->is_python)
			return true;
	}
	return false;
}

bool steps_found__python_is_told(const struct steps_found *found, uint32_t tgid)
{
	return python_steps__is_told(found->python, tgid);
}

int steps_found__search(struct steps_found *found, struct traced *traced)
{
	size_t before = found->functions.count;
	int added, err;

	traced->rescan = false;
	if (found->live->options->all)
		late_files_note(traced);
	found->target_options.tells = choose_tells(found, traced);
	found->target_options.measure = found->live->is_open ? NULL : text_rates_measure;
	added = target_find(processes_live_thread(traced->tgid), &found->target_options,
			    traced->seen, &found->functions);
	if (added >= 0)
		inject_python(found, traced);
	if (added >= 0)
		added = add_python(found, traced, added);
	err = take_functions(found, before, traced);
	err = err ? err : python_stalls__search(found->stalls, traced->tgid);
	if (added < 0)
		return added;
	return err ? err : added;
}

int steps_found__look_python(struct steps_found *found, uint32_t tgid)
{
	return python_steps__look(found->python, tgid);
}

int steps_found__take_python(struct steps_found *found, struct traced *traced)
{
	size_t before = found->functions.count;
	int added = python_steps__take(found->python, traced->tgid, &found->functions);
	int err = take_functions(found, before, traced);

	err = err ? err : python_stalls__search(found->stalls, traced->tgid);
	return added < 0 || !err ? added : err;
}

/* Only numbers of Python functions are given by one to another. */
static uint32_t name_of(const struct step_function *function, const struct step_arg *arg)
{
	if (!function->is_python)
		return 0;
	return arg->source == STEP_ARG_TIME ? arg->source_name : python_name_hash(arg->name);
}

static int set_args(struct steps_found *found, size_t index)
{
	const struct step_function *function = found->functions.items[index];
	struct fbt_kind_args args = {
		.count = function->arg_count,
		.is_future = function->future.kind == FUTURE_KNOWN,
		.future_base = function->future.base,
		.state_offset = function->future.offset,
		.name = function->is_python ? python_name_hash(function->name) : 0,
	};

	for (uint32_t i = 0; i < function->arg_count && i < FBT_ARG_COUNT; i++) {
		const struct step_arg *arg = &function->args[i];

		args.given |= (uint32_t)(arg->source != STEP_ARG_READ) << i;
		args.timed |= (uint32_t)(arg->source == STEP_ARG_TIME) << i;
		args.before |= (uint32_t)(arg->source == STEP_ARG_BEFORE) << i;

		args.args[i] = (struct fbt_arg_spec){
			.base = arg->source == STEP_ARG_BEFORE ? arg->source_arg : arg->base,
			.reads = arg->reads,
			.offset = {arg->offset[0], arg->offset[1]},
			.width = {arg->width[0], arg->width[1]},
			.element = arg->element,
			.limit_offset = arg->limit_offset,
			.optional = arg->optional,
			.name = name_of(function, arg),
		};
	}
	return loader__set_kind_args(found->live->loader, (uint32_t)index + 1, &args);
}

static bool has_first_thread(const struct traced *traced)
{
	return processes_live_thread(traced->tgid) == traced->tgid;
}

/*
 * Those of a process's own files are removed with the process, also where others cover all. Those
 * that cannot be bound to it (steps_found__link_tgid) do nothing in others.
 */
static struct uprobes *own_links(const struct steps_found *found, struct traced *traced)
{
	bool is_bound = steps_found__probes_all(found) || has_first_thread(traced);

	if (!traced->uprobes)
		traced->uprobes = uprobes__new(loader__has_multi(found->live->loader));
	if (traced->uprobes)
		uprobes__set_mark(traced->uprobes,
				  is_bound ? 0
					   : traced_set__only(found->live->traced, traced->tgid));
	return traced->uprobes;
}

struct uprobes *steps_found__links(const struct steps_found *found, struct traced *traced)
{
	return steps_found__probes_all(found) ? loader__uprobes(found->live->loader)
					      : own_links(found, traced);
}

static struct copy *find_copy(const struct steps_found *found, const struct traced *traced,
			      uint32_t kind)
{
	vec_for_each (copy, &found->copies) {
		if (copy->tgid == traced->tgid && copy->kind == kind)
			return copy;
	}
	return NULL;
}

static struct step_probe probe_of(const struct steps_found *found, uint32_t kind)
{
	return (struct step_probe){
		.function = found->functions.items[kind - 1],
		.kind = kind,
		.without_exits = found->site_kinds & kind_bit(kind),
	};
}

static struct step_probe probe_in(const struct steps_found *found, const struct traced *traced,
				  uint32_t kind)
{
	const struct copy *copy = find_copy(found, traced, kind);
	struct step_probe probe = probe_of(found, kind);

	if (copy)
		probe.function = copy->function;
	return probe;
}

/*
 * Collects the kinds in a process's files that are not probed yet, and marks them as probed; those
 * that are switched off too, which are probed once they are switched on.
 */
static size_t take_unprobed(struct steps_found *found, struct traced *traced,
			    struct step_probe probes[FBT_KIND_COUNT])
{
	bool all = steps_found__probes_all(found);
	size_t count = 0;

	for (size_t i = traced->probed_kinds; i < traced->kinds.count; i++) {
		uint32_t kind = traced->kinds.items[i];
		struct copy *copy = find_copy(found, traced, kind);
		bool *is_probed = copy ? &copy->is_probed : &found->probed[kind];

		if ((all && *is_probed) || count == FBT_KIND_COUNT)
			continue;
		*is_probed = true;
		if (found->off_kinds & kind_bit(kind))
			continue;
		probes[count++] = probe_in(found, traced, kind);
	}
	traced->probed_kinds = traced->kinds.count;
	return count;
}

/*
 * A link for one process is bound to its first thread. If that thread is gone, a link for all
 * processes is needed.
 */
uint32_t steps_found__link_tgid(const struct steps_found *found, const struct traced *traced)
{
	return steps_found__probes_all(found) || !has_first_thread(traced) ? 0 : traced->tgid;
}

/* Sets how the steps of a kind end, before the first of them begins. */
static void choose_ends(struct steps_found *found, uint32_t kind)
{
	const struct step_function *function = found->functions.items[kind - 1];
	struct fbt_control *control = loader__shared(found->live->loader)->control;

	if (!function->has_sites || found->exit_kinds & kind_bit(kind))
		return;
	if (!function->exit_offsets.count)
		found->site_kinds |= kind_bit(kind);
	if (found->site_kinds & kind_bit(kind))
		__atomic_or_fetch(&control->site_kinds, kind_bit(kind), __ATOMIC_SEQ_CST);
	__atomic_or_fetch(&control->learn_kinds, kind_bit(kind), __ATOMIC_SEQ_CST);
}

/*
 * Steps may begin only when all probes are attached; otherwise the end of a step might be missed.
 * waits: the process in which none begin until then; 0: in all. Those of other processes go on,
 * unless the rate guard has the kinds switched off everywhere.
 */
static int attach_probes(struct steps_found *found, struct uprobes *links,
			 const struct step_probe *probes, size_t count, uint32_t tgid,
			 uint32_t waits)
{
	struct fbt_control *control = loader__shared(found->live->loader)->control;
	__u64 *off = &control->off_kinds;
	uint64_t kinds = 0;
	int err;

	for (size_t i = 0; i < count; i++) {
		kinds |= kind_bit(probes[i].kind);
		choose_ends(found, probes[i].kind);
	}
	if (waits && !(found->off_kinds & kinds)) {
		__atomic_store_n(&control->attaching_tgid, waits, __ATOMIC_SEQ_CST);
		off = &control->attaching_kinds;
	}
	__atomic_or_fetch(off, kinds, __ATOMIC_SEQ_CST);
	err = step_probes_attach(links, loader__step_program(found->live->loader), probes, count,
				 tgid);
	__atomic_and_fetch(off, ~kinds, __ATOMIC_SEQ_CST);
	return err;
}

/* Moves the probes in files that no other process has to the front. Returns their number. */
static size_t put_own_first(const struct steps_found *found, const struct traced *traced,
			    struct step_probe *probes, size_t count)
{
	size_t own = 0;

	for (size_t i = 0; i < count; i++) {
		struct step_probe probe = probes[i];

		if (!find_copy(found, traced, probe.kind))
			continue;
		probes[i] = probes[own];
		probes[own++] = probe;
	}
	return own;
}

static int attach_own(struct steps_found *found, struct traced *traced,
		      const struct step_probe *probes, size_t count, uint32_t tgid)
{
	struct uprobes *links = own_links(found, traced);

	return links ? attach_probes(found, links, probes, count, tgid, traced->tgid) : -ENOMEM;
}

static int attach_found(struct steps_found *found, struct traced *traced, struct step_probe *probes,
			size_t count)
{
	size_t own = put_own_first(found, traced, probes, count);
	uint32_t tgid = steps_found__link_tgid(found, traced);
	uint32_t waits = steps_found__probes_all(found) ? 0 : traced->tgid;
	struct uprobes *links;
	int err = own ? attach_own(found, traced, probes, own, tgid) : 0;

	if (err || count == own)
		return err;
	links = steps_found__links(found, traced);
	return links ? attach_probes(found, links, probes + own, count - own, tgid, waits)
		     : -ENOMEM;
}

/* A failed attach is not tried again, because it would fail every second. */
int steps_found__attach(struct steps_found *found, struct traced *traced)
{
	struct step_probe probes[FBT_KIND_COUNT];
	size_t count = take_unprobed(found, traced, probes);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = set_args(found, probes[i].kind - 1);
	python_stalls__attach(found->stalls, traced->tgid, steps_found__probes_all(found),
			      steps_found__link_tgid(found, traced));
	err = err ? err : attach_found(found, traced, probes, count);
	/* Also where a process before this one has had all places of its files probed. */
	err = err ? err : python_steps__arm(found->python, traced->tgid);
	if (err)
		return err;
	found->is_probing |= count > 0;
	uprobes__free(traced->stale);
	traced->stale = NULL;
	return (int)count;
}

void steps_found__finish_arming(struct steps_found *found)
{
	python_steps__finish_arming(found->python);
}

void steps_found__offer_python(const struct steps_found *found, const struct traced *traced)
{
	if (found->live->options->python != PYTHON_AUTO || found->live->options->all ||
	    !traced->wanted || found->live->options->specs.count ||
	    !python_use_is_there(traced->tgid) || python_guest_is_there(traced->tgid) ||
	    python_guest_is_inherited(traced->tgid))
		return;
	log_info("process %u runs Python: with --python=inject, the steps of vLLM, SGLang and "
		 "others are measured (docs/python.md says what that does to the process)",
		 traced->tgid);
	python_stalls__note_offer(found->stalls, traced->tgid);
}

bool steps_found__wants_python(const struct steps_found *found)
{
	return found->live->options->python != PYTHON_OFF &&
	       python_steps__has_wishes(found->python);
}

void steps_found__explain(const struct steps_found *found)
{
	python_steps__explain(found->python);
}

void steps_found__beat(struct steps_found *found, uint64_t now_ns)
{
	python_steps__beat(found->python, now_ns);
	python_stalls__turn(found->stalls, now_ns);
}

void steps_found__charge(const struct steps_found *found, struct fbt_cost *cost)
{
	python_stalls__charge(found->stalls, cost);
}

void steps_found__disarm(struct steps_found *found)
{
	python_steps__disarm(found->python);
}

static struct torch_settings torch_settings(const struct options *options)
{
	const struct option_torch *torch = &options->torch;

	/* Both ways to CUPTI at once would take each other's records. */
	return (struct torch_settings){
		.flags = (torch->shapes ? FBT_TORCH_SHAPES : 0) |
			 (torch->stack ? FBT_TORCH_STACK : 0) | (torch->sync ? FBT_TORCH_SYNC : 0) |
			 (options->gpu.mode == GPU_OFF ? FBT_TORCH_CUDA : 0),
		.max_steps = options->steps,
	};
}

void steps_found__begin_torch(struct steps_found *found)
{
	const struct torch_settings settings = torch_settings(found->live->options);

	found->torch_window = python_torch_begin(found->python, &settings);
}

void steps_found__join_torch(struct steps_found *found, uint32_t tgid)
{
	const struct torch_settings settings = torch_settings(found->live->options);

	if (found->torch_window)
		python_torch_join(found->python, &settings, found->torch_window, tgid);
}

bool steps_found__is_profiled(const struct steps_found *found, const struct fbt_step *step)
{
	struct torch_span span;

	if (!found->torch_window)
		return false;
	span = python_torch_span(found->python, found->torch_window);
	return step->end_ns > span.begin_ns && step->start_ns < span.end_ns;
}

void steps_found__end_torch(struct steps_found *found)
{
	python_torch_end(found->python);
}

void steps_found__collect_torch(struct steps_found *found,
				void (*take)(void *ctx, const struct torch_export *export),
				void *ctx)
{
	python_torch_collect(found->python, found->torch_window, take, ctx);
	found->torch_window = 0;
}

void steps_found__forget(struct steps_found *found, uint32_t tgid)
{
	struct traced *traced = traced_set__find(found->live->traced, tgid);

	/* There are only those of its own files. */
	if (traced && steps_found__probes_all(found)) {
		uprobes__free(traced->uprobes);
		traced->uprobes = NULL;
	}
	python_steps__forget(found->python, tgid);
	python_stalls__forget(found->stalls, tgid);
	for (size_t i = 0; i < found->copies.count;) {
		struct copy *copy = &found->copies.items[i];

		if (copy->tgid != tgid) {
			i++;
			continue;
		}
		step_function_free(copy->function);
		*copy = found->copies.items[--found->copies.count];
	}
}

void steps_found__detach(struct traced *traced, bool replace)
{
	uprobes__free(traced->stale);
	traced->stale = replace ? traced->uprobes : NULL;
	if (!replace)
		uprobes__free(traced->uprobes);
	traced->uprobes = NULL;
	traced->probed_kinds = 0;
}

uint64_t steps_found__off_kinds(const struct steps_found *found)
{
	return found->off_kinds;
}

static void detach_kinds(struct uprobes *links, uint64_t kinds)
{
	for (uint32_t kind = 0; links && (kind = kind_next(kinds, kind));)
		step_probes_detach(links, kind);
}

void steps_found__switch_off(struct steps_found *found, uint64_t kinds)
{
	struct traced *traced;

	found->off_kinds |= kinds;
	detach_kinds(loader__uprobes(found->live->loader), kinds);
	for (size_t i = 0; (traced = traced_set__at(found->live->traced, i)); i++) {
		detach_kinds(traced->uprobes, kinds);
		detach_kinds(traced->stale, kinds);
	}
}

void steps_found__give_up(struct steps_found *found, uint64_t kinds)
{
	found->gone_kinds |= kinds;
	steps_found__switch_off(found, kinds);
}

static size_t take_kinds(const struct steps_found *found, uint64_t kinds,
			 struct step_probe probes[FBT_KIND_COUNT])
{
	size_t count = 0;

	for (uint32_t kind = 1; kind <= found->functions.count; kind++) {
		if (kinds & kind_bit(kind))
			probes[count++] = probe_of(found, kind);
	}
	return count;
}

static int attach_again(struct steps_found *found, struct traced *traced, uint64_t kinds)
{
	struct step_probe probes[FBT_KIND_COUNT];
	uint64_t probed = 0;
	size_t count;
	int err;

	for (size_t i = 0; i < traced->probed_kinds; i++)
		probed |= kind_bit(traced->kinds.items[i]);
	count = take_kinds(found, kinds & probed, probes);
	for (size_t i = 0; i < count; i++)
		probes[i] = probe_in(found, traced, probes[i].kind);
	if (!count)
		return 0;
	/* None were made while all of its functions were switched off. */
	if (!own_links(found, traced))
		return -ENOMEM;
	uprobes__set_quiet(traced->uprobes, log_level() < LOG_DEBUG);
	err = attach_probes(found, traced->uprobes, probes, count,
			    steps_found__link_tgid(found, traced), traced->tgid);
	uprobes__set_quiet(traced->uprobes, false);
	return err;
}

/* That a process has ended in the meantime is not an error. */
static int attach_in_each(struct steps_found *found, uint64_t kinds)
{
	struct traced *traced;
	int err = 0;

	for (size_t i = 0; (traced = traced_set__at(found->live->traced, i)) && !err; i++) {
		err = attach_again(found, traced, kinds);
		if (err == -ESRCH)
			err = 0;
	}
	return err;
}

static int attach_for_all(struct steps_found *found, uint64_t kinds)
{
	struct uprobes *links = loader__uprobes(found->live->loader);
	struct step_probe probes[FBT_KIND_COUNT];
	int err = attach_probes(found, links, probes, take_kinds(found, kinds, probes), 0, 0);

	vec_for_each (copy, &found->copies) {
		struct traced *traced = traced_set__find(found->live->traced, copy->tgid);
		struct step_probe probe = probe_of(found, copy->kind);

		probe.function = copy->function;
		if (!err && traced && copy->is_probed && kinds & kind_bit(copy->kind))
			err = attach_own(found, traced, &probe, 1, 0);
	}
	return err;
}

int steps_found__switch_on(struct steps_found *found, uint64_t wanted)
{
	uint64_t kinds = wanted & ~found->gone_kinds;
	int err = steps_found__probes_all(found) ? attach_for_all(found, kinds)
						 : attach_in_each(found, kinds);

	if (err)
		steps_found__switch_off(found, kinds);
	else
		found->off_kinds &= ~kinds;
	return err;
}

void steps_found__end_at_sites(struct steps_found *found, uint32_t kind)
{
	struct fbt_control *control = loader__shared(found->live->loader)->control;

	__atomic_or_fetch(&control->site_kinds, kind_bit(kind), __ATOMIC_SEQ_CST);
}

static void detach_exits(struct steps_found *found, uint32_t kind)
{
	struct traced *traced;

	step_probes_detach_exits(loader__uprobes(found->live->loader), kind);
	for (size_t i = 0; (traced = traced_set__at(found->live->traced, i)); i++) {
		if (traced->uprobes)
			step_probes_detach_exits(traced->uprobes, kind);
	}
}

void steps_found__drop_exits(struct steps_found *found, uint32_t kind)
{
	found->site_kinds |= kind_bit(kind);
	detach_exits(found, kind);
}

/* That a process has ended in the meantime is not an error. */
static int attach_exits(struct steps_found *found, uint32_t kind)
{
	const struct bpf_program *program = loader__step_program(found->live->loader);
	struct step_probe probe = probe_of(found, kind);
	struct traced *traced;
	int err = 0;

	if (steps_found__probes_all(found))
		return step_probes_attach_exits(loader__uprobes(found->live->loader), program,
						&probe, 0);
	for (size_t i = 0; (traced = traced_set__at(found->live->traced, i)) && !err; i++) {
		if (traced->uprobes)
			err = step_probes_attach_exits(own_links(found, traced), program, &probe,
						       steps_found__link_tgid(found, traced));
		if (err == -ESRCH)
			err = 0;
	}
	/* Else those before would get theirs once more the next time. */
	if (err)
		detach_exits(found, kind);
	return err;
}

static void detach_sites(struct steps_found *found, uint32_t kind)
{
	struct traced *traced;

	step_probes_detach_sites(loader__uprobes(found->live->loader), kind);
	for (size_t i = 0; (traced = traced_set__at(found->live->traced, i)); i++) {
		if (traced->uprobes)
			step_probes_detach_sites(traced->uprobes, kind);
	}
}

int steps_found__end_at_exits(struct steps_found *found, uint32_t kind)
{
	struct fbt_control *control = loader__shared(found->live->loader)->control;
	int err = found->site_kinds & kind_bit(kind) ? attach_exits(found, kind) : 0;

	if (err)
		return err;
	found->site_kinds &= ~kind_bit(kind);
	found->exit_kinds |= kind_bit(kind);
	__atomic_and_fetch(&control->learn_kinds, ~kind_bit(kind), __ATOMIC_SEQ_CST);
	__atomic_and_fetch(&control->site_kinds, ~kind_bit(kind), __ATOMIC_SEQ_CST);
	detach_sites(found, kind);
	return 0;
}

void steps_found__end_at_sites_again(struct steps_found *found, uint32_t kind)
{
	struct fbt_control *control = loader__shared(found->live->loader)->control;

	found->exit_kinds &= ~kind_bit(kind);
	__atomic_or_fetch(&control->site_kinds, kind_bit(kind), __ATOMIC_SEQ_CST);
	__atomic_or_fetch(&control->learn_kinds, kind_bit(kind), __ATOMIC_SEQ_CST);
	steps_found__drop_exits(found, kind);
}

int steps_found__describe(struct steps_found *found)
{
	while (found->described < found->functions.count) {
		int err = kind_record_send(found->live, found->functions.items[found->described],
					   (uint32_t)found->described + 1,
					   found->tgids.items[found->described]);

		if (err)
			return err;
		found->described++;
	}
	return 0;
}

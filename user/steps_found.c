/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "processes.h"
#include "step_probes.h"
#include "step_units.h"
#include "steps_found.h"
#include "target.h"

/* Kind 0 is the interval, the last one is calibration's. */
#define KINDS_MAX (FBT_KIND_COUNT - 2)

struct steps_found {
	const struct options *options;
	struct loader *loader;
	const struct record_output *output;
	struct target_options target_options;
	function_vec functions; /* functions[i] is kind i + 1 */
	VEC(uint32_t) tgids;	/* where each was found first */
	size_t described;
	bool is_probing;
	bool probed[FBT_KIND_COUNT]; /* where links are for every process */
	struct step_units units;
	uint64_t off_kinds; /* not probed for now */
};

struct steps_found *steps_found__new(const struct options *options, struct loader *loader,
				     const struct record_output *output)
{
	struct steps_found *found = calloc(1, sizeof(*found));

	if (!found)
		return NULL;
	found->options = options;
	found->loader = loader;
	found->output = output;
	found->target_options = target_options_of(options);
	return found;
}

void steps_found__free(struct steps_found *found)
{
	if (!found)
		return;
	vec_for_each (function, &found->functions)
		target_function_free(*function);
	vec_free(&found->functions);
	vec_free(&found->tgids);
	free(found);
}

size_t steps_found__count(const struct steps_found *found)
{
	return found->functions.count;
}

bool steps_found__is_probing(const struct steps_found *found)
{
	return found->is_probing;
}

void steps_found__explain(const struct steps_found *found, uint32_t tgid)
{
	target_explain_no_match(tgid, &found->target_options);
}

/* Links for every process where new ones may come at any time; else for each, to spare the others.
 */
static bool probes_all(const struct steps_found *found)
{
	return found->options->all || found->options->follow || found->options->command ||
	       (!found->options->perf_uprobes && !uprobes_multi_can_filter());
}

static uint64_t begin_of(const struct step_function *function)
{
	return function->usdt && function->usdt_begins.count ? function->usdt_begins.items[0]
							     : function->begin_offset;
}

/* Index of the same function among those known before, or limit. */
static size_t find_known(const struct steps_found *found, const struct step_function *function,
			 size_t limit)
{
	size_t i = 0;

	while (i < limit) {
		const struct step_function *known = found->functions.items[i];

		if (known->device == function->device && known->inode == function->inode &&
		    begin_of(known) == begin_of(function))
			break;
		i++;
	}
	return i;
}

uint64_t steps_found__unit(const struct steps_found *found, uint32_t kind)
{
	return kind < FBT_KIND_COUNT ? found->units.of[kind] : 0;
}

const char *steps_found__name(const struct steps_found *found, uint32_t kind)
{
	if (!kind || kind > found->functions.count)
		return NULL;
	return found->functions.items[kind - 1]->name;
}

/* Another process may map the same file: its functions are the kinds we have. */
static int sort_in(struct steps_found *found, size_t before, struct traced *traced)
{
	size_t kept = before;
	int err = 0;

	for (size_t i = before; i < found->functions.count; i++) {
		struct step_function *function = found->functions.items[i];
		size_t index = find_known(found, function, kept);

		if (index == kept && kept < KINDS_MAX) {
			found->functions.items[kept++] = function;
			step_units_add(&found->units, &found->functions, (uint32_t)kept);
			err = err ? err : vec_push(&found->tgids, traced->tgid);
		} else {
			if (index == kept)
				log_warn("%s: not probed: %d step functions are the most",
					 function->name, KINDS_MAX);
			target_function_free(function);
		}
		if (index < kept)
			err = err ? err : vec_push(&traced->kinds, (uint32_t)index + 1);
	}
	found->functions.count = kept;
	return err;
}

int steps_found__search(struct steps_found *found, struct traced *traced)
{
	size_t before = found->functions.count;
	enum log_level level = log_level();
	int added, err;

	traced->rescan = false;
	/* Why nothing can be probed in a process that nobody named is no news, unless -v. */
	if (!traced->wanted && level < LOG_DEBUG)
		log_set_level(LOG_NONE);
	added = target_find(processes_living_thread(traced->tgid), &found->target_options,
			    traced->seen, &found->functions);
	log_set_level(level);
	err = sort_in(found, before, traced);
	if (added < 0)
		return added;
	return err ? err : added;
}

static int set_args(struct steps_found *found, size_t index)
{
	const struct step_function *function = found->functions.items[index];
	struct fbt_kind_args args = {.count = function->arg_count};

	for (uint32_t i = 0; i < function->arg_count; i++) {
		const struct step_arg *arg = &function->args[i];

		args.args[i] = (struct fbt_arg_spec){
			.base = arg->base,
			.reads = arg->reads,
			.offset = {arg->offset[0], arg->offset[1]},
			.width = {arg->width[0], arg->width[1]},
		};
	}
	return loader__set_kind_args(found->loader, (uint32_t)index + 1, &args);
}

/* Links for every process are the loader's; those of one process go with it. */
static struct uprobes *choose_links(const struct steps_found *found, struct traced *traced)
{
	if (probes_all(found))
		return loader__uprobes(found->loader);
	if (!traced->uprobes)
		traced->uprobes = uprobes__new(loader__has_multi(found->loader));
	return traced->uprobes;
}

/* The kinds in a process's files that are not probed there yet, marked as probed. */
static size_t take_unprobed(struct steps_found *found, struct traced *traced,
			    struct step_probe probes[FBT_KIND_COUNT])
{
	bool all = probes_all(found);
	size_t count = 0;

	for (size_t i = traced->probed_kinds; i < traced->kinds.count; i++) {
		uint32_t kind = traced->kinds.items[i];

		if ((all && found->probed[kind]) || count == FBT_KIND_COUNT ||
		    found->off_kinds & kind_bit(kind))
			continue;
		found->probed[kind] = true;
		probes[count++] = (struct step_probe){found->functions.items[kind - 1], kind};
	}
	traced->probed_kinds = traced->kinds.count;
	return count;
}

/*
 * A link of one process is bound to its first thread; where that has ended, only one for every
 * process reaches the others.
 */
static uint32_t choose_tgid(const struct steps_found *found, const struct traced *traced)
{
	if (probes_all(found) || processes_living_thread(traced->tgid) != traced->tgid)
		return 0;
	return traced->tgid;
}

/* No step begins before all its probes are there: its end might not be seen. */
static int attach_probes(const struct steps_found *found, struct uprobes *links,
			 const struct step_probe *probes, size_t count, uint32_t tgid)
{
	__u64 *off = &loader__shared(found->loader)->control->off_kinds;
	uint64_t kinds = 0;
	int err;

	for (size_t i = 0; i < count; i++)
		kinds |= kind_bit(probes[i].kind);
	__atomic_or_fetch(off, kinds, __ATOMIC_SEQ_CST);
	err = step_probes_attach(links, loader__step_program(found->loader), probes, count, tgid);
	__atomic_and_fetch(off, ~kinds, __ATOMIC_SEQ_CST);
	return err;
}

/* What failed once is not tried again: it would fail at each look. */
int steps_found__attach(struct steps_found *found, struct traced *traced)
{
	struct uprobes *links = choose_links(found, traced);
	struct step_probe probes[FBT_KIND_COUNT];
	size_t count = take_unprobed(found, traced, probes);
	int err = links ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++)
		err = set_args(found, probes[i].kind - 1);
	if (!err && count)
		err = attach_probes(found, links, probes, count, choose_tgid(found, traced));
	if (err)
		return err;
	found->is_probing |= count > 0;
	uprobes__free(traced->stale);
	traced->stale = NULL;
	return (int)count;
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

static void detach_kinds(struct uprobes *links, uint64_t kinds)
{
	for (uint32_t kind = 0; links && (kind = kind_next(kinds, kind));)
		step_probes_detach(links, kind);
}

void steps_found__switch_off(struct steps_found *found, struct traced_set *set, uint64_t kinds)
{
	struct traced *traced;

	found->off_kinds |= kinds;
	detach_kinds(loader__uprobes(found->loader), kinds);
	for (size_t i = 0; (traced = traced_set__at(set, i)); i++) {
		detach_kinds(traced->uprobes, kinds);
		detach_kinds(traced->stale, kinds);
	}
}

static size_t take_kinds(const struct steps_found *found, uint64_t kinds,
			 struct step_probe probes[FBT_KIND_COUNT])
{
	size_t count = 0;

	for (uint32_t kind = 1; kind <= found->functions.count; kind++) {
		if (kinds & kind_bit(kind))
			probes[count++] =
				(struct step_probe){found->functions.items[kind - 1], kind};
	}
	return count;
}

static int attach_again(struct steps_found *found, struct traced *traced, uint64_t kinds)
{
	struct step_probe probes[FBT_KIND_COUNT];
	uint64_t probed = 0;
	size_t count;

	for (size_t i = 0; i < traced->probed_kinds; i++)
		probed |= kind_bit(traced->kinds.items[i]);
	count = take_kinds(found, kinds & probed, probes);
	if (!count || !traced->uprobes)
		return 0;
	return attach_probes(found, traced->uprobes, probes, count, choose_tgid(found, traced));
}

/* A process that has ended meanwhile is no error. */
static int attach_in_each(struct steps_found *found, struct traced_set *set, uint64_t kinds)
{
	enum log_level level = log_level();
	struct traced *traced;
	int err = 0;

	for (size_t i = 0; (traced = traced_set__at(set, i)) && !err; i++) {
		if (level < LOG_DEBUG)
			log_set_level(LOG_NONE);
		err = attach_again(found, traced, kinds);
		log_set_level(level);
		if (err == -ESRCH)
			err = 0;
	}
	return err;
}

int steps_found__switch_on(struct steps_found *found, struct traced_set *set, uint64_t kinds)
{
	struct step_probe probes[FBT_KIND_COUNT];
	int err;

	if (probes_all(found))
		err = attach_probes(found, loader__uprobes(found->loader), probes,
				    take_kinds(found, kinds, probes), 0);
	else
		err = attach_in_each(found, set, kinds);
	if (err)
		steps_found__switch_off(found, set, kinds);
	else
		found->off_kinds &= ~kinds;
	return err;
}

/* Nothing is silently compared by something else than was asked for. */
static void check_class_by(const struct steps_found *found, const struct step_function *function)
{
	const char *name = found->options->judging.classify.class_by;

	if (!name)
		return;
	for (uint32_t i = 0; i < function->arg_count; i++) {
		if (!strcmp(function->args[i].name, name))
			return;
	}
	log_warn("--class-by %s: %s has no such argument (see --step-arg): its steps are compared "
		 "by their work",
		 name, function->name);
}

static int describe(const struct steps_found *found, size_t index)
{
	const struct step_function *function = found->functions.items[index];
	const char *strings[2 + FBT_ARG_COUNT] = {function->name, function->path};
	struct fbt_kind kind = {
		.kind = (uint32_t)index + 1,
		.source = function->usdt ? FBT_SOURCE_USDT : FBT_SOURCE_FUNCTION,
		.address = function->address,
		.builtin = function->builtin,
		.exits = (uint32_t)function->exit_offsets.count,
		.tgid = found->tgids.items[index],
		.arg_count = function->arg_count,
	};

	check_class_by(found, function);
	for (uint32_t i = 0; i < function->arg_count; i++)
		strings[2 + i] = function->args[i].name;
	return record_send_strings(found->output, &kind, sizeof(kind), FBT_EVENT_KIND, strings,
				   2 + function->arg_count);
}

int steps_found__describe(struct steps_found *found)
{
	while (found->described < found->functions.count) {
		int err = describe(found, found->described);

		if (err)
			return err;
		found->described++;
	}
	return 0;
}

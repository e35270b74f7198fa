/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/engine_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "proc/status.h"
#include "python/guest.h"
#include "python/tree.h"
#include "targets/steps_found.h"

#define WATCH_NS   (2 * NS_PER_S)
#define LISTED_MAX 8
#define TEXT_MAX   2048

/* One process of the tree, whether it is traced or not. */
struct member {
	uint32_t tgid;
	char title[PYTHON_TITLE_MAX];
	bool is_named; /* by -p */
	bool has_step; /* it has a step function, so it is traced */
	bool called;   /* and has called it */
	/* Without the library nothing is known of it. */
	bool is_searched;
	bool is_inherited; /* python_guest_is_inherited */
};

struct engine_tree {
	const struct live *live;
	VEC(struct member) members;
	uint64_t first_ns; /* begin of the first step; 0: there was none */
	bool told;
};

struct engine_tree *engine_tree__new(const struct live *live)
{
	struct engine_tree *tree = calloc(1, sizeof(*tree));

	if (tree)
		tree->live = live;
	return tree;
}

void engine_tree__free(struct engine_tree *tree)
{
	if (!tree)
		return;
	vec_free(&tree->members);
	free(tree);
}

static struct member *find_member(const struct engine_tree *tree, uint32_t tgid)
{
	vec_for_each (member, &tree->members) {
		if (member->tgid == tgid)
			return member;
	}
	return NULL;
}

/* traced: NULL if the process was not searched. */
static int add_member(struct engine_tree *tree, uint32_t tgid, const struct traced *traced)
{
	struct member member = {
		.tgid = tgid,
		.is_named = traced && traced->wanted,
		.has_step = traced && traced->kinds.count,
		.is_searched = python_guest_is_there(tgid),
	};

	member.is_inherited = !member.is_searched && python_guest_is_inherited(tgid);
	python_tree_title(tgid, member.title);
	return vec_push(&tree->members, member);
}

static void drop(const struct engine_tree *tree, uint32_t tgid)
{
	struct traced *traced = traced_set__find(tree->live->traced, tgid);

	steps_found__forget(tree->live->found, tgid);
	if (traced)
		traced_set__forget(tree->live->traced, traced);
}

static int search_other(struct engine_tree *tree, const struct process_entry *process)
{
	struct traced *traced = traced_set__add(tree->live->traced, process->tgid);
	int added, err;

	if (!traced)
		return -ENOMEM;
	traced->parent_tgid = process->parent_tgid;
	added = steps_found__search(tree->live->found, traced);
	err = added == -ENOMEM ? added : add_member(tree, process->tgid, traced);
	if (!traced->kinds.count)
		drop(tree, process->tgid);
	return err;
}

/* A native step, as of llama-cpp-python, is that of the process itself. */
static bool has_native_step(const struct engine_tree *tree, const struct traced *traced)
{
	for (size_t i = 0; i < traced->kinds.count; i++) {
		if (!steps_found__function(tree->live->found, traced->kinds.items[i])->is_python)
			return true;
	}
	return false;
}

/* Ranks of one engine have one parent, which a process that -p names has too. */
static void set_parent(struct traced *traced, const process_vec *others)
{
	struct thread_stat stat;

	if (thread_stat_read(&stat, (struct proc_ref){.tgid = traced->tgid}))
		return;
	vec_for_each (other, others) {
		if (other->tgid == stat.parent_tgid)
			traced->parent_tgid = stat.parent_tgid;
	}
}

static bool is_known(const struct engine_tree *tree, uint32_t tgid)
{
	return traced_set__find(tree->live->traced, tgid) || find_member(tree, tgid);
}

static int search_around(struct engine_tree *tree, uint32_t tgid)
{
	struct traced *traced = traced_set__find(tree->live->traced, tgid);
	bool injects = tree->live->options->python == PYTHON_INJECT;
	process_vec others = {0};
	int err;

	if (!traced || has_native_step(tree, traced))
		return 0;
	err = python_tree_list(tgid, &others);
	set_parent(traced, &others);
	if (!err && (others.count || python_guest_is_inherited(tgid)))
		err = add_member(tree, tgid, traced);
	vec_for_each (other, &others) {
		if (!err && !is_known(tree, other->tgid))
			steps_found__ask_python(tree->live->found, other->tgid);
	}
	vec_for_each (other, &others) {
		if (err || is_known(tree, other->tgid))
			continue;
		if (injects || python_guest_is_there(other->tgid))
			err = search_other(tree, other);
		else
			err = add_member(tree, other->tgid, NULL);
	}
	vec_free(&others);
	return err;
}

static size_t count_members(const struct engine_tree *tree, bool has_step)
{
	size_t count = 0;

	vec_for_each (member, &tree->members)
		count += member->has_step == has_step;
	return count;
}

static const char *name_of(const struct engine_tree *tree, const struct traced *traced, size_t i)
{
	return steps_found__function(tree->live->found, traced->kinds.items[i])->name;
}

/* Modules of one engine may define functions of the same name. */
static bool is_named_before(const struct engine_tree *tree, const struct traced *traced, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (!strcmp(name_of(tree, traced, i), name_of(tree, traced, at)))
			return true;
	}
	return false;
}

static size_t add_functions(const struct engine_tree *tree, uint32_t tgid, char *to, size_t size)
{
	const struct traced *traced = traced_set__find(tree->live->traced, tgid);
	size_t used = 0;

	for (size_t i = 0; traced && i < traced->kinds.count && used < size; i++) {
		if (is_named_before(tree, traced, i))
			continue;
		used += (size_t)snprintf(to + used, size - used, "%s%s", i ? ", " : ": ",
					 name_of(tree, traced, i));
	}
	return used < size ? used : size - 1;
}

/* "130 (VLLM::EngineCore): EngineCore.step; 131 (VLLM::Worker): …", of those that is_listed takes.
 */
static void list_members(const struct engine_tree *tree,
			 bool (*is_listed)(const struct member *member), bool with_functions,
			 char text[TEXT_MAX])
{
	size_t used = 0, listed = 0, more = 0;

	*text = '\0';
	vec_for_each (member, &tree->members) {
		if (!is_listed(member))
			continue;
		if (listed == LISTED_MAX || used >= TEXT_MAX / 2) {
			more++;
			continue;
		}
		used += (size_t)snprintf(text + used, TEXT_MAX - used, "%s%u (%s)",
					 listed++ ? "; " : "", member->tgid, member->title);
		if (with_functions)
			used += add_functions(tree, member->tgid, text + used, TEXT_MAX - used);
	}
	if (more)
		snprintf(text + used, TEXT_MAX - used, "; and %zu more", more);
}

static bool is_taken(const struct member *member)
{
	return member->has_step && !member->is_named;
}

static bool is_without(const struct member *member)
{
	return !member->has_step;
}

static bool is_inherited(const struct member *member)
{
	return member->is_inherited;
}

/* A named process is traced all the same while nothing better is known. */
static bool is_dropped(const struct member *member)
{
	return member->is_named && member->is_searched && !member->has_step;
}

static bool is_called(const struct member *member)
{
	return member->has_step && member->called;
}

static bool is_uncalled(const struct member *member)
{
	return member->has_step && !member->called;
}

static bool has_taken(const struct engine_tree *tree)
{
	vec_for_each (member, &tree->members) {
		if (is_taken(member))
			return true;
	}
	return false;
}

/* A child that was forked by a process with the library has no thread of it. */
static void tell_inherited(const struct engine_tree *tree)
{
	char inherited[TEXT_MAX];

	list_members(tree, is_inherited, false, inherited);
	if (*inherited)
		log_info("no Python steps in %s: forked from a process with libferrum_python.so, "
			 "whose thread it does not have; --python=inject starts one",
			 inherited);
}

/* Says what the named process has, and which are traced with it or instead. */
static void tell(const struct engine_tree *tree)
{
	char taken[TEXT_MAX], without[TEXT_MAX];

	list_members(tree, is_taken, true, taken);
	vec_for_each (member, &tree->members) {
		if (!member->is_named)
			continue;
		if (is_dropped(member))
			log_info("process %u (%s) has no step, so it is not traced; those of its "
				 "engine that have one are: %s",
				 member->tgid, member->title, taken);
		else
			log_info("process %u (%s) is one of an engine: its other processes with "
				 "a step are traced too: %s",
				 member->tgid, member->title, taken);
	}
	list_members(tree, is_without, false, without);
	if (*without)
		log_debug("processes of the engine without a step: %s", without);
}

int engine_tree__search(struct engine_tree *tree)
{
	const struct live *live = tree->live;
	const struct options *options = live->options;
	int err = 0;

	if (options->follow || options->all || options->command ||
	    !steps_found__wants_python(live->found))
		return 0;
	for (size_t i = 0; i < options->pids.count && !err; i++)
		err = search_around(tree, options->pids.items[i]);
	if (!err && !live->quiet)
		tell_inherited(tree);
	if (err || !has_taken(tree))
		return err;
	if (!live->quiet)
		tell(tree);
	vec_for_each (member, &tree->members) {
		if (is_dropped(member))
			drop(tree, member->tgid);
	}
	return 0;
}

int engine_tree__join(struct engine_tree *tree, const struct traced *traced)
{
	struct member *member = find_member(tree, traced->tgid);
	bool is_known = member && member->has_step;
	char functions[TEXT_MAX], title[PYTHON_TITLE_MAX];
	int err = 0;

	if (member) {
		member->has_step = true;
		member->is_searched = true;
	} else {
		err = add_member(tree, traced->tgid, traced);
	}
	python_tree_title(traced->tgid, title);
	*functions = '\0';
	add_functions(tree, traced->tgid, functions, sizeof(functions));
	log_info("process %u (%s) has %s since the trace began, traced from now on%s", traced->tgid,
		 title, is_known ? "more Python steps" : "Python steps", functions);
	return err;
}

static void tell_uncalled(const struct engine_tree *tree)
{
	char called[TEXT_MAX], uncalled[TEXT_MAX];

	list_members(tree, is_uncalled, false, uncalled);
	list_members(tree, is_called, false, called);
	if (*uncalled && *called)
		log_info("no step so far in %s: the steps are those of %s", uncalled, called);
}

void engine_tree__take(struct engine_tree *tree, const struct fbt_step *step)
{
	struct member *member;

	if (tree->told || count_members(tree, true) < 2 || !step->kind)
		return;
	member = find_member(tree, step->tgid);
	if (!member)
		return;
	member->called = true;
	if (!tree->first_ns)
		tree->first_ns = step->start_ns;
	if (step->end_ns < tree->first_ns + WATCH_NS)
		return;
	tree->told = true;
	tell_uncalled(tree);
}

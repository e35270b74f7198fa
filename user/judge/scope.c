/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/scope.h"

static bool is_command(const struct call_walk *walk)
{
	return walk->rule->traits & CALL_COMMAND && walk->call->header.flags & FBT_CALL_ARGS;
}

static bool is_in(const struct scope *scope, const struct call_walk *walk)
{
	if (walk->cause != scope->cause || (call_walk_is_covered(walk) && !walk->ns))
		return false;
	if (scope->writes && (!(walk->rule->traits & CALL_WRITES) || walk->call->ret < 0))
		return false;
	return !scope->has_command || (is_command(walk) && walk->call->args[1] == scope->command);
}

void scope_begin(const struct scope *scope, struct call_walk *walk)
{
	call_walk_begin(walk, scope->window, scope->step, scope->claims);
}

bool scope_next(const struct scope *scope, struct call_walk *walk)
{
	while (call_walk_next(walk)) {
		if (is_in(scope, walk))
			return true;
	}
	return false;
}

static bool find_key(const struct call_walk *walk, enum share_key by, uint64_t *key)
{
	const struct fbt_call *call = walk->call;

	switch (by) {
	case BY_NUMBER:
		*key = call->nr;
		return true;
	case BY_FILE:
		*key = call->file;
		return call->file != 0;
	case BY_COMMAND:
		*key = call->args[1];
		return is_command(walk);
	case BY_LOCK:
		*key = call->args[0];
		return walk->rule->traits & CALL_FUTEX && call->header.flags & FBT_CALL_ARGS;
	}
	return false;
}

struct top_key scope_share(const struct scope *scope, enum share_key by)
{
	struct top_keys top;
	struct call_walk walk;
	uint64_t key;

	top_keys_clear(&top);
	scope_begin(scope, &walk);
	while (scope_next(scope, &walk)) {
		if (find_key(&walk, by, &key))
			top_keys_add_many(&top, key, walk.ns, call_count(walk.call));
	}
	return top_keys_largest(&top);
}

bool scope_has_other_lock(const struct scope *scope, const struct call_walk *walk)
{
	uint64_t lock;

	return scope->has_lock && find_key(walk, BY_LOCK, &lock) && lock != scope->lock;
}

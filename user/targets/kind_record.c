/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/kind_record.h"

#include <string.h>

#include "base/log.h"

/* Warns if steps are compared by something else than what the user asked for. */
static void check_class_by(const struct live *live, const struct step_function *function)
{
	const char *name = live->options->judging.classify.class_by;

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

static int send_tails(const struct live *live, const struct step_function *function, uint32_t kind)
{
	struct fbt_tails tails = {
		.kind = kind,
		.returns = function->returns,
		.tail_calls = function->tail_calls,
		.pointers = function->pointers,
		.targets = function->tail_count,
	};

	if (!function->tail_calls)
		return 0;
	return record_send_strings(live->output, &tails, sizeof(tails), FBT_EVENT_TAILS,
				   (const char *const *)function->tails, WAYS_NAMES);
}

static void check_future(const struct live *live, const struct step_function *function)
{
	if (function->future.kind != FUTURE_UNTOLD || live->quiet)
		return;
	log_warn("%s: it polls a future, and when that is ready cannot be told: each of its polls "
		 "is a step, and the time in between is not. --step of the function below it that "
		 "does the work, and is not async, has whole steps",
		 function->name);
}

static __u16 arg_flags(const struct step_arg *arg, uint32_t i)
{
	return (__u16)((arg->source != STEP_ARG_READ ? FBT_KIND_INNER(i) : 0) |
		       (arg->source == STEP_ARG_TIME ? FBT_KIND_TIMED(i) : 0));
}

int kind_record_send(const struct live *live, const struct step_function *function, uint32_t kind,
		     uint32_t tgid)
{
	const char *strings[2 + FBT_ARG_COUNT] = {function->name, function->path};
	struct fbt_kind record = {
		.header.flags = (function->future.kind == FUTURE_UNTOLD ? FBT_KIND_POLLED : 0) |
				(function->is_python ? FBT_KIND_PYTHON : 0),
		.kind = kind,
		.source = function->usdt ? FBT_SOURCE_USDT : FBT_SOURCE_FUNCTION,
		.address = function->address,
		.builtin = function->builtin,
		.exits = (uint32_t)function->exit_offsets.count,
		.tgid = tgid,
		.arg_count = function->arg_count,
	};
	int err;

	check_class_by(live, function);
	check_future(live, function);
	for (uint32_t i = 0; i < function->arg_count; i++) {
		strings[2 + i] = function->args[i].name;
		record.header.flags |= arg_flags(&function->args[i], i);
	}
	err = record_send_strings(live->output, &record, sizeof(record), FBT_EVENT_KIND, strings,
				  2 + function->arg_count);
	return err ? err : send_tails(live, function, kind);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The part of the search that finds functions by a text that their code refers to. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "steps/engines.h"
#include "steps/patched.h"
#include "steps/search.h"
#include "steps/text_users.h"

/*
 * Resolves the functions of the image that refer to a text. Those that cannot be probed are left
 * out; reason is why, of the last one. 0 or -errno.
 */
static int resolve_users(struct search *search, const char *text, function_vec *functions,
			 char reason[RESOLVE_REASON_BYTES])
{
	const struct image *image = search->image;
	text_user_vec users = {0};
	uint64_t deadline_ns = search->options->deadline_ns;
	int err = text_users_find(&users, image, text, deadline_ns), failed;

	reason[0] = '\0';
	vec_for_each (user, &users) {
		const struct elf_symbol *symbol = elf_symbols_at(&image->symbols, user->address);
		struct step_function *function;

		if (!err && deadline_ns && clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			err = -ETIMEDOUT;
		if (err)
			break;
		failed =
			resolve_function_in(&function, search->tgid, image, search->mapping, symbol,
					    user->address, search->options->uretprobe, reason);
		if (!failed)
			err = vec_push(functions, function);
		else if (failed == -ENOMEM)
			err = failed;
		if (!failed && err)
			step_function_free(function);
	}
	vec_free(&users);
	return err;
}

/* Says in its name how the function was found. what: its name, or NULL for its address. */
static int name_by_text(struct step_function *function, const char *what, const char *text)
{
	int size = (int)strcspn(text, "\n");
	char *name;

	if (asprintf(&name, "%s" NAME_BY_TEXT "%.*s')", what ? what : function->name, size, text) <
	    0)
		return -ENOMEM;
	free(function->name);
	function->name = name;
	return 0;
}

/* Adds the function at index, which is no longer in functions then. */
static int add_user(struct search *search, const struct step_spec *spec, function_vec *functions,
		    size_t index, const struct engine_text *known)
{
	struct step_function *function = functions->items[index];
	int err;

	if (search_is_known(search, function->address))
		return 0;
	err = name_by_text(function, known ? known->name : NULL,
			   known ? known->text : spec->pattern);
	if (err)
		return err;
	functions->items[index] = NULL;
	return search_add_function(search, function, spec);
}

/* Measures the functions, if that is possible. Rates are 0 otherwise, and the result is false. */
static bool measure(const struct search *search, const function_vec *functions,
		    struct function_rate *rates)
{
	memset(rates, 0, functions->count * sizeof(*rates));
	return search->options->measure &&
	       !search->options->measure(search->tgid, functions->items, functions->count, rates);
}

/* Refuses a text that is in several functions, and names them with their rates. */
static int refuse_text(const struct search *search, const struct step_spec *spec,
		       const function_vec *functions)
{
	struct function_rate rates[TARGET_FUNCTIONS_MAX];
	bool measured = measure(search, functions, rates);
	char list[2048] = "";
	size_t used = 0;

	for (size_t i = 0; i < functions->count && used < sizeof(list); i++) {
		const struct step_function *function = functions->items[i];

		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s+0x%" PRIx64,
					 i ? ", " : "", function->path, function->address);
		if (measured && used < sizeof(list))
			used += (size_t)snprintf(
				list + used, sizeof(list) - used, " (%.1f calls/s, mean %.3f ms)",
				rates[i].calls_per_s, (double)rates[i].mean_ns / 1e6);
	}
	tell_err(search, "--step %s: the text is in %zu functions; name one of them: %s",
		 spec->text, functions->count, list);
	return -E2BIG;
}

static void drop_functions(function_vec *functions)
{
	vec_for_each (function, functions)
		step_function_free(*function);
	vec_free(functions);
}

/* Whether a text was found when fewer files were mapped. */
static bool has_text(const struct search *search, const struct step_spec *spec)
{
	vec_for_each (text, &search->seen->texts) {
		if (*text == spec)
			return true;
	}
	return false;
}

/* Takes the one function of this file that the text is in; other files may have one too. */
static int take_user(struct search *search, const struct step_spec *spec, function_vec *functions)
{
	struct text_match match = {spec, functions->items[0]};
	int err;

	if (has_text(search, spec)) {
		tell_warn(search,
			  "--step %s: a file that was mapped later has the text too, and is not "
			  "probed: "
			  "%s+0x%" PRIx64,
			  spec->text, match.function->path, match.function->address);
		return 0;
	}
	err = add_user(search, spec, functions, 0, NULL);
	return err || functions->items[0] ? err : vec_push(&search->texts, match);
}

/* Refuses a text that is in one function of each of several files. */
int search_check_texts(struct search *search)
{
	int err = 0;

	for (size_t i = 0; i < search->options->spec_count && !err; i++) {
		const struct step_spec *spec = &search->options->specs[i];
		function_vec users = {0};

		vec_for_each (match, &search->texts)
			if (match->spec == spec && !err)
				err = vec_push(&users, match->function);
		if (!err && users.count > 1)
			err = refuse_text(search, spec, &users);
		else if (!err && users.count)
			err = vec_push(&search->seen->texts, spec);
		vec_free(&users);
	}
	return err;
}

/* Without a path, a text is not looked for in the runtime, which has no step. */
int search_scan_text(struct search *search, const struct step_spec *spec)
{
	char reason[RESOLVE_REASON_BYTES];
	function_vec functions = {0};
	int err;

	if (!spec->path && engines_is_runtime(search->image->path))
		return 0;
	err = search_check_go(search);
	if (!err)
		err = resolve_users(search, spec->pattern, &functions, reason);
	if (err == -E2BIG || functions.count > TARGET_FUNCTIONS_MAX) {
		tell_err(search,
			 "--step %s: too many functions of %s refer to this text; use a "
			 "longer one",
			 spec->text, search->image->path);
		err = -E2BIG;
	} else if (err == -EBADMSG) {
		err = 0;
	} else if (!err && !functions.count && *reason) {
		err = search_explain_resolve(search, spec, "the function", -ENOTSUP, reason);
	} else if (!err && functions.count > 1) {
		err = refuse_text(search, spec, &functions);
	} else if (!err && functions.count) {
		err = take_user(search, spec, &functions);
	}
	drop_functions(&functions);
	return err;
}

/* A function that only reports an error is smaller. */
#define TEXT_STEP_BYTES_MIN 1024

static bool is_step(const struct function_rate *rate)
{
	return rate->calls && !rate->too_often && rate->is_busy && rate->mean_ns >= STEP_NS_MIN;
}

/*
 * Adds all functions that are large enough, since what is never called does no harm. Which of them
 * is the step is seen when the engine computes (user/targets/text_check.h).
 */
static int add_unverified(struct search *search, const struct engine_text *known,
			  function_vec *functions, bool measured)
{
	size_t before = search->functions->count;
	int err = 0;

	for (size_t i = 0; i < functions->count && !err; i++)
		if (functions->items[i]->size >= TEXT_STEP_BYTES_MIN || functions->count == 1)
			err = add_user(search, NULL, functions, i, known);
	for (size_t i = before; i < search->functions->count; i++)
		search->functions->items[i]->unverified = true;
	if (measured && search->functions->count > before)
		tell_info(search,
			  "process %u: no step has ended yet: its step is one of %zu function%s "
			  "with a "
			  "text of %s, which is checked when the engine computes",
			  search->tgid, search->functions->count - before,
			  search->functions->count - before == 1 ? "" : "s", known->name);
	return err;
}

/*
 * Adds, of the functions that refer to a text of a known engine, the one that is called as a step
 * is. If it calls others of them, it takes more time than those. If no call of any has ended, the
 * engine is idle, or in a long step.
 */
static int add_step_of(struct search *search, const struct engine_text *known,
		       function_vec *functions)
{
	struct function_rate rates[TARGET_FUNCTIONS_MAX];
	bool measured = measure(search, functions, rates);
	size_t best = functions->count;
	uint64_t calls = 0;

	for (size_t i = 0; i < functions->count; i++) {
		/* One that has not ended yet may be a step that takes long. */
		if (rates[i].mean_ns || rates[i].too_often)
			calls += rates[i].calls;
		if (is_step(&rates[i]) &&
		    (best == functions->count ||
		     rates[i].calls * rates[i].mean_ns > rates[best].calls * rates[best].mean_ns))
			best = i;
	}
	if (best < functions->count)
		return add_user(search, NULL, functions, best, known);
	return calls ? 0 : add_unverified(search, known, functions, measured);
}

/* Looks for the step function of a known engine in a stripped file. */
int search_scan_known_texts(struct search *search)
{
	const struct image *image = search->image;
	const struct engine_text *known;
	int err = 0;

	if (image->symbols.complete || search->functions->count > search->first)
		return 0;
	for (size_t i = 0; (known = engines_text(image->path, i)) && !err; i++) {
		char reason[RESOLVE_REASON_BYTES];
		function_vec functions = {0};

		err = resolve_users(search, known->text, &functions, reason);
		if (!err && functions.count && functions.count <= TARGET_FUNCTIONS_MAX)
			err = add_step_of(search, known, &functions);
		drop_functions(&functions);
		err = err == -ENOMEM || err == -ETIMEDOUT ? err : 0;
	}
	return err;
}

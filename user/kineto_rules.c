/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kineto_rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "id_set.h"
#include "json_expect.h"

/* Marks of a correlation, which is also the id of its arrow. */
#define MARK_HOST  1u
#define MARK_WORK  2u
#define MARK_BEGIN 4u
#define MARK_END   8u

struct kineto_rules {
	struct id_set *ids;
};

struct place {
	struct json_object *event;
	char *error;
	size_t size;
};

struct kineto_rules *kineto_rules__new(void)
{
	struct kineto_rules *rules = calloc(1, sizeof(*rules));

	if (!rules)
		return NULL;
	rules->ids = id_set__new();
	if (rules->ids)
		return rules;
	free(rules);
	return NULL;
}

void kineto_rules__free(struct kineto_rules *rules)
{
	if (!rules)
		return;
	id_set__free(rules->ids);
	free(rules);
}

__attribute__((format(printf, 2, 3))) static int refuse(const struct place *place,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(place->error, place->size, format, arguments);
	va_end(arguments);
	return -EBADMSG;
}

/* NULL: there is none. */
static struct json_object *member(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return value;
}

static int need_text(const struct place *place, const char *name, const char **text)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(place->event, name, &value))
		return refuse(place, "missing field `%s`", name);
	if (!json_expect_string(value, place->error, place->size))
		return -EBADMSG;
	*text = json_object_get_string(value);
	return 0;
}

static int need_time(const struct place *place, const char *name)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(place->event, name, &value))
		return refuse(place, "missing field `%s`", name);
	if (!json_object_is_type(value, json_type_double) &&
	    !json_object_is_type(value, json_type_int)) {
		json_refuse_type(value, "microseconds", place->error, place->size);
		return -EBADMSG;
	}
	if (json_object_get_double(value) < 0)
		return refuse(place, "%s is negative", name);
	return 0;
}

/* Of the event or of its args; false: absent, or no number from least up. */
static bool take_number(struct json_object *object, const char *name, int64_t least, uint64_t *id)
{
	struct json_object *value = member(object, name);

	if (!value || !json_object_is_type(value, json_type_int) ||
	    json_object_get_int64(value) < least)
		return false;
	*id = json_object_get_uint64(value);
	return true;
}

static int need_lane(const struct place *place)
{
	static const char *const names[] = {"pid", "tid"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct json_object *value = member(place->event, names[i]);

		if (!value)
			return refuse(place, "missing field `%s`", names[i]);
		if (!json_object_is_type(value, json_type_int)) {
			json_refuse_type(value, "a number", place->error, place->size);
			return -EBADMSG;
		}
	}
	return 0;
}

static int need_args(const struct place *place, struct json_object **args)
{
	*args = member(place->event, "args");
	if (!*args)
		return refuse(place, "missing field `args`");
	return json_expect_map(*args, place->error, place->size) ? 0 : -EBADMSG;
}

static bool is_one_of(const char *text, const char *const *names)
{
	for (; *names; names++) {
		if (!strcmp(text, *names))
			return true;
	}
	return false;
}

/* cat: kernel, gpu_memcpy, gpu_memset, or kernel_uncorrelated. */
static int check_work(struct kineto_rules *rules, const struct place *place, const char *cat,
		      struct json_object *args)
{
	uint64_t stream, correlation;

	if (!take_number(args, "stream", 0, &stream))
		return refuse(place, "%s without args.stream", cat);
	if (!strcmp(cat, "kernel_uncorrelated")) {
		if (member(args, "correlation"))
			return refuse(place, "%s with args.correlation", cat);
		return 0;
	}
	if (!take_number(args, "correlation", 1, &correlation))
		return refuse(place, "%s without args.correlation", cat);
	return id_set__mark(rules->ids, correlation, MARK_WORK);
}

static int check_host(struct kineto_rules *rules, const struct place *place, const char *name,
		      struct json_object *args)
{
	uint64_t correlation;

	if (member(args, "stream"))
		return refuse(place, "args.stream on %s, which is no work of a device", name);
	if (!member(args, "correlation"))
		return 0;
	if (!take_number(args, "correlation", 1, &correlation))
		return refuse(place, "args.correlation of %s is no number above 0", name);
	if (id_set__marks(rules->ids, correlation) & MARK_HOST)
		return refuse(place, "correlation %llu is on two host events",
			      (unsigned long long)correlation);
	return id_set__mark(rules->ids, correlation, MARK_HOST);
}

static int check_slice(struct kineto_rules *rules, const struct place *place, const char *name)
{
	static const char *const work[] = {"kernel", "gpu_memcpy", "gpu_memset",
					   "kernel_uncorrelated", NULL};
	struct json_object *args = NULL;
	const char *cat = "";
	int err = need_text(place, "cat", &cat);

	if (!err)
		err = need_time(place, "dur");
	if (!err)
		err = need_args(place, &args);
	if (err)
		return err;
	return is_one_of(cat, work) ? check_work(rules, place, cat, args)
				    : check_host(rules, place, name, args);
}

static int check_arrow(struct kineto_rules *rules, const struct place *place, char phase)
{
	const char *cat = "";
	uint64_t id;
	int err = need_text(place, "cat", &cat);

	if (err)
		return err;
	if (!take_number(place->event, "id", 1, &id))
		return refuse(place, "an arrow without an id");
	return id_set__mark(rules->ids, id, phase == 's' ? MARK_BEGIN : MARK_END);
}

int kineto_rules__check(struct kineto_rules *rules, struct json_object *event, char *error,
			size_t size)
{
	const struct place place = {.event = event, .error = error, .size = size};
	struct json_object *args;
	const char *name = "", *phase = "";
	int err;

	error[0] = '\0';
	err = need_text(&place, "name", &name);
	if (!err)
		err = need_text(&place, "ph", &phase);
	if (!err && (strlen(phase) != 1 || !strchr("XMsfi", *phase)))
		err = refuse(&place, "unknown phase \"%s\"", phase);
	if (!err)
		err = need_time(&place, "ts");
	if (!err)
		err = need_lane(&place);
	if (err)
		return err;
	switch (*phase) {
	case 'X':
		return check_slice(rules, &place, name);
	case 'M':
		return need_args(&place, &args);
	case 's':
	case 'f':
		return check_arrow(rules, &place, *phase);
	}
	return 0;
}

int kineto_rules__finish(const struct kineto_rules *rules, char *error, size_t size)
{
	const struct place place = {.error = error, .size = size};
	uint64_t id;

	error[0] = '\0';
	if (id_set__find(rules->ids, MARK_WORK, MARK_HOST, &id))
		return refuse(&place, "no host event has correlation %llu, which work has",
			      (unsigned long long)id);
	if (id_set__find(rules->ids, MARK_END, MARK_BEGIN, &id))
		return refuse(&place, "arrow %llu ends and does not begin", (unsigned long long)id);
	if (id_set__find(rules->ids, MARK_BEGIN, MARK_END, &id))
		return refuse(&place, "arrow %llu begins and does not end", (unsigned long long)id);
	return 0;
}

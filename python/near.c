/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "near.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/similar.h"

#define SHOWN	       2
#define HELD_NS	       1000000
#define KEYS_PER_CLOCK 16

struct near {
	char name[SIMILAR_MAX + 1];
	size_t distance;
};

/* Keeps those that are most like it, the most the first. */
static void keep(struct near near[SHOWN], const char *name, size_t distance)
{
	size_t place = SHOWN;

	while (place && distance < near[place - 1].distance)
		place--;
	if (place == SHOWN)
		return;
	memmove(&near[place + 1], &near[place], (SHOWN - 1 - place) * sizeof(*near));
	near[place].distance = distance;
	snprintf(near[place].name, sizeof(near[place].name), "%s", name);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* A name that is mistyped at both ends is not found: comparing takes microseconds for each name. */
static bool may_be_like(const char *name, const char *wanted)
{
	return name[0] == wanted[0] || name[strlen(name) - 1] == wanted[strlen(wanted) - 1];
}

static void find(const struct python *python, py_object *dict, const char *wanted,
		 struct near near[SHOWN])
{
	size_t length = strlen(wanted), most = length / 3, its;
	const char *name;
	py_object *key, *value;
	long long end_ns = now_ns() + HELD_NS;
	unsigned int seen = 0;
	ssize_t place = 0;

	while (python->PyDict_Next(dict, &place, &key, &value)) {
		if (!(++seen % KEYS_PER_CLOCK) && now_ns() > end_ns)
			return;
		name = python->PyUnicode_AsUTF8(key);
		its = name ? strlen(name) : 0;

		/* Words of other lengths need no closer look; a key may be of any type. */
		if (!name)
			python->PyErr_Clear();
		if (!its || its > SIMILAR_MAX || its > length + most || its + most < length ||
		    !may_be_like(name, wanted))
			continue;
		keep(near, name, similar_distance(wanted, name));
	}
}

void python_near(const struct python *python, py_object *dict, const char *wanted, char *text,
		 size_t size)
{
	size_t none = strlen(wanted) / 3 + 1;
	struct near near[SHOWN] = {{.distance = none}, {.distance = none}};

	if (dict)
		find(python, dict, wanted, near);
	if (*near[1].name)
		snprintf(text, size, "%s (did you mean %s or %s?)", wanted, near[0].name,
			 near[1].name);
	else if (*near[0].name)
		snprintf(text, size, "%s (did you mean %s?)", wanted, near[0].name);
	else
		snprintf(text, size, "%s", wanted);
}

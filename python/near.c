/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "near.h"

#include <stdio.h>
#include <string.h>
#include "base/similar.h"

#define SHOWN	     2
#define COMPARED_MAX 2000

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

static void find(const struct python *python, py_object *dict, const char *wanted,
		 struct near near[SHOWN])
{
	size_t length = strlen(wanted), most = length / 3;
	py_object *key, *value;
	ssize_t place = 0;
	int compared = 0;

	while (compared < COMPARED_MAX && python->PyDict_Next(dict, &place, &key, &value)) {
		const char *name = python->PyUnicode_AsUTF8(key);
		size_t its = name ? strlen(name) : 0;

		/* Words of other lengths need no closer look; a key may be of any type. */
		if (!name)
			python->PyErr_Clear();
		if (!its || its > SIMILAR_MAX || its > length + most || its + most < length)
			continue;
		compared++;
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

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/outlook.h"

#include <stdio.h>
#include <string.h>

#include "proc/maps.h"
#include "proc/process.h"
#include "python/engines.h"

/* A name of a package, at most this long. */
#define PACKAGE_MAX 64

struct text {
	char *to;
	size_t used;
};

static void add(struct text *text, const char *separator, const char *words, size_t length)
{
	if (text->used < PYTHON_OUTLOOK_MAX)
		text->used +=
			(size_t)snprintf(text->to + text->used, PYTHON_OUTLOOK_MAX - text->used,
					 "%s%.*s", separator, (int)length, words);
}

/* The first package of "py:vllm.v1.engine.core:EngineCore.step(…)": "vllm". */
static void package_of(const char *row, char package[PACKAGE_MAX])
{
	const char *name = row + strlen("py:");

	snprintf(package, PACKAGE_MAX, "%.*s", (int)strcspn(name, ".:"), name);
}

static bool is_of(const char *row, const char *package)
{
	char own[PACKAGE_MAX];

	package_of(row, own);
	return !strcmp(own, package);
}

static bool is_mapped(const struct mapping *mapping, const void *folder)
{
	return mapping->path && strstr(mapping->path, folder);
}

/* A word of the command line is the package, or has it as a folder or module. */
static bool is_named(uint32_t tgid, const char *package)
{
	struct process_strings arguments = {0};
	size_t length = strlen(package);
	bool found = false;

	if (process_strings_read(&arguments, tgid, "cmdline"))
		return false;
	for (size_t i = 0; i < arguments.count; i++) {
		const char *word = arguments.items[i], *at;

		while (!found && (at = strstr(word, package))) {
			found = (at == arguments.items[i] || strchr("/.:", at[-1])) &&
				strchr("/.: ", at[length]);
			word = at + 1;
		}
	}
	process_strings_clear(&arguments);
	return found;
}

static bool is_likely(uint32_t tgid, const char *package)
{
	char folder[PACKAGE_MAX + 2];

	snprintf(folder, sizeof(folder), "/%s/", package);
	return maps_search(processes_live_thread(tgid), folder, is_mapped, folder) ||
	       is_named(tgid, package);
}

/* "GPUModelRunner.execute_model" has no "ModelRunner.execute_model". */
static bool has_name(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = text; (at = strstr(at, name)); at++) {
		if (at > text && at[-1] == ' ' && strchr(",", at[length]))
			return true;
	}
	return false;
}

/* "vllm: EngineCore.step, GPUModelRunner.execute_model"; a name that several rows have comes once.
 */
static void add_rows(struct text *text, const char *package)
{
	const char *row;

	add(text, "", package, strlen(package));
	for (size_t i = 0; (row = python_engines_row(i)); i++) {
		const char *name = strchr(row + strlen("py:"), ':') + 1;
		size_t length = strcspn(name, "(");
		char once[128];

		snprintf(once, sizeof(once), "%.*s", (int)length, name);
		if (is_of(row, package) && !has_name(text->to, once))
			add(text, strchr(text->to, ':') ? ", " : ": ", name, length);
	}
}

static void add_packages(struct text *text)
{
	char package[PACKAGE_MAX];
	const char *row;

	for (size_t i = 0; (row = python_engines_row(i)); i++) {
		package_of(row, package);
		if (!strstr(text->to, package))
			add(text, *text->to ? ", " : "the steps of ", package, strlen(package));
	}
}

static const char *find_package(uint32_t tgid, char package[PACKAGE_MAX])
{
	char before[PACKAGE_MAX] = "";
	const char *row;

	for (size_t i = 0; (row = python_engines_row(i)); i++) {
		package_of(row, package);
		if (strcmp(package, before) != 0 && is_likely(tgid, package))
			return package;
		memcpy(before, package, sizeof(before));
	}
	return NULL;
}

void python_outlook(uint32_t tgid, const struct step_spec *specs, size_t count,
		    char text[PYTHON_OUTLOOK_MAX])
{
	struct text written = {.to = text};
	char package[PACKAGE_MAX];

	*text = '\0';
	for (size_t i = 0; i < count; i++) {
		if (specs[i].form == STEP_SPEC_PYTHON)
			add(&written, *text ? ", " : "", specs[i].text, strlen(specs[i].text));
	}
	if (count)
		return;
	if (find_package(tgid, package))
		add_rows(&written, package);
	else
		add_packages(&written);
}

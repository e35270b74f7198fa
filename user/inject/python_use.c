/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/python_use.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fbt_python.h"
#include "inject/place.h"
#include "proc/process.h"

#define PAGE "/memfd:" FBT_PYTHON_MEMFD

/* Free-threaded builds of newer versions were not tried. */
#define THREADED_MINOR_MAX 13

unsigned int python_use_minor(const char *name)
{
	const char *version;

	if (!strncmp(name, "lib", 3))
		name += 3;
	if (strncmp(name, "python3.", 8) != 0)
		return 0;
	version = name + 8;
	/*
	 * No other mapped file has such a name: extension modules are "….cpython-311-….so", and
	 * "python3.11-config" is a script.
	 */
	return (unsigned int)strtoul(version, NULL, 10);
}

bool python_use_is_threaded(const char *name)
{
	const char *at = strstr(name, "python3.");

	if (!at)
		return false;
	at += strlen("python3.");
	return at[strspn(at, "0123456789")] == 't';
}

static bool is_known(unsigned int minor, bool threaded)
{
	return minor >= PYTHON_MINOR_MIN && minor <= PYTHON_MINOR_MAX &&
	       !(threaded && minor > THREADED_MINOR_MAX);
}

/* For maps_search. */
struct version {
	unsigned int minor;
	bool threaded;
};

static bool take_version(const struct mapping *mapping, const void *ctx)
{
	struct version *version = *(struct version *const *)ctx;

	if (!mapping->path || !mapping->executable)
		return false;
	version->minor = python_use_minor(mapping_name(mapping));
	version->threaded = python_use_is_threaded(mapping_name(mapping));
	return version->minor;
}

bool python_use_is_supported(uint32_t tgid, unsigned int *minor)
{
	struct version version = {0}, *ctx = &version;

	maps_search(processes_live_thread(tgid), "python3.", take_version, &ctx);
	*minor = version.minor;
	return is_known(version.minor, version.threaded);
}

static bool is_interpreter(const struct mapping *mapping, const void *nothing)
{
	return mapping->path && mapping->executable && python_use_minor(mapping_name(mapping));
}

bool python_use_is_there(uint32_t tgid)
{
#ifndef __x86_64__
	/* There is no library for it. */
	return false;
#endif
	return maps_search(processes_live_thread(tgid), "python3.", is_interpreter, NULL);
}

/* Whether a mapped file exports the functions that the library needs. A frozen program may not. */
static bool exports_api(uint32_t tgid, const struct mapping *mapping)
{
	static const char *const names[] = {"PyGILState_Ensure", "Py_IsInitialized",
					    "PyImport_GetModuleDict", "_PyType_Lookup",
					    "PyFunction_New"};
	uint64_t addresses[sizeof(names) / sizeof(names[0])] = {0};
	struct elf_file *file = NULL;
	int fd = mapping_open(tgid, mapping);
	bool all = fd >= 0 && !elf_file__open(&file, fd) &&
		   !inject_exports_find(file, names, sizeof(names) / sizeof(names[0]), addresses);

	for (size_t i = 0; all && i < sizeof(names) / sizeof(names[0]); i++)
		all = addresses[i];
	elf_file__free(file);
	if (fd >= 0)
		close(fd);
	return all;
}

struct interpreter {
	const struct mapping *file; /* that exports the API: the program, or its library; or NULL */
	const char *name;	    /* of that file, else of the first one */
	unsigned int count;	    /* of the Python versions that are mapped */
};

static struct interpreter find_interpreter(uint32_t tgid, const mapping_vec *maps)
{
	struct interpreter found = {0};
	unsigned int minor = 0;

	vec_for_each (mapping, maps) {
		unsigned int own;

		if (!mapping->path || !mapping->executable)
			continue;
		own = python_use_minor(mapping_name(mapping));
		if (!own)
			continue;
		found.count += own != minor;
		minor = own;
		if (!found.name)
			found.name = mapping_name(mapping);
		if (!found.file && exports_api(tgid, mapping)) {
			found.file = mapping;
			found.name = mapping_name(mapping);
		}
	}
	return found;
}

static bool has_page(const mapping_vec *maps)
{
	vec_for_each (mapping, maps) {
		if (mapping->path && !strcmp(mapping->path, PAGE))
			return true;
	}
	return false;
}

void inject_check_python(struct inject_verdict *verdict, struct proc_ref process,
			 const mapping_vec *maps)
{
	struct interpreter interpreter;
	bool threaded;
	unsigned int minor;

	verdict->present = has_page(maps);
	if (verdict->present) {
		inject_fine(verdict, "library", "is already loaded (" PAGE ")");
		return;
	}
	interpreter = find_interpreter(process.tgid, maps);
	if (!interpreter.count) {
		inject_refuse(verdict, "Python", "no python3 is mapped: it is no CPython process");
		return;
	}
	minor = python_use_minor(interpreter.name);
	threaded = python_use_is_threaded(interpreter.name);
	if (interpreter.count > 1)
		inject_refuse(verdict, "Python", "two interpreters are mapped: " INJECT_INSTEAD);
	else if (!is_known(minor, threaded))
		inject_refuse(verdict, "Python",
			      "3.%u%s, and 3.%d to 3.%d are supported (free-threaded: to 3.%d)",
			      minor, threaded ? " free-threaded" : "", PYTHON_MINOR_MIN,
			      PYTHON_MINOR_MAX, THREADED_MINOR_MAX);
	else if (!interpreter.file)
		inject_refuse(verdict, "Python",
			      "the interpreter does not export the functions of CPython's C API (a "
			      "frozen program?)");
	else
		inject_fine(verdict, "Python", "3.%u, %s", minor, interpreter.file->path);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/python_use.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fbt_python.h"
#include "inject/place.h"
#include "proc/process.h"

#define PAGE "/memfd:" FBT_PYTHON_MEMFD

#define MINOR_MIN 9
#define MINOR_MAX 14

unsigned int python_use_minor(const char *name)
{
	const char *version;

	if (!strncmp(name, "lib", 3))
		name += 3;
	if (strncmp(name, "python3.", 8) != 0)
		return 0;
	version = name + 8;
	/* Extension modules are "….cpython-311-….so"; "python3.11-config" is a script. */
	return (unsigned int)strtoul(version, NULL, 10);
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

/* Whether a mapped file exports what the library needs: a frozen program may not. */
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

/*
 * The file that has the interpreter in it: the program, or the library that it is linked with.
 * *count: of different versions.
 */
static const struct mapping *find_interpreter(uint32_t tgid, const mapping_vec *maps,
					      unsigned int *count)
{
	const struct mapping *found = NULL;
	unsigned int minor = 0;

	*count = 0;
	vec_for_each (mapping, maps) {
		unsigned int own;

		if (!mapping->path || !mapping->executable)
			continue;
		own = python_use_minor(mapping_name(mapping));
		if (!own)
			continue;
		*count += own != minor;
		minor = own;
		if (!found && exports_api(tgid, mapping))
			found = mapping;
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
	unsigned int count, minor;
	const struct mapping *interpreter;

	verdict->present = has_page(maps);
	if (verdict->present) {
		inject_fine(verdict, "library", "is already loaded (" PAGE ")");
		return;
	}
	interpreter = find_interpreter(process.tgid, maps, &count);
	if (!count) {
		inject_refuse(verdict, "Python", "no python3 is mapped: it is no CPython process");
	} else if (count > 1) {
		inject_refuse(verdict, "Python", "two interpreters are mapped: " INJECT_INSTEAD);
	} else if (!interpreter) {
		inject_refuse(verdict, "Python",
			      "the interpreter does not export the functions of CPython's C API (a "
			      "frozen program?)");
	} else {
		minor = python_use_minor(mapping_name(interpreter));
		if (minor < MINOR_MIN || minor > MINOR_MAX)
			inject_refuse(verdict, "Python", "3.%u, and 3.%d to 3.%d are supported",
				      minor, MINOR_MIN, MINOR_MAX);
		else
			inject_fine(verdict, "Python", "3.%u, %s", minor, interpreter->path);
	}
}

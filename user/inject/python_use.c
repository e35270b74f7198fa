/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/python_use.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fbt_python.h"
#include "elf/symbols.h"
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

/* "python3", as a copy of the program is called, and no library or extension module. */
static bool may_be_interpreter(const char *name)
{
	return !strncmp(name, "python", 6) && !strchr(name, '.');
}

/* Before 3.11 the version is not exported, but each has functions that the one before had not. */
static struct python_version version_by_functions(struct elf_file *file)
{
	static const char *const names[] = {"PyFrame_GetBack", "PyModule_AddObjectRef",
					    "_Py_MergeZeroLocalRefcount"};
	uint64_t addresses[3] = {0};

	inject_exports_find(file, names, 3, addresses);
	return (struct python_version){
		.minor = addresses[1]	? 10
			 : addresses[0] ? 9
					: 8,
		.threaded = addresses[2],
	};
}

struct python_version python_use_exports(struct elf_file *file)
{
	struct python_version version = {0};
	struct elf_symbol symbol;
	uint32_t number;

	if (elf_object_find(file, "_PyRuntime", &symbol))
		return version;
	version = version_by_functions(file);
	/* PY_VERSION_HEX: 0x030b02f0. */
	if (!elf_object_find(file, "Py_Version", &symbol) &&
	    !elf_file__read(file, symbol.address, &number, sizeof(number)) && number >> 24 == 3)
		version.minor = number >> 16 & 0xff;
	return version;
}

static struct python_version version_by_exports(uint32_t tgid, const struct mapping *mapping)
{
	struct python_version version = {0};
	struct elf_file *file = NULL;
	int fd = mapping_open(tgid, mapping);

	if (fd >= 0 && !elf_file__open(&file, fd))
		version = python_use_exports(file);
	elf_file__free(file);
	if (fd >= 0)
		close(fd);
	return version;
}

struct python_version python_use_version(uint32_t tgid, const struct mapping *mapping)
{
	struct python_version version = {0};
	const char *name;

	if (!mapping->path || !mapping->executable)
		return version;
	name = mapping_name(mapping);
	version.minor = python_use_minor(name);
	version.threaded = python_use_is_threaded(name);
	if (!version.minor && may_be_interpreter(name))
		return version_by_exports(tgid, mapping);
	return version;
}

static bool is_known(unsigned int minor, bool threaded)
{
	return minor >= PYTHON_MINOR_MIN && minor <= PYTHON_MINOR_MAX &&
	       !(threaded && minor > THREADED_MINOR_MAX);
}

/* For maps_search. */
struct look {
	uint32_t tgid;
	struct python_version version;
};

static bool take_version(const struct mapping *mapping, const void *ctx)
{
	struct look *look = *(struct look *const *)ctx;

	look->version = python_use_version(look->tgid, mapping);
	return look->version.minor;
}

bool python_use_is_supported(uint32_t tgid, unsigned int *minor)
{
	struct look look = {.tgid = processes_live_thread(tgid)}, *ctx = &look;

	maps_search(look.tgid, "python", take_version, &ctx);
	*minor = look.version.minor;
	return is_known(look.version.minor, look.version.threaded);
}

bool python_use_is_there(uint32_t tgid)
{
	struct look look = {.tgid = processes_live_thread(tgid)}, *ctx = &look;

#ifndef __x86_64__
	/* There is no library for it. */
	return false;
#endif
	return maps_search(look.tgid, "python", take_version, &ctx);
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
	struct python_version version; /* of that file, else of the first one */
	unsigned int count;	       /* of the Python versions that are mapped */
};

static struct interpreter find_interpreter(uint32_t tgid, const mapping_vec *maps)
{
	struct interpreter found = {0};
	unsigned int minor = 0;

	vec_for_each (mapping, maps) {
		struct python_version own = python_use_version(tgid, mapping);

		if (!own.minor)
			continue;
		found.count += own.minor != minor;
		minor = own.minor;
		if (!found.version.minor)
			found.version = own;
		if (!found.file && exports_api(tgid, mapping)) {
			found.file = mapping;
			found.version = own;
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
	minor = interpreter.version.minor;
	threaded = interpreter.version.threaded;
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

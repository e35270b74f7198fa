/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "torch_calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* As large as traces of a few hundred steps; a container's /dev/shm often has 64 MB. */
#define ROOM_BYTES (2ull << 30)

void torch_calls_begin(const struct python *python, struct torch_pending *pending)
{
	python->PyErr_Fetch(&pending->type, &pending->value, &pending->traceback);
}

void torch_calls_end(const struct python *python, const struct torch_pending *pending)
{
	python->PyErr_Clear();
	python->PyErr_Restore(pending->type, pending->value, pending->traceback);
}

/* What a loaded module has under a name, borrowed; or NULL. Runs no __getattr__ of a module. */
static py_object *global(const struct python *python, const char *module, const char *name)
{
	py_object *modules = python->PyImport_GetModuleDict();
	py_object *object = modules ? python->PyDict_GetItemString(modules, module) : NULL;
	py_object *dict = object ? python->PyModule_GetDict(object) : NULL;
	py_object *value = dict ? python->PyDict_GetItemString(dict, name) : NULL;

	python->PyErr_Clear();
	return value;
}

static void drop(const struct python *python, py_object *object)
{
	if (object)
		python->Py_DecRef(object);
}

/*
 * Calls a function; arguments, a tuple, is released, and so is named unless it is NULL. A new
 * reference; or NULL, with an exception if there was something to call.
 */
static py_object *call(const struct python *python, py_object *function, py_object *arguments,
		       py_object *named)
{
	py_object *result =
		function && arguments ? python->PyObject_Call(function, arguments, named) : NULL;

	drop(python, arguments);
	drop(python, named);
	return result;
}

/* A function without arguments that has no result. false: it has failed. */
static bool call_plain(const struct python *python, const char *module, const char *name)
{
	py_object *result =
		call(python, global(python, module, name), python->PyTuple_New(0), NULL);

	drop(python, result);
	return result;
}

/* As call_plain, and clears an exception. false also where there is no such function. */
static bool is_true(const struct python *python, const char *module, const char *name)
{
	py_object *result =
		call(python, global(python, module, name), python->PyTuple_New(0), NULL);
	bool value = result && python->PyObject_IsTrue(result) > 0;

	drop(python, result);
	python->PyErr_Clear();
	return value;
}

/* Takes the exception as text, unless there is an earlier one. */
static void take_error(const struct python *python, char *text, size_t size, const char *otherwise)
{
	py_object *type, *value, *traceback, *string;
	const char *utf8 = NULL;

	python->PyErr_Fetch(&type, &value, &traceback);
	string = value ? python->PyObject_Str(value) : NULL;
	if (string)
		utf8 = python->PyUnicode_AsUTF8(string);
	if (!*text)
		snprintf(text, size, "%s", utf8 && *utf8 ? utf8 : otherwise);
	drop(python, string);
	drop(python, type);
	drop(python, value);
	drop(python, traceback);
	python->PyErr_Clear();
}

/* The program's own, on this thread or any other. */
static bool is_taken(const struct python *python)
{
	py_object *flag = global(python, "torch.autograd.profiler", "_is_profiler_enabled");

	return is_true(python, "torch.autograd", "_profiler_enabled") ||
	       (flag && python->PyObject_IsTrue(flag) > 0);
}

/*
 * An observer opens its file when it is added, and truncates it. If the program has added one
 * before, PyTorch says that it has added ours, but does not.
 */
static enum fbt_torch_state add_observer(const struct python *python, int fd, char *text,
					 size_t size)
{
	char path[64];
	struct stat status;
	py_object *added;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, " ", 1) != 1) {
		snprintf(text, size, "no memory for its file");
		return FBT_TORCH_FAILED;
	}
	added = call(python, global(python, "torch._C._profiler", "_add_execution_trace_observer"),
		     python->Py_BuildValue("(s)", path), NULL);
	if (!added) {
		take_error(python, text, size, "no execution trace observer");
		return FBT_TORCH_FAILED;
	}
	drop(python, added);
	if (!fstat(fd, &status) && !status.st_size)
		return FBT_TORCH_ON;
	return FBT_TORCH_TAKEN;
}

/* A new reference to a set with CPU and, if it is wanted and used, CUDA. */
static py_object *make_activities(const struct python *python, uint32_t flags)
{
	py_object *kinds = global(python, "torch.autograd", "ProfilerActivity");
	py_object *set = kinds ? python->PySet_New(NULL) : NULL;
	static const char *const names[] = {"CPU", "CUDA"};
	bool cuda = (flags & FBT_TORCH_CUDA) && is_true(python, "torch.cuda", "is_initialized");

	for (size_t i = 0; set && i < (cuda ? 2u : 1u); i++) {
		py_object *kind = python_attribute(python, kinds, names[i]);

		if (kind)
			python->PySet_Add(set, kind);
		drop(python, kind);
	}
	return set;
}

/* A new reference to ProfilerConfig. */
static py_object *make_config(const struct python *python, uint32_t flags)
{
	py_object *make = global(python, "torch._C._profiler", "_ExperimentalConfig");
	py_object *kinds = global(python, "torch.autograd", "ProfilerState");
	py_object *kineto = kinds ? python_attribute(python, kinds, "KINETO") : NULL;
	/*
	 * Without profile_all_threads: up to PyTorch 2.13 its end frees what other threads write
	 * just then, and a newer one waits for them, with the GIL held.
	 */
	py_object *more = call(python, make, python->PyTuple_New(0), NULL);

	if (!more || !kineto) {
		drop(python, more);
		drop(python, kineto);
		return NULL;
	}
	/* state, shapes, memory, stack, flops, modules, experimental */
	return call(python, global(python, "torch.autograd", "ProfilerConfig"),
		    python->Py_BuildValue(
			    "(NNNNNNN)", kineto, python->PyBool_FromLong(flags & FBT_TORCH_SHAPES),
			    python->PyBool_FromLong(0),
			    python->PyBool_FromLong(flags & FBT_TORCH_STACK),
			    python->PyBool_FromLong(0), python->PyBool_FromLong(0), more),
		    NULL);
}

static bool enable(const struct python *python, uint32_t flags)
{
	static const char *const names[] = {"_prepare_profiler", "_enable_profiler"};
	py_object *config = make_config(python, flags);
	py_object *activities = make_activities(python, flags);
	bool good = config && activities;

	for (size_t i = 0; good && i < 2; i++) {
		py_object *result = call(python, global(python, "torch.autograd", names[i]),
					 python->Py_BuildValue("(OO)", config, activities), NULL);

		good = result;
		drop(python, result);
	}
	drop(python, config);
	drop(python, activities);
	return good;
}

static void add_metadata(const struct python *python, const char *key)
{
	py_object *result = call(python, global(python, "torch.autograd", "_add_metadata_json"),
				 python->Py_BuildValue("(ss)", key, "1"), NULL);

	drop(python, result);
	python->PyErr_Clear();
}

enum fbt_torch_state torch_calls_start(const struct python *python, uint32_t flags,
				       int execution_fd, char *text, size_t size)
{
	enum fbt_torch_state state;

	if (!global(python, "torch.autograd", "_enable_profiler") ||
	    !global(python, "torch._C._profiler", "_add_execution_trace_observer"))
		return FBT_TORCH_ABSENT;
	if (is_taken(python))
		return FBT_TORCH_TAKEN;
	state = add_observer(python, execution_fd, text, size);
	if (state != FBT_TORCH_ON)
		return state;
	if (!enable(python, flags)) {
		take_error(python, text, size, "its profiler could not be started");
		call_plain(python, "torch._C._profiler", "_remove_execution_trace_observer");
		return FBT_TORCH_FAILED;
	}
	if (flags & FBT_TORCH_SHAPES)
		add_metadata(python, "record_shapes");
	if (flags & FBT_TORCH_STACK)
		add_metadata(python, "with_stack");
	if (call_plain(python, "torch._C._profiler", "_enable_execution_trace_observer"))
		return FBT_TORCH_ON;
	take_error(python, text, size, "its execution trace could not be started");
	torch_calls_stop(python, 0, -1, text, size);
	return FBT_TORCH_FAILED;
}

static bool copy_file(const char *path, int to)
{
	int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t got = 0;
	bool any = false;

	if (from < 0)
		return false;
	while ((got = sendfile(to, from, NULL, 16u << 20)) > 0)
		any = true;
	close(from);
	return any && !got;
}

static bool has_room(const char *folder)
{
	struct statvfs room;

	return !statvfs(folder, &room) && (uint64_t)room.f_bavail * room.f_frsize >= ROOM_BYTES;
}

/*
 * Kineto writes to NAME.tmp and renames that, so it needs a folder: one of our own, in memory where
 * there is room, which is gone right after.
 */
static bool save(const struct python *python, py_object *result, int fd, char *text, size_t size)
{
	char folder[] = "/dev/shm/ferrum-XXXXXX", disk[] = "/tmp/ferrum-XXXXXX";
	char *at = mkdtemp(has_room("/dev/shm") ? folder : disk);
	char path[64], partial[80];
	py_object *saved;
	bool good;

	if (!at) {
		snprintf(text, size, "no folder for its trace in /dev/shm or /tmp");
		return false;
	}
	snprintf(path, sizeof(path), "%s/kineto.json", at);
	snprintf(partial, sizeof(partial), "%s.tmp", path);
	saved = python->PyObject_CallMethod(result, "save", "s", path);
	if (!saved)
		take_error(python, text, size, "its trace could not be saved");
	drop(python, saved);
	good = saved && copy_file(path, fd);
	if (!good && !*text)
		snprintf(text, size, "it wrote no trace");
	unlink(path);
	unlink(partial);
	rmdir(at);
	return good;
}

/*
 * Whether a result has a trace: one of a profiler that somebody else has stopped meanwhile has
 * none, and saving it would crash.
 */
static bool has_trace(const struct python *python, py_object *result)
{
	py_object *start = python->PyObject_CallMethod(result, "trace_start_ns", NULL);
	bool has = start && python->PyObject_IsTrue(start) > 0;

	drop(python, start);
	python->PyErr_Clear();
	return has;
}

void torch_calls_disable_observer(const struct python *python)
{
	call_plain(python, "torch._C._profiler", "_disable_execution_trace_observer");
	python->PyErr_Clear();
}

bool torch_calls_stop(const struct python *python, uint32_t flags, int kineto_fd, char *text,
		      size_t size)
{
	char why[96] = "";
	py_object *result;
	bool good;

	if (flags & FBT_TORCH_SYNC)
		torch_calls_sync(python);
	good = call_plain(python, "torch._C._profiler", "_remove_execution_trace_observer");
	if (!good)
		take_error(python, why, sizeof(why), "its execution trace could not be ended");
	result = call(python, global(python, "torch.autograd", "_disable_profiler"),
		      python->PyTuple_New(0), NULL);
	if (!result) {
		take_error(python, why, sizeof(why), "its profiler could not be stopped");
		good = false;
	} else if (kineto_fd >= 0 && !has_trace(python, result)) {
		snprintf(why, sizeof(why), "something else has stopped its profiler");
		good = false;
	} else if (kineto_fd >= 0) {
		good &= save(python, result, kineto_fd, why, sizeof(why));
	}
	drop(python, result);
	python->PyErr_Clear();
	if (!good)
		snprintf(text, size, "%s", why);
	return good;
}

void torch_calls_mute(const struct python *python)
{
	py_object *result = NULL;

	if (is_true(python, "torch.autograd", "_profiler_enabled"))
		result = call(python, global(python, "torch.autograd", "_enable_record_function"),
			      python->Py_BuildValue("(N)", python->PyBool_FromLong(0)), NULL);
	drop(python, result);
	python->PyErr_Clear();
}

void torch_calls_sync(const struct python *python)
{
	if (is_true(python, "torch.cuda", "is_initialized"))
		call_plain(python, "torch._C", "_cuda_synchronize");
	python->PyErr_Clear();
}

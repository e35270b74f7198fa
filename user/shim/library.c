/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "shim/library.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define SHIM_FILE   "libferrum_cupti.so"
#define PYTHON_FILE "libferrum_python.so"
#define INSTALLED   "../lib/ferrum-bpftrace/"

/*
 * Resolves a path relative to a program's folder. NULL: there is no readable file. The caller
 * frees.
 */
static char *find_from(const char *program, const char *path)
{
	char joined[2 * PATH_MAX];
	const char *slash = strrchr(program, '/');
	char *found;

	if (!slash || snprintf(joined, sizeof(joined), "%.*s/%s", (int)(slash - program), program,
			       path) >= (int)sizeof(joined))
		return NULL;
	found = realpath(joined, NULL);
	if (found && !access(found, R_OK))
		return found;
	free(found);
	return NULL;
}

/* Finds a file beside a program, as in the build folder, or where it is installed. */
static char *find_file(const char *program, const char *beside, const char *installed)
{
	char *found = find_from(program, beside);

	return found ? found : find_from(program, installed);
}

/* The running program; "" if it is not known. */
static void own_program(char program[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", program, PATH_MAX - 1);

	program[length < 0 ? 0 : length] = '\0';
}

char *gpu_shim_path_from(const char *program)
{
	return find_file(program, SHIM_FILE, INSTALLED SHIM_FILE);
}

char *gpu_shim_path(void)
{
	char program[PATH_MAX];

	own_program(program);
	return gpu_shim_path_from(program);
}

char *python_library_path(void)
{
	char program[PATH_MAX];

	own_program(program);
	return find_file(program, PYTHON_FILE, INSTALLED PYTHON_FILE);
}

/* The libraries, and where a container finds them. */
#define INSIDE "/opt/ferrum/"

static void print_gpu_notes(FILE *out)
{
	fputs("# GPU records come from libferrum_cupti.so, which CUDA loads when the engine first "
	      "uses CUDA\n"
	      "# (CUDA_INJECTION64_PATH). It then uses CUPTI, which only one tool at a time can "
	      "use "
	      "(others are nsys,\n"
	      "# ncu and the PyTorch profiler).\n"
	      "# - The engine needs libcupti of CUDA 11.8 or later: from the CUDA toolkit, or by\n"
	      "#   pip install nvidia-cuda-cupti (nvidia-cuda-cupti-cu12 for CUDA 12). If it is "
	      "not "
	      "found, set\n"
	      "#   FERRUM_CUPTI_LIBRARY=/path/of/libcupti.so.12\n"
	      "# - CUPTI before 12.6 must be loaded before the engine captures CUDA graphs: set "
	      "FERRUM_CUPTI_EARLY=1\n",
	      out);
}

static void print_python_notes(FILE *out)
{
	fputs("# Steps of Python engines (vLLM, SGLang, ...) come from libferrum_python.so. Leave "
	      "LD_PRELOAD out for\n"
	      "# an engine that is not written in Python. Programs without Python that inherit it "
	      "load the library too,\n"
	      "# and it does nothing in them.\n",
	      out);
}

static void print_notes(FILE *out, const struct engine_libraries *libraries)
{
	fputs("# Start the engine with one of the settings below. The libraries are idle until "
	      "ferrum-bpftrace traces\n"
	      "# the engine.\n",
	      out);
	if (libraries->shim)
		print_gpu_notes(out);
	if (libraries->python)
		print_python_notes(out);
	fputs("# A container needs glibc 2.34 or later (not musl), and the libraries at a path "
	      "inside it.\n",
	      out);
}

static void print_shell(FILE *out, const struct engine_libraries *libraries)
{
	fputs("\n# --- shell: before the engine's command\n", out);
	if (libraries->shim)
		fprintf(out, "export CUDA_INJECTION64_PATH='%s'\n", libraries->shim);
	if (libraries->python)
		fprintf(out, "export LD_PRELOAD='%s'\"${LD_PRELOAD:+:$LD_PRELOAD}\"\n",
			libraries->python);
}

static void print_unit(FILE *out, const struct engine_libraries *libraries)
{
	fputs("\n# --- systemd: systemctl edit ENGINE.service, then systemctl restart "
	      "ENGINE.service\n"
	      "[Service]\n",
	      out);
	if (libraries->shim)
		fprintf(out, "Environment=\"CUDA_INJECTION64_PATH=%s\"\n", libraries->shim);
	if (libraries->python)
		fprintf(out, "Environment=\"LD_PRELOAD=%s\"\n", libraries->python);
}

static void print_mount(FILE *out, const char *path, const char *variable, const char *name)
{
	if (path)
		fprintf(out,
			"  --mount 'type=bind,source=%s,target=" INSIDE "%s,readonly' \\\n"
			"  --env %s=" INSIDE "%s \\\n",
			path, name, variable, name);
}

static void print_docker(FILE *out, const struct engine_libraries *libraries)
{
	fputs("\n# --- docker: add --mount and --env\n"
	      "docker run \\\n",
	      out);
	print_mount(out, libraries->shim, "CUDA_INJECTION64_PATH", SHIM_FILE);
	print_mount(out, libraries->python, "LD_PRELOAD", PYTHON_FILE);
	fputs("  --gpus all IMAGE COMMAND\n", out);
}

static void print_pod(FILE *out, const struct engine_libraries *libraries)
{
	const struct {
		const char *path, *variable, *file, *volume;
	} rows[] = {
		{libraries->shim, "CUDA_INJECTION64_PATH", SHIM_FILE, "ferrum-cupti"},
		{libraries->python, "LD_PRELOAD", PYTHON_FILE, "ferrum-python"},
	};
	const size_t count = sizeof(rows) / sizeof(rows[0]);

	fputs("\n# --- Kubernetes: add this to the pod; the files must be at these paths on the "
	      "node\n"
	      "spec:\n"
	      "  containers:\n"
	      "    - name: ENGINE\n"
	      "      env:\n",
	      out);
	for (size_t i = 0; i < count; i++)
		if (rows[i].path)
			fprintf(out, "        - name: %s\n          value: " INSIDE "%s\n",
				rows[i].variable, rows[i].file);
	fputs("      volumeMounts:\n", out);
	for (size_t i = 0; i < count; i++)
		if (rows[i].path)
			fprintf(out,
				"        - name: %s\n"
				"          mountPath: " INSIDE "%s\n"
				"          readOnly: true\n",
				rows[i].volume, rows[i].file);
	fputs("  volumes:\n", out);
	for (size_t i = 0; i < count; i++)
		if (rows[i].path)
			fprintf(out,
				"    - name: %s\n"
				"      hostPath:\n"
				"        path: '%s'\n"
				"        type: File\n",
				rows[i].volume, rows[i].path);
}

/*
 * Refuses paths with characters that would have to be quoted in one of the forms above. Each form
 * has quoting rules of its own. LD_PRELOAD ends a path at a space and at a colon.
 */
static int check_path(const char *path, const char *refused)
{
	char shown[PATH_MAX];

	if (!path)
		return 0;
	log_escape(shown, sizeof(shown), path);
	if (!strpbrk(path, refused) && !strcmp(path, shown))
		return 0;
	log_err("engine-env: %s: install it where the path has none of ' \" \\ $ %% , no space or "
		"colon, and no tab, line break or other control character",
		path);
	return -EINVAL;
}

int engine_env_print_for(FILE *out, const struct engine_libraries *libraries)
{
	int err = check_path(libraries->shim, "'\"\\$%,\n\t");

	if (!err)
		err = check_path(libraries->python, "'\"\\$%,\n\t :");
	if (err)
		return err;
	print_notes(out, libraries);
	print_shell(out, libraries);
	print_unit(out, libraries);
	print_docker(out, libraries);
	print_pod(out, libraries);
	if (fflush(out)) {
		err = -errno;
		log_err("engine-env: %s", strerror(-err));
	}
	return err;
}

int engine_env_print(FILE *out)
{
	char *shim = gpu_shim_path(), *python = NULL;
	int err;

#ifdef __x86_64__
	python = python_library_path();
#endif
	if (!shim && !python) {
		log_err("engine-env: " GPU_SHIM_MISSING);
		return -ENOENT;
	}
	err = engine_env_print_for(out, &(struct engine_libraries){shim, python});
	free(python);
	free(shim);
	return err;
}

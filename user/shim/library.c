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

static void print_notes(FILE *out)
{
	fputs("# GPU records come from libferrum_cupti.so, which CUDA loads when the engine first "
	      "uses CUDA.\n"
	      "# Start the engine with one of the settings below. The library is idle until "
	      "ferrum-bpftrace traces\n"
	      "# the engine. It then uses CUPTI, which only one tool at a time can use (others are "
	      "nsys, ncu and\n"
	      "# the PyTorch profiler).\n"
	      "# - The engine needs libcupti of CUDA 11.8 or later: from the CUDA toolkit, or by\n"
	      "#   pip install nvidia-cuda-cupti (nvidia-cuda-cupti-cu12 for CUDA 12). If it is "
	      "not "
	      "found, set\n"
	      "#   FERRUM_CUPTI_LIBRARY=/path/of/libcupti.so.12\n"
	      "# - CUPTI before 12.6 must be loaded before the engine captures CUDA graphs: set "
	      "FERRUM_CUPTI_EARLY=1\n"
	      "# - A container needs glibc 2.34 or later (not musl), and the library at a path "
	      "inside it\n",
	      out);
}

static void print_forms(FILE *out, const char *path)
{
	fprintf(out,
		"\n# --- shell: before the engine's command\n"
		"export CUDA_INJECTION64_PATH='%s'\n"
		"\n# --- systemd: systemctl edit ENGINE.service, then systemctl restart "
		"ENGINE.service\n"
		"[Service]\n"
		"Environment=\"CUDA_INJECTION64_PATH=%s\"\n"
		"\n# --- docker: add --mount and --env\n"
		"docker run \\\n"
		"  --mount 'type=bind,source=%s,target=/opt/ferrum/" SHIM_FILE ",readonly' \\\n"
		"  --env CUDA_INJECTION64_PATH=/opt/ferrum/" SHIM_FILE " \\\n"
		"  --gpus all IMAGE COMMAND\n"
		"\n# --- Kubernetes: add this to the pod; the file must be at that path on the "
		"node\n"
		"spec:\n"
		"  containers:\n"
		"    - name: ENGINE\n"
		"      env:\n"
		"        - name: CUDA_INJECTION64_PATH\n"
		"          value: /opt/ferrum/" SHIM_FILE "\n"
		"      volumeMounts:\n"
		"        - name: ferrum-cupti\n"
		"          mountPath: /opt/ferrum/" SHIM_FILE "\n"
		"          readOnly: true\n"
		"  volumes:\n"
		"    - name: ferrum-cupti\n"
		"      hostPath:\n"
		"        path: '%s'\n"
		"        type: File\n",
		path, path, path, path);
}

/*
 * Refuses paths with characters that would have to be quoted in one of the forms above. Each form
 * has quoting rules of its own.
 */
static int check_path(const char *path)
{
	char shown[PATH_MAX];

	log_escape(shown, sizeof(shown), path);
	if (!strpbrk(path, "'\"\\$%,\n\t") && !strcmp(path, shown))
		return 0;
	log_err("gpu-env: %s: install it where the path has none of ' \" \\ $ %% , and no tab, "
		"line break or other control character",
		path);
	return -EINVAL;
}

int gpu_env_print_for(FILE *out, const char *path)
{
	int err = check_path(path);

	if (err)
		return err;
	print_notes(out);
	print_forms(out, path);
	if (fflush(out)) {
		err = -errno;
		log_err("gpu-env: %s", strerror(-err));
	}
	return err;
}

int gpu_env_print(FILE *out)
{
	char *path = gpu_shim_path();
	int err;

	if (!path) {
		log_err("gpu-env: " GPU_SHIM_MISSING);
		return -ENOENT;
	}
	err = gpu_env_print_for(out, path);
	free(path);
	return err;
}

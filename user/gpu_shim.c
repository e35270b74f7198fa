/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_shim.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

#define SHIM_FILE      "libferrum_cupti.so"
#define SHIM_INSTALLED "../lib/ferrum-bpftrace/" SHIM_FILE

/* A path from the folder of a program, if there is a file that can be read. The caller frees. */
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

char *gpu_shim_path_from(const char *program)
{
	char *found = find_from(program, SHIM_FILE);

	return found ? found : find_from(program, SHIM_INSTALLED);
}

char *gpu_shim_path(void)
{
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length <= 0)
		return NULL;
	program[length] = '\0';
	return gpu_shim_path_from(program);
}

static void print_notes(FILE *out)
{
	fputs("# GPU records come from libferrum_cupti.so, which CUDA loads when the engine first "
	      "uses it.\n"
	      "# The engine must be started with it. Until ferrum-bpftrace traces the engine the "
	      "library does\n"
	      "# nothing; it uses CUPTI, of which one tool at a time can be had (nsys, ncu and the "
	      "PyTorch profiler\n"
	      "# are others).\n"
	      "# - libcupti of CUDA 11.8 or later must be where the engine runs: with the CUDA "
	      "toolkit, or\n"
	      "#   pip install nvidia-cuda-cupti (its name ends in -cu12 for CUDA 12). One that "
	      "is not found by\n"
	      "#   itself: FERRUM_CUPTI_LIBRARY=/path/of/libcupti.so.12\n"
	      "# - CUPTI before 12.6 has to be there before the engine's CUDA graphs are: "
	      "FERRUM_CUPTI_EARLY=1\n"
	      "# - a container needs glibc 2.34 or later (not musl), and the file at a path of its "
	      "own\n",
	      out);
}

static void print_shell(FILE *out, const char *path)
{
	fprintf(out,
		"\n# --- shell: in front of the engine's command\n"
		"export CUDA_INJECTION64_PATH='%s'\n",
		path);
}

static void print_systemd(FILE *out, const char *path)
{
	fprintf(out,
		"\n# --- systemd: systemctl edit ENGINE.service, then systemctl restart "
		"ENGINE.service\n"
		"[Service]\n"
		"Environment=\"CUDA_INJECTION64_PATH=%s\"\n",
		path);
}

static void print_docker(FILE *out, const char *path)
{
	fprintf(out,
		"\n# --- docker: two options more; all else as before\n"
		"docker run \\\n"
		"  --mount 'type=bind,source=%s,target=/opt/ferrum/" SHIM_FILE ",readonly' \\\n"
		"  --env CUDA_INJECTION64_PATH=/opt/ferrum/" SHIM_FILE " \\\n"
		"  --gpus all IMAGE COMMAND\n",
		path);
}

static void print_kubernetes(FILE *out, const char *path)
{
	fprintf(out,
		"\n# --- Kubernetes: part of a pod; the file must be at that path on the node\n"
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
		path);
}

/* Each of the forms above quotes in its own way. */
static int check_path(const char *path)
{
	char shown[PATH_MAX];

	log_escape(shown, sizeof(shown), path);
	if (!strpbrk(path, "'\"\\$%,\n\t") && !strcmp(path, shown))
		return 0;
	log_err("gpu-env: %s: install it where the path has none of ' \" \\ $ %% , and no tab, "
		"line "
		"break or other control character",
		path);
	return -EINVAL;
}

int gpu_env_print_for(FILE *out, const char *path)
{
	int err = check_path(path);

	if (err)
		return err;
	print_notes(out);
	print_shell(out, path);
	print_systemd(out, path);
	print_docker(out, path);
	print_kubernetes(out, path);
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

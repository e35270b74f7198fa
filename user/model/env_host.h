/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Facts about this host, and the environment document that is made of them: the input of
 * --compute-env-hash. "The engine" is ferrum.
 */
#ifndef FBT_MODEL_ENV_HOST_H
#define FBT_MODEL_ENV_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/env_document.h"

struct program {
	const char *path;
	const char *const *arguments;	/* NULL-terminated; the first is the program's name */
	const char *const *environment; /* NULL-terminated; nothing is inherited */
	uint32_t timeout_ms;
};

/*
 * Runs a program in "/", without a shell or the tool's descriptors; stdin and stderr are
 * /dev/null. text receives the first size - 1 bytes of its stdout, with a NUL after them; the rest
 * is dropped. After the timeout the program is killed with its children. Returns 0 and sets *status
 * to the exit status, or to 128 + the signal that killed the program; else -ETIMEDOUT or another
 * -errno. Logs nothing.
 */
int program_output(const struct program *program, char *text, size_t size, int *status);

/*
 * Where the facts come from: nvidia-smi, nvcc and rustc, the programs that the engine's bench runs
 * (ferrum-bench-core, env.rs, detect_*), and /proc/cpuinfo. Programs are run only from these
 * folders and from $RUSTC. Tests set their own.
 */
struct env_tools {
	const char *const *folders; /* of nvidia-smi, nvcc and rustc; NULL-terminated */
	const char *rustc;	    /* used instead of rustc if it is an absolute path; or NULL */
	const char *cpuinfo;	    /* /proc/cpuinfo */
	const char *gpu_driver;	    /* a file that is there while NVIDIA's driver is loaded */
	uint32_t timeout_ms;	    /* for each program, which is then killed */
};

/* The fixed folders, $RUSTC, /proc/cpuinfo, /proc/driver/nvidia/version, 5 s. */
struct env_tools env_tools_default(void);

/* The facts. Two calls seldom give the same, because the current GPU clock is one of them. */
struct env_host {
	char *hw_id;
	char *driver; /* NULL if not known */
	char *cuda;   /* NULL if not known */
	char *rust;
	bool has_clock;
	bool has_power_limit;
	bool has_persistence;
	bool persistence;
	uint32_t clock_mhz;
	uint32_t power_limit_w;
};

/*
 * Runs the programs one after the other, so it must be called before anything is attached. The
 * facts of a program that is missing, fails or hangs are left out. A line is logged if that program
 * is nvidia-smi and the driver is loaded. 0 or -ENOMEM; host must be cleared in both cases.
 */
int env_host_collect(struct env_host *host, const struct env_tools *tools);
void env_host_clear(struct env_host *host);

/*
 * Makes the environment document of this host and a target, as the engine's bench makes it for
 * itself (ferrum-bench-core, Env::capture_minimal). *text is JSON, to be freed: the host's facts,
 * commit_sha (NULL: ""), the FERRUM_* variables of a NULL-terminated environment, and the runtime
 * configuration that the engine infers from them. 0 or -ENOMEM.
 *
 * Two runs seldom have the same hash, because the document contains the current GPU clock, as the
 * engine's does. It has no build features and none of the variables that the engine sets after its
 * start: neither can be seen from outside.
 */
int env_collect_document(char **text, const struct env_host *host, const char *commit_sha,
			 char *const *environment);

/*
 * The hash of that document, secrets included. -v logs the document without them. 0, or -errno with
 * one line logged.
 */
int env_collect_hash(char hash[ENV_HASH_SIZE], const struct env_host *host, const char *commit_sha,
		     char *const *environment);

#endif

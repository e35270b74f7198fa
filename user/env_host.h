/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the engine's bench says of the machine it runs on (ferrum-bench-core, env.rs, detect_*), by
 * the same programs: nvidia-smi, nvcc, rustc. Theirs is the current GPU clock, so two calls seldom
 * give the same. Nothing else is run, and nothing that is not in the folders given or $RUSTC.
 */
#ifndef FBT_ENV_HOST_H
#define FBT_ENV_HOST_H

#include <stdbool.h>
#include <stdint.h>

/* What may be run and read; a test gives its own. */
struct env_tools {
	const char *const
		*folders;    /* nvidia-smi, nvcc and rustc are run only from these; NULL ends */
	const char *rustc;   /* instead of rustc: an absolute path; NULL: none */
	const char *cpuinfo; /* /proc/cpuinfo */
	uint32_t timeout_ms; /* for each program; then it is killed */
};

/* The fixed folders, $RUSTC, /proc/cpuinfo, 5 s. */
struct env_tools env_tools_default(void);

/* Strings are NULL where the engine has none. */
struct env_host {
	char *hw_id;
	char *driver;
	char *cuda;
	char *rust;
	bool has_clock;
	bool has_power_limit;
	bool has_persistence;
	bool persistence;
	uint32_t clock_mhz;
	uint32_t power_limit_w;
};

/*
 * Runs the programs, one after the other, so before anything is attached. One that is missing,
 * fails or hangs leaves its fields out. 0 or -ENOMEM; host is to be cleared in both cases.
 */
int env_host_collect(struct env_host *host, const struct env_tools *tools);
void env_host_clear(struct env_host *host);

#endif

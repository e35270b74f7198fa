/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Windows by flag file, as options and environment ask for them. The variables are those of the
 * seed's Chakra trace manager under our names. A switch is on if its value, trimmed and in lower
 * case, is 1, true, yes, y or on.
 *
 *	FERRUM_BPFTRACE            switch, on unless given: off means that no flag opens a window
 *	FERRUM_BPFTRACE_FLAG       --flag
 *	FERRUM_BPFTRACE_DIR        --dir
 *	FERRUM_BPFTRACE_MAX_STEPS  --max-steps; what is no number is 0
 *	FERRUM_BPFTRACE_DEBUG      switch: --verbose
 */
#ifndef FBT_OPTION_WINDOWS_H
#define FBT_OPTION_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

/* Strings are borrowed from argv and the environment. */
struct option_windows {
	const char *flag;	  /* windows are opened by this file; NULL: one window */
	bool flag_by_environment; /* it was not given as an option */
	bool disabled;		  /* there is a flag, but FERRUM_BPFTRACE is off */
	const char *dir;	  /* for the files that are named by a tag */
	bool max_steps_given;	  /* as an option */
	uint64_t max_steps;	  /* of a window by flag; 0: no limit */
	bool keep_free_given;
	uint64_t keep_free; /* see disk_room.h; 0: none */
	bool rate_guard_given;
	double rate_guard_percent; /* see rate_guard.h; 0: no limit */
};

/* --flag, --dir, --keep-free, --max-steps and --rate-guard: 0, EINVAL, logged, or ARGP_ERR_UNKNOWN
 * if key is another's. */
int option_parse_windows(struct option_windows *windows, int key, const char *arg);

/*
 * Behind the options: what they left open is the environment's, or the default. Only with traces
 * does the environment bring a flag; then it also warns of switches that mean nothing outside of
 * the engine.
 */
void option_complete_windows(struct option_windows *windows, bool traces);

#endif

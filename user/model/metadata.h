/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The metadata in the envelope of ferrum's profile (profile.rs, ProfileMetadata). Each value comes
 * from the first of these sources that has a valid one:
 *
 *	option > tool's environment > target's command line > target's environment > default
 *
 * On both command lines these are the options --profile-commit-sha, -env-hash, -model, -concurrency
 * and -runtime-flags-json, as "--x v" or "--x=v"; in both environments, FERRUM_PROFILE_*. An
 * invalid value of an option of the tool is an error. Elsewhere an invalid value is skipped: ferrum
 * then takes its default, the tool asks the next source. Secrets in the values are replaced
 * (user/base/redact.h) after the hash of the environment was computed.
 */
#ifndef FBT_MODEL_METADATA_H
#define FBT_MODEL_METADATA_H

#include <stdint.h>

struct env_host;

#define METADATA_ENV_HASH_UNKNOWN "sha256:unknown"

struct metadata {
	char *commit_sha; /* NULL: null */
	char *env_hash;	  /* begins with "sha256:" */
	char *model;
	uint32_t concurrency;
	char *runtime_flags; /* a JSON object, compact */
	/*
	 * Not part of the envelope: the target's place among the processes of its job, for traces.
	 * Taken only from its environment: RANK or LOCAL_RANK, and WORLD_SIZE (default: 0 and 1).
	 */
	uint32_t rank;
	uint32_t world_size;
};

/*
 * Values of the tool's options, NULL where not given. Invalid values are errors, with ferrum's own
 * messages ("--profile-env-hash must start with sha256:", …).
 */
struct metadata_options {
	const char *commit_sha;
	const char *env_hash;
	const char *model;
	const char *concurrency;
	const char *runtime_flags;
};

/* The sources after the options, as NULL-terminated arrays of strings; NULL: no such source. */
struct metadata_sources {
	char *const *environment;	 /* the tool's: NAME=VALUE */
	char *const *target_arguments;	 /* the first is the program's name */
	char *const *target_environment; /* NAME=VALUE */
	/*
	 * With --compute-env-hash: if no source has a hash, it is computed from these facts,
	 * commit_sha and the FERRUM_* of target_environment, which must not be NULL then
	 * (env_collect_hash). Otherwise NULL.
	 */
	const struct env_host *host;
};

/* Longer values from the target are skipped, because each line of the profile contains them. */
#define METADATA_TARGET_VALUE_MAX 4096
#define METADATA_TARGET_FLAGS_MAX 65536

/* What is the same for all targets of a run; borrowed. */
struct metadata_run {
	const struct metadata_options *options;
	char *const *environment;    /* the tool's */
	char *const *command;	     /* COMMAND and its arguments, NULL if none was given */
	const struct env_host *host; /* with --compute-env-hash (env_host_collect), else NULL */
};

/*
 * Fills metadata, to be freed with metadata_clear(). 0, -EINVAL (an invalid option, logged) or
 * -ENOMEM. If the hash cannot be computed, it is METADATA_ENV_HASH_UNKNOWN, and one line is logged.
 */
int metadata_resolve_from(struct metadata *metadata, const struct metadata_options *options,
			  const struct metadata_sources *sources);

/* The same without a target: for checking the options before a target is searched. */
int metadata_resolve(struct metadata *metadata, const struct metadata_options *options,
		     char *const *environment);

/*
 * The same for the target of an export, while the process lives. tgid is 0 if there is no single
 * target (-a, --replay). Sources that cannot be read are skipped. If run has a COMMAND, the
 * target's sources are its arguments and the tool's environment.
 */
int metadata_for_target(struct metadata *metadata, const struct metadata_run *run, uint32_t tgid);

void metadata_clear(struct metadata *metadata);

#endif

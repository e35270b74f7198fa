/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The metadata of the seed's profile envelope (profile.rs, ProfileMetadata). Each value comes from
 * the first of these that has a sound one:
 *
 *	option > tool's environment > target's command line > target's environment > default
 *
 * The command line's are --profile-commit-sha, -env-hash, -model, -concurrency and
 * -runtime-flags-json, as "--x v" or "--x=v"; the environment's FERRUM_PROFILE_*. A wrong value of
 * an option of ours is an error. A wrong value anywhere else is as if it were not there: the seed
 * takes its default then, we ask the next source first.
 */
#ifndef FBT_METADATA_H
#define FBT_METADATA_H

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
	 * Not of the envelope: the target's place among the processes of its job, for traces. Of
	 * its environment alone: RANK or LOCAL_RANK, WORLD_SIZE; else 0 and 1.
	 */
	uint32_t rank;
	uint32_t world_size;
};

/*
 * Command line values, NULL where not given. Wrong values are errors with the engine's own messages
 * ("--profile-env-hash must start with sha256:", …).
 */
struct metadata_options {
	const char *commit_sha;
	const char *env_hash;
	const char *model;
	const char *concurrency;
	const char *runtime_flags;
};

/* Sources behind the options, as NULL-terminated arrays of strings; NULL: there is none. */
struct metadata_sources {
	char *const *environment;	 /* the tool's: NAME=VALUE */
	char *const *target_arguments;	 /* from the program's name on */
	char *const *target_environment; /* NAME=VALUE */
	/*
	 * --compute-env-hash: where no source has a hash, it is that of algorithm A over these
	 * facts, commit_sha and the FERRUM_* of target_environment, which must not be NULL then.
	 * Else NULL.
	 */
	const struct env_host *host;
};

/* A value that the target gives is on each line of the profile: a longer one does not count. */
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
 * Fills metadata, to be freed with metadata_clear. 0, -EINVAL (logged: a bad option) or -ENOMEM. A
 * hash that cannot be computed is unknown, and one line was logged.
 */
int metadata_resolve_from(struct metadata *metadata, const struct metadata_options *options,
			  const struct metadata_sources *sources);

/* The same without a target: what can be said before one is looked for. */
int metadata_resolve(struct metadata *metadata, const struct metadata_options *options,
		     char *const *environment);

/*
 * The same for the process an export is about, while it lives; 0: there is no such one (-a,
 * --replay). What of it cannot be read is as if it were not there. Where run has a COMMAND, its
 * arguments and our environment are the target's.
 */
int metadata_for_target(struct metadata *metadata, const struct metadata_run *run, uint32_t tgid);

void metadata_clear(struct metadata *metadata);

#endif

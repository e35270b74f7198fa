/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The metadata of the seed's profile envelope (profile.rs, ProfileMetadata). */
#ifndef FBT_METADATA_H
#define FBT_METADATA_H

#include <stdint.h>

struct metadata {
	char *commit_sha; /* NULL: null */
	char *env_hash;	  /* begins with "sha256:" */
	char *model;
	uint32_t concurrency;
	char *runtime_flags; /* a JSON object, compact */
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

/*
 * Option, then the FERRUM_PROFILE_* of environment (NULL-terminated NAME=VALUE array), then the
 * seed's default. A wrong value in the environment falls back as the seed's from_env does. Fills
 * metadata, to be freed with metadata_clear. 0, -EINVAL (logged) or -ENOMEM.
 */
int metadata_resolve(struct metadata *metadata, const struct metadata_options *options,
		     char *const *environment);
void metadata_clear(struct metadata *metadata);

#endif

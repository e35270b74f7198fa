/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * --compute-env-hash: the environment document of this host and a target, as the engine's bench
 * makes it of itself (ferrum-bench-core, Env::capture_minimal). It describes the moment: the
 * current GPU clock is in it, as it is in the engine's, so that two runs seldom have the same hash.
 * The features of the engine's build are not to be seen from outside: there are none in it. Nor
 * does it say what the engine has set itself after it was started.
 */
#ifndef FBT_ENV_COLLECT_H
#define FBT_ENV_COLLECT_H

#include "env_document.h"
#include "env_host.h"

/*
 * The document as JSON, to be freed: host's facts, commit_sha (NULL: ""), the FERRUM_* of a
 * NULL-terminated environment and the runtime configuration that the engine infers from them. 0 or
 * -ENOMEM.
 */
int env_collect_document(char **text, const struct env_host *host, const char *commit_sha,
			 char *const *environment);

/* Its hash. -v shows the document. 0, or -errno with one line logged. */
int env_collect_hash(char hash[ENV_HASH_SIZE], const struct env_host *host, const char *commit_sha,
		     char *const *environment);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Hash of an environment document, as the engine computes it: SHA-256 of what serde_json writes for
 *
 *	an object: Env of ferrum-bench-core (Env::hash), the env of a bench report;
 *	an array: the entries of a runtime configuration (ResolvedFerrumConfig::runtime_env_hash).
 *
 * The order of members and of ferrum_env is the engine's, whatever the input's; arrays stay as they
 * are given, and optional members that are absent or null are left out. A document of the time
 * before there was a runtime_config is hashed without it.
 */
#ifndef FBT_ENV_DOCUMENT_H
#define FBT_ENV_DOCUMENT_H

#include <stddef.h>
#include <stdio.h>
#include "json_read.h"

#define ENV_HASH_PREFIX "sha256:"
#define ENV_HASH_SIZE	(sizeof(ENV_HASH_PREFIX) + 64)

/*
 * Writes the bytes that are hashed. -EBADMSG: it is no such document, error says where and why in
 * serde's words; or -ENOMEM.
 */
int env_document_write(FILE *out, struct json_object *document, char *error, size_t size);

/* 0; -EBADMSG as above; -ENOMEM; or -EIO: OpenSSL failed, error says so. */
int env_document_hash(char hash[ENV_HASH_SIZE], struct json_object *document, char *error,
		      size_t size);

/* The same of a text, in which no object may have a key twice. text[size] must be NUL. */
int env_document_hash_text(char hash[ENV_HASH_SIZE], const char *text, size_t size, char *error,
			   size_t error_size);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The hash of an environment document, as ferrum computes it: the SHA-256 of the text that
 * serde_json writes for the document. The document is one of
 *
 *	an object: Env of ferrum-bench-core (Env::hash), the env of a bench report;
 *	an array: the entries of a runtime configuration (ResolvedFerrumConfig::runtime_env_hash).
 *
 * Members are hashed in ferrum's order and the variables of ferrum_env by name, whatever their
 * order in the input; arrays keep their order. Optional members that are absent or null are left
 * out; a runtime_config that is absent is hashed as an empty one. Unknown members are left out, as
 * ferrum does (ferrum-bench-core 0.7.4 to 0.18.4), but a later ferrum may hash them.
 */
#ifndef FBT_MODEL_ENV_DOCUMENT_H
#define FBT_MODEL_ENV_DOCUMENT_H

#include <stddef.h>
#include <stdio.h>
#include "base/json_read.h"

#define ENV_HASH_PREFIX "sha256:"
#define ENV_HASH_SIZE	(sizeof(ENV_HASH_PREFIX) + 64)

/*
 * Writes the bytes that are hashed. 0, with the members that were left out in error, or nothing;
 * -EBADMSG if it is no such document, with place and reason in error; or -ENOMEM.
 */
int env_document_write(FILE *out, struct json_object *document, char *error, size_t size);

/* 0 or -EBADMSG as above; -ENOMEM; or -EIO if OpenSSL failed, with the reason in error. */
int env_document_hash(char hash[ENV_HASH_SIZE], struct json_object *document, char *error,
		      size_t size);

/* The same for the text of a document. No object may have a key twice. text[size] must be NUL. */
int env_document_hash_text(char hash[ENV_HASH_SIZE], const char *text, size_t size, char *error,
			   size_t error_size);

#endif

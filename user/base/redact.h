/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Removes secrets from command lines, variables and other texts before they reach an output. These
 * values are replaced by REDACTED:
 *
 *	the value of an option or variable whose last word, split at - and _, is key, token, secret,
 *	password, passwd, credential or authorization in any case, unless the value is a number:
 *	"--api-key" "VALUE", "--api-key=VALUE", "API_KEY=VALUE", "Authorization: VALUE";
 *	the password of a URL: "scheme://user:PASSWORD@host".
 *
 * An option of that kind may have several values (vLLM's --api-key has), so all arguments up to the
 * next option are its values. An argument that contains a command ("sh -c"), JSON or a header is
 * searched as well. Where the end of a value is in doubt, too much is replaced rather than too
 * little. The bytes are untrusted.
 */
#ifndef FBT_BASE_REDACT_H
#define FBT_BASE_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#define REDACTED "[redacted]"

/* The state between the arguments of one command line; 0 at first. */
struct redactor {
	bool takes_values; /* the arguments up to the next option are secrets */
};

/*
 * Writes an argument without its secrets to to, with a NUL after it, cut off to size - 1 bytes.
 * Returns the number of bytes before the NUL. is_cut: the end of the argument is not known, so a
 * number may be the beginning of a secret.
 */
size_t redact_argument(struct redactor *redactor, const char *text, size_t length, bool is_cut,
		       char *to, size_t size);

/* The same for arguments with a NUL between them, which becomes a space. is_cut: of the last. */
size_t redact_arguments(const char *text, size_t length, bool is_cut, char *to, size_t size);

/* One argument or NAME=VALUE, to be freed; *length becomes that of the result. NULL: no memory. */
char *redact_text(struct redactor *redactor, const char *text, size_t *length);

/* Whether the last word of a name says that its value is a secret. */
bool redact_is_secret(const char *name, size_t length);

/* Whether the value of such a name is shown: a number, or nothing, in quotes or not. */
bool redact_is_shown(const char *value, size_t length);

#endif

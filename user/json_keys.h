/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Equal keys in one object: json-c keeps the last of them and says nothing. */
#ifndef FBT_JSON_KEYS_H
#define FBT_JSON_KEYS_H

#include <stddef.h>

/*
 * Looks for an object that has a key twice, escapes resolved, in a text that json_read has found
 * sound; text[size] is NUL. 0; -EEXIST with the key in *key, to be freed; -ENOMEM.
 */
int json_keys_check(const char *text, size_t size, char **key);

#endif

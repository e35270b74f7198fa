/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What a typed field takes, with serde's words for what it does not take ("invalid type: floating
 * point `1.5`, expected u32"). Each returns true if value fits, else fills error, cut to size.
 */
#ifndef FBT_JSON_EXPECT_H
#define FBT_JSON_EXPECT_H

#include "json_read.h"

bool json_expect_string(struct json_object *value, char *error, size_t size);
bool json_expect_optional_string(struct json_object *value, char *error, size_t size);
bool json_expect_char(struct json_object *value, char *error, size_t size);
bool json_expect_bool(struct json_object *value, char *error, size_t size);
bool json_expect_map(struct json_object *value, char *error, size_t size);
bool json_expect_u32(struct json_object *value, char *error, size_t size);
bool json_expect_u64(struct json_object *value, char *error, size_t size);

/* For a value of the wrong kind altogether: expected is serde's name of the right one. */
void json_refuse_type(struct json_object *value, const char *expected, char *error, size_t size);

#endif

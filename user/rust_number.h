/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Numbers as the engine reads them. */
#ifndef FBT_RUST_NUMBER_H
#define FBT_RUST_NUMBER_H

#include <stdint.h>

/*
 * As str::parse::<u32>: an optional plus and decimal digits, nothing else. NULL, or the text of its
 * error; then value stays as it was.
 */
const char *rust_parse_u32(const char *text, uint32_t *value);

#endif

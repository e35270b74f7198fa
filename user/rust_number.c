/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "rust_number.h"

#include <string.h>

const char *rust_parse_u32(const char *text, uint32_t *value)
{
	const char *digits = text + (*text == '+');
	uint64_t sum = 0;

	if (!*text)
		return "cannot parse integer from empty string";
	if (!*digits || digits[strspn(digits, "0123456789")])
		return "invalid digit found in string";
	for (; *digits; digits++) {
		sum = sum * 10 + (uint64_t)(*digits - '0');
		if (sum > UINT32_MAX)
			return "number too large to fit in target type";
	}
	*value = (uint32_t)sum;
	return NULL;
}

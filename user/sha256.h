/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* SHA-256, by OpenSSL. */
#ifndef FBT_SHA256_H
#define FBT_SHA256_H

#include <stddef.h>

#define SHA256_HEX_SIZE 65

/* In lower-case hexadecimal digits. 0; -EIO if OpenSSL has no such algorithm. */
int sha256_hex(char hex[SHA256_HEX_SIZE], const void *bytes, size_t size);

#endif

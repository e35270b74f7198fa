/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

int sha256_hex(char hex[SHA256_HEX_SIZE], const void *bytes, size_t size)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int length = 0;

	if (!EVP_Digest(bytes, size, digest, &length, EVP_sha256(), NULL) ||
	    2 * length + 1 != SHA256_HEX_SIZE)
		return -EIO;
	for (unsigned int i = 0; i < length; i++)
		snprintf(hex + 2 * (size_t)i, 3, "%02x", digest[i]);
	return 0;
}

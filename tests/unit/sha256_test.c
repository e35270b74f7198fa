/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "sha256.h"

static void expect(const void *bytes, size_t size, const char *expected)
{
	char hex[SHA256_HEX_SIZE];

	assert_int_equal(sha256_hex(hex, bytes, size), 0);
	assert_string_equal(hex, expected);
}

/* FIPS 180-2, appendix B. */
static void sha256_has_the_standards_values(void **state)
{
	char *million = malloc(1000000);

	memset(million, 'a', 1000000);
	expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
	       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	expect(million, 1000000,
	       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(million);
}

static void sha256_takes_a_nul_as_any_byte(void **state)
{
	expect("\0", 1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256_has_the_standards_values),
		cmocka_unit_test(sha256_takes_a_nul_as_any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

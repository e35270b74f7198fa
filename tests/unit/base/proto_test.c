/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/proto.h"

/* The expected bytes are those of protoc --encode, and of the encoding guide's own examples. */
#define assert_written(proto, bytes)                                                               \
	do {                                                                                       \
		assert_int_equal((proto)->err, 0);                                                 \
		assert_int_equal((proto)->size, sizeof(bytes) - 1);                                \
		assert_memory_equal((proto)->data, bytes, sizeof(bytes) - 1);                      \
		proto_free(proto);                                                                 \
	} while (0)

static void numbers_are_varints(void **state)
{
	struct proto proto = {0};

	proto_uint(&proto, 1, 150);
	proto_uint(&proto, 16, 0);
	proto_int(&proto, 2, -2);
	assert_written(&proto,
		       "\x08\x96\x01\x80\x01\x00\x10\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	proto_uint(&proto, 2, UINT64_MAX);
	assert_written(&proto, "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

static void fixed_numbers_are_little_endian(void **state)
{
	struct proto proto = {0};

	proto_fixed64(&proto, 1, UINT64_C(0x0102030405060708));
	proto_double(&proto, 1, 1.0);
	assert_written(&proto, "\x09\x08\x07\x06\x05\x04\x03\x02\x01"
			       "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f");
}

static void strings_are_utf8(void **state)
{
	struct proto proto = {0};

	proto_string(&proto, 2, "testing");
	proto_string(&proto, 2, "");
	proto_string(&proto, 2, "\xc3\xa9\xff");
	assert_written(&proto, "\x12\x07testing\x12\x00\x12\x05\xc3\xa9\xef\xbf\xbd");
}

static void messages_nest(void **state)
{
	struct proto proto = {0};
	size_t outer = proto_begin(&proto, 3), inner;

	proto_uint(&proto, 1, 150);
	inner = proto_begin(&proto, 4);
	proto_end(&proto, inner);
	proto_message(&proto, 5, "\x08\x01", 2);
	proto_end(&proto, outer);
	assert_written(&proto, "\x1a\x09\x08\x96\x01\x22\x00\x2a\x02\x08\x01");
}

/* Lengths of 128 and more take two bytes, which move what is behind them. */
static void long_messages_too(void **state)
{
	struct proto proto = {0};
	char text[201], want[3 + 3 + 200];
	size_t outer = proto_begin(&proto, 1);

	memset(text, 'x', 200);
	text[200] = 0;
	proto_string(&proto, 1, text);
	proto_end(&proto, outer);
	memcpy(want, "\x0a\xcb\x01\x0a\xc8\x01", 6);
	memset(want + 6, 'x', 200);
	assert_int_equal(proto.size, sizeof(want));
	assert_memory_equal(proto.data, want, sizeof(want));
	proto_reset(&proto);
	assert_int_equal(proto.size, 0);
	proto_free(&proto);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_varints),
		cmocka_unit_test(fixed_numbers_are_little_endian),
		cmocka_unit_test(strings_are_utf8),
		cmocka_unit_test(messages_nest),
		cmocka_unit_test(long_messages_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

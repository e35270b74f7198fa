/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/proto.h"
#include "base/proto_read.h"

static void what_was_written_is_read(void **state)
{
	struct proto proto = {0};
	struct proto_reader reader, inner;
	struct proto_field field;
	size_t begun;

	proto_uint(&proto, 1, UINT64_MAX);
	proto_int(&proto, 2, -3);
	proto_fixed64(&proto, 47, 0x1122334455667788);
	begun = proto_begin(&proto, 60);
	proto_string(&proto, 2, "text");
	proto_end(&proto, begun);
	reader = (struct proto_reader){proto.data, proto.data + proto.size, false};
	assert_true(proto_next(&reader, &field));
	assert_int_equal(field.number, 1);
	assert_true(field.value == UINT64_MAX && !field.data);
	assert_true(proto_next(&reader, &field));
	assert_int_equal((int64_t)field.value, -3);
	assert_true(proto_next(&reader, &field));
	assert_int_equal(field.number, 47);
	assert_true(field.value == 0x1122334455667788);
	assert_true(proto_next(&reader, &field));
	assert_int_equal(field.number, 60);
	inner = proto_inner(&field);
	assert_true(proto_next(&inner, &field));
	assert_int_equal(field.size, 4);
	assert_memory_equal(field.data, "text", 4);
	assert_false(proto_next(&inner, &field));
	assert_false(proto_next(&reader, &field));
	assert_false(inner.bad || reader.bad);
	proto_free(&proto);
}

static void expect_bad(const char *bytes, size_t size)
{
	struct proto_reader reader = {(const unsigned char *)bytes,
				      (const unsigned char *)bytes + size, false};
	struct proto_field field;

	while (proto_next(&reader, &field))
		;
	assert_true(reader.bad);
	assert_false(proto_next(&reader, &field));
}

#define BAD(bytes) expect_bad(bytes, sizeof(bytes) - 1)

static void what_is_none_is_bad(void **state)
{
	BAD("\x08");					     /* no value */
	BAD("\x08\x80");				     /* a value that does not end */
	BAD("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"); /* one that is too long */
	BAD("\x01\x00");				     /* no number of a field */
	BAD("\x0a\x05"
	    "1234");					     /* a text that is cut off */
	BAD("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); /* a size that is not there */
	BAD("\x09\x01\x02");				     /* 8 bytes that are cut off */
	BAD("\x0b\x0c");				     /* a group */
	BAD("\xf8\xff\xff\xff\xff\x01\x01");		     /* a number that is too large */
}

static void a_number_has_no_fields(void **state)
{
	struct proto_field field = {.number = 1, .value = 7};
	struct proto_reader reader = proto_inner(&field);

	assert_false(proto_next(&reader, &field));
	assert_true(reader.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(what_is_none_is_bad),
		cmocka_unit_test(a_number_has_no_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

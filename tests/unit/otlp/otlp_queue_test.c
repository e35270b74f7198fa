/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "otlp/otlp.h"

static int push(struct otlp_queue *queue, const char *text, uint32_t spans)
{
	return otlp_queue_push(queue, strdup(text), strlen(text), spans);
}

static void expect_body(const struct otlp_queue *queue, size_t count, const char *expected)
{
	char *body = NULL;
	size_t size = 0;

	assert_int_equal(otlp_queue_make_body(queue, count, &body, &size), 0);
	assert_int_equal(size, strlen(expected));
	assert_string_equal(body, expected);
	free(body);
}

static void a_body_holds_the_oldest(void **state)
{
	struct otlp_queue queue = {0};

	(void)state;
	expect_body(&queue, 0, "{\"resourceSpans\":[]}");
	assert_int_equal(push(&queue, "{\"a\":1}", 2), 0);
	assert_int_equal(push(&queue, "{\"b\":2}", 3), 0);
	assert_int_equal(push(&queue, "{\"c\":3}", 4), 0);
	expect_body(&queue, 1, "{\"resourceSpans\":[{\"a\":1}]}");
	expect_body(&queue, 2, "{\"resourceSpans\":[{\"a\":1},{\"b\":2}]}");
	assert_int_equal(otlp_queue_count_spans(&queue, 2), 5);
	otlp_queue_drop(&queue, 2);
	expect_body(&queue, 1, "{\"resourceSpans\":[{\"c\":3}]}");
	assert_int_equal(queue.spans, 4);
	assert_int_equal(queue.bytes, 7);
	otlp_queue_clear(&queue);
	assert_int_equal(queue.items.count, 0);
	assert_int_equal(queue.bytes, 0);
	assert_int_equal(queue.spans, 0);
}

static void it_holds_so_many_spans(void **state)
{
	struct otlp_queue queue = {0};

	(void)state;
	assert_int_equal(push(&queue, "{}", OTLP_QUEUE_SPANS + 1), -ENOSPC);
	assert_int_equal(push(&queue, "{}", OTLP_QUEUE_SPANS - 1), 0);
	assert_int_equal(push(&queue, "{}", 2), -ENOSPC);
	assert_int_equal(push(&queue, "{}", 1), 0);
	assert_int_equal(push(&queue, "{}", 1), -ENOSPC);
	otlp_queue_drop(&queue, 2);
	assert_int_equal(push(&queue, "{}", OTLP_QUEUE_SPANS), 0);
	otlp_queue_clear(&queue);
}

static void it_holds_so_many_bytes(void **state)
{
	struct otlp_queue queue = {0};

	(void)state;
	assert_int_equal(otlp_queue_push(&queue, malloc(1), OTLP_QUEUE_BYTES + 1, 1), -ENOSPC);
	assert_int_equal(otlp_queue_push(&queue, malloc(1), OTLP_QUEUE_BYTES - 1, 1), 0);
	assert_int_equal(otlp_queue_push(&queue, malloc(1), 2, 1), -ENOSPC);
	assert_int_equal(otlp_queue_push(&queue, malloc(1), 1, 1), 0);
	assert_int_equal(queue.items.count, 2);
	otlp_queue_clear(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_holds_the_oldest),
		cmocka_unit_test(it_holds_so_many_spans),
		cmocka_unit_test(it_holds_so_many_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The double of CUPTI does what it promises to a client that keeps its rules. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_cupti_fixture.h"

static const uint32_t kinds[] = {10, 1, 2, 38, 5, 4, 0};

static void use_subscriber(void)
{
	void *other;

	MUST(client.enable(10) == 0);
	MUST(client.disable(10) == 0);
	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 0);
	MUST(client.subscribe(&other, NULL, NULL) == 39);
	MUST(client.enable(10) == 0);
	MUST(client.enable(63) == 21);
	MUST(client.disable(10) == 0);
	MUST(client.unsubscribe(client.subscriber) == 0);
	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 0);
}

static void meet_other(void)
{
	char name[64] = "";
	struct params params = {sizeof(params), "me", name, sizeof(name)};

	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 39);
	MUST(client.subscribe_v2(&client.subscriber, NULL, NULL, &params) == 39);
	MUST(strcmp(name, "nsys") == 0);
}

static void find_no_driver(void)
{
	uint32_t version = 0;

	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 999);
	MUST(client.enable(10) == 999);
	MUST(client.flush_all(0) == 999);
	MUST(client.get_version(&version) == 0 && version == 130001);
}

static void test_one_subscriber(void **state)
{
	static const char *const taken[] = {"FAKE_CUPTI_HOLDER=nsys", NULL};
	static const char *const bare[] = {"FAKE_CUPTI_NO_DRIVER=1", NULL};

	expect_good(use_subscriber, NULL, "13");
	expect_good(meet_other, taken, "13");
	expect_good(find_no_driver, bare, "13");
}

static void see_every_record(void)
{
	struct fake_wait wait = {.domain = FAKE_RUNTIME};
	struct fake_work work[3];

	begin(kinds);
	launch_kernels(1, 0, 1000000, work);
	launch_kernels(3, 5, 1000, work);
	client.wait(&wait);
	MUST(client.flush_all(0) == 0);
	MUST(count_taken(10) == 4);
	MUST(count_taken(5) == 3);
	MUST(count_taken(4) == 3);
	MUST(count_taken(38) == 1);
	for (uint32_t i = 0; i < client.count; i++) {
		const struct taken *taken = &client.taken[i];

		MUST(taken->start > 0 && taken->start < taken->end);
		if (taken->graph == 5)
			MUST(taken->correlation == work[0].correlation);
		if (taken->kind == 10)
			MUST(taken->correlation > 0 && taken->correlation <= 2);
	}
	client.count = 0;
	MUST(client.flush_all(1) == 0 && client.count == 0);
}

static void test_every_record(void **state)
{
	expect_good(see_every_record, NULL, "13");
	expect_good(see_every_record, NULL, "12");
	expect_good(see_every_record, NULL, "11.8");
}

static void meet_running_kernel(void)
{
	struct fake_work work;

	begin(kernels_and_calls);
	launch_kernels(1, 0, 600000000000, &work);
	MUST(client.flush_all(0) == 0);
	MUST(client.count == 0);
	MUST(client.flush_all(1) == 0);
	MUST(count_taken(10) == 1 && count_taken(5) == 1);
	for (uint32_t i = 0; i < client.count; i++)
		MUST(client.taken[i].kind != 10 || client.taken[i].end == 0);
	client.count = 0;
	MUST(client.flush_all(1) == 0);
	MUST(client.count == 0);
}

/* A kernel that still runs at a flush may be recorded once more, but not after it has ended. */
static void meet_ending_kernel(void)
{
	struct fake_work work;

	begin(kernels_and_calls);
	launch_kernels(1, 0, 5000000, &work);
	MUST(client.flush_all(1) == 0);
	MUST(count_taken(10) == 1);
	pause_ms(10);
	client.count = 0;
	MUST(client.flush_all(1) == 0);
	MUST(client.count == 0);
}

static void test_running_kernel(void **state)
{
	expect_good(meet_running_kernel, NULL, "13");
	expect_good(meet_ending_kernel, NULL, "13");
}

static void wait_for_late(void)
{
	struct fake_work work;

	begin(kernels);
	launch_kernels(1, 0, 1000, &work);
	MUST(client.flush_all(0) == 0);
	MUST(client.count == 0);
	pause_ms(200);
	MUST(client.count == 1);
}

static void flush_twice(void)
{
	struct fake_work work;

	begin(kernels);
	launch_kernels(1, 0, 1000, &work);
	pause_ms(1);
	MUST(client.flush_all(0) == 0);
	MUST(client.count == 0);
	MUST(client.flush_all(0) == 0);
	MUST(client.count == 1);
}

static void test_late(void **state)
{
	static const char *const late[] = {"FAKE_CUPTI_LATE=100", "FAKE_CUPTI_LATE_MS=50", NULL};
	static const char *const skip[] = {"FAKE_CUPTI_SKIP=100", NULL};

	expect_good(wait_for_late, late, "13");
	expect_good(flush_twice, skip, "13");
}

static void find_losses(void)
{
	struct fake_work works[40];
	uint32_t zero = 0, gone = 0;
	size_t dropped = 0;

	begin(kernels);
	launch_kernels(40, 0, 1000, works);
	pause_ms(1);
	MUST(client.flush_all(0) == 0);
	for (uint32_t i = 0; i < 40; i++)
		gone += works[i].fate == FAKE_DROPPED;
	for (uint32_t i = 0; i < client.count; i++)
		zero += client.taken[i].start == 0 && client.taken[i].end == 0;
	MUST(client.count == 36 && gone == 4);
	MUST(zero == 4);
	MUST(client.get_dropped(NULL, 0, &dropped) == 0 && dropped == 4);
	MUST(client.get_dropped(NULL, 0, &dropped) == 0 && dropped == 0);
}

/* Since 12.9 a client may hand out no buffer. */
static void have_no_buffer(void)
{
	struct fake_work work;
	size_t dropped = 0;

	client.trouble = "null";
	begin(kernels);
	launch_kernels(1, 0, 1000, &work);
	MUST(work.fate == FAKE_DROPPED);
	client.trouble = NULL;
	launch_kernels(1, 0, 1000, &work);
	MUST(work.fate == FAKE_TRACED);
	pause_ms(1);
	MUST(client.flush_all(0) == 0);
	MUST(client.count == 1);
	MUST(client.get_dropped(NULL, 0, &dropped) == 0 && dropped == 1);
}

static void test_losses(void **state)
{
	static const char *const version[] = {"FAKE_CUPTI_VERSION=27", NULL};
	static const char *const variables[] = {"FAKE_CUPTI_DROP=10", "FAKE_CUPTI_ZERO=9", NULL};

	expect_good(find_losses, variables, "13");
	expect_good(have_no_buffer, version, "12");
}

/* As CUPTI 13.0 U1 does it. Work has a number without records of calls, too. */
static void filter_calls(void)
{
	struct fake_work work;

	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 0);
	MUST(client.register_callbacks(request, completed) == 0);
	MUST(client.enable(10) == 0);
	launch_kernels(1, 0, 1000, &work);
	MUST(work.correlation == 1);
	MUST(client.enable_runtime_api(FAKE_CUDA_LAUNCH, 1) == 0);
	launch_kernels(1, 0, 1000, &work);
	MUST(work.correlation == 2);
	pause_ms(1);
	MUST(client.flush_all(0) == 0);
	MUST(count_taken(5) == 0 && count_taken(10) == 2);
	MUST(client.enable(5) == 0);
	MUST(client.enable_runtime_api(FAKE_CUDA_GET_DEVICE, 0) == 0);
	launch_kernels(1, 0, 1000, &work);
	client.noise(FAKE_RUNTIME);
	pause_ms(1);
	MUST(client.flush_all(0) == 0);
	MUST(count_taken(5) == 1 && count_taken(10) == 3);
	MUST(client.enable(5) == 0);
	client.noise(FAKE_RUNTIME);
	MUST(client.flush_all(0) == 0);
	MUST(count_taken(5) == 2);
}

static void find_no_filter(void)
{
	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 0);
	MUST(client.enable_runtime_api(FAKE_CUDA_LAUNCH, 1) == 27);
}

static void find_old_symbols(void)
{
	MUST(!client.enable_runtime_api && !client.subscribe_v2);
}

static void test_filter(void **state)
{
	static const char *const old[] = {"FAKE_CUPTI_VERSION=22", NULL};

	expect_good(filter_calls, NULL, "12");
	expect_good(find_no_filter, old, "12");
	expect_good(find_old_symbols, NULL, "11.8");
}

static void measure_records(void)
{
	const char *wanted = getenv("WANTED");
	char got[64] = "";
	static const uint32_t measured[] = {10, 1, 2, 38, 17, 5};

	for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
		uint32_t bytes[256];
		uint8_t *first = NULL, *second;

		for (int k = 0; k < 256; k++)
			bytes[k] = measured[i];
		MUST(client.get_next_record((uint8_t *)bytes, sizeof(bytes), &first) == 0);
		second = first;
		MUST(client.get_next_record((uint8_t *)bytes, sizeof(bytes), &second) == 0);
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%d", i ? "," : "",
			 (int)(second - first));
	}
	fprintf(stderr, "%s\n", got);
	MUST(strcmp(got, wanted) == 0);
}

static void test_strides(void **state)
{
	static const char *const releases[][3] = {
		{"FAKE_CUPTI_VERSION=13", "WANTED=160,80,80,40,40,40", NULL},
		{"FAKE_CUPTI_VERSION=18", "WANTED=200,88,88,40,40,40", NULL},
		{"FAKE_CUPTI_VERSION=24", "WANTED=208,88,88,40,56,40", NULL},
		{"FAKE_CUPTI_VERSION=26", "WANTED=208,96,88,56,56,40", NULL},
		{"FAKE_CUPTI_VERSION=130001", "WANTED=216,96,88,56,56,40", NULL},
		{"FAKE_CUPTI_VERSION=130100", "WANTED=224,96,88,56,56,40", NULL},
	};

	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++)
		expect_good(measure_records, releases[i], "13");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_subscriber), cmocka_unit_test(test_every_record),
		cmocka_unit_test(test_running_kernel), cmocka_unit_test(test_late),
		cmocka_unit_test(test_losses),	       cmocka_unit_test(test_filter),
		cmocka_unit_test(test_strides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

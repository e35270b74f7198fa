/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/futex.h>
#include <stdlib.h>
#include "output/slice.h"

#define NR_READ	  0
#define NR_MMAP	  9
#define NR_IOCTL  16
#define NR_MREMAP 25
#define NR_FUTEX  202

struct fixture {
	struct window *window;
	struct call_args args;
	char *text;
	size_t size;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct fbt_file file = {.id = 5, .fd = 3};

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	fixture->window->record.arch = FBT_ARCH_X86_64;
	assert_int_equal(window__add_file(fixture->window, &file, "/dev/nvidiactl"), 0);
	file.id = 6;
	assert_int_equal(window__add_file(fixture->window, &file, ""), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	free(fixture->text);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static void expect(struct fixture *fixture, const struct fbt_call *call, const char *expected)
{
	struct json json = {0};

	call_args_fill(&fixture->args, fixture->window, call);
	free(fixture->text);
	json.out = open_memstream(&fixture->text, &fixture->size);
	assert_non_null(json.out);
	json_fields_write(&json, NULL, &fixture->args.fields);
	fclose(json.out);
	assert_string_equal(fixture->text, expected);
}

static struct fbt_call make_call(uint32_t nr, uint64_t first, uint64_t second)
{
	return (struct fbt_call){.header.flags = FBT_CALL_ARGS, .nr = nr, .args = {first, second}};
}

static void without_arguments_there_is_only_the_result(void **state)
{
	struct fbt_call call = {.header.flags = FBT_CALL_BLOCKED, .nr = NR_IOCTL, .file = 5};

	expect(*state, &call, "{\"ret\":0}");
}

static void a_call_that_waited_says_so(void **state)
{
	struct fbt_call call = make_call(NR_READ, 3, 0);

	expect(*state, &call, "{\"ret\":0}");
	call.header.flags |= FBT_CALL_BLOCKED;
	expect(*state, &call, "{\"blocked\":true,\"ret\":0}");
}

static void a_call_on_a_file_has_its_path_and_descriptor(void **state)
{
	struct fbt_call call = make_call(NR_READ, 3, 0);

	call.file = 5;
	expect(*state, &call, "{\"fd\":3,\"path\":\"/dev/nvidiactl\",\"ret\":0}");
}

static void a_file_without_a_name_has_only_its_descriptor(void **state)
{
	struct fbt_call call = make_call(NR_READ, 3, 0);

	call.file = 6;
	expect(*state, &call, "{\"fd\":3,\"ret\":0}");
}

static void a_file_that_is_not_known_is_left_out(void **state)
{
	struct fbt_call call = make_call(NR_READ, 3, 0);

	call.file = 99;
	expect(*state, &call, "{\"ret\":0}");
}

static void an_ioctl_has_its_command_in_32_bits(void **state)
{
	struct fbt_call call = make_call(NR_IOCTL, 3, UINT64_C(0xffffffffc020462a));

	call.file = 5;
	expect(*state, &call,
	       "{\"cmd\":\"0xc020462a\",\"fd\":3,\"path\":\"/dev/nvidiactl\",\"ret\":0}");
}

static void a_futex_call_has_its_operation_without_options(void **state)
{
	struct fbt_call call = make_call(NR_FUTEX, 0x7f00aa10, FUTEX_WAIT | FUTEX_PRIVATE_FLAG);

	expect(*state, &call, "{\"op\":\"wait\",\"ret\":0,\"uaddr\":\"0x7f00aa10\"}");
	call.args[1] = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
	expect(*state, &call, "{\"op\":\"wait_bitset\",\"ret\":0,\"uaddr\":\"0x7f00aa10\"}");
	call.args[1] = FUTEX_CMP_REQUEUE_PI;
	expect(*state, &call, "{\"op\":\"cmp_requeue_pi\",\"ret\":0,\"uaddr\":\"0x7f00aa10\"}");
}

static void a_futex_operation_without_a_name_is_a_number(void **state)
{
	struct fbt_call call = make_call(NR_FUTEX, 16, 14);

	expect(*state, &call, "{\"op\":\"0xe\",\"ret\":0,\"uaddr\":\"0x10\"}");
	call.args[1] = UINT64_MAX;
	expect(*state, &call, "{\"op\":\"0xfffffe7f\",\"ret\":0,\"uaddr\":\"0x10\"}");
}

static void calls_that_map_memory_have_their_bytes(void **state)
{
	struct fbt_call call = make_call(NR_MMAP, 0, 2097152);

	expect(*state, &call, "{\"bytes\":2097152,\"ret\":0}");
	call.nr = NR_MREMAP;
	expect(*state, &call, "{\"bytes\":2097152,\"ret\":0}");
	call.nr = NR_READ;
	expect(*state, &call, "{\"ret\":0}");
}

static void a_number_without_a_name_has_no_arguments(void **state)
{
	struct fbt_call call = make_call(500, 1, 2);

	expect(*state, &call, "{\"ret\":0}");
}

static void a_call_that_is_open_has_arguments_and_no_result(void **state)
{
	struct fbt_call call = make_call(NR_FUTEX, 16, FUTEX_WAIT);

	call.header.flags |= FBT_CALL_UNFINISHED | FBT_CALL_BLOCKED;
	expect(*state, &call,
	       "{\"blocked\":true,\"op\":\"wait\",\"truncated\":true,\"uaddr\":\"0x10\"}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_arguments_there_is_only_the_result),
		TEST(a_call_that_waited_says_so),
		TEST(a_call_on_a_file_has_its_path_and_descriptor),
		TEST(a_file_without_a_name_has_only_its_descriptor),
		TEST(a_file_that_is_not_known_is_left_out),
		TEST(an_ioctl_has_its_command_in_32_bits),
		TEST(a_futex_call_has_its_operation_without_options),
		TEST(a_futex_operation_without_a_name_is_a_number),
		TEST(calls_that_map_memory_have_their_bytes),
		TEST(a_number_without_a_name_has_no_arguments),
		TEST(a_call_that_is_open_has_arguments_and_no_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

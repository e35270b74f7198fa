/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "code/future.h"

/* Two regions of a program: its code and a table among its constants. */
struct memory {
	uint64_t address;
	const char *code;
	size_t size;
	uint64_t table_address;
	const char *table;
	size_t table_size;
};

#define CODE(bytes) bytes, sizeof(bytes) - 1

/*
 * Code compiled by rustc 1.95. Calls whose targets do not matter keep the displacements of the
 * original file.
 */

/* async fn no_await(n: u32) -> u64, -C opt-level=3 */
static const struct memory no_await = {
	0x169c0, CODE("\x53\x0f\xb6\x47\x04\x85\xc0\x75\x14\x48\x89\xfb\x8b\x3f\xe8\xcd"
		      "\xfb\xff\xff\x89\xc2\xc6\x43\x04\x01\x31\xc0\x5b\xc3\x48\x8d\x3d"
		      "\x2c\xf9\x03\x00\x83\xf8\x01\x75\x06\xff\x15\x29\x1a\x04\x00\xff"
		      "\x15\x1b\x1a\x04\x00")};

/*
 * async fn result(n: u32) -> Result<String, Box<dyn Error>>, which awaits twice. The result is
 * returned in memory, so the future is the second argument.
 */
static const struct memory result = {
	0x16840,
	CODE("\x41\x57\x41\x56\x53\x48\x83\xec\x30\x48\x89\xf3\x49\x89\xfe\x0f"
	     "\xb6\x46\x04\x48\x8d\x0d\x6a\x19\xff\xff\x48\x63\x04\x81\x48\x01"
	     "\xc8\xff\xe0\x8b\x03\x89\x43\x08\x48\x8d\x7b\x08\x4c\x8b\x3a\x4c"
	     "\x89\xfe\xe8\xe9\x05\x00\x00\x85\xc0\x74\x19\x48\xb8\x01\x00\x00"
	     "\x00\x00\x00\x00\x80\x49\x89\x06\xb0\x03\xe9\x8c\x00\x00\x00\x4c"
	     "\x8b\x3a\xeb\x54\xbf\x07\x00\x00\x00\xe8\x02\xfd\xff\xff\x89\x44"
	     "\x24\x04\x48\x8d\x44\x24\x04\x48\x89\x44\x24\x08\x48\x8b\x05\x7d"
	     "\x1b\x04\x00\x48\x89\x44\x24\x10\x48\x8d\x35\x31\x20\xff\xff\x48"
	     "\x8d\x7c\x24\x18\x48\x8d\x54\x24\x08\xff\x15\x91\x1b\x04\x00\x48"
	     "\x8b\x44\x24\x28\x48\x89\x43\x20\x0f\x10\x44\x24\x18\x0f\x11\x43"
	     "\x10\xc7\x43\x08\x01\x00\x00\x00\x48\x8d\x7b\x08\x4c\x89\xfe\xe8"
	     "\x6c\x05\x00\x00\x85\xc0\x74\x11\x48\xb8\x01\x00\x00\x00\x00\x00"
	     "\x00\x80\x49\x89\x06\xb0\x04\xeb\x12\x48\x8b\x43\x10\x49\x89\x06"
	     "\x0f\x10\x43\x18\x41\x0f\x11\x46\x08\xb0\x01\x88\x43\x04\x4c\x89"
	     "\xf0\x48\x83\xc4\x30\x5b\x41\x5e\x41\x5f\xc3\x48\x8d\x3d\xae\xf9"
	     "\x03\x00\xff\x15\xe0\x1a\x04\x00\x48\x8d\x3d\xa1\xf9\x03\x00\xff"
	     "\x15\xcb\x1a\x04\x00\xeb\x27\x49\x89\xc6\x48\x8b\x73\x10\x48\x85"
	     "\xf6\x74\x1e\x48\x8b\x7b\x18\xba\x01\x00\x00\x00\xff\x15\x86\x1a"
	     "\x04\x00\xc6\x43\x04\x02\x4c\x89\xf7\xe8\x52\xe8\x03\x00\x49\x89"
	     "\xc6\xc6\x43\x04\x02\x4c\x89\xf7\xe8\x43\xe8\x03\x00"),
	0x81c4,
	CODE("\x9f\xe6\x00\x00\x67\xe7\x00\x00\x74\xe7\x00\x00\xa4\xe6\x00\x00"
	     "\xcb\xe6\x00\x00")};

/* no_await at -C opt-level=0 */
static const struct memory unoptimized = {
	0x1d670, CODE("\x48\x83\xec\x28\x48\x89\x7c\x24\x08\x0f\xb6\x47\x04\x89\x44\x24"
		      "\x14\x85\xc0\x74\x11\xeb\x00\x8b\x44\x24\x14\x83\xe8\x01\x74\x18"
		      "\xeb\x00\xeb\x1c\x0f\x0b\x48\x8b\x44\x24\x08\x8b\x38\xe8\x6e\xf1"
		      "\xff\xff\x89\x44\x24\x04\xeb\x33\x31\xc0\xa8\x01\x75\xfa\xeb\x43"
		      "\x31\xc0\xa8\x01\x75\xfa\xeb\x48\x48\x8b\x44\x24\x08\xc6\x40\x04"
		      "\x02\x48\x8b\x7c\x24\x18\xe8\x35\xf7\x03\x00\x48\x89\xc1\x89\xd0"
		      "\x48\x89\x4c\x24\x18\x89\x44\x24\x20\xeb\xdd\x48\x8b\x44\x24\x08"
		      "\x8b\x4c\x24\x04\x89\xc9\x89\xca\xc6\x40\x04\x01\x31\xc0\x48\x83"
		      "\xc4\x28\xc3\x48\x8d\x3d\x7e\x0c\x04\x00\xff\x15\x98\x2e\x04\x00"
		      "\x48\x8d\x3d\x71\x0c\x04\x00\xff\x15\x93\x2e\x04\x00")};

/*
 * The body of an async-trait function, -C opt-level=2 -C panic=abort. It cannot have panicked, so
 * the code tests only one bit of the state. Its work is replaced by nops.
 */
static const struct memory aborts = {
	0x15e50, CODE("\x55\x41\x57\x41\x56\x41\x54\x53\x48\x83\xec\x20\xf6\x46\x0c\x01"
		      "\x0f\x85\xc1\x01\x00\x00\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x41\xc6\x46\x0c\x01\xc3"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90\x90\x90\x90\x48\x8d\x3d\xea\xf0\x03\x00\xff\x15"
		      "\xa4\x11\x04\x00\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		      "\x90\x90\x90\x90")};

static int read_memory(void *ctx, uint64_t address, void *data, size_t size)
{
	const struct memory *memory = ctx;

	if (address >= memory->address && address - memory->address <= memory->size &&
	    memory->size - (address - memory->address) >= size) {
		memcpy(data, memory->code + (address - memory->address), size);
		return 0;
	}
	if (address >= memory->table_address &&
	    address - memory->table_address <= memory->table_size &&
	    memory->table_size - (address - memory->table_address) >= size) {
		memcpy(data, memory->table + (address - memory->table_address), size);
		return 0;
	}
	return -EIO;
}

static struct future find_on(enum fbt_arch arch, const struct memory *memory, const char *name)
{
	const struct exits_source source = {
		.arch = arch, .read = read_memory, .ctx = (void *)memory};
	const struct code_range body = {memory->address, memory->size};
	struct future future;

	assert_int_equal(future_find(&future, &source, &body, name), 0);
	return future;
}

static struct future find(const struct memory *memory)
{
	return find_on(FBT_ARCH_X86_64, memory, "a::b::{{closure}}");
}

static void is_known(struct future future, uint32_t base, int32_t offset)
{
	assert_int_equal(future.kind, FUTURE_KNOWN);
	assert_int_equal(future.base, base);
	assert_int_equal(future.offset, offset);
}

static void a_future_is_known_by_its_comparisons(void **state)
{
	is_known(find(&no_await), 0, 4);
	is_known(find(&aborts), 1, 12);
}

static void a_future_is_known_by_its_jump_table(void **state)
{
	is_known(find(&result), 1, 4);
}

static void a_future_is_known_by_what_it_keeps_on_the_stack(void **state)
{
	is_known(find(&unoptimized), 0, 4);
}

static void a_large_frame_is_touched_before_the_state_is_read(void **state)
{
	/*
	 * lea -0x3000(%rsp),%r11; 1: sub $0x1000,%rsp; movq $0,(%rsp); cmp %r11,%rsp; jne 1b; then
	 * as no_await
	 */
	static const struct memory large = {
		0x1000, CODE("\x4c\x8d\x9c\x24\x00\xd0\xff\xff"
			     "\x48\x81\xec\x00\x10\x00\x00"
			     "\x48\xc7\x04\x24\x00\x00\x00\x00"
			     "\x4c\x39\xdc\x75\xec"
			     "\x0f\xb6\x47\x04\x85\xc0\x75\x05"
			     "\xc6\x47\x04\x01\xc3"
			     "\x48\x8d\x3d\x00\x01\x00\x00\xe8\x00\x00\x00\x00")};

	is_known(find(&large), 0, 4);
}

static void a_name_decides_and_without_one_the_code(void **state)
{
	is_known(find_on(FBT_ARCH_X86_64, &no_await, NULL), 0, 4);
	is_known(find_on(FBT_ARCH_X86_64, &no_await, "a::b::{closure#0}"), 0, 4);
	is_known(find_on(FBT_ARCH_X86_64, &no_await, "<a as b>::c::{{closure}}"), 0, 4);
	assert_int_equal(find_on(FBT_ARCH_X86_64, &no_await, "a::b").kind, FUTURE_NONE);
	assert_int_equal(find_on(FBT_ARCH_X86_64, &no_await, "llama_decode").kind, FUTURE_NONE);
}

static void an_ordinary_closure_is_none(void **state)
{
	/* movzbl 4(%rdi),%eax; test %eax,%eax; jne +2; xor %eax,%eax; ret */
	static const struct memory flag = {0x1000,
					   CODE("\x0f\xb6\x47\x04\x85\xc0\x75\x02\x31\xc0\xc3")};
	/* mov 4(%rdi),%eax; test %eax,%eax; jne 1f; ret; 1: lea 0x100(%rip),%rdi; call */
	static const struct memory word = {
		0x1000, CODE("\x8b\x47\x04\x85\xc0\x75\x01\xc3"
			     "\x48\x8d\x3d\x00\x01\x00\x00\xe8\x00\x00\x00\x00")};
	static const struct memory empty = {0x1000, CODE("\xc3")};
	static const struct memory spins = {0x1000, CODE("\xeb\xfe")};

	assert_int_equal(find(&flag).kind, FUTURE_NONE);
	assert_int_equal(find(&word).kind, FUTURE_NONE);
	assert_int_equal(find(&empty).kind, FUTURE_NONE);
	assert_int_equal(find(&spins).kind, FUTURE_NONE);
}

/* The code panics if the byte is 1, but never sets it to 1. A closure may do that too. */
static void a_function_that_never_marks_its_future_is_not_told(void **state)
{
	static const struct memory unmarked = {
		0x1000, CODE("\x0f\xb6\x47\x04\x85\xc0\x75\x01\xc3"
			     "\x48\x8d\x3d\x00\x01\x00\x00\xe8\x00\x00\x00\x00")};

	assert_int_equal(find(&unmarked).kind, FUTURE_UNTOLD);
	assert_int_equal(find_on(FBT_ARCH_X86_64, &unmarked, NULL).kind, FUTURE_NONE);
}

static void where_it_cannot_be_told_it_is_said(void **state)
{
	assert_int_equal(find_on(FBT_ARCH_ARM64, &no_await, "a::b::{{closure}}").kind,
			 FUTURE_UNTOLD);
	assert_int_equal(find_on(FBT_ARCH_ARM64, &no_await, NULL).kind, FUTURE_NONE);
	assert_int_equal(find_on(FBT_ARCH_X86_64, &no_await,
				 "<a::Nap as core::future::future::Future>::poll")
				 .kind,
			 FUTURE_UNTOLD);
}

/* The walk must end, whatever the bytes are. */
static void damaged_code_is_no_future(void **state)
{
	char code[512];
	struct memory memory = {result.address,	      code,	    result.size,
				result.table_address, result.table, result.table_size};

	for (size_t i = 0; i < result.size; i++) {
		memcpy(code, result.code, result.size);
		code[i] = (char)(code[i] ^ 0x41);
		(void)find(&memory);
		memory.size = i;
		(void)find(&memory);
		memory.size = result.size;
	}
	memory.table_size = 3;
	assert_int_equal(find(&memory).kind, FUTURE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_future_is_known_by_its_comparisons),
		cmocka_unit_test(a_future_is_known_by_its_jump_table),
		cmocka_unit_test(a_future_is_known_by_what_it_keeps_on_the_stack),
		cmocka_unit_test(a_large_frame_is_touched_before_the_state_is_read),
		cmocka_unit_test(a_name_decides_and_without_one_the_code),
		cmocka_unit_test(an_ordinary_closure_is_none),
		cmocka_unit_test(a_function_that_never_marks_its_future_is_not_told),
		cmocka_unit_test(where_it_cannot_be_told_it_is_said),
		cmocka_unit_test(damaged_code_is_no_future),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

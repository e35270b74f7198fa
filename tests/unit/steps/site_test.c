/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "steps/site.h"

/* No test calls these functions: the code under test only reads them. */
void site_test_caller(void);
extern const char site_test_return[], site_test_probe[], site_test_middle[], site_test_other[];

__asm__(".pushsection .text\n"
	".globl site_test_caller\n"
	".type site_test_caller, %function\n"
	"site_test_caller:\n"
	".cfi_startproc\n"
#ifdef __x86_64__
	"call site_test_caller\n"
	".globl site_test_return\n"
	"site_test_return:\n"
	"mov %eax, %edi\n"
	"pop %rdx\n"
	".globl site_test_probe\n"
	"site_test_probe:\n"
	"je 1f\n"
	".globl site_test_other\n"
	"site_test_other:\n"
	"mov $0x55555555, %eax\n"
	"1: ret\n"
	".globl site_test_middle\n"
	".set site_test_middle, site_test_other + 1\n"
#else
	".globl site_test_return, site_test_probe, site_test_other, site_test_middle\n"
	"site_test_return: site_test_probe: site_test_other: site_test_middle: ret\n"
#endif
	".cfi_endproc\n"
	".size site_test_caller, . - site_test_caller\n"
	".popsection\n");

static int find(struct step_site *site, const void *address)
{
	return step_site_find(site, (uint32_t)getpid(), (uintptr_t)address, false);
}

static int skip_elsewhere(void **state)
{
#ifndef __x86_64__
	print_message("SKIP call sites are used on x86-64\n");
	skip();
#endif
	return 0;
}

static void a_site_is_probed_at_the_next_emulated_instruction(void **state)
{
	uint8_t bytes[2] = {0};
	struct step_site site;

	assert_int_equal(find(&site, site_test_return), 0);
	assert_true(site.emulated);
	assert_int_equal(site.sp, 16); /* the return address and a pop */
	assert_int_equal(pread(site.fd, bytes, 2, (off_t)site.offset), 2);
	assert_memory_equal(bytes, site_test_probe, 2);
	assert_non_null(strchr(site.path, '/'));
	step_site_clear(&site);
}

/* Otherwise a forged stack could make the tool break the engine's code. */
static void only_what_follows_a_call_is_a_site(void **state)
{
	struct step_site site;

	assert_int_equal(find(&site, site_test_other), -EBADMSG);
	assert_int_equal(find(&site, site_test_middle), -EBADMSG);
	assert_int_equal(find(&site, site_test_return + 1), -EBADMSG);
}

static void code_without_a_file_has_no_sites(void **state)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct step_site site;

	assert_ptr_not_equal(code, MAP_FAILED);
	memcpy(code, "\xe8\x00\x00\x00\x00\x90", 6);
	assert_int_equal(find(&site, code + 5), -ENOENT);
	munmap(code, 4096);
}

static void data_and_nothing_are_no_sites(void **state)
{
	static const char data[64];
	struct step_site site;

	assert_int_equal(find(&site, data + 8), -ENOENT);
	assert_int_equal(find(&site, (const void *)16), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_site_is_probed_at_the_next_emulated_instruction,
				       skip_elsewhere),
		cmocka_unit_test_setup(only_what_follows_a_call_is_a_site, skip_elsewhere),
		cmocka_unit_test_setup(code_without_a_file_has_no_sites, skip_elsewhere),
		cmocka_unit_test_setup(data_and_nothing_are_no_sites, skip_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

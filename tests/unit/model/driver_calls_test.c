/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include "model/driver_calls.h"
#include "model/syscalls.h"

#define RM(number)	  (0xc0200000u | 'F' << 8 | (number))
#define OF(number, which) ((uint64_t)(which) << 32 | RM(number))

static void check(const char *path, uint64_t command, const char *expected)
{
	char copy[64], name[DRIVER_CALL_NAME];
	struct file file = {.record.mode = S_IFCHR | 0666, .path = strcpy(copy, path)};

	if (expected)
		assert_string_equal(driver_call_name(&file, command, name), expected);
	else
		assert_null(driver_call_name(&file, command, name));
}

static void commands_of_the_resource_manager_have_names(void **state)
{
	check("/dev/nvidiactl", RM(0x29), "RM_FREE");
	check("/dev/nvidia0", RM(0x4e), "RM_MAP_MEMORY");
	check("/dev/nvidia12", RM(0x4f), "RM_UNMAP_MEMORY");
	check("/dev/nvidiactl", RM(201), "REGISTER_FD");
	check("/dev/nvidiactl", RM(0x99), "RM 0x99");
}

static void the_size_in_a_command_does_not_count(void **state)
{
	check("/dev/nvidiactl", 0xc0284600u | 0x4f, "RM_UNMAP_MEMORY");
	check("/dev/nvidiactl", 0xc0004600u | 0x4f, "RM_UNMAP_MEMORY");
}

static void controls_are_named_by_what_they_control(void **state)
{
	check("/dev/nvidiactl", OF(0x2a, 0x2080014a), "RM_CONTROL GPU_GET_GID_INFO");
	check("/dev/nvidiactl", OF(0x2a, 0x20801234), "RM_CONTROL subdevice 0x20801234");
	check("/dev/nvidiactl", OF(0x2a, 0xdead0001), "RM_CONTROL 0xdead0001");
	check("/dev/nvidiactl", RM(0x2a), "RM_CONTROL");
}

static void allocations_are_named_by_their_class(void **state)
{
	check("/dev/nvidiactl", OF(0x2b, 0x40), "RM_ALLOC device memory");
	check("/dev/nvidiactl", OF(0x2b, 0x3e), "RM_ALLOC pinned host memory");
	check("/dev/nvidiactl", OF(0x2b, 0xabcd), "RM_ALLOC class 0xabcd");
	check("/dev/nvidiactl", RM(0x2b), "RM_ALLOC");
}

static void every_name_has_room(void **state)
{
	char name[DRIVER_CALL_NAME];
	struct file file = {.record.mode = S_IFCHR, .path = (char[]){"/dev/nvidiactl"}};

	for (uint32_t i = 0; i < 0x10000; i++) {
		driver_call_name(&file, OF(0x2a, 0x20800000 | i), name);
		assert_true(strlen(name) < DRIVER_CALL_NAME - 1);
	}
}

static void commands_of_uvm_are_plain_numbers(void **state)
{
	check("/dev/nvidia-uvm", 51, "UVM_MIGRATE");
	check("/dev/nvidia-uvm", 34, "UVM_FREE");
	check("/dev/nvidia-uvm", 0x30000001, "UVM_INITIALIZE");
	check("/dev/nvidia-uvm", 999, "UVM 0x3e7");
}

static void other_files_have_no_driver_calls(void **state)
{
	struct file plain = {.record.mode = S_IFREG, .path = (char[]){"/dev/nvidiactl"}};
	char name[DRIVER_CALL_NAME];

	check("/dev/null", RM(0x29), NULL);
	check("/dev/nvidia", RM(0x29), NULL);
	check("/dev/nvidia-uvm-tools", RM(0x29), NULL);
	check("/dev/nvidia-caps/nvidia-cap1", RM(0x29), NULL);
	check("/dev/nvidia-modeset", RM(0x29), NULL);
	check("/dev/nvidiactl", 0x5401, NULL); /* TCGETS */
	assert_null(driver_call_name(&plain, RM(0x29), name));
	assert_null(driver_call_name(NULL, RM(0x29), name));
}

static void ioctl_is_known_by_its_number(void **state)
{
	struct window window = {0};
	struct fbt_call call = {.header.flags = FBT_CALL_ARGS};

	for (enum fbt_arch arch = FBT_ARCH_X86_64; arch <= FBT_ARCH_ARM64; arch++) {
		window.record.arch = arch;
		for (call.nr = 0; call.nr < 450; call.nr++) {
			const char *name = syscall_name(arch, call.nr);

			assert_int_equal(driver_call_has_command(&window, &call),
					 name && !strcmp(name, "ioctl"));
		}
	}
}

static void arguments_that_are_not_known_are_no_command(void **state)
{
	struct window window = {.record.arch = FBT_ARCH_X86_64};
	struct fbt_call call = {.nr = 16};

	assert_false(driver_call_has_command(&window, &call));
	call.header.flags = FBT_CALL_ARGS;
	assert_true(driver_call_has_command(&window, &call));
	window.record.arch = 0;
	assert_false(driver_call_has_command(&window, &call));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_of_the_resource_manager_have_names),
		cmocka_unit_test(the_size_in_a_command_does_not_count),
		cmocka_unit_test(controls_are_named_by_what_they_control),
		cmocka_unit_test(allocations_are_named_by_their_class),
		cmocka_unit_test(every_name_has_room),
		cmocka_unit_test(commands_of_uvm_are_plain_numbers),
		cmocka_unit_test(other_files_have_no_driver_calls),
		cmocka_unit_test(ioctl_is_known_by_its_number),
		cmocka_unit_test(arguments_that_are_not_known_are_no_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "syscalls.h"
#include "syscall_table_arm64.h"
#include "syscall_table_x86_64.h"

#define ARRAY_SIZE(array)  (sizeof(array) / sizeof((array)[0]))
#define NAME_ROW(nr, name) [nr] = #name,

static const char *const x86_64_names[] = {SYSCALL_TABLE_X86_64(NAME_ROW)};
static const char *const arm64_names[] = {SYSCALL_TABLE_ARM64(NAME_ROW)};

_Static_assert(ARRAY_SIZE(x86_64_names) < FBT_NR_COUNT, "known calls have rows of their own");
_Static_assert(ARRAY_SIZE(arm64_names) < FBT_NR_COUNT, "known calls have rows of their own");

enum fbt_arch syscalls_arch(void)
{
#if defined(__x86_64__)
	return FBT_ARCH_X86_64;
#elif defined(__aarch64__)
	return FBT_ARCH_ARM64;
#else
#error "no syscall table for this architecture"
#endif
}

const char *syscall_name(enum fbt_arch arch, uint32_t nr)
{
	if (arch == FBT_ARCH_X86_64 && nr < ARRAY_SIZE(x86_64_names))
		return x86_64_names[nr];
	if (arch == FBT_ARCH_ARM64 && nr < ARRAY_SIZE(arm64_names))
		return arm64_names[nr];
	return NULL;
}

const char *syscall_label(enum fbt_arch arch, uint32_t nr, char buffer[24])
{
	const char *name = syscall_name(arch, nr);

	if (name)
		return name;
	snprintf(buffer, 24, "syscall_%u", nr);
	return buffer;
}

enum fbt_category syscall_category(enum fbt_arch arch, uint32_t nr)
{
	static const struct {
		const char *name;
		enum fbt_category category;
	} rules[] = {
		{"mmap", FBT_MMAP},   {"munmap", FBT_MMAP},    {"mprotect", FBT_MMAP},
		{"brk", FBT_MMAP},    {"futex", FBT_FUTEX},    {"ioctl", FBT_IOCTL},
		{"read", FBT_READ},   {"pread64", FBT_READ},   {"readv", FBT_READ},
		{"write", FBT_WRITE}, {"pwrite64", FBT_WRITE}, {"writev", FBT_WRITE},
	};
	const char *name = syscall_name(arch, nr);

	if (!name)
		return FBT_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (!strcmp(name, rules[i].name))
			return rules[i].category;
	}
	return FBT_OTHER;
}

const char *category_name(enum fbt_category category)
{
	static const char *const names[FBT_CATEGORY_COUNT] = {
		[FBT_MMAP] = "mmap", [FBT_FUTEX] = "futex", [FBT_IOCTL] = "ioctl",
		[FBT_READ] = "read", [FBT_WRITE] = "write", [FBT_OTHER] = "other",
	};

	return (unsigned int)category < FBT_CATEGORY_COUNT ? names[category] : "other";
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Libraries with markers, made by the compiler and loaded into the test's own process. */
#ifndef FBT_TEST_MARKERS_FIXTURE_H
#define FBT_TEST_MARKERS_FIXTURE_H

#include <dlfcn.h>

#include "elf_fixture.h"
#include "fbt_python.h"

#define STRING(value)	 STRING_OF(value)
#define STRING_OF(value) #value

/*
 * Three markers, and a nop of six bytes whose end looks like one. NOTE: the note of the library,
 * whose first slot has these markers; WRONG: one of them is no nop.
 */
static const char markers_source[] =
	"__asm__(\".text\\n\"\n"
	"	\".globl code_begin, code_end, code_raised, code_padding\\n\"\n"
	"	\"code_begin: own_begin: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\\n\"\n"
	"	\"code_end: own_end: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\\n\"\n"
	"#ifdef WRONG\n"
	"	\"code_raised: own_raised: ret; .byte 0x1f, 0x44, 0x00, 0x00\\n\"\n"
	"#else\n"
	"	\"code_raised: own_raised: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\\n\"\n"
	"#endif\n"
	"	\"ret\\n\"\n"
	"	\"code_padding: .byte 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00\\n\"\n"
	"	\".skip 16, 0x90\\n\");\n"
	"#ifdef NOTE\n"
	"__asm__(\".pushsection " FBT_PYTHON_NOTE_SECTION ", \\\"a\\\", %note\\n\"\n"
	"	\".long 7, 3 * 4 * " STRING(
		FBT_PYTHON_SLOTS) ", 1\\n\"\n"
				  "	\".asciz \\\"" FBT_PYTHON_NOTE_NAME
				  "\\\"\\n.balign 4\\n\"\n"
				  "	\".long own_begin - .\\n.long own_end - .\\n.long "
				  "own_raised - .\\n\"\n"
				  "	\".rept 3 * (" STRING(
					  FBT_PYTHON_SLOTS) " - 1)\\n.long own_begin - "
							    ".\\n.endr\\n\"\n"
							    "	\".popsection\\n\");\n"
							    "#endif\n";

/* Builds and loads libferrum_NAME.so, with these flags of the compiler. */
static inline void *markers_load(struct elf_fixture *fixture, const char *name, const char *flags)
{
	char path[128];
	void *library;

	elf_fixture_need(fixture, "gcc");
	elf_fixture_write(fixture, "markers.c", markers_source);
	assert_true(elf_fixture_run(fixture, "gcc -shared -fPIC %s markers.c -o libferrum_%s.so",
				    flags, name));
	snprintf(path, sizeof(path), "%s/libferrum_%s.so", fixture->folder, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	return library;
}

static inline uint64_t markers_address(void *library, const char *name)
{
	void *address = dlsym(library, name);

	assert_non_null(address);
	return (uint64_t)(uintptr_t)address;
}

/* What a page tells of the library. */
static inline struct fbt_python_slot markers_slot(void *library)
{
	return (struct fbt_python_slot){
		.begin = markers_address(library, "code_begin"),
		.end = markers_address(library, "code_end"),
		.raised = markers_address(library, "code_raised"),
	};
}

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_check_program.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "elf_file.h"
#include "inject_libc.h"
#include "regular_file.h"

/*
 * Sanitizers put their own pthread_create in place of the one that is called here, and know no
 * other threads. The others stop all threads by a signal, and would wait for one that blocks it.
 */
static const struct {
	const char *prefix;
	const char *what;
} runtimes[] = {
	{"ld-musl-", "musl, not glibc"},
	{"libc.musl-", "musl, not glibc"},
	{"libasan.so", "AddressSanitizer"},
	{"libtsan.so", "ThreadSanitizer"},
	{"libhwasan.so", "HWAddressSanitizer"},
	{"liblsan.so", "LeakSanitizer"},
	{"libclang_rt.asan", "AddressSanitizer"},
	{"libclang_rt.tsan", "ThreadSanitizer"},
	{"libclang_rt.hwasan", "HWAddressSanitizer"},
	{"libgc.so", "the Boehm garbage collector"},
	{"libmono", "Mono"},
	{"libcoreclr.so", ".NET"},
	{"libphobos2.so", "the D runtime"},
	{"libgphobos.so", "the D runtime"},
	{"libdruntime-ldc", "the D runtime"},
};

/* The same linked into the program, as clang does. */
static const char *const sanitizer_names[] = {"__asan_init", "__tsan_init", "__msan_init",
					      "__hwasan_init", "__lsan_init"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#if defined(__x86_64__)
void inject_check_processor(struct inject_verdict *verdict)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		inject_verdict_add(verdict, INJECT_REFUSAL, "processor",
				   "it, or the kernel, has no XSAVE: " INJECT_INSTEAD);
}
#else
void inject_check_processor(struct inject_verdict *verdict)
{
	inject_verdict_add(verdict, INJECT_REFUSAL, "processor",
			   "--gpu=inject is for x86-64 only: " INJECT_INSTEAD);
}
#endif

const char *inject_find_runtime(const inject_mapping_vec *maps, const char **what)
{
	vec_for_each (mapping, maps) {
		const char *name = inject_mapping_name(mapping);

		for (size_t i = 0; i < COUNT(runtimes); i++) {
			if (strncmp(name, runtimes[i].prefix, strlen(runtimes[i].prefix)) != 0)
				continue;
			*what = runtimes[i].what;
			return name;
		}
	}
	return NULL;
}

static void check_sanitizers(struct inject_verdict *verdict, struct elf_file *file)
{
	uint64_t addresses[COUNT(sanitizer_names)];

	if (inject_exports_find(file, sanitizer_names, COUNT(sanitizer_names), addresses))
		return;
	for (size_t i = 0; i < COUNT(sanitizer_names); i++) {
		if (addresses[i])
			inject_verdict_add(verdict, INJECT_REFUSAL, "runtime",
					   "built with a sanitizer (%s), which does not know of "
					   "threads that it did not start: " INJECT_INSTEAD,
					   sanitizer_names[i]);
	}
}

/* ld.so has no interpreter, and may be what was run. */
static bool is_loader(const char *exe)
{
	const char *slash = strrchr(exe, '/');

	return !strncmp(slash ? slash + 1 : exe, "ld-linux", 8);
}

static void check_elf(struct inject_verdict *verdict, struct elf_file *file, const char *exe)
{
	if (elf_file__is_go(file))
		inject_verdict_add(verdict, INJECT_REFUSAL, "runtime",
				   "a Go program: its runtime has threads and signals in its own "
				   "hands: " INJECT_INSTEAD);
	else if (!elf_file__has_interpreter(file) && !is_loader(exe))
		inject_verdict_add(verdict, INJECT_REFUSAL, "program",
				   "%s is linked statically: it cannot load a library", exe);
	else
		check_sanitizers(verdict, file);
}

static void check_exe(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread)
{
	struct elf_file *file = NULL;
	char path[64], exe[PATH_MAX];
	struct stat status;
	ssize_t length;
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/exe", tgid, thread);
	length = readlink(path, exe, sizeof(exe) - 1);
	exe[length > 0 ? length : 0] = '\0';
	fd = regular_file_open(path, &status);
	err = fd < 0 ? fd : elf_file__open(&file, fd);
	/* At its end a process has none any more. */
	if (err == -ENOENT && length <= 0)
		err = -ESRCH;
	if (err)
		inject_verdict_add(verdict, INJECT_REFUSAL, "program", "%s: %s",
				   *exe ? exe : "its file", elf_file_strerror(err));
	else
		check_elf(verdict, file, exe);
	elf_file__free(file);
	if (fd >= 0)
		close(fd);
}

void inject_check_program(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread,
			  const inject_mapping_vec *maps)
{
	const char *what, *name = inject_find_runtime(maps, &what);

	if (name)
		inject_verdict_add(verdict, INJECT_REFUSAL, "runtime",
				   "%s is mapped: %s, which a thread of ours could hang or "
				   "crash: " INJECT_INSTEAD,
				   name, what);
	check_exe(verdict, tgid, thread);
}

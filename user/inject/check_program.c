/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/check_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fbt_gpu.h"
#include "inject/cuda_use.h"
#include "inject/place.h"
#include "proc/namespace.h"
#include "proc/open.h"
#include "sandbox/privilege.h"
#include "elf/elf_file.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/*
 * Libraries that cannot live with a thread that the stub starts. Sanitizers replace pthread_create,
 * but the stub calls glibc's, so they would not know the thread. The other runtimes stop all
 * threads by a signal, and would wait for ever for the helper, which blocks it.
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

/* Sanitizers that are linked into the program, as clang does: their functions. */
static const char *const sanitizer_names[] = {"__asan_init", "__tsan_init", "__msan_init",
					      "__hwasan_init", "__lsan_init"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#if defined(__x86_64__)
void inject_check_processor(struct inject_verdict *verdict)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		inject_refuse(verdict, "processor",
			      "the processor or the kernel has no XSAVE: " INJECT_INSTEAD);
}
#else
void inject_check_processor(struct inject_verdict *verdict)
{
	inject_refuse(verdict, "processor", "--gpu=inject needs an x86-64: " INJECT_INSTEAD);
}
#endif

const char *inject_find_runtime(const mapping_vec *maps, const char **what)
{
	vec_for_each (mapping, maps) {
		const char *name = mapping_name(mapping);

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
			inject_refuse(verdict, "runtime",
				      "built with a sanitizer (%s), which supports no threads that "
				      "it did not start: " INJECT_INSTEAD,
				      sanitizer_names[i]);
	}
}

/* ld.so, run as a program (ld.so PROGRAM), has no interpreter but is no static program. */
static bool is_loader(const char *exe)
{
	const char *slash = strrchr(exe, '/');

	return !strncmp(slash ? slash + 1 : exe, "ld-linux", 8);
}

static void check_elf(struct inject_verdict *verdict, struct elf_file *file, const char *exe)
{
	if (elf_file__is_go(file))
		inject_refuse(verdict, "runtime",
			      "a Go program, whose runtime controls threads and "
			      "signals: " INJECT_INSTEAD);
	else if (!elf_file__has_interpreter(file) && !is_loader(exe))
		inject_refuse(verdict, "program",
			      "%s is linked statically and cannot load a library", exe);
	else
		check_sanitizers(verdict, file);
}

static void check_exe(struct inject_verdict *verdict, struct proc_ref process)
{
	struct elf_file *file = NULL;
	char path[PROC_PATH_MAX], exe[PATH_MAX];
	struct stat status;
	int fd, err;

	proc_readlink(process, "exe", exe, sizeof(exe));
	proc_path(path, process, "exe");
	fd = regular_file_open(path, &status);
	err = fd < 0 ? fd : elf_file__open(&file, fd);
	/* The link is empty once a process is exiting. */
	if (err == -ENOENT && !*exe)
		err = -ESRCH;
	if (err)
		inject_refuse(verdict, "program", "%s: %s", *exe ? exe : "its file",
			      elf_file_strerror(err));
	else
		check_elf(verdict, file, exe);
	elf_file__free(file);
	if (fd >= 0)
		close(fd);
}

void inject_check_program(struct inject_verdict *verdict, struct proc_ref process,
			  const mapping_vec *maps)
{
	const char *what, *name = inject_find_runtime(maps, &what);

	if (name)
		inject_refuse(
			verdict, "runtime",
			"%s is mapped: %s, which a new thread could hang or crash: " INJECT_INSTEAD,
			name, what);
	check_exe(verdict, process);
}

#define LIBCUPTI "libcupti.so."
#define RING	 "/memfd:" FBT_GPU_MEMFD

/*
 * CUPTI of CUDA 12.6 is 2024.3. A first number of YEARS_FROM or more is a year; a smaller one is
 * CUDA's major version.
 */
#define NEW_YEAR    2024
#define NEW_RELEASE 3
#define YEARS_FROM  2000

/* Libraries that Nsight Systems and Nsight Compute load into a process that they profile. */
static const char *const tools[] = {"libToolsInjection64.so", "libcuda-injection.so"};

static const struct mapping *find_library(const mapping_vec *maps, const char *name)
{
	vec_for_each (mapping, maps) {
		if (cuda_use_is_library(mapping, name))
			return mapping;
	}
	return NULL;
}

static bool has_ring(const mapping_vec *maps)
{
	vec_for_each (mapping, maps) {
		if (!strcmp(mapping->path, RING))
			return true;
	}
	return false;
}

enum inject_cupti inject_cupti_age(const char *name)
{
	unsigned int first, second;
	int count;

	if (strncmp(name, LIBCUPTI, strlen(LIBCUPTI)) != 0)
		return INJECT_CUPTI_UNKNOWN;
	count = sscanf(name + strlen(LIBCUPTI), "%u.%u", &first, &second);
	if (count < 1)
		return INJECT_CUPTI_UNKNOWN;
	if (first < 12 || (first >= YEARS_FROM && first < NEW_YEAR))
		return INJECT_CUPTI_OLD;
	if (first == 12)
		return count == 1   ? INJECT_CUPTI_UNKNOWN
		       : second < 6 ? INJECT_CUPTI_OLD
				    : INJECT_CUPTI_NEW;
	if (first == NEW_YEAR && count == 2 && second < NEW_RELEASE)
		return INJECT_CUPTI_OLD;
	return first == NEW_YEAR && count == 1 ? INJECT_CUPTI_UNKNOWN : INJECT_CUPTI_NEW;
}

static void check_cupti(struct inject_verdict *verdict, const mapping_vec *maps)
{
	const struct mapping *cupti = find_library(maps, LIBCUPTI);
	const char *name = cupti ? mapping_name(cupti) : "";

	if (!cupti) {
		inject_fine(
			verdict, "CUPTI",
			"none is mapped: the shim looks for one, and reports one that is too old");
		return;
	}
	switch (inject_cupti_age(name)) {
	case INJECT_CUPTI_OLD:
		inject_refuse(verdict, "CUPTI",
			      "%s is older than CUDA 12.6: it cannot attach to a process that may "
			      "have captured CUDA graphs: " INJECT_INSTEAD,
			      name);
		break;
	case INJECT_CUPTI_NEW:
		inject_fine(verdict, "CUPTI", "%s", cupti->path);
		break;
	case INJECT_CUPTI_UNKNOWN:
		inject_fine(verdict, "CUPTI", "%s: version unknown; the shim checks it",
			    cupti->path);
		break;
	}
}

static void check_tools(struct inject_verdict *verdict, const mapping_vec *maps)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		if (find_library(maps, tools[i]))
			inject_warn(verdict, "CUPTI",
				    "%s of another profiler is mapped: no GPU records while that "
				    "profiler holds CUPTI",
				    tools[i]);
	}
}

static void check_injection(struct inject_verdict *verdict, struct proc_ref process)
{
	char path[CUDA_PATH_SIZE];
	enum cuda_injection injection = cuda_use_injection(process.tgid, path);

	if (injection == CUDA_INJECTION_OTHER)
		inject_warn(verdict, "CUPTI",
			    "CUDA_INJECTION64_PATH names %.200s: no GPU records if that library "
			    "holds CUPTI",
			    path);
	else if (injection == CUDA_INJECTION_SHIM && *path == '/')
		inject_warn(verdict, "shim",
			    "CUDA loads %.200s itself at its first use (CUDA_INJECTION64_PATH): "
			    "use --gpu=auto if the process has not used CUDA yet",
			    path);
}

void inject_check_cuda(struct inject_verdict *verdict, struct proc_ref process,
		       const mapping_vec *maps)
{
	const struct mapping *cuda = find_library(maps, CUDA_LIBRARY);
	const struct mapping *shim = find_library(maps, CUDA_SHIM);

	verdict->present = shim || has_ring(maps);
	if (verdict->present) {
		inject_fine(verdict, "shim", "is already loaded (%s)", shim ? shim->path : RING);
		return;
	}
	if (!cuda) {
		inject_refuse(verdict, "CUDA",
			      "no " CUDA_LIBRARY " is mapped: the process does not use CUDA (yet)");
		return;
	}
	inject_fine(verdict, "CUDA", "%s", cuda->path);
	check_cupti(verdict, maps);
	check_tools(verdict, maps);
	check_injection(verdict, process);
}

/* Values of kernel.yama.ptrace_scope, as its documentation names them. */
#define SCOPE_CLASSIC 0
#define SCOPE_NOBODY  3

/*
 * Whether file permissions allow a write to /proc/PID/mem, which belongs to the process's user.
 * ptrace's rules are another matter.
 */
static bool may_write(struct proc_ref process, const struct privilege_state *privilege)
{
	char path[PROC_PATH_MAX];
	struct stat file;

	proc_path(path, process, "mem");
	return stat(path, &file) || file.st_uid == geteuid() ||
	       privilege_has(privilege, CAP_DAC_OVERRIDE);
}

const char *inject_access_advice(int scope, bool capable)
{
	if (scope >= SCOPE_NOBODY)
		return "kernel.yama.ptrace_scope is 3: no process can be traced until the next "
		       "boot: " INJECT_INSTEAD;
	if (!capable && scope > SCOPE_CLASSIC)
		return "needs CAP_SYS_PTRACE, and kernel.yama.ptrace_scope is not 0: run as root";
	if (!capable)
		return "needs CAP_SYS_PTRACE, or to be of the same user and dumpable: run as root";
	return "a security module (SELinux, AppArmor) or our user namespace forbids it: see the "
	       "kernel log";
}

int inject_check_access(struct inject_verdict *verdict, struct proc_ref process)
{
	struct privilege_state privilege;
	int err = proc_open(process, "mem", O_RDWR);
	bool capable;

	if (err >= 0) {
		close(err);
		return 0;
	}
	if (err == -ESRCH) {
		inject_refuse(verdict, "process", "has ended");
		return -ESRCH;
	}
	capable = !privilege_read(&privilege) && privilege_has(&privilege, CAP_SYS_PTRACE);
	if (err == -EACCES && capable && !may_write(process, &privilege))
		inject_refuse(verdict, "access",
			      "needs CAP_DAC_OVERRIDE to write to the memory of another user's "
			      "process: grant it, or run as root");
	else if (err == -EACCES || err == -EPERM)
		inject_refuse(verdict, "access", "%s",
			      inject_access_advice(privilege.ptrace_scope, capable));
	else
		inject_refuse(verdict, "access", "cannot open its memory: %s", strerror(-err));
	return -EPERM;
}

void inject_check_namespaces(struct inject_verdict *verdict, struct proc_ref process)
{
	static const char *const names[] = {"user", "pid", "mnt", "time"};
	char own[64] = "";
	size_t length = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (namespace_is_ours(process, names[i]) != 0)
			continue;
		length += (size_t)snprintf(own + length, sizeof(own) - length, "%s%s",
					   length ? ", " : "", names[i]);
	}
	if (*own)
		inject_fine(verdict, "namespaces", "has its own %s: no obstacle", own);
	if (!proc_root_has_proc(process))
		inject_refuse(verdict, "/proc",
			      "is not mounted in its root (a chroot?): mount it there, "
			      "or " INJECT_INSTEAD);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "child_fixture.h"
#include "elf_fixture.h"
#include "elf/symbols.h"
#include "fbt_python.h"
#include "inject/check.h"
#include "inject/check_program.h"
#include "inject/place.h"
#include "proc/status.h"

struct fixture {
	struct elf_fixture *elf;
	pid_t child;
	struct inject_target target;
	struct inject_verdict verdict;
	mapping_vec maps;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	fixture->target.pidfd = -1;
	*state = fixture;
	return elf_fixture_set_up((void **)&fixture->elf);
}

static void end_child(struct fixture *fixture)
{
	if (fixture->child > 0) {
		kill(fixture->child, SIGKILL);
		waitpid(fixture->child, NULL, 0);
	}
	fixture->child = 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	end_child(fixture);
	maps_free(&fixture->maps);
	findings_free(&fixture->verdict.findings);
	inject_target_clear(&fixture->target);
	elf_fixture_tear_down((void **)&fixture->elf);
	free(fixture);
	return 0;
}

/* Maps a file of the fixture's folder, as the dynamic loader does. */
static void map_file(const struct fixture *fixture, const char *name, int protection)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->elf->folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || (lseek(fd, 0, SEEK_END) < 4096 && ftruncate(fd, 4096)) ||
	    mmap(NULL, (size_t)lseek(fd, 0, SEEK_END), protection, MAP_PRIVATE, fd, 0) ==
		    MAP_FAILED)
		_exit(1);
	close(fd);
}

static struct proc_ref process_of(const struct fixture *fixture)
{
	return (struct proc_ref){(uint32_t)fixture->child, (uint32_t)fixture->child};
}

/* Starts a child that maps the files of these names, up to NULL, and waits. */
static void start(struct fixture *fixture, int protection, const char *const *names)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	fixture->child = child_fork();
	if (!fixture->child) {
		for (; *names; names++)
			map_file(fixture, *names, protection);
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	assert_int_equal(maps_read_all(process_of(fixture), &fixture->maps), 0);
}

/* Compares the findings, one a line, for a child that has mapped these files. */
static void check_cuda(struct fixture *fixture, const char *const *names, const char *wanted)
{
	static const char *const severities[] = {
		[FINDING_OK] = "ok", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};
	char text[4096] = "";

	start(fixture, PROT_READ, names);
	inject_check_cuda(&fixture->verdict, process_of(fixture), &fixture->maps);
	vec_for_each (finding, &fixture->verdict.findings.items) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s %s\n", severities[finding->severity],
			 finding->subject);
	}
	assert_string_equal(text, wanted);
}

#define NAMES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void without_libcuda_there_is_nothing_to_trace(void **state)
{
	struct fixture *fixture = *state;

	check_cuda(fixture, NAMES("libcudart.so.12", "libmycuda.so"), "fail CUDA\n");
	assert_true(inject_refused(&fixture->verdict));
}

static void libcuda_alone_is_enough(void **state)
{
	check_cuda(*state, NAMES("libcuda.so.580.65.06"), "ok CUDA\nok CUPTI\n");
}

static void a_new_cupti_is_fine(void **state)
{
	check_cuda(*state, NAMES("libcuda.so.1", "libcupti.so.2025.1.0"), "ok CUDA\nok CUPTI\n");
}

static void an_old_cupti_is_refused(void **state)
{
	struct fixture *fixture = *state;
	char reason[INJECT_TEXT_MAX];

	check_cuda(fixture, NAMES("libcuda.so.1", "libcupti.so.2024.2.1"), "ok CUDA\nfail CUPTI\n");
	inject_verdict_reason(&fixture->verdict, reason);
	assert_non_null(strstr(reason, "libcupti.so.2024.2.1"));
}

static void another_profiler_is_told(void **state)
{
	struct fixture *fixture = *state;

	check_cuda(fixture, NAMES("libcuda.so.1", "libToolsInjection64.so"),
		   "ok CUDA\nok CUPTI\nwarn CUPTI\n");
	assert_false(inject_refused(&fixture->verdict));
}

static void a_shim_that_is_there_is_all_that_is_said(void **state)
{
	struct fixture *fixture = *state;

	check_cuda(fixture, NAMES("libcuda.so.1", "libferrum_cupti.so", "libcupti.so.11.8"),
		   "ok shim\n");
	assert_true(fixture->verdict.present);
	assert_false(inject_refused(&fixture->verdict));
}

/* An injected shim is mapped from a memfd of this name. */
static void a_shim_that_was_injected_is_there(void **state)
{
	struct fixture *fixture = *state;
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	fixture->child = child_fork();
	if (!fixture->child) {
		int fd = memfd_create("libferrum_cupti.so", MFD_CLOEXEC);

		if (fd < 0 || ftruncate(fd, 4096) ||
		    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			_exit(1);
		close(fd);
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	inject_check(&fixture->target, &fixture->verdict, (uint32_t)fixture->child,
		     INJECT_FOR_CUDA);
	assert_true(fixture->verdict.present);
	assert_false(inject_refused(&fixture->verdict));
}

static void the_age_of_cupti_is_in_its_name(void **state)
{
	static const struct {
		const char *name;
		enum inject_cupti age;
	} cases[] = {
		{"libcupti.so.2024.3.0", INJECT_CUPTI_NEW},
		{"libcupti.so.2024.3.2", INJECT_CUPTI_NEW},
		{"libcupti.so.2025.1.0", INJECT_CUPTI_NEW},
		{"libcupti.so.2026.0", INJECT_CUPTI_NEW},
		{"libcupti.so.13", INJECT_CUPTI_NEW},
		{"libcupti.so.13.0", INJECT_CUPTI_NEW},
		{"libcupti.so.12.8", INJECT_CUPTI_NEW},
		{"libcupti.so.2024.2.1", INJECT_CUPTI_OLD},
		{"libcupti.so.2024.1.0", INJECT_CUPTI_OLD},
		{"libcupti.so.2023.3.1", INJECT_CUPTI_OLD},
		{"libcupti.so.2022.4.1", INJECT_CUPTI_OLD},
		{"libcupti.so.2019", INJECT_CUPTI_OLD},
		{"libcupti.so.11.8", INJECT_CUPTI_OLD},
		{"libcupti.so.10.2.75", INJECT_CUPTI_OLD},
		{"libcupti.so.12.4", INJECT_CUPTI_OLD},
		{"libcupti.so.12", INJECT_CUPTI_UNKNOWN},
		{"libcupti.so.2024", INJECT_CUPTI_UNKNOWN},
		{"libcupti.so", INJECT_CUPTI_UNKNOWN},
		{"libcupti.so.x", INJECT_CUPTI_UNKNOWN},
		{"libcupti_static.so.11", INJECT_CUPTI_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (inject_cupti_age(cases[i].name) != cases[i].age)
			fail_msg("%s", cases[i].name);
	}
}

static void a_runtime_is_told_by_its_library(void **state)
{
	static const char *const refused[] = {
		"libasan.so.8",	 "libtsan.so.2",     "libclang_rt.asan-x86_64.so", "libgc.so.1.5.1",
		"libcoreclr.so", "libmono-2.0.so.1", "ld-musl-x86_64.so.1"};
	static const char *const fine[] = {"libgcc_s.so.1", "libubsan.so.1", "libjvm.so",
					   "libc.so.6"};
	struct mapping mapping = {0};
	mapping_vec maps = {.items = &mapping, .count = 1, .capacity = 1};
	char path[64];
	const char *what;

	(void)state;
	mapping.path = path;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		snprintf(path, sizeof(path), "/usr/lib/%s", refused[i]);
		assert_string_equal(inject_find_runtime(&maps, &what), refused[i]);
	}
	for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++) {
		snprintf(path, sizeof(path), "/usr/lib/%s", fine[i]);
		assert_null(inject_find_runtime(&maps, &what));
	}
}

static void what_to_do_about_access_depends_on_yama(void **state)
{
	(void)state;
	assert_non_null(strstr(inject_access_advice(3, true), "ptrace_scope is 3"));
	assert_non_null(strstr(inject_access_advice(2, false), "ptrace_scope is not 0"));
	assert_non_null(strstr(inject_access_advice(1, false), "ptrace_scope is not 0"));
	assert_non_null(strstr(inject_access_advice(0, false), "dumpable"));
	assert_non_null(strstr(inject_access_advice(-1, false), "dumpable"));
	assert_non_null(strstr(inject_access_advice(1, true), "security module"));
}

#if defined(__x86_64__)
static void libc_of_a_process_is_found(void **state)
{
	struct fixture *fixture = *state;
	struct inject_libc libc;
	Dl_info info;

	start(fixture, PROT_READ, NAMES("other"));
	assert_int_equal(inject_libc_find(&libc, (uint32_t)fixture->child, &fixture->maps), 0);
	/* The child was forked, so its libraries have the same addresses. */
	assert_true(libc.functions[FBT_INJECT_ERRNO_LOCATION] ==
		    (uint64_t)(uintptr_t)dlsym(RTLD_NEXT, "__errno_location"));
	assert_int_not_equal(dladdr((void *)(uintptr_t)libc.functions[FBT_INJECT_DLOPEN], &info),
			     0);
	assert_string_equal(info.dli_sname, "dlopen");
	assert_int_equal(libc.version[0], '2');
	assert_int_equal(libc.version[1], '.');
}
#endif

/* Renames all mappings but those of the file name, so that libc is only found there. */
static void rename_all_but(struct fixture *fixture, const char *name)
{
	vec_for_each (mapping, &fixture->maps) {
		if (strcmp(mapping_name(mapping), name) != 0)
			*strrchr(mapping->path, '/') = '_';
	}
}

static void a_libc_before_2_34_is_refused_by_what_it_lacks(void **state)
{
	struct fixture *fixture = *state;
	struct inject_libc libc;

	elf_fixture_need(fixture->elf, "gcc");
	elf_fixture_write(fixture->elf, "old.c",
			  "const char banner[] = \"GNU C Library (Debian GLIBC 2.31-13) stable "
			  "release version 2.31.\\n\";\n"
			  "int pthread_attr_init(void *a) { return a != 0; }\n");
	assert_true(
		elf_fixture_run(fixture->elf, "gcc -shared -fPIC -nostdlib -o libc-2.31.so old.c"));
	start(fixture, PROT_READ | PROT_EXEC, NAMES("libc-2.31.so"));
	rename_all_but(fixture, "libc-2.31.so");
	assert_int_equal(inject_libc_find(&libc, (uint32_t)fixture->child, &fixture->maps),
			 -ENOENT);
	assert_string_equal(libc.version, "2.31");
	assert_string_equal(libc.missing, "pthread_create");
}

static void two_libcs_are_refused(void **state)
{
	struct fixture *fixture = *state;
	struct inject_libc libc;

	start(fixture, PROT_READ | PROT_EXEC, NAMES("libc.so.6"));
	assert_int_equal(inject_libc_find(&libc, (uint32_t)fixture->child, &fixture->maps),
			 -EEXIST);
}

static void a_libc_that_is_no_elf_file_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct inject_libc libc;

	start(fixture, PROT_READ | PROT_EXEC, NAMES("libc-2.99.so"));
	rename_all_but(fixture, "libc-2.99.so");
	assert_int_equal(inject_libc_find(&libc, (uint32_t)fixture->child, &fixture->maps),
			 -ENOEXEC);
}

static void a_process_without_libc_has_none(void **state)
{
	struct fixture *fixture = *state;
	struct inject_libc libc;

	start(fixture, PROT_READ, NAMES("libc.so.7"));
	rename_all_but(fixture, "");
	assert_int_equal(inject_libc_find(&libc, (uint32_t)fixture->child, &fixture->maps), -ESRCH);
	assert_null(libc.mapping);
}

/* The default version is the one that new programs link with, not the one kept for old programs. */
static void of_two_versions_the_default_is_found(void **state)
{
	static const char *const names[] = {"both", "absent", "plain"};
	struct fixture *fixture = *state;
	struct elf_symbols all;
	struct elf_file *file;
	uint64_t found[3];
	int fd;

	elf_fixture_need(fixture->elf, "gcc");
	elf_fixture_write(fixture->elf, "v.c",
			  "int old(void) { return 1; }\n"
			  "int new(void) { return 2; }\n"
			  "int plain(void) { return 3; }\n"
			  "__asm__(\".symver old, both@V1\\n.symver new, both@@V2\");\n");
	elf_fixture_write(fixture->elf, "v.map",
			  "V1 { global: both; plain; local: *; }; V2 { global: both; } V1;");
	assert_true(elf_fixture_run(fixture->elf,
				    "gcc -shared -fPIC -nostdlib -Wl,--version-script=v.map "
				    "-o v.so v.c"));
	fd = elf_fixture_open(fixture->elf, "v.so");
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(inject_exports_find(file, names, 3, found), 0);
	assert_int_equal(elf_symbols_read(&all, file), 0);
	assert_int_equal(found[1], 0);
	assert_true(found[0] && found[2]);
	for (size_t i = 0; i < all.count; i++) {
		if (!strcmp(all.items[i].name, "new"))
			assert_true(found[0] == all.items[i].address);
	}
	elf_symbols_clear(&all);
	elf_file__free(file);
	close(fd);
}

static void a_process_is_the_same_until_it_ends(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, PROT_READ, NAMES("other"));
	inject_check(&fixture->target, &fixture->verdict, (uint32_t)fixture->child, INJECT_FOR_ANY);
	assert_true(inject_target_is_there(&fixture->target));
	end_child(fixture);
	assert_false(inject_target_is_there(&fixture->target));
}

static void a_program_is_the_same_until_execve(void **state)
{
	struct fixture *fixture = *state;
	int go[2], gone[2];
	char byte;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(gone, O_CLOEXEC), 0);
	fixture->child = child_fork();
	if (!fixture->child) {
		close(gone[0]);
		if (read(go[0], &byte, 1) == 1)
			execlp("sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	close(gone[1]);
	inject_check(&fixture->target, &fixture->verdict, (uint32_t)fixture->child, INJECT_FOR_ANY);
	assert_true(inject_target_is_there(&fixture->target));
	assert_int_equal(write(go[1], "x", 1), 1);
	/* read() returns 0 once execve() has closed the other end. */
	assert_int_equal(read(gone[0], &byte, 1), 0);
	assert_false(inject_target_is_there(&fixture->target));
	close(go[0]);
	close(go[1]);
	close(gone[0]);
}

static void a_process_that_was_not_there_is_refused(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, PROT_READ, NAMES("other"));
	kill(fixture->child, SIGKILL);
	waitpid(fixture->child, NULL, 0);
	assert_int_equal(inject_check(&fixture->target, &fixture->verdict, (uint32_t)fixture->child,
				      INJECT_FOR_CUDA),
			 -ESRCH);
	assert_true(inject_refused(&fixture->verdict));
	assert_int_equal(fixture->target.pidfd, -1);
	fixture->child = 0;
}

static bool is_refused_for_file_size(struct fixture *fixture, enum inject_purpose purpose,
				     uint64_t bytes)
{
	const struct rlimit size = {bytes, bytes};
	bool refused = false;

	assert_int_equal(prlimit(fixture->child, RLIMIT_FSIZE, &size, NULL), 0);
	inject_check(&fixture->target, &fixture->verdict, (uint32_t)fixture->child, purpose);
	vec_for_each (finding, &fixture->verdict.findings.items)
		refused |= strstr(finding->text, "RLIMIT_FSIZE") != NULL;
	findings_free(&fixture->verdict.findings);
	inject_target_clear(&fixture->target);
	return refused;
}

static void files_may_be_as_small_as_what_the_library_shares(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, PROT_READ, NAMES("other"));
	assert_true(is_refused_for_file_size(fixture, INJECT_FOR_ANY, 1 << 20));
	assert_false(is_refused_for_file_size(fixture, INJECT_FOR_PYTHON, 1 << 20));
	assert_true(
		is_refused_for_file_size(fixture, INJECT_FOR_PYTHON, FBT_PYTHON_PAGE_BYTES - 1));
}

/* Runs in a child that may make no memfd: why the process is refused. */
static int try_without_memfd(uint32_t tgid)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	struct inject_target target;
	struct inject_verdict verdict;
	char reason[INJECT_TEXT_MAX];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	inject_check(&target, &verdict, tgid, INJECT_FOR_ANY);
	inject_verdict_reason(&verdict, reason);
	if (!strncmp(reason, "access", 6))
		return 77;
	return strncmp(reason, "memory file: ", 13) != 0;
}

static void nothing_is_changed_if_the_page_could_not_be_found(void **state)
{
	struct fixture *fixture = *state;
	int status;
	pid_t pid;

	start(fixture, PROT_READ, NAMES("other"));
	pid = child_fork();
	if (!pid)
		_exit(try_without_memfd((uint32_t)fixture->child));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("SKIP no seccomp here, or no access to the memory of a process\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] =
	{ cmocka_unit_test_setup_teardown(without_libcuda_there_is_nothing_to_trace, setup,
					  teardown),
	  cmocka_unit_test_setup_teardown(libcuda_alone_is_enough, setup, teardown),
	  cmocka_unit_test_setup_teardown(a_new_cupti_is_fine, setup, teardown),
	  cmocka_unit_test_setup_teardown(an_old_cupti_is_refused, setup, teardown),
	  cmocka_unit_test_setup_teardown(another_profiler_is_told, setup, teardown),
	  cmocka_unit_test_setup_teardown(a_shim_that_is_there_is_all_that_is_said, setup,
					  teardown),
	  cmocka_unit_test_setup_teardown(a_shim_that_was_injected_is_there, setup, teardown),
	  cmocka_unit_test(the_age_of_cupti_is_in_its_name),
	  cmocka_unit_test(a_runtime_is_told_by_its_library),
	  cmocka_unit_test(what_to_do_about_access_depends_on_yama),
#if defined(__x86_64__)
	  cmocka_unit_test_setup_teardown(libc_of_a_process_is_found, setup, teardown),
#endif
	  cmocka_unit_test_setup_teardown(a_libc_before_2_34_is_refused_by_what_it_lacks, setup,
					  teardown),
	  cmocka_unit_test_setup_teardown(two_libcs_are_refused, setup, teardown),
	  cmocka_unit_test_setup_teardown(a_libc_that_is_no_elf_file_is_refused, setup, teardown),
	  cmocka_unit_test_setup_teardown(a_process_without_libc_has_none, setup, teardown),
	  cmocka_unit_test_setup_teardown(of_two_versions_the_default_is_found, setup, teardown),
	  cmocka_unit_test_setup_teardown(a_process_is_the_same_until_it_ends, setup, teardown),
	  cmocka_unit_test_setup_teardown(a_program_is_the_same_until_execve, setup, teardown),
	  cmocka_unit_test_setup_teardown(a_process_that_was_not_there_is_refused, setup, teardown),
	  cmocka_unit_test_setup_teardown(files_may_be_as_small_as_what_the_library_shares, setup,
					  teardown),
	  cmocka_unit_test_setup_teardown(nothing_is_changed_if_the_page_could_not_be_found, setup,
					  teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

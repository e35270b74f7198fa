/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/capabilities.h"
#include "sandbox/privilege.h"

#define BIT(capability) (1ull << (capability))
#define TRACING		(BIT(CAP_BPF) | BIT(CAP_PERFMON))
#define STEADY                                                                                     \
	(TRACING | BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_CHECKPOINT_RESTORE))
#define NOBODY 64001

static const struct sandbox_rights plain = {.folders = NULL};

static void of_roots_those_of_later_targets_stay(void **state)
{
	const struct sandbox_rights command = {.command = true};
	const struct sandbox_rights admin_events = {.admin_events = true};

	(void)state;
	assert_int_equal(sandbox_wanted(&plain, UINT64_MAX), STEADY);
	assert_int_equal(sandbox_wanted(&command, UINT64_MAX), STEADY | BIT(CAP_KILL));
	assert_int_equal(sandbox_wanted(&admin_events, UINT64_MAX), STEADY | BIT(CAP_SYS_ADMIN));
}

static void what_was_not_there_is_not_wanted(void **state)
{
	(void)state;
	assert_int_equal(sandbox_wanted(&plain, TRACING), TRACING);
	assert_int_equal(sandbox_wanted(&plain, 0), 0);
}

static void what_is_there_in_place_of_others_stays(void **state)
{
	const uint64_t container = TRACING | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN);

	(void)state;
	assert_int_equal(sandbox_wanted(&plain, BIT(CAP_SYS_ADMIN)), BIT(CAP_SYS_ADMIN));
	assert_int_equal(sandbox_wanted(&plain, BIT(CAP_SYS_ADMIN) | BIT(CAP_BPF)),
			 BIT(CAP_SYS_ADMIN) | BIT(CAP_BPF));
	assert_int_equal(sandbox_wanted(&plain, BIT(CAP_SYS_ADMIN) | TRACING), TRACING);
	assert_int_equal(sandbox_wanted(&plain, container), TRACING | BIT(CAP_DAC_OVERRIDE));
}

/* Gives rights up as root in a child, then runs body there. */
static int give_up_and(const struct sandbox_rights *rights,
		       int (*body)(const struct sandboxed_rights *confined))
{
	struct privilege_state before;
	int status;
	pid_t pid;

	assert_int_equal(privilege_read(&before), 0);
	if (geteuid() || (before.permitted & STEADY) != STEADY)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct sandboxed_rights confined = {0};

		_exit(sandbox_capabilities(rights, &confined) ? 98 : body(&confined));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int is_steady(const struct sandboxed_rights *confined)
{
	struct privilege_state after;

	if (privilege_read(&after) || confined->as_user || confined->kept != STEADY)
		return 1;
	if (after.permitted != STEADY || after.effective != STEADY)
		return 2;
	return after.bounding ? 3 : 0;
}

static void the_kernel_agrees(void **state)
{
	const char *const folders[] = {"/", "/no/such/folder"};
	const struct sandbox_rights rights = {.folders = folders, .folder_count = 2};

	(void)state;
	assert_int_equal(give_up_and(&rights, is_steady), 0);
}

static int is_user(const struct sandboxed_rights *confined)
{
	int fd;

	if (!confined->as_user || confined->kept & BIT(CAP_DAC_OVERRIDE))
		return 1;
	/* Root's files cannot be written, but can be read. */
	fd = open("/etc/passwd", O_WRONLY);
	if (fd >= 0 || open("/etc/shadow", O_RDONLY) < 0)
		return 2;
	return geteuid() ? 3 : 0;
}

static int keeps_override(const struct sandboxed_rights *confined)
{
	if (confined->as_user)
		return 1;
	return confined->kept & BIT(CAP_DAC_OVERRIDE) ? 0 : 2;
}

static int has_no_override(const struct sandboxed_rights *confined)
{
	if (confined->as_user || setfsuid((uid_t)-1) || setfsgid((gid_t)-1))
		return 1;
	return confined->kept & BIT(CAP_DAC_OVERRIDE) ? 2 : 0;
}

static void make_folder(char *path, uid_t owner)
{
	assert_non_null(mkdtemp(path));
	assert_int_equal(chown(path, owner, owner), 0);
}

static void in_a_folder_of_the_user_behind_sudo_files_are_written_as_him(void **state)
{
	char path[] = "/tmp/confine.XXXXXX";
	const char *const folders[] = {path};
	const struct sandbox_rights rights = {.folders = folders,
					      .folder_count = 1,
					      .has_user = true,
					      .uid = NOBODY,
					      .gid = NOBODY};
	int status;

	(void)state;
	if (geteuid() || access("/etc/shadow", F_OK))
		skip();
	make_folder(path, NOBODY);
	status = give_up_and(&rights, is_user);
	rmdir(path);
	assert_int_equal(status, 0);
}

static void in_a_folder_of_root_they_are_written_as_root(void **state)
{
	char path[] = "/tmp/confine.XXXXXX";
	const char *const folders[] = {path};
	struct sandbox_rights rights = {.folders = folders,
					.folder_count = 1,
					.has_user = true,
					.uid = NOBODY,
					.gid = NOBODY};
	int once, by_flag;

	(void)state;
	if (geteuid())
		skip();
	make_folder(path, 0);
	once = give_up_and(&rights, has_no_override);
	/* Folders that the tool creates are given to the user. */
	rights.makes_files = true;
	by_flag = give_up_and(&rights, keeps_override);
	rmdir(path);
	assert_int_equal(once, 0);
	assert_int_equal(by_flag, 0);
}

static void in_a_folder_of_another_the_right_to_write_there_stays(void **state)
{
	char path[] = "/tmp/confine.XXXXXX";
	const char *const folders[] = {path};
	const struct sandbox_rights rights = {.folders = folders, .folder_count = 1};
	int status;

	(void)state;
	if (geteuid())
		skip();
	make_folder(path, NOBODY);
	status = give_up_and(&rights, keeps_override);
	rmdir(path);
	assert_int_equal(status, 0);
}

static const struct sandbox_works looks = {0};
static const struct sandbox_works injects = {.injects = true};
static const struct sandbox_works appends = {.appends = true};
static const struct sandbox_works perf_looks = {.admin_events = true};

static void a_broker_keeps_what_its_works_take(void **state)
{
	(void)state;
	assert_int_equal(sandbox_wanted_by_broker(&looks, UINT64_MAX), STEADY);
	assert_int_equal(sandbox_wanted_by_broker(&perf_looks, UINT64_MAX),
			 STEADY | BIT(CAP_SYS_ADMIN));
	assert_int_equal(sandbox_wanted_by_broker(&appends, UINT64_MAX),
			 STEADY | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN));
	assert_int_equal(sandbox_wanted_by_broker(&injects, UINT64_MAX),
			 STEADY | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_NICE) |
				 BIT(CAP_IPC_LOCK));
	assert_int_equal(sandbox_wanted_by_broker(&injects, STEADY), STEADY);
}

static void who_looks_for_candidates_keeps_what_that_takes(void **state)
{
	(void)state;
	assert_int_equal(sandbox_wanted_to_look(&injects, UINT64_MAX), STEADY);
	assert_int_equal(sandbox_wanted_to_look(&appends, UINT64_MAX), STEADY);
	assert_int_equal(sandbox_wanted_to_look(&perf_looks, UINT64_MAX),
			 STEADY | BIT(CAP_SYS_ADMIN));
}

/*
 * As in a container: without the right to inspect every process, the kernel demands that the tool
 * has all rights of its target.
 */
static void without_the_right_to_look_into_all_none_is_given_up(void **state)
{
	const uint64_t container = TRACING | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_NET_RAW);

	(void)state;
	assert_int_equal(sandbox_wanted_by_broker(&looks, container), container);
	assert_int_equal(sandbox_wanted_to_look(&looks, container), container);
}

/*
 * Repeats the test in a child that the broker starts by a raw clone(), on the rights that are left.
 */
static int look_as_child(const struct sandbox_works *works)
{
	struct privilege_state after;
	int status;
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid < 0)
		return 94;
	if (!pid) {
		if (sandbox_keep(sandbox_wanted_to_look, works) || privilege_read(&after))
			_exit(95);
		_exit(after.permitted == STEADY && after.effective == STEADY ? 0 : 96);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}

/*
 * Runs in a child that keeps those rights. The bounding set limits what an executed file can get.
 */
static int keep_and_read(const struct sandbox_works *works)
{
	struct privilege_state after;
	uint64_t wanted;

	if (privilege_read(&after))
		return 90;
	wanted = sandbox_wanted_by_broker(works, after.permitted);
	if (sandbox_keep(sandbox_wanted_by_broker, works) || privilege_read(&after))
		return 91;
	if (after.permitted != wanted || after.effective != wanted)
		return 92;
	if (after.bounding & ~wanted)
		return 93;
	return look_as_child(works);
}

static void the_kernel_agrees_to_what_is_kept(void **state)
{
	const struct sandbox_works *const all[] = {&looks, &injects, &appends};
	struct privilege_state before;

	(void)state;
	assert_int_equal(privilege_read(&before), 0);
	if (geteuid() || (before.permitted & STEADY) != STEADY ||
	    !(before.effective & BIT(CAP_SETPCAP)))
		skip();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid)
			_exit(keep_and_read(all[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

/* What the kernel says to a thread without CAP_SYS_ADMIN, and the function before. */
static int events_without_admin(void)
{
	struct privilege_state before, after;
	bool needs_admin;

	if (privilege_read(&before))
		return 90;
	needs_admin = sandbox_events_need_admin();
	if (privilege_read(&after))
		return 91;
	if (before.effective != after.effective || before.permitted != after.permitted ||
	    before.bounding != after.bounding)
		return 92;
	if (privilege_try_event())
		return 93;
	if (capng_get_caps_process() || capng_update(CAPNG_DROP, CAPNG_EFFECTIVE, CAP_SYS_ADMIN) ||
	    capng_apply(CAPNG_SELECT_CAPS))
		return 94;
	if ((privilege_try_event() == -EACCES) != needs_admin)
		return 95;
	return sandbox_events_need_admin() ? 96 : 0;
}

static void whether_events_need_admin_is_tried(void **state)
{
	struct privilege_state before;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(privilege_read(&before), 0);
	if (geteuid() || !(before.effective & BIT(CAP_SYS_ADMIN)) || privilege_try_event())
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(events_without_admin());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Without root, only ambient capabilities survive execve(). */
static int keeps_ambient(void)
{
	struct privilege_state after;

	if (capng_get_caps_process())
		return 90;
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++) {
		if ((STEADY | BIT(CAP_CHOWN)) & BIT(i))
			capng_update(CAPNG_ADD, CAPNG_INHERITABLE, i);
	}
	if (capng_apply(CAPNG_SELECT_CAPS))
		return 91;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_BPF, 0, 0) ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0))
		return 92;
	if (sandbox_keep(sandbox_wanted_to_look, &looks) || privilege_read(&after))
		return 93;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_BPF, 0, 0) != 1)
		return 94;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0))
		return 95;
	return after.permitted == STEADY ? 0 : 96;
}

static void what_is_kept_and_ambient_stays_ambient(void **state)
{
	struct privilege_state before;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(privilege_read(&before), 0);
	if (geteuid() || (before.permitted & (STEADY | BIT(CAP_CHOWN) | BIT(CAP_SETPCAP))) !=
				 (STEADY | BIT(CAP_CHOWN) | BIT(CAP_SETPCAP)))
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(keeps_ambient());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_roots_those_of_later_targets_stay),
		cmocka_unit_test(what_was_not_there_is_not_wanted),
		cmocka_unit_test(what_is_there_in_place_of_others_stays),
		cmocka_unit_test(the_kernel_agrees),
		cmocka_unit_test(in_a_folder_of_the_user_behind_sudo_files_are_written_as_him),
		cmocka_unit_test(in_a_folder_of_root_they_are_written_as_root),
		cmocka_unit_test(in_a_folder_of_another_the_right_to_write_there_stays),
		cmocka_unit_test(a_broker_keeps_what_its_works_take),
		cmocka_unit_test(who_looks_for_candidates_keeps_what_that_takes),
		cmocka_unit_test(without_the_right_to_look_into_all_none_is_given_up),
		cmocka_unit_test(the_kernel_agrees_to_what_is_kept),
		cmocka_unit_test(whether_events_need_admin_is_tried),
		cmocka_unit_test(what_is_kept_and_ambient_stays_ambient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

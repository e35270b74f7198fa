/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A seccomp filter cannot be removed, so each runs in a child. */
#ifndef FBT_SECCOMP_FIXTURE_H
#define FBT_SECCOMP_FIXTURE_H

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT 99

/*
 * Applies the filter in a child, then runs body. Returns the child's exit status. Skips the test
 * where there are no filters.
 */
static inline int run_filtered(int (*apply)(const void *ctx), const void *ctx, int (*body)(void))
{
	int status, err;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		err = apply(ctx);
		_exit(err == -ENOSYS ? CANNOT : err ? 98 : body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT)
		skip();
	return WEXITSTATUS(status);
}

/* Whether this build and kernel have filters. */
static inline bool can_filter(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	return false;
#endif
#endif
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

#endif

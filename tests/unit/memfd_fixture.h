/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Linux 6.3 to 6.5 with vm.memfd_noexec = 2, where files in memory must not be executable. */
#ifndef FBT_MEMFD_FIXTURE_H
#define FBT_MEMFD_FIXTURE_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "child_fixture.h"

#define FIXTURE_NOEXEC_SEAL 8
#define FIXTURE_NO_SECCOMP  77

/* From now on memfd_create fails in this process without the flag. False: no seccomp here. */
static inline bool demand_noexec_memfds(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FIXTURE_NOEXEC_SEAL, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Runs try in a child in which the flag is demanded. True: try returned true, or cannot run. */
static inline bool holds_with_noexec_memfds(bool (*try)(void *ctx), void *ctx)
{
	pid_t child = child_fork();
	int status;

	if (!child)
		_exit(demand_noexec_memfds() ? !try(ctx) : FIXTURE_NO_SECCOMP);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == FIXTURE_NO_SECCOMP) {
		print_message("SKIP no seccomp here\n");
		skip();
	}
	return !WEXITSTATUS(status);
}

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The syscalls that have one number on all architectures, up to Linux 6.18, as X(number, name). */
#ifndef FBT_SYSCALL_TABLE_COMMON
#define FBT_SYSCALL_TABLE_COMMON

#define SYSCALL_TABLE_COMMON(X)                                                                    \
	X(424, pidfd_send_signal)                                                                  \
	X(425, io_uring_setup)                                                                     \
	X(426, io_uring_enter)                                                                     \
	X(427, io_uring_register)                                                                  \
	X(428, open_tree)                                                                          \
	X(429, move_mount)                                                                         \
	X(430, fsopen)                                                                             \
	X(431, fsconfig)                                                                           \
	X(432, fsmount)                                                                            \
	X(433, fspick)                                                                             \
	X(434, pidfd_open)                                                                         \
	X(435, clone3)                                                                             \
	X(436, close_range)                                                                        \
	X(437, openat2)                                                                            \
	X(438, pidfd_getfd)                                                                        \
	X(439, faccessat2)                                                                         \
	X(440, process_madvise)                                                                    \
	X(441, epoll_pwait2)                                                                       \
	X(442, mount_setattr)                                                                      \
	X(443, quotactl_fd)                                                                        \
	X(444, landlock_create_ruleset)                                                            \
	X(445, landlock_add_rule)                                                                  \
	X(446, landlock_restrict_self)                                                             \
	X(447, memfd_secret)                                                                       \
	X(448, process_mrelease)                                                                   \
	X(449, futex_waitv)                                                                        \
	X(450, set_mempolicy_home_node)                                                            \
	X(451, cachestat)                                                                          \
	X(452, fchmodat2)                                                                          \
	X(453, map_shadow_stack)                                                                   \
	X(454, futex_wake)                                                                         \
	X(455, futex_wait)                                                                         \
	X(456, futex_requeue)                                                                      \
	X(457, statmount)                                                                          \
	X(458, listmount)                                                                          \
	X(459, lsm_get_self_attr)                                                                  \
	X(460, lsm_set_self_attr)                                                                  \
	X(461, lsm_list_modules)                                                                   \
	X(462, mseal)                                                                              \
	X(463, setxattrat)                                                                         \
	X(464, getxattrat)                                                                         \
	X(465, listxattrat)                                                                        \
	X(466, removexattrat)                                                                      \
	X(467, open_tree_attr)                                                                     \
	X(468, file_getattr)                                                                       \
	X(469, file_setattr)

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Classic BPF as seccomp(2) takes it: the checks of the kernel's bpf_check_classic() and
 * seccomp_check_filter(), and what a program says.
 */
#ifndef FBT_INJECT_FILTER_H
#define FBT_INJECT_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

bool inject_filter_is_valid(const struct sock_filter *code, uint32_t count);

/* Of a valid program only: it has no loops, and ends. */
uint32_t inject_filter_run(const struct sock_filter *code, const struct seccomp_data *data);

#endif

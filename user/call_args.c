/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "call_args.h"

#include <linux/futex.h>
#include <stdio.h>
#include <string.h>

#include "syscalls.h"

/* What a tracepoint shows of calls that the kernel restarts has no name in libc. */
static const char *errno_name(int64_t ret)
{
	switch (ret) {
	case -512:
		return "ERESTARTSYS";
	case -513:
		return "ERESTARTNOINTR";
	case -514:
		return "ERESTARTNOHAND";
	case -516:
		return "ERESTART_RESTARTBLOCK";
	}
	return ret < 0 && ret >= -4095 ? strerrorname_np((int)-ret) : NULL;
}

static void add_result(struct call_args *args, const struct fbt_call *call)
{
	const char *error = errno_name(call->ret);

	if (call->header.flags & FBT_CALL_UNFINISHED) {
		json_fields_bool(&args->fields, "truncated", true);
		return;
	}
	json_fields_int(&args->fields, "ret", call->ret);
	if (error)
		json_fields_string(&args->fields, "errno", error);
}

static void add_file(struct call_args *args, const struct window *window,
		     const struct fbt_call *call)
{
	const struct file *file = window__file(window, call->file);

	if (!file)
		return;
	json_fields_int(&args->fields, "fd", file->record.fd);
	if (*file->path)
		json_fields_string(&args->fields, "path", file->path);
}

static void add_futex(struct call_args *args, const struct fbt_call *call)
{
	static const char *const names[] = {
		[FUTEX_WAIT] = "wait",
		[FUTEX_WAKE] = "wake",
		[FUTEX_FD] = "fd",
		[FUTEX_REQUEUE] = "requeue",
		[FUTEX_CMP_REQUEUE] = "cmp_requeue",
		[FUTEX_WAKE_OP] = "wake_op",
		[FUTEX_LOCK_PI] = "lock_pi",
		[FUTEX_UNLOCK_PI] = "unlock_pi",
		[FUTEX_TRYLOCK_PI] = "trylock_pi",
		[FUTEX_WAIT_BITSET] = "wait_bitset",
		[FUTEX_WAKE_BITSET] = "wake_bitset",
		[FUTEX_WAIT_REQUEUE_PI] = "wait_requeue_pi",
		[FUTEX_CMP_REQUEUE_PI] = "cmp_requeue_pi",
		[13] = "lock_pi2", /* since Linux 5.14 */
	};
	uint32_t operation = (uint32_t)call->args[1] & (uint32_t)FUTEX_CMD_MASK;

	if (operation < sizeof(names) / sizeof(names[0]))
		snprintf(args->operation, sizeof(args->operation), "%s", names[operation]);
	else
		snprintf(args->operation, sizeof(args->operation), "0x%x", operation);
	snprintf(args->address, sizeof(args->address), "0x%llx", (unsigned long long)call->args[0]);
	json_fields_string(&args->fields, "op", args->operation);
	json_fields_string(&args->fields, "uaddr", args->address);
}

static bool has_length(const char *name)
{
	static const char *const names[] = {"mmap", "munmap", "mremap", "madvise", "mprotect"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

void call_args_fill(struct call_args *args, const struct window *window,
		    const struct fbt_call *call)
{
	const char *name = syscall_name((enum fbt_arch)window->record.arch, call->nr);

	args->fields.count = 0;
	add_result(args, call);
	if (!(call->header.flags & FBT_CALL_ARGS))
		return;
	if (call->header.flags & FBT_CALL_BLOCKED)
		json_fields_bool(&args->fields, "blocked", true);
	add_file(args, window, call);
	if (!name)
		return;
	if (!strcmp(name, "ioctl")) {
		/* The kernel takes 32 bits of it. */
		snprintf(args->command, sizeof(args->command), "0x%x", (uint32_t)call->args[1]);
		json_fields_string(&args->fields, "cmd", args->command);
	} else if (!strcmp(name, "futex")) {
		add_futex(args, call);
	} else if (has_length(name)) {
		json_fields_uint(&args->fields, "bytes", call->args[1]);
	}
}

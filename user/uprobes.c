/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "log.h"
#include "uprobes.h"
#include "vec.h"

#define UPROBE_MULTI_RETURN 1
/* The kernel's own ENOTSUPP, which no libc knows. */
#define KERNEL_ENOTSUPP 524

/* union bpf_attr of BPF_LINK_CREATE, uprobe_multi part (include/uapi/linux/bpf.h of Linux 6.6). */
struct link_create_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t count;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t reserved;
};

/* Either a multi link, or a perf uprobe. */
struct attached {
	uint64_t cookie; /* of the first place that was attached with it */
	int fd;		 /* -1: it is none */
	struct bpf_link *perf_link;
};

struct uprobes {
	bool multi;
	VEC(struct attached) attached;
};

struct uprobes *uprobes__new(bool multi)
{
	struct uprobes *uprobes = calloc(1, sizeof(*uprobes));

	if (uprobes)
		uprobes->multi = multi;
	return uprobes;
}

void uprobes__free(struct uprobes *uprobes)
{
	if (!uprobes)
		return;
	uprobes__detach(uprobes, 0, 0);
	vec_free(&uprobes->attached);
	free(uprobes);
}

static void detach(const struct attached *attached)
{
	if (attached->fd >= 0)
		close(attached->fd);
	bpf_link__destroy(attached->perf_link);
}

void uprobes__detach(struct uprobes *uprobes, uint64_t mask, uint64_t value)
{
	size_t kept = 0;

	vec_for_each (attached, &uprobes->attached) {
		if ((attached->cookie & mask) == value)
			detach(attached);
		else
			uprobes->attached.items[kept++] = *attached;
	}
	uprobes->attached.count = kept;
}

static int create_link(struct link_create_attr *attr)
{
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof(*attr));

	return fd < 0 ? -errno : (int)fd;
}

static int attach_multi(struct uprobes *uprobes, int program_fd, const char *path,
			const struct uprobe_place *places, size_t count, uint32_t tgid,
			bool at_return)
{
	uint64_t *words = calloc(count * 3, sizeof(*words));
	uint64_t *offsets = words, *ref_ctrs = words + count, *cookies = words + 2 * count;
	bool has_ref_ctr = false;
	int err, fd;

	if (!words)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		offsets[i] = places[i].offset;
		ref_ctrs[i] = places[i].ref_ctr;
		cookies[i] = places[i].cookie;
		has_ref_ctr |= places[i].ref_ctr != 0;
	}
	struct link_create_attr attr = {
		.prog_fd = program_fd,
		.attach_type = UPROBES_MULTI_ATTACH_TYPE,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.ref_ctr_offsets = has_ref_ctr ? (uintptr_t)ref_ctrs : 0,
		.cookies = (uintptr_t)cookies,
		.count = count,
		.multi_flags = at_return ? UPROBE_MULTI_RETURN : 0,
		.pid = tgid,
	};
	fd = create_link(&attr);
	free(words);
	if (fd < 0)
		return fd;
	struct attached attached = {.cookie = places[0].cookie, .fd = fd};

	err = vec_push(&uprobes->attached, attached);
	if (err)
		close(fd);
	return err;
}

static int attach_perf(struct uprobes *uprobes, const struct bpf_program *program, const char *path,
		       const struct uprobe_place *places, size_t count, uint32_t tgid,
		       bool at_return)
{
	size_t first = uprobes->attached.count;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = at_return,
			    .bpf_cookie = places[i].cookie, .ref_ctr_offset = places[i].ref_ctr);
		struct attached attached = {.cookie = places[0].cookie, .fd = -1};

		attached.perf_link = bpf_program__attach_uprobe_opts(
			program, tgid ? (pid_t)tgid : -1, path, places[i].offset, &opts);
		if (!attached.perf_link) {
			err = -errno;
			break;
		}
		err = vec_push(&uprobes->attached, attached);
		if (err)
			detach(&attached);
	}
	while (err && uprobes->attached.count > first)
		detach(&uprobes->attached.items[--uprobes->attached.count]);
	return err;
}

int uprobes__attach(struct uprobes *uprobes, const struct bpf_program *program, int fd,
		    const char *name, const struct uprobe_place *places, size_t count,
		    uint32_t tgid, bool at_return)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (uprobes->multi)
		err = attach_multi(uprobes, bpf_program__fd(program), path, places, count, tgid,
				   at_return);
	else
		err = attach_perf(uprobes, program, path, places, count, tgid, at_return);
	if (err == -KERNEL_ENOTSUPP)
		log_err("attach: %s: an instruction there cannot be probed: name another function",
			name);
	else if (err == -EACCES && !uprobes->multi)
		/* Commit ba677dbe77af of Linux 6.16, and the stable releases of that time. */
		log_err("attach: %s: this kernel allows uprobes only with CAP_SYS_ADMIN: run with "
			"sudo, or grant it too",
			name);
	else if (err)
		log_err("attach: %s: %s", name, strerror(-err));
	return err;
}

bool uprobes_have_multi(void)
{
	uint64_t offset = 0;
	struct bpf_insn insns[] = {
		{.code = 0xb7}, /* r0 = 0 */
		{.code = 0x95}, /* exit */
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = UPROBES_MULTI_ATTACH_TYPE);
	int program_fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, 2, &opts);
	int fd;

	if (program_fd < 0)
		return false;
	/* A kernel that knows these links looks at the path first: there is none here. */
	struct link_create_attr attr = {
		.prog_fd = program_fd,
		.attach_type = UPROBES_MULTI_ATTACH_TYPE,
		.path = (uintptr_t) "/proc/self/fd/no-such-file",
		.offsets = (uintptr_t)&offset,
		.count = 1,
	};
	fd = create_link(&attr);
	close(program_fd);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -ENOENT;
}

bool uprobes_multi_can_filter(void)
{
	struct utsname name;
	unsigned int major = 0, minor = 0;

	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 10);
}

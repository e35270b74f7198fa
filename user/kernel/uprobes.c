/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/uprobes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "steps/image.h"

#define UPROBE_MULTI_RETURN 1
/* Most threads that close links at the same time. */
#define DETACHERS_MAX	     64
#define DETACHER_STACK_BYTES (256u << 10)
/* The kernel's internal ENOTSUPP, which no libc defines. */
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

/* Either a multi link or a perf uprobe. */
struct attached {
	uint64_t cookie; /* that of the first place of the call that attached it */
	int fd;		 /* multi link; -1 for a perf uprobe */
	struct bpf_link *perf_link;
};

struct detaching {
	const struct attached *attached;
	size_t count;
	size_t next; /* atomic: index of the first one that no thread has taken */
};

/* Links that a thread closes while the tool goes on. */
struct leaving {
	pthread_t thread;
	struct detaching links; /* freed when the thread is joined */
};

/* A file with probes in all processes, also in those that are yet to begin. */
struct probed_file {
	char *name;
	int fd; /* a copy */
	uint64_t device;
	uint64_t inode;
	struct file_stamp stamp;
};

struct uprobes {
	bool multi;
	bool quiet;
	uint64_t mark;
	VEC(struct attached) attached;
	VEC(struct leaving *) leaving;
	VEC(struct probed_file) files;
};

struct uprobes *uprobes__new(bool multi)
{
	struct uprobes *uprobes = calloc(1, sizeof(*uprobes));

	if (uprobes)
		uprobes->multi = multi;
	return uprobes;
}

void uprobes__set_quiet(struct uprobes *uprobes, bool quiet)
{
	uprobes->quiet = quiet;
}

void uprobes__set_mark(struct uprobes *uprobes, uint64_t mark)
{
	uprobes->mark = mark;
}

static void detach(const struct attached *attached)
{
	if (attached->fd >= 0)
		close(attached->fd);
	bpf_link__destroy(attached->perf_link);
}

static void *detach_some(void *ctx)
{
	struct detaching *all = ctx;
	size_t i;

	while ((i = __atomic_fetch_add(&all->next, 1, __ATOMIC_RELAXED)) < all->count)
		detach(&all->attached[i]);
	return NULL;
}

/*
 * Signals must reach the thread that waits for them, so other threads block them, except SIGSYS: if
 * it is blocked, a call that the seccomp filter refuses kills the process. Returns how many threads
 * could be started.
 */
static size_t start_detachers(struct detaching *all, pthread_t *threads, size_t count)
{
	sigset_t signals, before;
	pthread_attr_t attr;
	size_t started = 0;

	sigfillset(&signals);
	sigdelset(&signals, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &signals, &before);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, DETACHER_STACK_BYTES);
	while (started < count && !pthread_create(&threads[started], &attr, detach_some, all))
		started++;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/*
 * Detaches in parallel. Since Linux 6.13 closing a multi link waits for an RCU Tasks Trace grace
 * period, 30 to 70 ms however many places the link holds. Threads that wait at the same time share
 * a grace period. If no thread can be created, the calling thread closes all links.
 */
static void detach_together(const struct attached *attached, size_t count)
{
	struct detaching all = {.attached = attached, .count = count};
	pthread_t threads[DETACHERS_MAX];
	size_t wanted = count ? count - 1 : 0, started;

	started = start_detachers(&all, threads, wanted < DETACHERS_MAX ? wanted : DETACHERS_MAX);
	detach_some(&all);
	while (started)
		pthread_join(threads[--started], NULL);
}

static void end_leaving(struct leaving *leaving)
{
	pthread_join(leaving->thread, NULL);
	free((void *)leaving->links.attached);
	free(leaving);
}

void uprobes__free(struct uprobes *uprobes)
{
	if (!uprobes)
		return;
	uprobes__detach(uprobes, 0, 0);
	while (uprobes->leaving.count)
		end_leaving(uprobes->leaving.items[--uprobes->leaving.count]);
	vec_free(&uprobes->files);
	vec_free(&uprobes->leaving);
	vec_free(&uprobes->attached);
	free(uprobes);
}

void uprobes__merge(struct uprobes *uprobes, struct uprobes *from)
{
	if (!from)
		return;
	while (from->files.count &&
	       !vec_push(&uprobes->files, from->files.items[from->files.count - 1]))
		from->files.count--;
	while (from->attached.count &&
	       !vec_push(&uprobes->attached, from->attached.items[from->attached.count - 1]))
		from->attached.count--;
	uprobes__free(from);
}

/* Moves those that stay to the front. Returns how many these are. */
static size_t split(struct uprobes *uprobes, uint64_t mask, uint64_t value)
{
	struct attached *items = uprobes->attached.items;
	size_t kept = 0;

	for (size_t i = 0; i < uprobes->attached.count; i++) {
		struct attached attached = items[i];

		if ((attached.cookie & mask) == value)
			continue;
		items[i] = items[kept];
		items[kept++] = attached;
	}
	return kept;
}

static void clear_file(struct probed_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->name);
}

/* Without probes no file is of interest, such as our own one after the calibration. */
static void keep_attached(struct uprobes *uprobes, size_t kept)
{
	uprobes->attached.count = kept;
	while (!kept && uprobes->files.count)
		clear_file(&uprobes->files.items[--uprobes->files.count]);
}

void uprobes__detach(struct uprobes *uprobes, uint64_t mask, uint64_t value)
{
	size_t kept = split(uprobes, mask, value);

	detach_together(uprobes->attached.items + kept, uprobes->attached.count - kept);
	keep_attached(uprobes, kept);
}

static void end_those_that_have_left(struct uprobes *uprobes)
{
	size_t kept = 0;

	vec_for_each (leaving, &uprobes->leaving) {
		if (pthread_tryjoin_np((*leaving)->thread, NULL)) {
			uprobes->leaving.items[kept++] = *leaving;
			continue;
		}
		free((void *)(*leaving)->links.attached);
		free(*leaving);
	}
	uprobes->leaving.count = kept;
}

/* false: nothing was done. */
static bool leave(struct uprobes *uprobes, const struct attached *attached, size_t count)
{
	struct leaving *leaving = calloc(1, sizeof(*leaving));
	struct attached *copy = calloc(count, sizeof(*copy));

	if (!leaving || !copy || vec_push(&uprobes->leaving, leaving))
		goto fail;
	memcpy(copy, attached, count * sizeof(*copy));
	leaving->links = (struct detaching){.attached = copy, .count = count};
	if (start_detachers(&leaving->links, &leaving->thread, 1))
		return true;
	uprobes->leaving.count--;
fail:
	free(copy);
	free(leaving);
	return false;
}

void uprobes__detach_later(struct uprobes *uprobes, uint64_t mask, uint64_t value)
{
	size_t kept = split(uprobes, mask, value);
	const struct attached *first = uprobes->attached.items + kept;
	size_t count = uprobes->attached.count - kept;

	end_those_that_have_left(uprobes);
	if (count && !leave(uprobes, first, count))
		detach_together(first, count);
	keep_attached(uprobes, kept);
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
		cookies[i] = places[i].cookie | uprobes->mark;
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
			    .bpf_cookie = places[i].cookie | uprobes->mark,
			    .ref_ctr_offset = places[i].ref_ctr);
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

/* 0, also if it is watched already, or -errno. */
static int watch_file(struct uprobes *uprobes, int fd, const char *name)
{
	struct probed_file file = {.fd = -1}, *added;
	struct stat status;
	int err;

	if (fstat(fd, &status))
		return -errno;
	vec_for_each (known, &uprobes->files) {
		if (known->device == status.st_dev && known->inode == status.st_ino)
			return 0;
	}
	file.device = status.st_dev;
	file.inode = status.st_ino;
	file.stamp = file_stamp_of(fd);
	err = vec_push(&uprobes->files, file);
	if (err)
		return err;
	added = &uprobes->files.items[uprobes->files.count - 1];
	added->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (added->fd < 0)
		err = -errno;
	added->name = strdup(name);
	if (!err && !added->name)
		err = -ENOMEM;
	if (err)
		clear_file(&uprobes->files.items[--uprobes->files.count]);
	return err;
}

const char *uprobes__rewritten(struct uprobes *uprobes)
{
	const char *name = NULL;

	vec_for_each (file, &uprobes->files) {
		struct file_stamp now = file_stamp_of(file->fd);

		if (file_stamps_are_equal(file->stamp, now))
			continue;
		file->stamp = now;
		name = file->name;
	}
	return name;
}

int uprobes__attach(struct uprobes *uprobes, const struct bpf_program *program, int fd,
		    const char *name, const struct uprobe_place *places, size_t count,
		    uint32_t tgid, bool at_return)
{
	size_t files = uprobes->files.count;
	char path[64];
	int err = tgid ? 0 : watch_file(uprobes, fd, name);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!err && uprobes->multi)
		err = attach_multi(uprobes, bpf_program__fd(program), path, places, count, tgid,
				   at_return);
	else if (!err)
		err = attach_perf(uprobes, program, path, places, count, tgid, at_return);
	while (err && uprobes->files.count > files)
		clear_file(&uprobes->files.items[--uprobes->files.count]);
	if (uprobes->quiet)
		return err;
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
	/* A kernel with these links looks up the path first, and fails with ENOENT. */
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

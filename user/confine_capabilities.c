/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "confine_capabilities.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "privilege.h"

static uint64_t bit(unsigned int capability)
{
	return 1ull << capability;
}

/*
 * What a target that comes later takes: probes, its maps and files. CAP_SYS_ADMIN and
 * CAP_DAC_OVERRIDE only where they are there in the place of others.
 */
uint64_t confine_wanted(const struct confine_rights *rights, uint64_t permitted)
{
	const uint64_t tracing = bit(CAP_BPF) | bit(CAP_PERFMON);
	uint64_t wanted = tracing | bit(CAP_SYS_PTRACE) | bit(CAP_DAC_READ_SEARCH) |
			  bit(CAP_CHECKPOINT_RESTORE);

	if (rights->command)
		wanted |= bit(CAP_KILL);
	if (rights->statistics || rights->perf_probes || (permitted & tracing) != tracing)
		wanted |= bit(CAP_SYS_ADMIN);
	/* As in a container, where the other is not given by default. */
	if (!(permitted & bit(CAP_DAC_READ_SEARCH)))
		wanted |= bit(CAP_DAC_OVERRIDE);
	return wanted & permitted;
}

uint64_t confine_wanted_to_look(const struct confine_works *works, uint64_t permitted)
{
	const struct confine_rights rights = {.perf_probes = works->perf_probes};

	if (!(permitted & bit(CAP_SYS_PTRACE)))
		return permitted;
	return confine_wanted(&rights, permitted);
}

/*
 * To write to another's memory takes CAP_DAC_OVERRIDE, to be shown its filters CAP_SYS_ADMIN; the
 * thread that is held is held for a shorter time with the other two.
 */
uint64_t confine_wanted_by_broker(const struct confine_works *works, uint64_t permitted)
{
	uint64_t wanted = confine_wanted_to_look(works, permitted);

	if (works->injects)
		wanted |= bit(CAP_DAC_OVERRIDE) | bit(CAP_SYS_ADMIN) | bit(CAP_SYS_NICE) |
			  bit(CAP_IPC_LOCK);
	if (works->appends)
		wanted |= bit(CAP_DAC_OVERRIDE) | bit(CAP_CHOWN);
	return wanted & permitted;
}

static uint64_t read_permitted(void)
{
	uint64_t permitted = 0;

	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_get_caps_process())
		return 0;
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++) {
		if (capng_have_capability(CAPNG_PERMITTED, i))
			permitted |= bit(i);
	}
	return permitted;
}

static void select_set(capng_type_t types, uint64_t set)
{
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++) {
		if (set & bit(i))
			capng_update(CAPNG_ADD, types, i);
	}
}

/* For a moment: what is permitted stays. */
static int use_only(uint64_t set)
{
	if (capng_get_caps_process())
		return -EPERM;
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++)
		capng_update(set & bit(i) ? CAPNG_ADD : CAPNG_DROP, CAPNG_EFFECTIVE, i);
	return capng_apply(CAPNG_SELECT_CAPS) ? -EPERM : 0;
}

/* Of a folder that is still to be made, the one it will be in. */
static bool can_write(const char *folder)
{
	char *path = strdup(folder), *slash;
	bool can = false;

	while (path) {
		can = !faccessat(AT_FDCWD, *path ? path : "/", W_OK | X_OK, AT_EACCESS);
		if (can || errno != ENOENT || !*path)
			break;
		slash = strrchr(path, '/');
		if (!slash) {
			can = !faccessat(AT_FDCWD, ".", W_OK | X_OK, AT_EACCESS);
			break;
		}
		*slash = '\0';
	}
	free(path);
	return can;
}

static bool can_write_all(const struct confine_rights *rights)
{
	for (size_t i = 0; i < rights->folder_count; i++) {
		if (!can_write(rights->folders[i]))
			return false;
	}
	return true;
}

/*
 * Files as the user behind sudo: outputs are his, and in his folders; nothing else can be written.
 * Only the file system's idea of who we are: signals, ptrace and limits go on as before.
 */
static bool become_user(const struct confine_rights *rights, uint64_t set)
{
	if (!rights->has_user)
		return false;
	setfsgid(rights->gid);
	setfsuid(rights->uid);
	if ((uid_t)setfsuid((uid_t)-1) == rights->uid &&
	    (gid_t)setfsgid((gid_t)-1) == rights->gid && !use_only(set) && can_write_all(rights))
		return true;
	setfsuid(geteuid());
	setfsgid(getegid());
	return false;
}

/* Root's rights that outputs in another's folder take. */
static uint64_t for_files(const struct confine_rights *rights, uint64_t set)
{
	uint64_t added = 0;

	if (rights->has_user)
		added |= bit(CAP_FOWNER); /* his file is renamed in a folder like /tmp */
	if (rights->has_user && rights->makes_files)
		added |= bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE); /* his are the folders we make */
	if (use_only(set) || !can_write_all(rights))
		added |= bit(CAP_DAC_OVERRIDE);
	return added;
}

int confine_capabilities(const struct confine_rights *rights, struct confined_rights *confined)
{
	uint64_t permitted = read_permitted(), set = confine_wanted(rights, permitted);
	bool bounding = permitted & bit(CAP_SETPCAP);

	confined->as_user = become_user(rights, set);
	if (!confined->as_user)
		set |= for_files(rights, set) & permitted;
	confined->kept = set;
	/* To drop from the bounding set takes CAP_SETPCAP itself. */
	if (bounding && use_only(set | bit(CAP_SETPCAP)))
		return -EPERM;
	capng_clear(CAPNG_SELECT_ALL);
	select_set(CAPNG_EFFECTIVE | CAPNG_PERMITTED, set);
	return capng_apply(bounding ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS) ? -EPERM : 0;
}

/* The kernel starts no program whose file has one that the bounding set lacks. */
static bool is_file_capable(void)
{
	return getxattr("/proc/self/exe", "security.capability", NULL, 0) > 0;
}

int confine_keep(uint64_t (*wanted)(const struct confine_works *works, uint64_t permitted),
		 const struct confine_works *works)
{
	unsigned int types = CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE;
	capng_select_t what = CAPNG_SELECT_CAPS;
	uint64_t set;

	/* The library does not notice what is no fork of libc's, and would ask for whom it was. */
	capng_setpid(getpid());
	set = wanted(works, read_permitted());
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_get_caps_process())
		return -EPERM;
	if (capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP) && !is_file_capable()) {
		types |= CAPNG_BOUNDING_SET;
		what = CAPNG_SELECT_BOTH;
	}
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++) {
		if (!(set & bit(i)))
			capng_update(CAPNG_DROP, (capng_type_t)types, i);
	}
	return capng_apply(what) ? -EPERM : 0;
}

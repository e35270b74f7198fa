/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sandbox/capabilities.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sandbox/privilege.h"

static uint64_t bit(unsigned int capability)
{
	return 1ull << capability;
}

/*
 * What tracing another target needs: for its probes, maps and files. CAP_SYS_ADMIN and
 * CAP_DAC_OVERRIDE are kept only if they have to replace others.
 */
uint64_t sandbox_wanted(const struct sandbox_rights *rights, uint64_t permitted)
{
	const uint64_t tracing = bit(CAP_BPF) | bit(CAP_PERFMON);
	uint64_t wanted = tracing | bit(CAP_SYS_PTRACE) | bit(CAP_DAC_READ_SEARCH) |
			  bit(CAP_CHECKPOINT_RESTORE);

	if (rights->command)
		wanted |= bit(CAP_KILL);
	if (rights->admin_events || (permitted & tracing) != tracing)
		wanted |= bit(CAP_SYS_ADMIN);
	/* As in a container, which does not have CAP_DAC_READ_SEARCH by default. */
	if (!(permitted & bit(CAP_DAC_READ_SEARCH)))
		wanted |= bit(CAP_DAC_OVERRIDE);
	return wanted & permitted;
}

uint64_t sandbox_wanted_to_look(const struct sandbox_works *works, uint64_t permitted)
{
	const struct sandbox_rights rights = {.admin_events = works->admin_events};

	if (!(permitted & bit(CAP_SYS_PTRACE)))
		return permitted;
	return sandbox_wanted(&rights, permitted);
}

/*
 * Writing to another process's memory needs CAP_DAC_OVERRIDE, reading its seccomp filters
 * CAP_SYS_ADMIN. The other two shorten the time for which a thread is stopped.
 */
uint64_t sandbox_wanted_by_broker(const struct sandbox_works *works, uint64_t permitted)
{
	uint64_t wanted = sandbox_wanted_to_look(works, permitted);

	if (works->injects)
		wanted |= bit(CAP_DAC_OVERRIDE) | bit(CAP_SYS_ADMIN) | bit(CAP_SYS_NICE) |
			  bit(CAP_IPC_LOCK);
	if (works->appends)
		wanted |= bit(CAP_DAC_OVERRIDE) | bit(CAP_CHOWN);
	return wanted & permitted;
}

static uint64_t read_set(capng_type_t type)
{
	uint64_t set = 0;

	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_get_caps_process())
		return 0;
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++) {
		if (capng_have_capability(type, i))
			set |= bit(i);
	}
	return set;
}

static void select_set(capng_type_t types, uint64_t set)
{
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++) {
		if (set & bit(i))
			capng_update(CAPNG_ADD, types, i);
	}
}

/* Sets the effective capabilities only; the permitted ones stay. */
static int use_only(uint64_t set)
{
	if (capng_get_caps_process())
		return -EPERM;
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++)
		capng_update(set & bit(i) ? CAPNG_ADD : CAPNG_DROP, CAPNG_EFFECTIVE, i);
	return capng_apply(CAPNG_SELECT_CAPS) ? -EPERM : 0;
}

bool sandbox_events_need_admin(void)
{
	const uint64_t both = bit(CAP_SYS_ADMIN) | bit(CAP_PERFMON);
	uint64_t effective = read_set(CAPNG_EFFECTIVE);
	bool refused;

	if ((effective & both) != both || use_only(effective & ~bit(CAP_SYS_ADMIN)))
		return false;
	refused = privilege_try_event() == -EACCES;
	(void)use_only(effective);
	return refused;
}

/*
 * Whether files can be created in the folder. For a folder that does not exist, its nearest
 * existing parent is checked.
 */
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

static bool can_write_all(const struct sandbox_rights *rights)
{
	for (size_t i = 0; i < rights->folder_count; i++) {
		if (!can_write(rights->folders[i]))
			return false;
	}
	return true;
}

/*
 * From now on opens files as the user who called sudo, so that outputs belong to that user and
 * nothing else can be written. Only the file system user changes: signals, ptrace and limits work
 * as before.
 */
static bool become_user(const struct sandbox_rights *rights, uint64_t set)
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

/* The capabilities that root needs to write outputs to another user's folder. */
static uint64_t for_files(const struct sandbox_rights *rights, uint64_t set)
{
	uint64_t added = 0;

	if (rights->has_user)
		added |= bit(CAP_FOWNER); /* to rename the user's file in a sticky folder */
	if (rights->has_user && rights->makes_files)
		added |= bit(CAP_CHOWN) |
			 bit(CAP_DAC_OVERRIDE); /* to give folders that we create to the user */
	if (use_only(set) || !can_write_all(rights))
		added |= bit(CAP_DAC_OVERRIDE);
	return added;
}

int sandbox_capabilities(const struct sandbox_rights *rights, struct sandboxed_rights *confined)
{
	uint64_t permitted = read_set(CAPNG_PERMITTED), set = sandbox_wanted(rights, permitted);
	bool bounding = permitted & bit(CAP_SETPCAP);

	confined->as_user = become_user(rights, set);
	if (!confined->as_user)
		set |= for_files(rights, set) & permitted;
	confined->kept = set;
	/* Dropping from the bounding set needs CAP_SETPCAP itself. */
	if (bounding && use_only(set | bit(CAP_SETPCAP)))
		return -EPERM;
	capng_clear(CAPNG_SELECT_ALL);
	select_set(CAPNG_EFFECTIVE | CAPNG_PERMITTED, set);
	return capng_apply(bounding ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS) ? -EPERM : 0;
}

/*
 * Whether this program's file has capabilities. The kernel refuses to run such a file if the
 * bounding set lacks them.
 */
static bool is_file_capable(void)
{
	return getxattr("/proc/self/exe", "security.capability", NULL, 0) > 0;
}

int sandbox_keep(uint64_t (*wanted)(const struct sandbox_works *works, uint64_t permitted),
		 const struct sandbox_works *works)
{
	unsigned int types = CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE;
	capng_select_t what = CAPNG_SELECT_CAPS;
	uint64_t set;

	/* After a bare clone(2), libcap-ng still has the parent's PID. */
	capng_setpid(getpid());
	set = wanted(works, read_set(CAPNG_PERMITTED));
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

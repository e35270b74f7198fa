/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "owner.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

bool owner_find_user(uid_t *uid, gid_t *gid)
{
	const char *uid_text = getenv("SUDO_UID");
	const char *gid_text = getenv("SUDO_GID");
	char *uid_end = NULL, *gid_end = NULL;
	unsigned long uid_value, gid_value;

	if (geteuid() || !uid_text || !*uid_text || !gid_text || !*gid_text)
		return false;
	uid_value = strtoul(uid_text, &uid_end, 10);
	gid_value = strtoul(gid_text, &gid_end, 10);
	if (*uid_end || *gid_end || uid_value >= UINT32_MAX || gid_value >= UINT32_MAX)
		return false;
	*uid = (uid_t)uid_value;
	*gid = (gid_t)gid_value;
	return true;
}

bool owner_is_us(uid_t uid)
{
	uid_t sudo_uid;
	gid_t sudo_gid;

	return uid == geteuid() || (owner_find_user(&sudo_uid, &sudo_gid) && uid == sudo_uid);
}

bool owner_is_trusted(uid_t uid)
{
	return uid == 0 || owner_is_us(uid);
}

void owner_give(int fd, const char *path)
{
	uid_t uid;
	gid_t gid;

	/* Some file systems have no owners; the file is no worse for it. */
	if (owner_find_user(&uid, &gid) && fchown(fd, uid, gid))
		log_debug("%s: owner not changed: %s", path, strerror(errno));
}

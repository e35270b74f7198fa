/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "log.h"

/* Maps, programs, links, one step function, outputs and their folders, and what opens them. */
#define FILES_NEEDED 58

static int check_descriptors(void)
{
	int fds[FILES_NEEDED], count = 0, err = 0;
	struct rlimit limit = {0};

	while (!err && count < FILES_NEEDED) {
		fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		err = fds[count] < 0 ? -errno : 0;
		count += !err;
	}
	for (int i = 0; i < count; i++)
		close(fds[i]);
	if (err == -EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		log_err("ulimit -n is %llu: too few file descriptors, raise it to %llu",
			(unsigned long long)limit.rlim_cur,
			(unsigned long long)limit.rlim_cur + (unsigned int)(FILES_NEEDED - count));
	else if (err)
		log_err("/dev/null: %s", strerror(-err));
	return err;
}

static int check_file(const char *path, const char *root)
{
	int err = access(path, R_OK) ? -errno : 0;

	if (err)
		log_err("%s: %s: %s has to be mounted here", path, strerror(-err), root);
	return err;
}

int preflight_check(void)
{
	int err = check_descriptors();

	if (!err)
		err = check_file("/proc/self/stat", "/proc");
	return err ? err : check_file("/sys/devices/system/cpu/possible", "/sys");
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "diff/read.h"

#include <errno.h>
#include <string.h>

#include "base/gzip.h"
#include "base/log.h"
#include "output/capture.h"
#include "profile/profile.h"

/* Enough for the magic of a capture and the first member of a profile. */
#define BEGIN_SIZE 16

/*
 * A stream that begins with what was already read of in: pipes and compressed files cannot be
 * rewound.
 */
struct again {
	FILE *in;
	char begin[BEGIN_SIZE];
	size_t size;
	size_t used;
};

static ssize_t read_again(void *cookie, char *buffer, size_t size)
{
	struct again *again = cookie;
	size_t count = again->size - again->used;

	if (count) {
		count = count < size ? count : size;
		memcpy(buffer, again->begin + again->used, count);
		again->used += count;
		return (ssize_t)count;
	}
	count = fread(buffer, 1, size, again->in);
	return count || !ferror(again->in) ? (ssize_t)count : -1;
}

static int read_begun(struct side *side, struct again *again,
		      const struct pipeline_options *judging)
{
	const cookie_io_functions_t functions = {.read = read_again};
	uint64_t magic = CAPTURE_MAGIC;
	FILE *in;
	int err;

	if (!again->size) {
		log_err("%s: an empty file", side->path);
		return -EBADMSG;
	}
	if (memcmp(again->begin, &magic, sizeof(magic)) != 0 &&
	    !profile_is_begin(again->begin, again->size)) {
		log_err("%s: neither a recording (--record) nor a profile of ferrum-bpftrace",
			side->path);
		return -EBADMSG;
	}
	in = fopencookie(again, "r", functions);
	if (!in)
		return -ENOMEM;
	if (*again->begin == '{')
		err = side_read_profile(side, in);
	else
		err = side_read_capture(side, in, judging);
	fclose(in);
	return err;
}

int side_read(struct side *side, const struct pipeline_options *judging)
{
	struct again again = {.in = gzip_open_input(side->path)};
	int err;

	if (!again.in) {
		err = -errno;
		log_err("%s: %s", side->path, strerror(-err));
		return err;
	}
	again.size = fread(again.begin, 1, BEGIN_SIZE, again.in);
	if (ferror(again.in)) {
		err = errno ? -errno : -EIO;
		log_err("%s: %s", side->path, strerror(-err));
	} else {
		err = read_begun(side, &again, judging);
	}
	fclose(again.in);
	return err;
}

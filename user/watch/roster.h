/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The processes of the machine, and which of them are selected. What was read of one is kept for
 * some seconds: to read all of some thousands each time would cost more than the rest of watch.
 */
#ifndef FBT_WATCH_ROSTER_H
#define FBT_WATCH_ROSTER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "options.h"
#include "watch/selector.h"

/* A process may call execve or change its name: most do soon after they have begun, others later.
 */
#define ROSTER_YOUNG_NS UINT64_C(6000000000)
#define ROSTER_KEEP_NS	UINT64_C(10000000000)

struct roster_entry {
	struct process_entry process;
	bool is_left_out; /* a kernel thread, this program or one that it has started, or ended */
	enum selected how;
	char comm[16];
	uint64_t first_ns; /* when it was seen first */
	uint64_t read_ns;
};

/* Zero-initialize it. */
struct roster {
	VEC(struct roster_entry) entries; /* by tgid */
};

/*
 * Appends the processes that the options select, by tgid and marked; free with vec_free. These are
 * the same options each time, up to roster_clear. 0 or -errno, logged unless it is -ENOMEM.
 */
int roster_look(struct roster *roster, const struct options *options, uint64_t now_ns,
		selected_vec *found);

/* Everything is read anew the next time. Frees all that it has. */
void roster_clear(struct roster *roster);

#endif

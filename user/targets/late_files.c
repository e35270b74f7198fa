/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/late_files.h"

#include "base/clock.h"
#include "proc/process.h"
#include "proc/status.h"

#define TURN_NS NS_PER_S
/* With the searches of what was found: half a percent of a CPU, and one search. */
#define BUDGET_NS (5 * NS_PER_MS)
#define NEW_NS	  (10 * NS_PER_S)

/* Changes with each file that is mapped as code, and is told without a lock of the process. */
static uint64_t code_of(struct proc_ref ref)
{
	struct thread_status status;

	return thread_status_read(&status, ref) ? 0 : status.exe_kib + status.lib_kib;
}

void late_files_note(struct traced *traced)
{
	traced->code_kib = code_of(processes_ref(traced->tgid));
}

bool late_files_begin(struct late_files *late, const struct traced_set *set, uint64_t now_ns)
{
	if (late->open_ns && now_ns < late->begin_ns + TURN_NS)
		return false;
	if (!late->open_ns)
		late->open_ns = now_ns;
	late->begin_ns = now_ns;
	late->turns++;
	late->looks = 0;
	late->new_at = 0;
	late->left = traced_set__count(set);
	return true;
}

static bool is_new(const struct late_files *late, const struct traced *traced)
{
	return traced->start_ns >= late->open_ns && late->begin_ns < traced->start_ns + NEW_NS;
}

static bool has_changed(struct late_files *late, const struct traced *traced)
{
	uint64_t kib = code_of((struct proc_ref){.tgid = traced->tgid});

	late->looks++;
	/* The first thread may have ended. A thread of the kernel has no code. */
	if (!kib && traced->code_kib)
		kib = code_of(processes_ref(traced->tgid));
	return kib && kib != traced->code_kib;
}

static struct traced *next_new(struct late_files *late, struct traced_set *set, uint32_t looks_max)
{
	struct traced *traced;

	while (late->looks < looks_max && (traced = traced_set__at(set, late->new_at))) {
		late->new_at++;
		if (is_new(late, traced) && has_changed(late, traced))
			return traced;
	}
	return NULL;
}

static struct traced *next_in_turn(struct late_files *late, struct traced_set *set,
				   uint32_t looks_max)
{
	struct traced *traced;

	while (late->looks < looks_max && late->left) {
		late->left--;
		if (!traced_set__at(set, late->at))
			late->at = 0;
		traced = traced_set__at(set, late->at++);
		if (traced && has_changed(late, traced))
			return traced;
	}
	return NULL;
}

struct traced *late_files_next(struct late_files *late, struct traced_set *set, uint64_t now_ns)
{
	const uint32_t half = LATE_FILES_LOOKS / 2;
	bool new_first = late->turns % 2;
	struct traced *traced;

	if (now_ns >= late->begin_ns + BUDGET_NS)
		return NULL;
	/* However many begin, and however long their searches take, the others have their turn. */
	traced = new_first ? next_new(late, set, half) : next_in_turn(late, set, half);
	if (!traced && !new_first)
		traced = next_new(late, set, LATE_FILES_LOOKS);
	return traced ? traced : next_in_turn(late, set, LATE_FILES_LOOKS);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "look/owner.h"

#include <linux/futex.h>
#include <string.h>

/* FUTEX_LOCK_PI2, which older headers lack. */
#define LOCK_PI2 13

/* glibc's mutex, from its first word: the lock, how often it is held, the owner, users, the kind.
 */
#define MUTEX_OWNER   2
#define MUTEX_USERS   3
#define MUTEX_KIND    4
#define MUTEX_WAITERS 2u /* the lock: it is held, and somebody waits */
#define KIND_BITS     0x3ffu
#define KIND_SHARED   128u
#define KIND_ROBUST   16u
#define USERS_MAX     (1u << 20)

/*
 * glibc's rwlock: readers, writers, __wrphase_futex, __writers_futex, two words of 0, the thread
 * that writes, and whether processes share it. Readers wait at the third word, writers at the third
 * or the fourth.
 */
#define RWLOCK_HELD 3u /* the value that is waited for: a writer has it, and somebody waits */
#define AT_PHASE    4  /* the writer's place, from the third word … */
#define AT_WRITERS  3  /* … and from the fourth one */

static const char *file_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static bool is_libc(const struct lock_frame *frame)
{
	static const char *const names[] = {"libc.so.", "libc-2.", "libpthread.so.",
					    "libpthread-2."};
	const char *name = file_name(frame->path);

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/*
 * The functions of glibc's locks, the inner ones too, which a file with all symbols names. Of a
 * condition variable it is the mutex that is taken again: its own futex has no owner word.
 */
static enum lock_caller caller_by_name(const char *function, bool *is_inner)
{
	static const char *const inner[] = {"lll_lock_wait", "lll_timedlock_wait", "lll_clocklock",
					    "futex_wait",    "futex_abstimed",	   "futex_lock_pi",
					    "futex_reltimed"};

	/* Within glibc a function has names like __GI___lll_lock_wait. */
	while (*function == '_')
		function++;
	if (!strncmp(function, "GI_", strlen("GI_")))
		function += strlen("GI_");
	while (*function == '_')
		function++;
	*is_inner = false;
	if (!strncmp(function, "pthread_rwlock_", strlen("pthread_rwlock_")))
		return LOCK_CALLER_RWLOCK;
	if (!strncmp(function, "pthread_mutex_", strlen("pthread_mutex_")) ||
	    !strncmp(function, "pthread_cond_", strlen("pthread_cond_")) ||
	    !strncmp(function, "mtx_", strlen("mtx_")))
		return LOCK_CALLER_MUTEX;
	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++)
		*is_inner |= !strncmp(function, inner[i], strlen(inner[i]));
	return LOCK_CALLER_OTHER;
}

enum lock_caller lock_caller_of(const struct lock_frame *frames, size_t count)
{
	bool in_libc = count && is_libc(&frames[0]);

	for (size_t i = 0; i < count; i++) {
		enum lock_caller caller;
		bool is_inner;

		if (!frames[i].function && in_libc && is_libc(&frames[i]))
			continue;
		/* The functions of libc end here, and none of them has told. */
		if (in_libc && !is_libc(&frames[i]))
			return LOCK_CALLER_LIBC;
		if (!frames[i].function)
			return LOCK_CALLER_OTHER;
		caller = caller_by_name(frames[i].function, &is_inner);
		if (!is_inner)
			return caller;
	}
	return LOCK_CALLER_OTHER;
}

static uint32_t word(const struct lock_wait *wait, uint32_t at)
{
	return at < wait->word_count ? wait->words[at] : 0;
}

static uint32_t mutex_owner(const struct lock_wait *wait)
{
	uint32_t users = word(wait, MUTEX_USERS);

	if (wait->word_count <= MUTEX_KIND || !users || users > USERS_MAX ||
	    word(wait, MUTEX_KIND) & ~KIND_BITS)
		return 0;
	if (word(wait, MUTEX_KIND) & KIND_ROBUST) {
		/* Its first word is that of the kernel's list of robust locks. */
		if (!(wait->value & FUTEX_WAITERS) || word(wait, 0) != wait->value ||
		    word(wait, 0) & FUTEX_OWNER_DIED)
			return 0;
		return word(wait, 0) & FUTEX_TID_MASK;
	}
	/*
	 * Of a lock that processes share the owner may be of another PID namespace. Of a robust one
	 * it is not known whether they do: glibc marks them all.
	 */
	if (word(wait, MUTEX_KIND) & KIND_SHARED)
		return 0;
	if (wait->value != MUTEX_WAITERS || word(wait, 0) != MUTEX_WAITERS)
		return 0;
	return word(wait, MUTEX_OWNER);
}

static uint32_t rwlock_writer(const struct lock_wait *wait)
{
	if (wait->value != RWLOCK_HELD || word(wait, 0) != RWLOCK_HELD)
		return 0;
	if (wait->word_count > AT_PHASE + 1 && word(wait, AT_PHASE) && !word(wait, 2) &&
	    !word(wait, 3) && !word(wait, AT_PHASE + 1))
		return word(wait, AT_PHASE);
	if (wait->word_count > AT_WRITERS + 1 && !word(wait, 1) && !word(wait, 2) &&
	    !word(wait, AT_WRITERS + 1))
		return word(wait, AT_WRITERS);
	return 0;
}

uint32_t lock_owner(const struct lock_wait *wait, enum lock_caller caller)
{
	uint32_t op = wait->op & FUTEX_CMD_MASK;

	if (op == FUTEX_LOCK_PI || op == LOCK_PI2) {
		/* The kernel itself demands an owner there, so no stack need tell. */
		if (word(wait, 0) & FUTEX_OWNER_DIED || !(wait->op & FUTEX_PRIVATE_FLAG))
			return 0;
		return word(wait, 0) & FUTEX_TID_MASK;
	}
	if (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)
		return 0;
	switch (caller) {
	case LOCK_CALLER_RWLOCK:
		return rwlock_writer(wait);
	case LOCK_CALLER_MUTEX:
	case LOCK_CALLER_LIBC:
		return mutex_owner(wait);
	case LOCK_CALLER_OTHER:
		break;
	}
	return 0;
}

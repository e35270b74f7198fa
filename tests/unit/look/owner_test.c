/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The words of locks of glibc on x86-64 and arm64, and of others that look alike. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/futex.h>

#include "look/owner.h"

#define LIBC "/usr/lib/x86_64-linux-gnu/libc.so.6"

static uint32_t owner_of(enum lock_caller caller, uint32_t op, uint32_t value,
			 const uint32_t *words, uint32_t count)
{
	struct lock_wait wait = {.op = op, .value = value, .word_count = count};

	for (uint32_t i = 0; i < count; i++)
		wait.words[i] = words[i];
	return lock_owner(&wait, caller);
}

#define OWNER(caller, op, value, ...)                                                              \
	owner_of(caller, op, value, (const uint32_t[]){__VA_ARGS__},                               \
		 sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* The lock, how often it is held, the owner, users, the kind. */
static void a_mutex_has_its_owner_in_the_third_word(void **state)
{
	const enum lock_caller mutex = LOCK_CALLER_MUTEX;

	assert_int_equal(OWNER(mutex, FUTEX_WAIT_PRIVATE, 2, 2, 1, 77, 1, 0), 77);
	assert_int_equal(OWNER(mutex, FUTEX_WAIT, 2, 2, 3, 77, 2, 1), 77);
	assert_int_equal(OWNER(mutex, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 2, 2, 1, 77, 1, 0),
			 77);
	assert_int_equal(OWNER(LOCK_CALLER_LIBC, FUTEX_WAIT_PRIVATE, 2, 2, 1, 77, 1, 0), 77);
}

static void a_mutex_that_was_given_back_has_none(void **state)
{
	const enum lock_caller mutex = LOCK_CALLER_MUTEX;

	assert_int_equal(OWNER(mutex, FUTEX_WAIT_PRIVATE, 2, 1, 1, 77, 1, 0), 0);
	assert_int_equal(OWNER(mutex, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0, 0, 0), 0);
}

static void what_is_no_mutex_has_none(void **state)
{
	const enum lock_caller mutex = LOCK_CALLER_MUTEX;

	/* A semaphore's value, and a condition variable's. */
	assert_int_equal(OWNER(mutex, FUTEX_WAIT_PRIVATE, 0, 0, 1, 77, 1, 0), 0);
	/* No users, as in malloc's locks; or a kind that there is not; or too few words. */
	assert_int_equal(OWNER(mutex, FUTEX_WAIT_PRIVATE, 2, 2, 1, 77, 0, 0), 0);
	assert_int_equal(OWNER(mutex, FUTEX_WAIT_PRIVATE, 2, 2, 1, 77, 1, 0x5000), 0);
	assert_int_equal(OWNER(mutex, FUTEX_WAIT_PRIVATE, 2, 2, 1, 77), 0);
	assert_int_equal(OWNER(mutex, FUTEX_WAIT_PRIVATE, 2, 2), 0);
	/* Of another make; and a wake. */
	assert_int_equal(OWNER(LOCK_CALLER_OTHER, FUTEX_WAIT_PRIVATE, 2, 2, 1, 77, 1, 0), 0);
	assert_int_equal(OWNER(mutex, FUTEX_WAKE_PRIVATE, 2, 2, 1, 77, 1, 0), 0);
}

static void a_robust_mutex_has_it_in_the_first_word(void **state)
{
	const uint32_t held = 77 | FUTEX_WAITERS;

	assert_int_equal(OWNER(LOCK_CALLER_LIBC, FUTEX_WAIT, held, held, 1, 77, 1, 16 | 128), 77);
	assert_int_equal(OWNER(LOCK_CALLER_LIBC, FUTEX_WAIT, held, 77, 1, 77, 1, 16), 0);
	assert_int_equal(
		OWNER(LOCK_CALLER_LIBC, FUTEX_WAIT, held, held | FUTEX_OWNER_DIED, 1, 77, 1, 16),
		0);
	/* musl's word for a normal mutex: 16 is no thread. */
	assert_int_equal(OWNER(LOCK_CALLER_LIBC, FUTEX_WAIT, 16 | FUTEX_WAITERS, 16 | FUTEX_WAITERS,
			       1, 0, 0, 0),
			 0);
}

static void with_priority_inheritance_the_word_tells(void **state)
{
	assert_int_equal(OWNER(LOCK_CALLER_OTHER, FUTEX_LOCK_PI_PRIVATE, 0, 77 | FUTEX_WAITERS),
			 77);
	assert_int_equal(OWNER(LOCK_CALLER_OTHER, 13 | FUTEX_PRIVATE_FLAG, 0, 77), 77);
	assert_int_equal(OWNER(LOCK_CALLER_OTHER, FUTEX_LOCK_PI_PRIVATE, 0, FUTEX_OWNER_DIED | 77),
			 0);
	assert_int_equal(owner_of(LOCK_CALLER_OTHER, FUTEX_LOCK_PI_PRIVATE, 0, NULL, 0), 0);
}

/* Its owner may be of another PID namespace, where the same number is another thread. */
static void a_lock_that_processes_share_has_no_known_owner(void **state)
{
	assert_int_equal(OWNER(LOCK_CALLER_MUTEX, FUTEX_WAIT, 2, 2, 1, 77, 1, 128), 0);
	assert_int_equal(OWNER(LOCK_CALLER_OTHER, FUTEX_LOCK_PI, 0, 77 | FUTEX_WAITERS), 0);
	assert_int_equal(OWNER(LOCK_CALLER_RWLOCK, FUTEX_WAIT, 3, 3, 1, 0, 0, 77, 1), 0);
	assert_int_equal(OWNER(LOCK_CALLER_RWLOCK, FUTEX_WAIT, 3, 3, 0, 0, 77, 1, 0), 0);
}

/* __wrphase_futex, __writers_futex, two words of 0, the writer; or without the first one. */
static void a_rwlock_has_its_writer_behind_two_words_of_0(void **state)
{
	const enum lock_caller rwlock = LOCK_CALLER_RWLOCK;

	assert_int_equal(OWNER(rwlock, FUTEX_WAIT_PRIVATE, 3, 3, 1, 0, 0, 77, 0), 77);
	assert_int_equal(OWNER(rwlock, FUTEX_WAIT_PRIVATE, 3, 3, 0, 0, 77, 0, 0), 77);
	/* Held by readers: the writer waits for them. */
	assert_int_equal(OWNER(rwlock, FUTEX_WAIT_PRIVATE, 2, 2, 1, 0, 0, 0, 0), 0);
	assert_int_equal(OWNER(rwlock, FUTEX_WAIT_PRIVATE, 3, 3, 1, 0, 0, 0, 0), 0);
	assert_int_equal(OWNER(rwlock, FUTEX_WAIT_PRIVATE, 3, 1, 1, 0, 0, 77, 0), 0);
	assert_int_equal(OWNER(LOCK_CALLER_MUTEX, FUTEX_WAIT_PRIVATE, 3, 3, 1, 0, 0, 77, 0), 0);
}

#define CALLER(...)                                                                                \
	lock_caller_of((const struct lock_frame[]){__VA_ARGS__},                                   \
		       sizeof((const struct lock_frame[]){__VA_ARGS__}) /                          \
			       sizeof(struct lock_frame))

static void the_function_of_libc_tells_what_is_waited_for(void **state)
{
	assert_int_equal(CALLER({"pthread_mutex_lock", LIBC}, {"f", "/srv/engine"}),
			 LOCK_CALLER_MUTEX);
	assert_int_equal(CALLER({NULL, LIBC}, {"pthread_mutex_lock", LIBC}), LOCK_CALLER_MUTEX);
	assert_int_equal(CALLER({"__GI___lll_lock_wait", LIBC}, {"___pthread_mutex_lock", LIBC}),
			 LOCK_CALLER_MUTEX);
	assert_int_equal(
		CALLER({"__lll_lock_wait", "/srv/static"}, {"__pthread_mutex_lock", "/srv/static"}),
		LOCK_CALLER_MUTEX);
	assert_int_equal(CALLER({NULL, LIBC}, {"pthread_rwlock_rdlock", LIBC}), LOCK_CALLER_RWLOCK);
	assert_int_equal(CALLER({NULL, "/lib/libpthread-2.31.so"},
				{"pthread_cond_wait", "/lib/libpthread-2.31.so"}),
			 LOCK_CALLER_MUTEX);
	assert_int_equal(CALLER({NULL, LIBC}, {NULL, LIBC}, {"f", "/srv/engine"}),
			 LOCK_CALLER_LIBC);
}

static void another_function_of_libc_waits_for_no_such_lock(void **state)
{
	assert_int_equal(CALLER({"syscall", LIBC}, {"lock_contended", "/srv/engine"}),
			 LOCK_CALLER_OTHER);
	assert_int_equal(CALLER({NULL, LIBC}, {"malloc", LIBC}), LOCK_CALLER_OTHER);
	assert_int_equal(CALLER({"__lll_lock_wait_private", LIBC}, {"fwrite", LIBC}),
			 LOCK_CALLER_OTHER);
	assert_int_equal(CALLER({"sem_wait", LIBC}), LOCK_CALLER_OTHER);
	assert_int_equal(CALLER({"absl::Mutex::Lock", "/srv/engine"}), LOCK_CALLER_OTHER);
	assert_int_equal(CALLER({NULL, "/srv/engine"}, {NULL, "/srv/engine"}), LOCK_CALLER_OTHER);
	assert_int_equal(CALLER({NULL, NULL}), LOCK_CALLER_OTHER);
	assert_int_equal(lock_caller_of(NULL, 0), LOCK_CALLER_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mutex_has_its_owner_in_the_third_word),
		cmocka_unit_test(a_mutex_that_was_given_back_has_none),
		cmocka_unit_test(what_is_no_mutex_has_none),
		cmocka_unit_test(a_robust_mutex_has_it_in_the_first_word),
		cmocka_unit_test(with_priority_inheritance_the_word_tells),
		cmocka_unit_test(a_lock_that_processes_share_has_no_known_owner),
		cmocka_unit_test(a_rwlock_has_its_writer_behind_two_words_of_0),
		cmocka_unit_test(the_function_of_libc_tells_what_is_waited_for),
		cmocka_unit_test(another_function_of_libc_waits_for_no_such_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

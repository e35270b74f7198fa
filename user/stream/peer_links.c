/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/peer_links.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "model/syscalls.h"
#include "proc/ipc.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/status.h"

#define LINKS_MAX 16
/* Processes come and go: then the search is made again, if anybody waits. */
#define KEPT_NS (30 * NS_PER_S)
/* The same where a memory map was locked for a moment. */
#define AGAIN_NS NS_PER_S
#define ENDS_MAX 8
/* Processes that are looked at: the nearest in the tree, then those with the nearest ids. */
#define SEARCH_MAX    1024
#define SEARCH_MAX_NS (100 * NS_PER_MS)

#define FUTEX_OPERATION	  0x7f
#define FUTEX_PRIVATE	  128
#define FUTEX_WAIT	  0
#define FUTEX_WAIT_BITSET 9

/* A link, and how far its search has come. */
struct search {
	struct peer_link link; /* the first member: peer_link_search gets it back by that */
	uint32_t tgid;	       /* 0: the place is free */
	uint64_t key;	       /* which of the process's links of that way */
	uint64_t begun_ns;
	uint64_t kept_ns; /* for so long it is not made again */
	uint64_t used_ns;
	uint64_t spent_ns;
	shared_memory_vec memory; /* FBT_PEER_MEMORY, FBT_PEER_FUTEX: what they share */
	struct far_end ends[ENDS_MAX];
	size_t end_count;
	pid_vec order; /* of the processes to look at */
	size_t next;
	struct peer_process known[PEERS_MAX]; /* from the search before */
	size_t known_count;
};

struct peer_links {
	int diag; /* unix_diag_open, or -1 */
	struct memory *memory;
	enum fbt_arch arch;
	struct search searches[LINKS_MAX];
};

struct peer_links *peer_links__new(bool asks_sockets)
{
	struct peer_links *links = calloc(1, sizeof(*links));

	if (!links)
		return NULL;
	links->memory = memory__new();
	if (!links->memory) {
		free(links);
		return NULL;
	}
	links->diag = asks_sockets ? unix_diag_open() : -1;
	links->arch = syscalls_arch();
	return links;
}

static void clear(struct search *search)
{
	vec_free(&search->memory);
	vec_free(&search->order);
	*search = (struct search){.tgid = 0};
}

void peer_links__free(struct peer_links *links)
{
	if (!links)
		return;
	for (size_t i = 0; i < LINKS_MAX; i++)
		clear(&links->searches[i]);
	if (links->diag >= 0)
		close(links->diag);
	memory__free(links->memory);
	free(links);
}

/* What is known of a wait before any process is looked at. */
struct target {
	enum fbt_peer_way way;
	uint64_t key;
	uint64_t address; /* FBT_PEER_FUTEX */
	struct far_end ends[ENDS_MAX];
	size_t end_count;
};

static bool find_futex(const struct peer_wait *wait, struct target *target)
{
	uint64_t operation = wait->args[1] & FUTEX_OPERATION;

	if ((operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET) ||
	    wait->args[1] & FUTEX_PRIVATE)
		return false;
	target->way = FBT_PEER_FUTEX;
	target->address = wait->args[0];
	target->key = wait->args[0];
	return true;
}

static bool find_ends(const struct peer_links *links, const struct peer_wait *wait,
		      const uint32_t *fds, size_t count, struct target *target)
{
	target->key = 0;
	for (size_t i = 0; i < count && target->end_count < ENDS_MAX; i++) {
		struct far_end *end = &target->ends[target->end_count];

		if (!far_end_find(wait->tgid, fds[i], links->diag, end))
			continue;
		if (!target->end_count)
			target->way = end->is_pipe ? FBT_PEER_PIPE : FBT_PEER_SOCKET;
		target->key = target->key * 31 + end->inode;
		target->end_count++;
	}
	return target->end_count != 0;
}

static bool is_nap(const char *name)
{
	return !strcmp(name, "sched_yield") || !strcmp(name, "nanosleep") ||
	       !strcmp(name, "clock_nanosleep") || !strcmp(name, "select") ||
	       !strcmp(name, "pselect6");
}

bool peer_links__is_nap(const struct peer_links *links, uint32_t nr)
{
	const char *name = syscall_name(links->arch, nr);

	return name && is_nap(name);
}

bool peer_links__may_repeat(const struct peer_links *links, uint32_t nr)
{
	const char *name = syscall_name(links->arch, nr);
	uint32_t how = syscall_descriptors(links->arch, nr) & FBT_FD_WAITS;

	return name && (how == FBT_FD_EPOLLS || how == FBT_FD_POLLS || is_nap(name) ||
			!strcmp(name, "futex"));
}

static bool find_target(const struct peer_links *links, const struct peer_wait *wait,
			struct target *target)
{
	const char *name = syscall_name(links->arch, wait->nr);
	uint32_t how = syscall_descriptors(links->arch, wait->nr) & FBT_FD_WAITS;
	uint32_t fds[ENDS_MAX] = {(uint32_t)wait->args[0]};
	size_t count = 1;

	*target = (struct target){.way = FBT_PEER_MEMORY};
	if (!name)
		return false;
	if (!strcmp(name, "futex"))
		return find_futex(wait, target);
	if (how == FBT_FD_EPOLLS)
		count = epoll_watched(wait->tgid, fds[0], fds, ENDS_MAX);
	else if (how == FBT_FD_POLLS)
		count = poll_watched(links->memory, wait->tgid, wait->args[0], wait->args[1], fds,
				     ENDS_MAX);
	if (how && find_ends(links, wait, fds, count, target))
		return true;
	/* A wait for nothing that is known, again and again, may be one for memory. */
	if (!wait->may_spin)
		return false;
	return how == FBT_FD_EPOLLS || how == FBT_FD_POLLS || is_nap(name);
}

static uint32_t distance(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

struct ordered {
	uint32_t distance;
	uint32_t tgid;
};

static int compare_ordered(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;

	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	return (a->tgid > b->tgid) - (a->tgid < b->tgid);
}

static bool contains(const pid_vec *ids, uint32_t id)
{
	vec_for_each (known, ids) {
		if (*known == id)
			return true;
	}
	return false;
}

static bool is_known(const struct search *search, uint32_t tgid)
{
	for (size_t i = 0; i < search->known_count; i++) {
		if (search->known[i].tgid == tgid)
			return true;
	}
	return false;
}

/* Parent, children and siblings. */
static void find_relatives(uint32_t tgid, pid_vec *relatives)
{
	struct thread_stat stat = {0};

	processes_children(tgid, relatives);
	if (thread_stat_read(&stat, (struct proc_ref){.tgid = tgid}) || stat.parent_tgid <= 1)
		return;
	(void)vec_push(relatives, stat.parent_tgid);
	processes_children(stat.parent_tgid, relatives);
}

/*
 * All other processes: those that the search before has found, relatives, and then by the distance
 * of their ids. Before them the own one, if it may hold the far end.
 */
static void find_order(struct search *search)
{
	VEC(struct ordered) ordered = {0};
	pid_vec ids = {0}, relatives = {0};

	if (search->end_count && vec_push(&search->order, search->tgid))
		return;
	find_relatives(search->tgid, &relatives);
	if (processes_ids(&ids))
		goto out;
	vec_for_each (id, &ids) {
		struct ordered item = {distance(*id, search->tgid) + 1, *id};

		if (contains(&relatives, *id))
			item.distance = 1;
		if (is_known(search, *id))
			item.distance = 0;
		if (*id != search->tgid && *id != (uint32_t)getpid() && vec_push(&ordered, item))
			goto out;
	}
	vec_sort(&ordered, compare_ordered);
	vec_for_each (item, &ordered) {
		if (search->order.count >= SEARCH_MAX || vec_push(&search->order, item->tgid))
			break;
	}
out:
	vec_free(&ordered);
	vec_free(&relatives);
	vec_free(&ids);
}

/* The memory by which others may be found. False: there is none. Its map may be locked just now. */
static bool find_memory(struct search *search, const struct target *target)
{
	const struct shared_memory *at;
	struct shared_memory one;

	if (maps_are_locked(search->tgid)) {
		search->kept_ns = AGAIN_NS;
		return false;
	}
	if (!shared_memory_read(search->tgid, &search->memory))
		return false;
	if (target->way != FBT_PEER_FUTEX)
		return true;
	at = shared_memory_at(&search->memory, target->address);
	if (!at)
		return false;
	one = *at;
	search->memory.items[0] = one;
	search->memory.count = 1;
	return true;
}

static bool is_of(const struct search *search, const struct peer_wait *wait,
		  const struct target *target)
{
	return search->tgid == wait->tgid && search->link.way == target->way &&
	       search->key == target->key;
}

/* What is known of the processes stays, where the same is searched again. */
static void begin(struct search *search, const struct peer_wait *wait, const struct target *target,
		  uint64_t now_ns)
{
	struct peer_link old = {.count = 0};

	if (is_of(search, wait, target))
		old = search->link;
	clear(search);
	search->known_count = old.count;
	memcpy(search->known, old.processes, sizeof(search->known));
	search->link.way = target->way;
	search->tgid = wait->tgid;
	search->key = target->key;
	search->begun_ns = now_ns;
	search->kept_ns = KEPT_NS;
	search->end_count = target->end_count;
	memcpy(search->ends, target->ends, sizeof(search->ends));
	/* Without memory in common there is nothing to search: the link is known to be empty. */
	if (target->end_count || find_memory(search, target))
		find_order(search);
}

struct peer_link *peer_links__find(struct peer_links *links, const struct peer_wait *wait,
				   uint64_t now_ns)
{
	struct search *oldest = &links->searches[0];
	struct target target;

	if (!find_target(links, wait, &target))
		return NULL;
	for (size_t i = 0; i < LINKS_MAX; i++) {
		struct search *search = &links->searches[i];

		if (is_of(search, wait, &target)) {
			oldest = search;
			break;
		}
		if (search->used_ns < oldest->used_ns)
			oldest = search;
	}
	if (!is_of(oldest, wait, &target) || now_ns >= oldest->begun_ns + oldest->kept_ns)
		begin(oldest, wait, &target, now_ns);
	oldest->used_ns = now_ns;
	return &oldest->link;
}

static bool is_other_side(struct search *search, uint32_t tgid)
{
	if (search->end_count)
		return far_ends_are_held(tgid, search->ends, search->end_count);
	if (maps_are_locked(tgid)) {
		search->kept_ns = AGAIN_NS;
		return false;
	}
	return shared_memory_is_mapped(tgid, search->memory.items, search->memory.count);
}

static struct peer_process known_process(const struct search *search, uint32_t tgid,
					 uint64_t start_ticks)
{
	for (size_t i = 0; i < search->known_count; i++) {
		if (search->known[i].tgid == tgid && search->known[i].start_ticks == start_ticks)
			return search->known[i];
	}
	return (struct peer_process){.tgid = tgid, .start_ticks = start_ticks};
}

static void look_at(struct search *search, uint32_t tgid)
{
	struct thread_stat stat;
	struct peer_link *link = &search->link;

	if (!is_other_side(search, tgid) ||
	    thread_stat_read(&stat, (struct proc_ref){.tgid = tgid}))
		return;
	/* A thread of its own may end the wait. Children inherit what they never use. */
	if (link->count == PEERS_MAX || tgid == search->tgid) {
		link->more++;
		return;
	}
	link->processes[link->count++] = known_process(search, tgid, stat.start_ticks);
}

bool peer_link_is_open(const struct peer_link *link)
{
	const struct search *search = (const struct search *)link;

	return search->next < search->order.count && search->spent_ns < SEARCH_MAX_NS;
}

/* By the CPU time that it takes: a tool that has no CPU does not search. */
void peer_link_search(struct peer_link *link, uint64_t most_ns)
{
	struct search *search = (struct search *)link;
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), spent_ns = 0;

	while (peer_link_is_open(link) && spent_ns < most_ns) {
		look_at(search, search->order.items[search->next++]);
		spent_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	}
	search->spent_ns += spent_ns;
	if (!peer_link_is_open(link))
		vec_free(&search->order);
}

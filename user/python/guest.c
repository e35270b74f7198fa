/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/namespace.h"
#include "proc/open.h"
#include "proc/process.h"
#include "proc/status.h"
#include "sandbox/broker.h"

/* In the path of its file. */
#define LIBRARY_NAME "libferrum_python"

/* A hostile process may have many files of that name: no more than this many are opened. */
#define CANDIDATES_MAX 16
#define SEALS	       (F_SEAL_SHRINK | F_SEAL_GROW)
/* How often to look, while an order waits, whether it has been answered. */
#define LOOK_NS (20 * NS_PER_MS)

struct python_guest {
	struct fbt_python_page *page; /* shared with the process */
	uint32_t pid;		      /* the process's, in its own namespace */
	uint32_t number;	      /* of the last order */
	uint32_t lapses;	      /* of the page, when we took it */
	bool is_lost;		      /* another tool has the page */
	bool is_shared;		      /* it is only read */
	uint32_t holder;	      /* whose orders it then has */
	int64_t clock_ahead_ns;	      /* the process's CLOCK_MONOTONIC, in a time namespace */
};

int python_memfd_serve(const void *nothing, const struct broker_order *order)
{
	int fd;

	if (order->number == BROKER_MAPPED)
		return memfd_open_mapped(order->tgid, FBT_PYTHON_MEMFD);
	fd = memfd_open_named(order->tgid, order->number, FBT_PYTHON_MEMFD);
	return fd == -ENOENT ? memfd_open_named(order->tgid, order->number, FBT_TORCH_MEMFD) : fd;
}

/* Maps a file only if the process can neither shrink nor grow it, so that access stays safe. */
static int map_page(int fd, int protection, struct fbt_python_page **page)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;
	void *memory;

	if (seals < 0 || fstat(fd, &status))
		return -EBADMSG;
	/* The library seals the file after it has its size. */
	if (!(seals & F_SEAL_SHRINK))
		return -ENOENT;
	if ((seals & SEALS) != SEALS || status.st_size != FBT_PYTHON_PAGE_BYTES)
		return -EBADMSG;
	memory = mmap(NULL, FBT_PYTHON_PAGE_BYTES, protection, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return errno == EPERM ? -EBADMSG : -ENOMEM;
	*page = memory;
	return 0;
}

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static uint64_t lease_of(const struct fbt_python_page *page)
{
	return __atomic_load_n(&page->lease_ns, __ATOMIC_ACQUIRE);
}

/*
 * Whether functions are armed. After a tool was killed, they are so until the library has the GIL:
 * a new lease before that would keep them armed.
 */
static bool is_armed(const struct fbt_python_page *page)
{
	for (unsigned int i = 0; i < FBT_PYTHON_SLOTS; i++) {
		if (load(&page->slots[i].found) == FBT_PYTHON_ARMED)
			return true;
	}
	return false;
}

/*
 * A child that was forked without the library's knowledge has its parent's file, which is for
 * another process.
 */
static int check_page(const struct fbt_python_page *page, uint32_t pid)
{
	if (!__atomic_load_n(&page->magic, __ATOMIC_ACQUIRE))
		return -ENOENT;
	if (page->magic != FBT_PYTHON_MAGIC)
		return -EBADMSG;
	if (page->version != FBT_PYTHON_VERSION)
		return -EPROTONOSUPPORT;
	return page->pid == pid ? 0 : -ENOENT;
}

static int share_page(const struct fbt_python_page *page, uint32_t pid, uint32_t *holder)
{
	int err = check_page(page, pid);

	*holder = load(&page->tool);
	return err || *holder ? err : -ENOTCONN;
}

/* Becomes the tool that gives the orders. */
static int take_page(struct fbt_python_page *page, uint32_t pid, int64_t ahead_ns, uint32_t *holder)
{
	uint32_t before = load(&page->tool);
	int err = check_page(page, pid);

	if (err)
		return err;
	*holder = before;
	if (before && ((int64_t)clock_ns(CLOCK_MONOTONIC) + ahead_ns < (int64_t)lease_of(page) ||
		       is_armed(page)))
		return -EBUSY;
	if (!__atomic_compare_exchange_n(&page->tool, &before, (uint32_t)getpid(), false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		*holder = before;
		return -EBUSY;
	}
	return 0;
}

/* Confined, the tool may open nothing for writing: it asks the broker. */
static int open_candidate(uint32_t thread, int folder, const char *number, dev_t device)
{
	if (!broker_is_there())
		return memfd_open(folder, number, device);
	return broker_open(BROKER_PYTHON, thread, (uint32_t)strtoul(number, NULL, 10), NULL);
}

static int open_mapped(uint32_t thread)
{
	if (!broker_is_there())
		return memfd_open_mapped(thread, FBT_PYTHON_MEMFD);
	return broker_open(BROKER_PYTHON, thread, BROKER_MAPPED, NULL);
}

/* What an earlier tool has left in the page. */
static void take_state(struct python_guest *guest)
{
	guest->number = load(&guest->page->order) >> 2;
	guest->lapses = load(&guest->page->lapses);
}

static int try_candidate(int fd, struct python_guest *guest, uint32_t *holder)
{
	int protection = guest->is_shared ? PROT_READ : PROT_READ | PROT_WRITE;
	int err;

	if (fd < 0)
		return fd;
	err = map_page(fd, protection, &guest->page);
	close(fd);
	if (err)
		return err;
	err = guest->is_shared ? share_page(guest->page, guest->pid, holder)
			       : take_page(guest->page, guest->pid, guest->clock_ahead_ns, holder);
	if (err) {
		munmap(guest->page, FBT_PYTHON_PAGE_BYTES);
		guest->page = NULL;
	}
	return err;
}

/* The process's number in its own PID namespace, as the library knows it. */
static uint32_t inner_pid(uint32_t tgid)
{
	struct thread_status status;

	if (thread_status_read(&status, (struct proc_ref){.tgid = tgid}) || !status.ns_tid)
		return tgid;
	return status.ns_tid;
}

static bool is_page(const struct mapping *mapping, const void *nothing)
{
	return mapping->path && !strcmp(mapping->path, "/memfd:" FBT_PYTHON_MEMFD);
}

bool python_guest_is_there(uint32_t tgid)
{
	return maps_search(processes_live_thread(tgid), FBT_PYTHON_MEMFD, is_page, NULL);
}

static int search(uint32_t tgid, struct python_guest *guest, uint32_t *holder)
{
	struct proc_ref process = {.tgid = processes_live_thread(tgid)};
	int tried = 0, err = -ENOENT;
	struct dirent *entry;
	dev_t device;
	DIR *folder;
	int fd;

	guest->pid = inner_pid(tgid);
	err = memfd_device(&device);
	if (err)
		return err;
	fd = proc_open(process, "fd", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	folder = fdopendir(fd);
	if (!folder) {
		close(fd);
		return -ENOMEM;
	}
	err = -ENOENT;
	while (err && tried < CANDIDATES_MAX && (entry = readdir(folder))) {
		int own;

		if (memfd_is_named(fd, entry->d_name, FBT_PYTHON_MEMFD) <= 0)
			continue;
		tried++;
		own = try_candidate(open_candidate(process.tgid, fd, entry->d_name, device), guest,
				    holder);
		/* What is special about one file says more than that there is none. */
		err = !own || own != -ENOENT ? own : err;
	}
	closedir(folder);
	/* A program that closes all of its descriptors, as daemons do, still has the page. */
	if (!tried && python_guest_is_there(tgid))
		err = try_candidate(open_mapped(process.tgid), guest, holder);
	return err;
}

static bool is_library(const struct mapping *mapping, const void *nothing)
{
	return mapping->path && mapping->executable && strstr(mapping->path, LIBRARY_NAME);
}

bool python_guest_is_inherited(uint32_t tgid)
{
	struct thread_stat stat;

	/* A preloaded library that was there before the interpreter has no page either. */
	return !thread_stat_read(&stat, (struct proc_ref){.tgid = tgid}) &&
	       stat.flags & THREAD_FORKED && !python_guest_is_there(tgid) &&
	       maps_search(processes_live_thread(tgid), LIBRARY_NAME, is_library, NULL);
}

static void lease(struct python_guest *guest, uint64_t ns)
{
	__atomic_store_n(&guest->page->lease_ns,
			 clock_ns(CLOCK_MONOTONIC) + (uint64_t)guest->clock_ahead_ns + ns,
			 __ATOMIC_RELEASE);
}

static void beat(struct python_guest *guest)
{
	lease(guest, FBT_PYTHON_LEASE_NS);
}

static int open_guest(struct python_guest **result, uint32_t tgid, bool is_shared, uint32_t *holder)
{
	struct python_guest *guest = calloc(1, sizeof(*guest));
	int err;

	*result = NULL;
	*holder = 0;
	if (!guest)
		return -ENOMEM;
	guest->is_shared = is_shared;
	guest->clock_ahead_ns = time_namespace_offset(tgid);
	err = search(tgid, guest, holder);
	if (err || !guest->page) {
		free(guest);
		return err ? err : -ESRCH;
	}
	*result = guest;
	return 0;
}

int python_guest__open(struct python_guest **result, uint32_t tgid, uint32_t *holder)
{
	int err = open_guest(result, tgid, false, holder);

	if (err)
		return err;
	take_state(*result);
	/* What an earlier tool wished for is not ours. */
	for (unsigned int i = 0; i < FBT_PYTHON_SLOTS; i++)
		(*result)->page->slots[i].function[0] = '\0';
	python_guest__end_torch(*result);
	beat(*result);
	return 0;
}

int python_guest__open_shared(struct python_guest **result, uint32_t tgid)
{
	uint32_t holder;
	int err = open_guest(result, tgid, true, &holder);

	if (!err)
		(*result)->holder = holder;
	return err;
}

void python_guest__free(struct python_guest *guest)
{
	uint32_t ours = (uint32_t)getpid();

	if (!guest)
		return;
	if (!guest->is_shared)
		__atomic_compare_exchange_n(&guest->page->tool, &ours, 0, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
	munmap(guest->page, FBT_PYTHON_PAGE_BYTES);
	free(guest);
}

static bool set_text(char *to, size_t size, const char *text)
{
	int length = snprintf(to, size, "%s", text);

	return length >= 0 && (size_t)length < size;
}

bool python_guest__wish(struct python_guest *guest, unsigned int slot, const char *function,
			const char *const *attributes, size_t attribute_count)
{
	struct fbt_python_slot *shared;
	bool fits;

	if (slot >= FBT_PYTHON_SLOTS || attribute_count > FBT_PYTHON_ATTRIBUTES)
		return false;
	shared = &guest->page->slots[slot];
	shared->suggests = 0;
	fits = set_text(shared->function, sizeof(shared->function), function);
	for (size_t i = 0; i < FBT_PYTHON_ATTRIBUTES; i++)
		fits &= set_text(shared->attributes[i], sizeof(shared->attributes[i]),
				 i < attribute_count ? attributes[i] : "");
	if (!fits)
		shared->function[0] = '\0';
	return fits;
}

void python_guest__suggest(struct python_guest *guest, unsigned int slot)
{
	if (slot < FBT_PYTHON_SLOTS)
		guest->page->slots[slot].suggests = 1;
}

/* After a lapse another tool may have taken the page, before that was seen. */
static bool is_of_another(struct python_guest *guest)
{
	uint32_t tool = load(&guest->page->tool);

	guest->is_lost |= tool && tool != (uint32_t)getpid();
	return guest->is_lost;
}

/* Its slots may have other functions by now. */
static bool has_changed_hands(struct python_guest *guest)
{
	uint32_t tool = load(&guest->page->tool);

	guest->is_lost |= tool && tool != guest->holder;
	return guest->is_lost;
}

/* The page is ours, but a lease may have ended: an earlier tool's, while we took the page, too. */
static int keep_own(struct python_guest *guest)
{
	bool has_ended = load(&guest->page->lapses) != guest->lapses;

	if (has_ended)
		take_state(guest);
	beat(guest);
	return has_ended ? -ESTALE : 0;
}

int python_guest__keep(struct python_guest *guest)
{
	uint32_t holder;

	if (guest->is_lost)
		return -EPIPE;
	if (guest->is_shared ? has_changed_hands(guest) : is_of_another(guest))
		return -EBUSY;
	if (guest->is_shared)
		return load(&guest->page->tool) ? 0 : -ENOTCONN;
	if (load(&guest->page->tool) == (uint32_t)getpid())
		return keep_own(guest);
	if (take_page(guest->page, guest->pid, guest->clock_ahead_ns, &holder)) {
		guest->is_lost = true;
		return -EBUSY;
	}
	take_state(guest);
	beat(guest);
	return -ESTALE;
}

bool python_guest__withdraw(struct python_guest *guest)
{
	uint32_t asked = FBT_PYTHON_ORDER(guest->number, FBT_PYTHON_ASKED);

	return __atomic_compare_exchange_n(&guest->page->order, &asked,
					   FBT_PYTHON_ORDER(guest->number, FBT_PYTHON_DONE), false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

int python_guest__ask(struct python_guest *guest, enum fbt_python_command command)
{
	if (load(&guest->page->phase) == FBT_PYTHON_DEAD || is_of_another(guest))
		return -EPIPE;
	/* The answer to an order that was taken would be written over this one. */
	if (!python_guest__withdraw(guest) && (load(&guest->page->order) & 3) == FBT_PYTHON_TAKEN)
		return -EAGAIN;
	beat(guest);
	guest->number = (guest->number + 1) & 0x3fffffff;
	__atomic_store_n(&guest->page->command, command, __ATOMIC_RELEASE);
	__atomic_store_n(&guest->page->order, FBT_PYTHON_ORDER(guest->number, FBT_PYTHON_ASKED),
			 __ATOMIC_RELEASE);
	syscall(SYS_futex, &guest->page->order, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return 0;
}

int python_guest__poll(const struct python_guest *guest)
{
	if (load(&guest->page->order) == FBT_PYTHON_ORDER(guest->number, FBT_PYTHON_DONE))
		return 0;
	return load(&guest->page->phase) == FBT_PYTHON_DEAD ? -EPIPE : -EAGAIN;
}

/* At most until then, and not for longer than LOOK_NS. */
static void await_change(struct python_guest *guest, uint32_t seen, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	struct timespec timeout = {.tv_nsec = (long)(left_ns < LOOK_NS ? left_ns : LOOK_NS)};

	syscall(SYS_futex, &guest->page->order, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

static void wake(struct python_guest *guest)
{
	syscall(SYS_futex, &guest->page->order, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int python_guest__await(struct python_guest *guest, uint64_t deadline_ns)
{
	for (;;) {
		uint32_t seen = load(&guest->page->order);
		int err = python_guest__poll(guest);

		if (err != -EAGAIN)
			return err;
		if (clock_ns(CLOCK_MONOTONIC) >= deadline_ns)
			return python_guest__withdraw(guest) ? -ETIMEDOUT : -EAGAIN;
		await_change(guest, seen, deadline_ns);
	}
}

int python_guest__order(struct python_guest *guest, enum fbt_python_command command,
			uint64_t deadline_ns)
{
	int err;

	while ((err = python_guest__ask(guest, command)) == -EAGAIN) {
		if (clock_ns(CLOCK_MONOTONIC) >= deadline_ns)
			return -ETIMEDOUT;
		await_change(guest, load(&guest->page->order), deadline_ns);
	}
	if (!err)
		err = python_guest__await(guest, deadline_ns);
	/*
	 * An order that was taken is done in a moment, with the GIL held, unless the process is
	 * stopped.
	 */
	if (err == -EAGAIN)
		err = python_guest__await(guest, deadline_ns + NS_PER_S);
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

static void end_text(char *text, size_t size)
{
	text[size - 1] = '\0';
}

void python_guest__want_torch(struct python_guest *guest, const struct python_torch_wish *wish)
{
	struct fbt_python_torch *torch = &guest->page->torch;

	torch->flags = wish->flags;
	torch->max_steps = wish->max_steps;
	torch->max_bytes = wish->max_bytes;
	__atomic_store_n(&torch->window, wish->window, __ATOMIC_RELEASE);
}

void python_guest__end_torch(struct python_guest *guest)
{
	__atomic_store_n(&guest->page->torch.window, 0, __ATOMIC_RELEASE);
	/* Until the traces are collected the tool may wait for the last records of a GPU. */
	lease(guest, FBT_PYTHON_TORCH_LEASE_NS);
	wake(guest);
}

static uint64_t our_time(const struct python_guest *guest, const __u64 *time)
{
	uint64_t ns = __atomic_load_n(time, __ATOMIC_ACQUIRE);

	return ns ? ns - (uint64_t)guest->clock_ahead_ns : 0;
}

void python_guest__torch(const struct python_guest *guest, uint32_t window,
			 struct fbt_python_torch *answer)
{
	const struct fbt_python_torch *torch = &guest->page->torch;
	uint32_t state = load(&torch->state);

	memcpy(answer, torch, sizeof(*answer));
	answer->state = state < FBT_TORCH_STATE_COUNT ? state : FBT_TORCH_FAILED;
	if (load(&torch->served) != window)
		answer->state = FBT_TORCH_NONE;
	/* Times are set before the state: a profiler that starts right now counts. */
	answer->end_ns = our_time(guest, &torch->end_ns);
	answer->begin_ns = our_time(guest, &torch->begin_ns);
	end_text(answer->text, sizeof(answer->text));
}

enum python_torch_wait python_guest__torch_wait(const struct python_guest *guest, uint32_t window)
{
	const struct fbt_python_torch *torch = &guest->page->torch;

	if (load(&torch->state) != FBT_TORCH_ON)
		return our_time(guest, &torch->begin_ns) && !our_time(guest, &torch->end_ns)
			       ? PYTHON_TORCH_AT_IT
			       : PYTHON_TORCH_NOTHING;
	/* One of an earlier window, in a step that has not ended since: ours has not begun there.
	 */
	if (load(&torch->served) != window)
		return PYTHON_TORCH_NOTHING;
	return load(&guest->page->torch_stops) ? PYTHON_TORCH_AT_IT : PYTHON_TORCH_STEP;
}

void python_guest__answer(const struct python_guest *guest, unsigned int slot,
			  struct fbt_python_slot *answer)
{
	if (slot >= FBT_PYTHON_SLOTS) {
		memset(answer, 0, sizeof(*answer));
		return;
	}
	memcpy(answer, &guest->page->slots[slot], sizeof(*answer));
	end_text(answer->function, sizeof(answer->function));
	for (size_t i = 0; i < FBT_PYTHON_ATTRIBUTES; i++)
		end_text(answer->attributes[i], sizeof(answer->attributes[i]));
	end_text(answer->file, sizeof(answer->file));
	end_text(answer->text, sizeof(answer->text));
	if (answer->found >= FBT_PYTHON_FOUND_COUNT)
		answer->found = FBT_PYTHON_FAILED;
}

static bool is_armed_with(const struct python_guest *guest, unsigned int slot, const char *function,
			  const char *const *attributes, size_t count)
{
	struct fbt_python_slot answer;
	bool same;

	python_guest__answer(guest, slot, &answer);
	same = answer.found == FBT_PYTHON_ARMED && !strcmp(answer.function, function);
	for (size_t i = 0; i < FBT_PYTHON_ATTRIBUTES; i++)
		same &= !strcmp(answer.attributes[i], i < count ? attributes[i] : "");
	return same;
}

int python_guest__armed(const struct python_guest *guest, const char *function,
			const char *const *attributes, size_t attribute_count)
{
	for (unsigned int i = 0; i < FBT_PYTHON_SLOTS; i++) {
		if (is_armed_with(guest, i, function, attributes, attribute_count))
			return (int)i;
	}
	return -1;
}

unsigned int python_guest__minor(const struct python_guest *guest)
{
	return load(&guest->page->python) & 0xff;
}

void python_guest__text(const struct python_guest *guest, char *text, size_t size)
{
	char copy[sizeof(guest->page->text)];

	memcpy(copy, guest->page->text, sizeof(copy));
	end_text(copy, sizeof(copy));
	snprintf(text, size, "%s", copy);
}

void python_guest__times(const struct python_guest *guest, uint64_t *wait_ns, uint64_t *hold_ns)
{
	*wait_ns = __atomic_load_n(&guest->page->gil_wait_ns, __ATOMIC_RELAXED);
	*hold_ns = __atomic_load_n(&guest->page->gil_hold_ns, __ATOMIC_RELAXED);
}

const char *python_found_text(enum fbt_python_found found)
{
	static const char *const texts[FBT_PYTHON_FOUND_COUNT] = {
		[FBT_PYTHON_UNKNOWN] = "was not looked up",
		[FBT_PYTHON_FOUND] = "found",
		[FBT_PYTHON_ARMED] = "armed",
		[FBT_PYTHON_NO_MODULE] = "the module is not loaded",
		[FBT_PYTHON_NO_NAME] = "has no such name",
		[FBT_PYTHON_NOT_PLAIN] = "is no function written in Python",
		[FBT_PYTHON_GENERATOR] = "is a generator or coroutine: name what it calls",
		[FBT_PYTHON_WRAPPED] = "has too many decorators",
		[FBT_PYTHON_NO_ARGUMENT] = "has no such argument",
		[FBT_PYTHON_TAKEN_BY_OTHER] = "was changed by another tool",
		[FBT_PYTHON_FAILED] = "cannot be armed",
		[FBT_PYTHON_SAME] = "is the same function as another one",
	};

	return texts[found < FBT_PYTHON_FOUND_COUNT ? found : FBT_PYTHON_FAILED];
}

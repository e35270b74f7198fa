/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The C part of the stub. ferrum_stub_start and ferrum_stub_settle run on a thread of the engine,
 * in the middle of its system call; help runs on a thread of its own. The code has no data, uses no
 * vector registers, and calls no libraries but the functions of the table. A failure is not
 * reported: the tool sees that no page, or no ring, appears.
 */
#include <asm/stat.h>
#include <asm/unistd.h>
#include <stddef.h>
#include "fbt_inject.h"
#include "stub.h"

#define EINTR		  4
#define EAGAIN		  11
#define SIG_IGN		  1ul
#define SA_RESTART	  0x10000000ul
#define SIGCANCEL	  32
#define SIGSETXID	  33
#define SIG_UNBLOCK	  1
#define RTLD_NOW	  2
#define PAGE		  4096
#define PROT_RW		  3
#define MAP_SHARED	  1
#define FUTEX_WAKE	  1
#define FUTEX_WAIT_BITSET 9
#define CLOCK_MONOTONIC	  1
#define DETACHED	  1 /* PTHREAD_CREATE_DETACHED */
#define MFD_CLOEXEC	  0x01
#define MFD_ALLOW_SEALING 0x02
#define MFD_NOEXEC_SEAL	  0x08
#define MFD_EXEC	  0x10
#define F_ADD_SEALS	  1033
#define F_SEAL_SHRINK	  2
#define NO_MEMORY	  ((struct fbt_inject_page *)-1)

struct stub_frame {
	__u64 mask; /* signal mask of the thread */
	__u64 interrupted;
	__u64 rax; /* number of the call, or -EINTR */
	__u64 rcx; /* where the thread continues */
	__u64 token;
	__u64 registers[10];
};

_Static_assert(offsetof(struct stub_frame, interrupted) == FRAME_INTERRUPTED, "frame");
_Static_assert(offsetof(struct stub_frame, rax) == FRAME_RAX, "frame");
_Static_assert(offsetof(struct stub_frame, rcx) == FRAME_RCX, "frame");
_Static_assert(offsetof(struct stub_frame, token) == FRAME_TOKEN, "frame");
_Static_assert(sizeof(struct stub_frame) == FRAME_FLAGS, "frame");
_Static_assert(STUB_MAGIC == FBT_INJECT_MAGIC && STUB_VERSION == FBT_INJECT_VERSION &&
		       STUB_FUNCTIONS == FBT_INJECT_FUNCTION_COUNT,
	       "head");

typedef void *helper_function(void *token);

typedef int create_function(__u64 *thread, const __u64 *attributes, helper_function *start,
			    void *arg);
typedef int init_function(__u64 *attributes);
typedef int set_state_function(__u64 *attributes, int state);
typedef int set_size_function(__u64 *attributes, size_t size);
typedef int *errno_function(void);
typedef void *open_function(const char *path, int mode);
typedef void *symbol_function(void *library, const char *name);
typedef char *error_function(void);
typedef int entry_function(void);

/* struct sigaction as the kernel has it. */
struct kernel_sigaction {
	unsigned long handler;
	unsigned long flags;
	unsigned long restorer;
	__u64 mask;
};

extern const __u64 ferrum_stub_functions[STUB_FUNCTIONS] __attribute__((visibility("hidden")));
long ferrum_stub_syscall(long nr, ...) __attribute__((visibility("hidden")));
void ferrum_stub_start(struct stub_frame *frame) __attribute__((visibility("hidden")));
void ferrum_stub_settle(struct stub_frame *frame) __attribute__((visibility("hidden")));

#define sys(nr, ...) ferrum_stub_syscall(nr, __VA_ARGS__)

/*
 * Reads the table of addresses. It is not a constant table in C, for which the compiler would use
 * the link-time address.
 */
static void *function(enum fbt_inject_function which)
{
	const volatile __u64 *table = ferrum_stub_functions;

	return (void *)table[which];
}

static long new_memfd(const char *name)
{
	/* Kernels before 6.3 do not know MFD_EXEC, and vm.memfd_noexec = 2 refuses it. */
	const long flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	long fd = sys(__NR_memfd_create, name, flags | MFD_EXEC);

	if (fd < 0)
		fd = sys(__NR_memfd_create, name, flags);
	if (fd < 0)
		fd = sys(__NR_memfd_create, name, flags | MFD_NOEXEC_SEAL);
	return fd;
}

static __u64 inode_of(long fd)
{
	struct stat status;

	return sys(__NR_fstat, fd, &status) ? 0 : status.st_ino;
}

/* The engine may have closed the descriptor and reused its number: check before closing. */
static void close_if(long fd, __u64 inode)
{
	if (fd >= 0 && inode_of(fd) == inode)
		sys(__NR_close, fd);
}

static char *put(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	*to = '\0';
	return to;
}

static void name_page(char *name, __u64 token)
{
	char *to = put(name, FBT_INJECT_PAGE_NAME);

	for (int shift = 60; shift >= 32; shift -= 4) {
		unsigned int digit = token >> shift & 15;

		*to++ = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
	}
	*to = '\0';
}

/*
 * Makes a path that dlopen has not seen before, because dlopen returns the earlier library for a
 * path that it knows. The path differs by the nonce, in "/" and "./". Not /proc/self, which is
 * empty after the main thread has ended.
 */
static void name_library(char *path, unsigned int fd, __u64 token)
{
	char digits[12], *digit = digits + sizeof(digits) - 1;
	char *to = put(path, "/proc/thread-self/fd/");

	for (int bit = 32; bit < 64; bit++) {
		if (token >> bit & 1)
			*to++ = '.';
		*to++ = '/';
	}
	*digit = '\0';
	do {
		*--digit = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd);
	put(to, digit);
}

/*
 * Allocates the page by a write, since a page of a file that was only extended may fail when it is
 * touched. Then seals the file: the tool maps no page that could be truncated.
 */
static struct fbt_inject_page *map_page(long fd)
{
	long memory;

	if (fd < 0 || sys(__NR_pwrite64, fd, "", 1l, PAGE - 1l) != 1 ||
	    sys(__NR_fcntl, fd, (long)F_ADD_SEALS, (long)F_SEAL_SHRINK))
		return NO_MEMORY;
	memory = sys(__NR_mmap, 0l, (long)PAGE, (long)PROT_RW, (long)MAP_SHARED, fd, 0l);
	return memory < 0 && memory >= -4095 ? NO_MEMORY : (struct fbt_inject_page *)memory;
}

static __u32 set_state(struct fbt_inject_page *page, __u32 from, __u32 to)
{
	if (__atomic_compare_exchange_n(&page->state, &from, to, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		from = to;
	sys(__NR_futex, &page->state, (long)FUTEX_WAKE, 0x7fffffffl, 0l, 0l, 0l);
	return from;
}

/* Waits until the tool has written the library. Returns FILLED or LATE. */
static __u32 await_library(struct fbt_inject_page *page)
{
	struct {
		long seconds, ns;
	} until;
	__u32 state = set_state(page, FBT_INJECT_NONE, FBT_INJECT_READY);

	sys(__NR_clock_gettime, (long)CLOCK_MONOTONIC, &until);
	until.seconds += FBT_INJECT_WAIT_NS / 1000000000;
	while (state == FBT_INJECT_READY) {
		long err = sys(__NR_futex, &page->state, (long)FUTEX_WAIT_BITSET,
			       (long)FBT_INJECT_READY, &until, 0l, -1l);

		state = __atomic_load_n(&page->state, __ATOMIC_ACQUIRE);
		if (state == FBT_INJECT_READY && err && err != -EINTR && err != -EAGAIN)
			state = set_state(page, FBT_INJECT_READY, FBT_INJECT_LATE);
	}
	return state;
}

static void explain(struct fbt_inject_page *page, enum fbt_inject_stage stage)
{
	const char *text = ((error_function *)function(FBT_INJECT_DLERROR))();

	page->stage = stage;
	for (size_t i = 0; text && text[i] && i < sizeof(page->text) - 1; i++)
		page->text[i] = text[i];
}

static void load(struct fbt_inject_page *page, __u64 token)
{
	char path[128];
	void *library, *entry;

	name_library(path, page->library_fd, token);
	library = ((open_function *)function(FBT_INJECT_DLOPEN))(path, RTLD_NOW);
	if (!library) {
		explain(page, FBT_INJECT_STAGE_LOAD);
		return;
	}
	if (!page->entry[0])
		return;
	entry = ((symbol_function *)function(FBT_INJECT_DLSYM))(library, page->entry);
	if (entry)
		page->result = ((entry_function *)entry)();
	else
		explain(page, FBT_INJECT_STAGE_ENTRY);
}

static void meet_tool(struct fbt_inject_page *page, long library, __u64 token)
{
	page->magic = FBT_INJECT_MAGIC;
	page->version = FBT_INJECT_VERSION;
	page->token = token;
	page->library_fd = (__u32)library;
	if (await_library(page) != FBT_INJECT_FILLED)
		return;
	load(page, token);
	set_state(page, FBT_INJECT_FILLED, FBT_INJECT_DONE);
}

static void *help(void *arg)
{
	__u64 token = (__u64)arg, page_inode, library_inode;
	struct fbt_inject_page *page;
	long page_fd, library;
	char name[32];

	name_page(name, token);
	library = new_memfd(FBT_INJECT_LIBRARY_NAME);
	library_inode = inode_of(library);
	page_fd = new_memfd(name);
	page_inode = inode_of(page_fd);
	page = map_page(page_fd);
	if (page != NO_MEMORY) {
		if (library >= 0)
			meet_tool(page, library, token);
		sys(__NR_munmap, page, (long)PAGE);
	}
	close_if(page_fd, page_inode);
	close_if(library, library_inode);
	return NULL;
}

void ferrum_stub_start(struct stub_frame *frame)
{
	int *error = ((errno_function *)function(FBT_INJECT_ERRNO_LOCATION))(), before = *error;
	__u64 attributes[8], thread; /* pthread_attr_t has 56 bytes */
	/* Thread-local storage is part of the stack, and an engine may have much of it. */
	size_t size = 512u << 10;

	if (((init_function *)function(FBT_INJECT_PTHREAD_ATTR_INIT))(attributes))
		goto out;
	((set_state_function *)function(FBT_INJECT_PTHREAD_ATTR_SETDETACHSTATE))(attributes,
										 DETACHED);
	do {
		((set_size_function *)function(FBT_INJECT_PTHREAD_ATTR_SETSTACKSIZE))(attributes,
										      size);
		size <<= 4;
	} while (((create_function *)function(FBT_INJECT_PTHREAD_CREATE))(&thread, attributes, help,
									  (void *)frame->token) &&
		 size <= 8u << 20);
out:
	*error = before;
}

/* Whether this signal would have interrupted the waiting call with EINTR. */
static int interrupts(long signal, __u32 class)
{
	struct kernel_sigaction action;

	if (sys(__NR_rt_sigaction, signal, 0l, &action, 8l) || action.handler <= SIG_IGN)
		return 0;
	return class != FBT_INJECT_SA || !(action.flags & SA_RESTART) || signal == SIGCANCEL;
}

/*
 * Runs last, before signals are unblocked. A signal that has arrived meanwhile would have made the
 * call return EINTR. Now its handler runs before the call is restarted, so the kernel does not
 * return EINTR, and the stub must.
 */
void ferrum_stub_settle(struct stub_frame *frame)
{
	__u32 class = (__u32)frame->token;
	__u64 pending = 0;

	if (frame->interrupted || class == FBT_INJECT_ALWAYS ||
	    sys(__NR_rt_sigpending, &pending, 8l))
		return;
	pending &= ~frame->mask;
	for (long signal = 1; signal <= 64; signal++) {
		if (!(pending >> (signal - 1) & 1) || !interrupts(signal, class))
			continue;
		frame->rax = (__u64)-EINTR;
		frame->rcx += 2;
		return;
	}
}

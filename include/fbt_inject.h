/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * --gpu=inject: the contract between the tool (user/inject/) and the stub that it puts into a
 * running process (cupti/stub/).
 *
 * The stub is position-independent code. It is written once per process into the unused bytes after
 * an executable segment, and never changed. A thread that waits in a system call is sent there by
 * the kernel's own restart of that call. The thread starts a helper thread and returns to its call.
 * The helper creates two memfds, the page below and one for the library. It waits for the tool to
 * write the library, loads it, calls its entry, closes both memfds and ends. Only the helper ever
 * waits for the tool.
 */
#ifndef FBT_INJECT_H
#define FBT_INJECT_H

#include <linux/types.h>

#define FBT_INJECT_MAGIC   0x4a4e4954424d5246ull /* "FRMBTINJ" as bytes, little-endian */
#define FBT_INJECT_VERSION 2

/* Functions of libc.so.6 that the stub calls, in the order of fbt_inject_stub.functions. */
enum fbt_inject_function {
	FBT_INJECT_PTHREAD_CREATE = 0,
	FBT_INJECT_PTHREAD_ATTR_INIT = 1,
	FBT_INJECT_PTHREAD_ATTR_SETDETACHSTATE = 2,
	FBT_INJECT_PTHREAD_ATTR_SETSTACKSIZE = 3,
	FBT_INJECT_ERRNO_LOCATION = 4,
	FBT_INJECT_DLOPEN = 5,
	FBT_INJECT_DLSYM = 6,
	FBT_INJECT_DLERROR = 7,
	FBT_INJECT_FUNCTION_COUNT = 8,
};

#define FBT_INJECT_FUNCTION_NAMES                                                                  \
	{                                                                                          \
		"pthread_create", "pthread_attr_init", "pthread_attr_setdetachstate",              \
			"pthread_attr_setstacksize", "__errno_location", "dlopen", "dlsym",        \
			"dlerror"                                                                  \
	}

/* Where execution begins; see the registers below. */
#define FBT_INJECT_ENTRY_RESTART     0 /* the kernel sends the thread here to restart the call */
#define FBT_INJECT_ENTRY_INTERRUPTED 2 /* or here after a handler has run, with -EINTR in rax */

/* The first bytes of the stub, before its code. All but functions are the same in every process. */
struct fbt_inject_stub {
	__u8 entries[8];
	__u64 magic;
	__u32 version;
	__u32 size; /* of the whole stub, code included */
	__u64 functions[FBT_INJECT_FUNCTION_COUNT];
};

/*
 * The registers of a thread that is stopped in a system call (orig_rax is the call's number, rax
 * what it returns if it is not restarted) are changed as follows, in one PTRACE_SETREGSET:
 *   rip = stub + FBT_INJECT_ENTRY_INTERRUPTED   the kernel subtracts 2 when it restarts the call
 *   rcx = the rip it had                        where the program continues after its `syscall`
 *   r11 = a token, see FBT_INJECT_TOKEN
 *   rax = -ERESTARTNOHAND if it was -EINTR      so that the program sees no EINTR without a signal
 * The program has nothing in rcx and r11 there, because `syscall` clobbers them.
 */
#define FBT_INJECT_TOKEN(nonce, class) ((__u64)(nonce) << 32 | (class))

/*
 * Whether the call is restarted after a signal handler has run, by the rax of the stopped thread.
 */
enum fbt_inject_class {
	FBT_INJECT_ALWAYS = 0,	/* -ERESTARTNOINTR: always */
	FBT_INJECT_SA = 1,	/* -ERESTARTSYS: if the handler has SA_RESTART */
	FBT_INJECT_NO_HAND = 2, /* -ERESTARTNOHAND, -EINTR: only if no handler ran */
	FBT_INJECT_BLOCK = 3,	/* -ERESTART_RESTARTBLOCK: by the kernel, as restart_syscall */
};

/* The names of the two memfds. The name of the page ends in the nonce of its token, as %08x. */
#define FBT_INJECT_PAGE_NAME	"ferrum-inject-"
#define FBT_INJECT_LIBRARY_NAME "libferrum.so"

/* How long the helper waits for the tool. */
#define FBT_INJECT_WAIT_NS 2000000000ull

/*
 * The state is a shared futex. Both sides change it from READY by compare-and-swap, so that only
 * one of them succeeds.
 */
enum fbt_inject_state {
	FBT_INJECT_NONE = 0,
	FBT_INJECT_READY = 1,  /* helper: the library may be written */
	FBT_INJECT_FILLED = 2, /* tool: the library has been written */
	FBT_INJECT_LATE = 3,   /* either side has given up: nothing is loaded */
	FBT_INJECT_DONE = 4,   /* helper: stage, result and text are set; the helper ends */
};

enum fbt_inject_stage {
	FBT_INJECT_STAGE_DONE = 0,  /* the entry was called and has returned result */
	FBT_INJECT_STAGE_LOAD = 1,  /* dlopen failed, text says why */
	FBT_INJECT_STAGE_ENTRY = 2, /* the library has no such entry; text */
};

/* The page of 4096 bytes that helper and tool share. The tool trusts no word of it. */
struct fbt_inject_page {
	__u64 magic;
	__u32 version;
	__u32 state;	  /* enum fbt_inject_state */
	__u64 token;	  /* the one in r11 */
	__u32 library_fd; /* the process's descriptor of the library's memfd */
	__u32 stage;	  /* enum fbt_inject_stage */
	__s32 result;
	__u32 reserved;
	char entry[64]; /* written by the tool: function to call, int (*)(void); "": none */
	char text[512]; /* of dlerror, cut; NUL-terminated */
};

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * --gpu=inject: what the tool (user/inject_*) and the stub that it puts into a running process
 * (cupti/stub/) share.
 *
 * The stub is position-independent code, written once per process into the unused bytes behind an
 * executable segment and never changed again. A thread that waits in a system call is sent there by
 * the kernel's own restart of that call; it starts one helper thread and goes back into its call.
 * The helper makes two memfds, the page below and one for the library, waits for the tool to fill
 * the latter, loads it, calls its entry, closes both and ends. Nobody waits for the tool but it.
 */
#ifndef FBT_INJECT_H
#define FBT_INJECT_H

#include <linux/types.h>

/* --- the stub in the memory of the process -------------------------------------------------- */

#define FBT_INJECT_MAGIC   0x4a4e4954424d5246ull /* "FRMBTINJ" as bytes, little-endian */
#define FBT_INJECT_VERSION 1

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

/* Where execution begins, see the register contract below. */
#define FBT_INJECT_ENTRY_RESTART     0 /* the kernel takes its thread here to restart the call */
#define FBT_INJECT_ENTRY_INTERRUPTED 2 /* … and here after a handler ran, with -EINTR in rax */

/* The first bytes of the stub; code follows. All but functions is the same in every process. */
struct fbt_inject_stub {
	__u8 entries[8];
	__u64 magic;
	__u32 version;
	__u32 size; /* of all of the stub, code included */
	__u64 functions[FBT_INJECT_FUNCTION_COUNT];
};

/*
 * A thread that is stopped inside of a system call (rax is what the call returns if it is not
 * restarted, orig_rax its number) is given, in one PTRACE_SETREGSET:
 *   rip = stub + FBT_INJECT_ENTRY_INTERRUPTED   the kernel takes 2 off when it restarts the call
 *   rcx = the rip it had                        where the program goes on behind its `syscall`
 *   r11 = a token, see FBT_INJECT_TOKEN
 *   rax = -ERESTARTNOHAND where it was -EINTR   so that the program never sees an EINTR for nothing
 * rcx and r11 are what `syscall` clobbers: no program has anything in them there.
 */
#define FBT_INJECT_TOKEN(nonce, class) ((__u64)(nonce) << 32 | (class))

/* What a handler that ran meanwhile means for the call: by the rax the thread was stopped with. */
enum fbt_inject_class {
	FBT_INJECT_ALWAYS = 0,	/* -ERESTARTNOINTR: it is restarted whatever happened */
	FBT_INJECT_SA = 1,	/* -ERESTARTSYS: unless the handler lacks SA_RESTART */
	FBT_INJECT_NO_HAND = 2, /* -ERESTARTNOHAND, -EINTR: only if none ran */
	FBT_INJECT_BLOCK = 3,	/* -ERESTART_RESTARTBLOCK: the kernel knows, by restart_syscall */
};

/* --- the page that the helper and the tool share -------------------------------------------- */

/* Names of the two memfds; that of the page ends in the nonce of its token, as %08x. */
#define FBT_INJECT_PAGE_NAME	"ferrum-inject-"
#define FBT_INJECT_LIBRARY_NAME "libferrum_cupti.so"

/* The helper waits for the tool no longer than this, and gives up. */
#define FBT_INJECT_WAIT_NS 2000000000ull

/* A futex, shared. Both sides leave READY by compare-and-swap, so that only one of them does. */
enum fbt_inject_state {
	FBT_INJECT_NONE = 0,
	FBT_INJECT_READY = 1,  /* helper: the library may be written */
	FBT_INJECT_FILLED = 2, /* tool: it is */
	FBT_INJECT_LATE = 3,   /* helper: nobody came; tool: not any more. Nothing is loaded */
	FBT_INJECT_DONE = 4,   /* helper: stage, result and text are set; it ends now */
};

enum fbt_inject_stage {
	FBT_INJECT_STAGE_DONE = 0,  /* the entry was called, and result is what it returned */
	FBT_INJECT_STAGE_LOAD = 1,  /* dlopen failed, text says why */
	FBT_INJECT_STAGE_ENTRY = 2, /* the library has no such entry; text */
};

/* One page of 4096 bytes. The tool trusts no word of it. */
struct fbt_inject_page {
	__u64 magic;
	__u32 version;
	__u32 state;	  /* enum fbt_inject_state */
	__u64 token;	  /* that of the registers */
	__u32 library_fd; /* number in the process of the memfd that the library is written to */
	__u32 stage;	  /* enum fbt_inject_stage */
	__s32 result;
	__u32 reserved;
	char entry[64]; /* the tool's: function to call, int (*)(void); "" none */
	char text[512]; /* what dlerror said, cut; NUL-terminated */
};

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Steps that are Python functions: the contract between the tool and libferrum_python.so (python/),
 * a library in the process of a CPython interpreter.
 *
 * The library makes a memfd of one struct fbt_python_page, and a thread that sleeps until the tool
 * gives it an order. The tool finds the memfd in /proc/PID/fd and maps it. Each side takes every
 * word that the other one writes for hostile.
 *
 * An armed function passes through two markers of its slot at each call: begin, and end or raised.
 * They are five-byte nops, made for uprobes. At begin the first four integer arguments of the ABI
 * are the attributes, FBT_PYTHON_ABSENT where one could not be read.
 */
#ifndef FBT_PYTHON_H
#define FBT_PYTHON_H

#include <linux/types.h>

#define FBT_PYTHON_MEMFD  "ferrum-python"
#define FBT_PYTHON_THREAD "ferrum-python" /* the name of its own thread */
/*
 * The file of the functions by which the library calls a step's function on CPython 3.11.
 * torch.compile cannot compile a call of a built-in function that is a constant, and fails. It goes
 * around functions whose file begins like this (SKIP_DIRS of torch/_dynamo/trace_rules.py).
 */
#define FBT_PYTHON_FILE	   "<frozen importlib.ferrum_python>"
#define FBT_PYTHON_MAGIC   0x4e4f48544d525246ull /* "FRRMTHON" as bytes, little-endian */
#define FBT_PYTHON_VERSION 5

#define FBT_PYTHON_SLOTS      16 /* functions at once */
#define FBT_PYTHON_ATTRIBUTES 4	 /* of one function */
#define FBT_PYTHON_OWN_MAX                                                                         \
	8 /* definitions behind one slot: the method, and those that override it */
#define FBT_PYTHON_ABSENT (-0x7fffffffffffffffll - 1)

/*
 * Where the library's markers are: a note in its file, so that the tool believes no address of a
 * process. For each slot the places of begin, end and raised, each as a signed 32-bit distance from
 * the word that tells it.
 */
#define FBT_PYTHON_NOTE_SECTION ".note.ferrum_python"
#define FBT_PYTHON_NOTE_NAME	"ferrum"
#define FBT_PYTHON_NOTE_MARKERS 1 /* type of the note */

/* How long the library keeps functions armed without a word from the tool. */
#define FBT_PYTHON_LEASE_NS 5000000000ull
/* The same from the end of a profile of PyTorch on. */
#define FBT_PYTHON_TORCH_LEASE_NS 20000000000ull

enum fbt_python_phase {
	FBT_PYTHON_STARTING = 0,
	FBT_PYTHON_READY = 1, /* orders are served */
	FBT_PYTHON_DEAD = 2,  /* none is any more: text says why */
};

/*
 * The order word is a shared futex: number << 2 | state. The tool writes slots and command, and
 * then a new number with ASKED. The library takes the order once it holds the GIL, by
 * compare-and-swap; the tool withdraws an order that is late in the same way, so that only one of
 * them succeeds.
 */
enum fbt_python_order {
	FBT_PYTHON_DONE = 0, /* answered, or withdrawn */
	FBT_PYTHON_ASKED = 1,
	FBT_PYTHON_TAKEN = 2,
};
#define FBT_PYTHON_ORDER(number, state) ((__u32)(number) << 2 | (state))

enum fbt_python_command {
	FBT_PYTHON_RESOLVE = 1, /* look up the function of each slot */
	FBT_PYTHON_ARM = 2,	/* all slots that are FOUND */
	FBT_PYTHON_DISARM = 3,	/* and forget all functions */
	FBT_PYTHON_COUNT = 4,	/* write the counters into the slots; needs no GIL */
	FBT_PYTHON_LOOK = 5,	/* RESOLVE for slots without a function; what is armed stays so */
};

/* What became of the function of a slot. */
enum fbt_python_found {
	FBT_PYTHON_UNKNOWN = 0,
	FBT_PYTHON_FOUND = 1,
	FBT_PYTHON_ARMED = 2,
	/* The module is not loaded; text: its name, with those that are like it. */
	FBT_PYTHON_NO_MODULE = 3,
	FBT_PYTHON_NO_NAME =
		4, /* it has no such function; text: the part that is missing, the same */
	FBT_PYTHON_NOT_PLAIN = 5,   /* not a function in Python: built in, compiled, any object */
	FBT_PYTHON_GENERATOR = 6,   /* a generator or coroutine: a call only makes the object */
	FBT_PYTHON_WRAPPED = 7,	    /* wrapped by too many decorators */
	FBT_PYTHON_NO_ARGUMENT = 8, /* an attribute begins with no argument of it; text: which */
	FBT_PYTHON_TAKEN_BY_OTHER = 9, /* when disarmed, the function was no longer as armed */
	FBT_PYTHON_FAILED = 10,	       /* text */
	FBT_PYTHON_SAME = 11,	       /* it is the function of a slot before this one */
	FBT_PYTHON_FOUND_COUNT = 12,
};

struct fbt_python_slot {
	/* Written by the tool. All strings end in NUL. */
	char function[256]; /* "module:Qualified.name"; "": the slot is not used */
	char attributes[FBT_PYTHON_ATTRIBUTES]
		       [96]; /* "argument.part" or "len(argument.part)"; "" */
	__u32 suggests;	     /* if there is no such name, text is to have those that are like it */
	/* Written by the library. */
	__u32 found; /* enum fbt_python_found */
	__u32 own;   /* definitions that are armed */
	__u32 line;  /* of the first definition */
	__u32 more;  /* 1: there are or may be others, which are not armed */
	__u32 reserved;
	char file[256];
	char text[128];
	/* Addresses in the process. */
	__u64 begin;
	__u64 end;
	__u64 raised;
	/* Calls since the slot was armed, as of the last order. */
	__u64 begun;
	__u64 ended;
	__u64 ended_raised; /* part of ended: by an exception */
};

/*
 * PyTorch's own profiler (--torch-trace): Kineto and the observer of its execution trace. While the
 * tool wants a window, the library starts them on the thread of a step, before the begin of that
 * step, and stops and exports them after the end of one, once a window. What they export are
 * memfds of this name, which stay open until the next RESOLVE or DISARM.
 */
#define FBT_TORCH_MEMFD "ferrum-torch"

enum fbt_torch_state {
	FBT_TORCH_NONE = 0,   /* no step has begun in this window yet */
	FBT_TORCH_ON = 1,     /* both collect */
	FBT_TORCH_DONE = 2,   /* exported; text: why before the window's end, or "" */
	FBT_TORCH_ABSENT = 3, /* PyTorch is not loaded, or is too old */
	FBT_TORCH_TAKEN = 4,  /* a profiler of the program is on: it was left alone */
	FBT_TORCH_FAILED = 5, /* text: what PyTorch said */
	FBT_TORCH_STATE_COUNT = 6,
};

/* What to record. */
#define FBT_TORCH_SHAPES 1 /* of the operators' inputs */
#define FBT_TORCH_STACK	 2 /* the Python stack of each operator */
#define FBT_TORCH_SYNC	 4 /* wait for the GPU at the end of each step */
#define FBT_TORCH_CUDA	 8 /* GPU work, by PyTorch's own way to CUPTI */

struct fbt_python_torch {
	/* Written by the tool, window last. */
	__u32 window; /* number of the wanted window; 0: none */
	__u32 flags;
	__u64 max_steps; /* 0: no limit */
	__u64 max_bytes; /* of the execution trace; 0: no limit */
	/* Written by the library, state last. */
	__u32 served; /* the window that the rest is about */
	__u32 state;  /* enum fbt_torch_state */
	__s32 execution_fd;
	__s32 kineto_fd;
	/* CLOCK_MONOTONIC: before the start, after the export. 0: not yet. */
	__u64 begin_ns;
	__u64 end_ns;
	__u64 steps; /* that have ended since */
	char text[128];
};

/* The tool writes tool, lease_ns, order, command, and its part of torch and of the slots. */
struct fbt_python_page {
	__u64 magic;
	__u32 version;
	__u32 phase;	/* enum fbt_python_phase */
	__u32 pid;	/* of the process, in its own PID namespace */
	__u32 python;	/* major << 8 | minor; 0: the interpreter is not known yet */
	__u32 threaded; /* free-threaded build */
	__u32 order;
	__u32 command; /* enum fbt_python_command */
	__u32 tool; /* pid of the tool that may give orders; 0: none, or one whose lease is over */
	__u64 lease_ns;	   /* CLOCK_MONOTONIC: when the library disarms by itself */
	__u32 lapses;	   /* how often it did */
	__u32 torch_stops; /* 1: PyTorch stops and exports, which may take long; set by the library
			    */
	__u64 gil_wait_ns; /* of the last order */
	__u64 gil_hold_ns;
	char text[128]; /* why the library is dead, or does not take an order yet; else "" */
	struct fbt_python_torch torch;
	struct fbt_python_slot slots[FBT_PYTHON_SLOTS];
};

#define FBT_PYTHON_PAGE_BYTES 24576

#ifdef __cplusplus
#define _Static_assert static_assert
#endif
_Static_assert(sizeof(struct fbt_python_page) <= FBT_PYTHON_PAGE_BYTES, "the page holds its slots");

#endif

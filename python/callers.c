/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "callers.h"

#include "fbt_python.h"
#include "guest.h"
#include "trampoline.h"

#define METH_FASTCALL_KEYWORDS 0x82

/* PyMethodDef */
struct method {
	const char *name;
	void *function;
	int flags;
	const char *doc;
};

/*
 * The definition that was called: its function, or in 3.11 its clone. NULL: it was disarmed since
 * the interpreter read the pointer.
 */
static const struct python_own *find_own(const struct python_slot *slot, const py_object *called)
{
	for (size_t i = 0; i < slot->own_count; i++) {
		if (slot->own[i].function == called || slot->own[i].clone == called)
			return &slot->own[i];
	}
	return NULL;
}

/*
 * Not a part of what calls it. With markers it must not be copied: their labels would be there
 * twice.
 */
#ifdef __clang__
#define ONE_COPY __attribute__((noinline))
#else
#define ONE_COPY __attribute__((noinline, noclone))
#endif

struct call {
	struct guest *guest;
	struct python_slot *slot;
	unsigned int index; /* of it */
	py_vectorcall go;
	/*
	 * A forked child passes through no marker. Linux 6.18 turns a probed nop into a call of a
	 * page that a child does not inherit: the child would crash.
	 */
	bool is_alive;
	int64_t values[FBT_PYTHON_ATTRIBUTES];
};

/*
 * Whoever holds the GIL is the only one that counts: a locked instruction would take as long as the
 * rest of an armed call.
 */
static inline void count_one(const struct python *python, uint64_t *counter) /* NOLINT: written */
{
	if (python->threaded)
		__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
	else
		__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1,
				 __ATOMIC_RELAXED);
}

static inline bool wants_torch(const struct call *call)
{
	return call->is_alive ? python_torch_is_wanted(call->guest)
			      : python_torch_is_on(&call->guest->torch);
}

/* For the markers: 12 to 24 ns each. */
static ONE_COPY void read_numbers(struct call *call, const struct python_own *own,
				  py_object *const *args, ssize_t count, py_object *names)
{
	for (size_t i = 0; i < call->slot->attribute_count; i++) {
		if (own->attributes[i].name)
			call->values[i] = python_attribute_read(
				&call->guest->python, &own->attributes[i], args, count, names);
	}
}

/* Calls of all kinds. In call guest, slot, index and is_alive are set. */
static ONE_COPY void begin_any(struct call *call, py_object *function, py_object *const *args,
			       ssize_t count, py_object *names)
{
	const struct python *python = &call->guest->python;
	const struct python_own *own;

	/* First of all: slots may change whenever the GIL is let go. */
	if (wants_torch(call))
		python_torch_begin(call->guest, call->index);
	if (python->threaded)
		__atomic_fetch_add(&call->slot->inside, 1, __ATOMIC_SEQ_CST);
	own = find_own(call->slot, function);
	if (own) {
		call->go = own->old;
		if (own->clone && !trampoline_has_same_defaults(own))
			trampoline_follow(python, own);
		read_numbers(call, own, args, count, names);
	} else {
		call->go = *(py_vectorcall *)((char *)function + python->vectorcall);
	}
	if (python->threaded)
		__atomic_fetch_sub(&call->slot->inside, 1, __ATOMIC_SEQ_CST);
}

/* The definition that was called, if it is the first one, and the call one of the usual kind. */
static inline const struct python_own *find_usual(const struct call *call, const py_object *called)
{
	const struct python_own *own = call->slot->own;

	if (call->guest->python.threaded || wants_torch(call))
		return NULL;
	if (!own->clone)
		return own->function == called ? own : NULL;
	return own->clone == called && trampoline_has_same_defaults(own) ? own : NULL;
}

/* An armed call takes some 5 ns of this library's code, so the usual one goes the shortest way. */
static inline void begin_call(struct call *call, unsigned int index, py_object *function,
			      py_object *const *args, ssize_t count, py_object *names)
{
	struct guest *guest = guest__bound();
	const struct python_own *own;

	call->guest = guest;
	call->index = index;
	call->slot = &guest->slots[index];
	call->is_alive = guest__is_alive(guest);
	for (size_t i = 0; i < FBT_PYTHON_ATTRIBUTES; i++)
		call->values[i] = FBT_PYTHON_ABSENT;
	own = find_usual(call, function);
	if (own) {
		call->go = own->old;
		if (call->slot->attribute_count)
			read_numbers(call, own, args, count, names);
	} else {
		begin_any(call, function, args, count, names);
	}
	count_one(&guest->python, &call->slot->begun);
}

static inline void end_call(const struct call *call, const py_object *result)
{
	count_one(&call->guest->python, &call->slot->ended);
	if (!result)
		count_one(&call->guest->python, &call->slot->raised);
	if (call->is_alive && python_torch_is_wanted(call->guest))
		python_torch_end(call->guest, call->index);
}

#ifdef __x86_64__
/* A nop of five bytes, which newer kernels turn into a call while it is probed. */
#define NOP		   ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00"
#define INPUTS(a, b, c, d) "D"(a), "S"(b), "d"(c), "c"(d)
#else
/* The library does nothing there (python_is_here): it only has to be built. */
#define NOP		   "nop"
#define INPUTS(a, b, c, d) "r"(a), "r"(b), "r"(c), "r"(d)
#endif

#define MARK(what, N, a, b, c, d)                                                                  \
	__asm__ volatile(".globl ferrum_python_" what "_" #N "\n\t"                                \
			 ".hidden ferrum_python_" what "_" #N "\n\t"                               \
			 ".type ferrum_python_" what "_" #N ", @function\n"                        \
			 "ferrum_python_" what "_" #N ":\n\t" NOP "\n\t"                           \
			 ".size ferrum_python_" what "_" #N ", . - ferrum_python_" what "_" #N     \
			 :                                                                         \
			 : INPUTS(a, b, c, d)                                                      \
			 : "memory")

#define CALLER(N)                                                                                  \
	extern const char ferrum_python_begin_##N[], ferrum_python_end_##N[],                      \
		ferrum_python_raised_##N[];                                                        \
	static ONE_COPY py_object *caller_##N(py_object *function, py_object *const *args,         \
					      size_t flags, py_object *names)                      \
	{                                                                                          \
		struct call call;                                                                  \
		py_object *result;                                                                 \
                                                                                                   \
		begin_call(&call, N, function, args, (ssize_t)(flags & ~PY_OFFSET), names);        \
		if (call.is_alive)                                                                 \
			MARK("begin", N, call.values[0], call.values[1], call.values[2],           \
			     call.values[3]);                                                      \
		result = call.go(function, args, flags, names);                                    \
		/* The call may have forked. */                                                    \
		call.is_alive = guest__is_alive(call.guest);                                       \
		if (!call.is_alive)                                                                \
			;                                                                          \
		else if (result)                                                                   \
			MARK("end", N, 0l, 0l, 0l, 0l);                                            \
		else                                                                               \
			MARK("raised", N, 0l, 0l, 0l, 0l);                                         \
		end_call(&call, result);                                                           \
		return result;                                                                     \
	}                                                                                          \
	static py_object *method_##N(py_object *self, py_object *const *args, ssize_t count,       \
				     py_object *names)                                             \
	{                                                                                          \
		return caller_##N(self, args, (size_t)count, names);                               \
	}

#define CALLERS(F)                                                                                 \
	F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
CALLERS(CALLER)

/* One statement for each word: "." is where a statement begins. */
#define NOTE_WORD(what, N) "\t.long ferrum_python_" what "_" #N " - .\n"
#define NOTE_ROW(N)	   NOTE_WORD("begin", N) NOTE_WORD("end", N) NOTE_WORD("raised", N)

/* The tool probes only what this says of the file: see fbt_python.h. */
__asm__("\t.pushsection " FBT_PYTHON_NOTE_SECTION ", \"a\", %note\n"
	"\t.balign 4\n"
	"\t.long 1f - 0f, 3f - 2f, 1\n"
	"0:\t.asciz \"" FBT_PYTHON_NOTE_NAME "\"\n"
	"1:\t.balign 4\n"
	"2:\n" CALLERS(NOTE_ROW) "3:\t.popsection\n");
_Static_assert(FBT_PYTHON_NOTE_MARKERS == 1, "the type of the note");

py_vectorcall python_caller(unsigned int index)
{
#define ROW(N) caller_##N,
	static const py_vectorcall callers[FBT_PYTHON_SLOTS] = {CALLERS(ROW)};
#undef ROW

	return callers[index];
}

void *python_caller_method(unsigned int index)
{
#define ROW(N) {"ferrum_step", method_##N, METH_FASTCALL_KEYWORDS, NULL},
	static struct method methods[FBT_PYTHON_SLOTS] = {CALLERS(ROW)};
#undef ROW

	return &methods[index];
}

struct python_markers python_markers(unsigned int index)
{
#define ROW(N) {ferrum_python_begin_##N, ferrum_python_end_##N, ferrum_python_raised_##N},
	static const struct python_markers markers[FBT_PYTHON_SLOTS] = {CALLERS(ROW)};
#undef ROW

	return markers[index];
}

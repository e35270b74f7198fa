/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* This thread's own stack, held against what the compiler's runtime (backtrace) makes of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "model/syscalls.h"
#include "stacks/maps.h"
#include "stacks/unwind.h"

#define STACK_BYTES 65536

/* All of the thread's stack that is used. A sanitizer makes frames larger. */
#ifdef __SANITIZE_ADDRESS__
#define USED_BYTES 25000
#else
#define USED_BYTES 24000
#endif

struct sight {
	struct registers registers;
	uint8_t stack[STACK_BYTES];
	struct stack_copy copy;
	void *expected[FBT_STACK_FRAMES];
	int count;
};

struct fixture {
	struct code_files *files;
	struct code_maps *maps;
	struct cfi_reader *reader;
	struct sight sight;
	struct unwound result;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->files = code_files__new(&(struct symbol_files){NULL, 0});
	fixture->maps = code_maps__new(fixture->files);
	fixture->reader = cfi_reader__new();
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	code_maps__free(fixture->maps);
	code_files__free(fixture->files);
	cfi_reader__free(fixture->reader);
	free(fixture);
	return 0;
}

static void read_context(struct registers *registers, const ucontext_t *context)
{
	*registers = (struct registers){.arch = syscalls_arch()};
#ifdef __aarch64__
	memcpy(registers->value, context->uc_mcontext.regs, 31 * sizeof(uint64_t));
	registers->value[ARM64_SP] = context->uc_mcontext.sp;
	registers->value[ARM64_PC] = context->uc_mcontext.pc;
#else
	static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				    REG_RBP, REG_RSP, REG_R8,  REG_R9,	REG_R10, REG_R11,
				    REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	for (int i = 0; i < 17; i++)
		registers->value[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
#endif
	registers->known = (2ull << pc_of(registers->arch)) - 1;
}

/* A sanitizer intercepts backtrace(), and its frames come first. */
static void drop_interceptors(struct sight *sight, const void *caller)
{
	int own = 0;

	while (own + 1 < sight->count && sight->expected[own + 1] != caller)
		own++;
	sight->count -= own;
	memmove(sight->expected, sight->expected + own, (size_t)sight->count * sizeof(void *));
}

/* The stack of the present function, which begins with its own frame. */
__attribute__((noinline, no_sanitize("address"))) static void look(struct sight *sight)
{
	ucontext_t context;
	uint64_t sp;

	sight->count = backtrace(sight->expected, FBT_STACK_FRAMES);
	drop_interceptors(sight, __builtin_return_address(0));
	getcontext(&context);
	read_context(&sight->registers, &context);
	sp = sight->registers.value[sp_of(syscalls_arch())];
	for (size_t i = 0; i < sight->copy.size; i++)
		sight->stack[i] = ((const uint8_t *)sp)[i];
	sight->copy.address = sp;
	sight->copy.data = sight->stack;
}

__attribute__((noinline)) static int recurse(struct sight *sight, int depth)
{
	volatile char room[2000];

	memset((void *)room, depth, sizeof(room));
	if (depth)
		return recurse(sight, depth - 1) + room[1];
	look(sight);
	return room[0];
}

static int find_own(void *ctx, uint64_t address, struct code_at *code)
{
	return code_maps__find(ctx, (uint32_t)getpid(), address, 1, code);
}

static void unwind_sight(struct fixture *fixture, uint64_t step_sp)
{
	struct code_finder finder = {find_own, fixture->maps};

	unwind(fixture->reader, &finder, &fixture->sight.registers, &fixture->sight.copy, step_sp,
	       &fixture->result);
}

/*
 * The innermost frame is at different instructions of look(). One that was interrupted, instead of
 * making a call, is at the very instruction. Returns the number of those.
 */
static uint32_t check_frames(struct fixture *fixture, uint32_t count)
{
	uint32_t interrupted = 0;

	for (uint32_t i = 1; i < count; i++) {
		uint64_t pc = (uint64_t)fixture->sight.expected[i];
		struct code_at code;

		assert_int_equal(find_own(fixture->maps, pc - 1, &code), 0);
		if (fixture->result.frames[i].address == code.address + 1)
			interrupted++;
		else
			assert_int_equal(fixture->result.frames[i].address, code.address);
		assert_int_equal(fixture->result.frames[i].module, code.module);
	}
	return interrupted;
}

static void *run_in_thread(void *arg)
{
	recurse(arg, 9);
	return NULL;
}

static void look_from_thread(struct sight *sight, size_t bytes)
{
	pthread_t thread;

	sight->copy.size = bytes;
	assert_int_equal(pthread_create(&thread, NULL, run_in_thread, sight), 0);
	pthread_join(thread, NULL);
}

static void a_stack_is_what_the_runtime_says(void **state)
{
	struct fixture *fixture = *state;

	look_from_thread(&fixture->sight, USED_BYTES);
	unwind_sight(fixture, 0);
	assert_true(fixture->sight.count >= 13);
	assert_int_equal(fixture->result.count, fixture->sight.count);
	assert_int_equal(fixture->result.end, UNWIND_WHOLE);
	assert_false(fixture->result.guessed);
	assert_int_equal(check_frames(fixture, fixture->result.count), 0);
}

static void a_copy_that_is_too_short_is_cut(void **state)
{
	struct fixture *fixture = *state;

	look_from_thread(&fixture->sight, 9000);
	unwind_sight(fixture, 0);
	assert_int_equal(fixture->result.end, UNWIND_CUT);
	assert_true(fixture->result.count >= 4);
	assert_true((int)fixture->result.count < fixture->sight.count);
	assert_int_equal(check_frames(fixture, fixture->result.count), 0);
}

static void the_function_of_the_step_is_the_last(void **state)
{
	struct fixture *fixture = *state;
	uint64_t sp;

	look_from_thread(&fixture->sight, 24000);
	/* Somewhere in the frame of the third recurse(). */
	sp = fixture->sight.registers.value[sp_of(syscalls_arch())] + sizeof(ucontext_t) + 5000;
	unwind_sight(fixture, sp);
	assert_int_equal(fixture->result.end, UNWIND_WHOLE);
	assert_in_range(fixture->result.count, 3, 5);
	assert_int_equal(check_frames(fixture, fixture->result.count), 0);
}

static struct sight *of_handler;

static void handle(int number)
{
	(void)number;
	recurse(of_handler, 1);
}

static void *raise_in_thread(void *arg)
{
	volatile char room[20000];

	memset((void *)room, 1, sizeof(room));
	raise(SIGUSR1);
	return room[2] ? arg : NULL;
}

static void frames_go_on_below_a_signal_handler(void **state)
{
	struct fixture *fixture = *state;
	pthread_t thread;

	signal(SIGUSR1, handle);
	of_handler = &fixture->sight;
	fixture->sight.copy.size = 20000;
	assert_int_equal(pthread_create(&thread, NULL, raise_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	unwind_sight(fixture, 0);
	assert_true(fixture->result.count >= 7);
	/* Neither the code that ends a handler nor what the handler interrupted has made a call. */
	assert_int_equal(check_frames(fixture, 7), 2);
}

/* Words, the first at address 1000, as a stack without any table. */
static int find_low(void *ctx, uint64_t address, struct code_at *code)
{
	(void)ctx;
	*code = (struct code_at){.address = address};
	return address >= 0x4000 && address < 0x5000 ? 0 : -ENOENT;
}

static void frame_records_lead_on_where_no_table_is(void **state)
{
	struct fixture *fixture = *state;
	uint64_t words[] = {0x4100, 1, 1024, 0x4200, 5, 6, 1048, 0x4300, 0, 0, 0, 0};
	struct stack_copy copy = {1000, (const uint8_t *)words, sizeof(words)};
	struct registers registers = {.arch = FBT_ARCH_X86_64};
	struct code_finder finder = {find_low, NULL};

	/* The innermost has just been entered; the record of its caller is at 1016. */
	register_set(&registers, X86_PC, 0x4000);
	register_set(&registers, X86_SP, 1000);
	register_set(&registers, X86_BP, 1016);
	unwind(fixture->reader, &finder, &registers, &copy, 0, &fixture->result);
	assert_int_equal(fixture->result.count, 3);
	assert_int_equal(fixture->result.frames[0].address, 0x4000);
	assert_int_equal(fixture->result.frames[1].address, 0x40ff);
	assert_int_equal(fixture->result.frames[2].address, 0x41ff);
	assert_int_equal(fixture->result.end, UNWIND_LOST);
	assert_true(fixture->result.guessed);
}

static void records_that_lead_in_a_circle_end(void **state)
{
	struct fixture *fixture = *state;
	uint64_t words[] = {1, 1000, 0x4200, 1000, 0x4200};
	struct stack_copy copy = {992, (const uint8_t *)words, sizeof(words)};
	struct registers registers = {.arch = FBT_ARCH_X86_64};
	struct code_finder finder = {find_low, NULL};

	register_set(&registers, X86_PC, 0x4000);
	register_set(&registers, X86_SP, 992);
	register_set(&registers, X86_BP, 1000);
	unwind(fixture->reader, &finder, &registers, &copy, 0, &fixture->result);
	assert_int_equal(fixture->result.count, 2);
	assert_int_equal(fixture->result.end, UNWIND_LOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_is_what_the_runtime_says),
		cmocka_unit_test(a_copy_that_is_too_short_is_cut),
		cmocka_unit_test(the_function_of_the_step_is_the_last),
		cmocka_unit_test(frames_go_on_below_a_signal_handler),
		cmocka_unit_test(frame_records_lead_on_where_no_table_is),
		cmocka_unit_test(records_that_lead_in_a_circle_end),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

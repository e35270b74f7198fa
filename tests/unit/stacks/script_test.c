/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Functions of a script between those of this process. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "model/syscalls.h"
#include "record_keeper.h"
#include "stacks/registers.h"
#include "stacks/stacks.h"

#define FRAMES 4

struct fixture {
	struct record_keeper keeper;
	struct record_output output;
	struct stacks *stacks;
	struct script_frame frames[FRAMES];
	size_t count;
	__u64 registers[FBT_REGISTERS];
};

/* Named as CPython's interpreter. */
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void);
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void)
{
	__asm__ volatile("nop\n\tnop" ::: "memory");
}

static size_t read_frames(void *ctx, uint32_t tgid, uint32_t ns_tid, struct script_frame *frames,
			  size_t max)
{
	struct fixture *fixture = ctx;

	assert_int_equal(ns_tid, 8);
	assert_true(fixture->count <= max);
	memcpy(frames, fixture->frames, sizeof(fixture->frames));
	return fixture->count;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct script_reader reader = {read_frames, fixture};

	fixture->output = keeper_output(&fixture->keeper);
	fixture->stacks = stacks__new(&fixture->output);
	stacks__set_script_reader(fixture->stacks, &reader);
	fixture->registers[pc_of(syscalls_arch())] = (uint64_t)_PyEval_EvalFrameDefault + 1;
	fixture->registers[sp_of(syscalls_arch())] = 0x1000;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	stacks__free(fixture->stacks);
	free(fixture);
	return 0;
}

static void unwind_one(struct fixture *fixture, uint32_t ns_tid, struct stack_codes *codes)
{
	struct stack_source source = {
		.tgid = (uint32_t)getpid(), .ns_tid = ns_tid, .registers = fixture->registers};

	stacks__unwind(fixture->stacks, &source, 1, codes);
}

static void they_stand_where_the_interpreter_stands(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;
	struct code_about about;
	const struct fbt_code *code;

	fixture->frames[0] = (struct script_frame){"forward", "/srv/model.py", 42, false};
	fixture->frames[1] = (struct script_frame){"step", "/srv/model.py", 7, true};
	/* That of another call of the interpreter, which is not on this stack. */
	fixture->frames[2] = (struct script_frame){"main", "/srv/main.py", 3, true};
	fixture->count = 3;
	unwind_one(fixture, 8, &codes);
	assert_int_equal(codes.count, 2);
	assert_true(stacks__about(fixture->stacks, codes.codes[0], &about));
	assert_string_equal(about.function, "forward");
	assert_true(stacks__about(fixture->stacks, codes.codes[1], &about));
	assert_string_equal(about.function, "step");
	/* The interpreter's own place was sent first. */
	code = kept(&fixture->keeper, 1, FBT_EVENT_CODE);
	assert_int_equal(code->header.flags, FBT_CODE_SCRIPT);
	assert_int_equal(code->address, 42);
	assert_string_equal(kept_string(code, sizeof(*code), 1), "/srv/model.py");
	/* No place is sent twice. */
	unwind_one(fixture, 8, &codes);
	assert_int_equal(fixture->keeper.count, 3);
}

/* Of a stack that was copied, the thread may be elsewhere by now. */
static void those_of_a_copied_stack_are_not_read(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;
	struct code_about about;

	fixture->frames[0] = (struct script_frame){"forward", "/srv/model.py", 42, true};
	fixture->count = 1;
	unwind_one(fixture, 0, &codes);
	assert_int_equal(codes.count, 1);
	assert_true(stacks__about(fixture->stacks, codes.codes[0], &about));
	assert_string_equal(about.function, "_PyEval_EvalFrameDefault");
}

static void without_them_the_interpreter_stays(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;
	struct code_about about;

	unwind_one(fixture, 8, &codes);
	assert_int_equal(codes.count, 1);
	assert_true(stacks__about(fixture->stacks, codes.codes[0], &about));
	assert_string_equal(about.function, "_PyEval_EvalFrameDefault");
	assert_false(stacks__about(fixture->stacks, 0, &about));
	assert_false(stacks__about(fixture->stacks, 2, &about));
}

static void the_interpreter_is_known_by_its_name(void **state)
{
	assert_true(script_is_interpreter("_PyEval_EvalFrameDefault"));
	assert_true(script_is_interpreter("_PyEval_EvalFrameDefault.cold"));
	assert_false(script_is_interpreter("_PyEval_EvalFrameDefaults"));
	assert_false(script_is_interpreter("PyEval_EvalCode"));
	assert_false(script_is_interpreter(NULL));
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(they_stand_where_the_interpreter_stands),
		FACT(those_of_a_copied_stack_are_not_read),
		FACT(without_them_the_interpreter_stays),
		cmocka_unit_test(the_interpreter_is_known_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

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

#include "fbt_python.h"
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
	uint32_t flags;
	__u64 registers[FBT_REGISTERS];
};

/* Named as CPython's interpreter. */
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void);
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void)
{
	__asm__ volatile("nop\n\tnop" ::: "memory");
}

static size_t read_frames(void *ctx, uint32_t tgid, uint32_t tid, struct script_frame *frames,
			  size_t max, uint32_t *flags)
{
	struct fixture *fixture = ctx;

	assert_int_equal(tid, 8);
	assert_true(fixture->count <= max);
	memcpy(frames, fixture->frames, sizeof(fixture->frames));
	*flags = fixture->flags;
	return fixture->count;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct script_reader reader = {read_frames, NULL, fixture};

	fixture->output = keeper_output(&fixture->keeper);
	fixture->stacks = stacks__new(&fixture->output, &(struct symbol_files){NULL, 0});
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

static void unwind_at(struct fixture *fixture, bool is_present, struct stack_codes *codes)
{
	struct stack_source source = {.tgid = (uint32_t)getpid(),
				      .tid = 8,
				      .registers = fixture->registers,
				      .is_present = is_present};

	stacks__unwind(fixture->stacks, &source, 1, codes);
}

static void unwind_one(struct fixture *fixture, struct stack_codes *codes)
{
	unwind_at(fixture, true, codes);
}

static void is_function(const struct fixture *fixture, uint32_t code, const char *function)
{
	struct code_about about;

	assert_true(stacks__about(fixture->stacks, code, &about));
	assert_string_equal(about.function, function);
}

/* In two calls of the interpreter, of which the stack has one. */
static void be_in_two_functions(struct fixture *fixture)
{
	fixture->frames[0] = (struct script_frame){"forward", "/srv/model.py", 42, true};
	fixture->frames[1] = (struct script_frame){"step", "/srv/model.py", 7, true};
	fixture->count = 2;
}

static void sample(struct fixture *fixture, bool is_present, struct stack_codes *codes)
{
	static struct fbt_stack_place place;

	place = (struct fbt_stack_place){.tgid = (uint32_t)getpid(), .tid = 8};
	memcpy(place.registers, fixture->registers, sizeof(place.registers));
	stacks__sample(fixture->stacks, &place, is_present, 1, codes);
}

static void a_sample_in_the_interpreter_is_one_in_its_script(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;
	const struct fbt_code *code;

	be_in_two_functions(fixture);
	sample(fixture, true, &codes);
	assert_int_equal(codes.count, 2);
	is_function(fixture, codes.codes[0], "forward");
	is_function(fixture, codes.codes[1], "step");
	/* The script is whole, whatever the copy of the native stack was. */
	assert_int_equal(codes.flags, 0);
	/* The function itself has no line: it would be another one in each sample. */
	code = kept(&fixture->keeper, 1, FBT_EVENT_CODE);
	assert_int_equal(code->address, 0);
	code = kept(&fixture->keeper, 2, FBT_EVENT_CODE);
	assert_int_equal(code->address, 7);
	fixture->flags = SCRIPT_PARTIAL;
	sample(fixture, true, &codes);
	assert_int_equal(codes.flags, FBT_STACK_CUT);
}

static void the_librarys_own_function_is_left_out_of_a_sample(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;

	be_in_two_functions(fixture);
	fixture->frames[1].file = FBT_PYTHON_FILE;
	sample(fixture, true, &codes);
	assert_int_equal(codes.count, 1);
	is_function(fixture, codes.codes[0], "forward");
	/* A sample is never without any function. */
	fixture->frames[0].file = FBT_PYTHON_FILE;
	fixture->count = 1;
	sample(fixture, true, &codes);
	assert_int_equal(codes.count, 1);
	is_function(fixture, codes.codes[0], "_PyEval_EvalFrameDefault");
}

static void a_sample_of_an_earlier_step_has_no_script(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;

	be_in_two_functions(fixture);
	sample(fixture, false, &codes);
	assert_int_equal(codes.count, 1);
	is_function(fixture, codes.codes[0], "_PyEval_EvalFrameDefault");
	fixture->count = 0;
	sample(fixture, true, &codes);
	assert_int_equal(codes.count, 1);
	is_function(fixture, codes.codes[0], "_PyEval_EvalFrameDefault");
}

static void what_was_copied_earlier_has_none(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;

	be_in_two_functions(fixture);
	unwind_at(fixture, false, &codes);
	assert_int_equal(codes.count, 1);
	is_function(fixture, codes.codes[0], "_PyEval_EvalFrameDefault");
}

static void of_a_thread_that_went_on_they_stand_apart(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;

	be_in_two_functions(fixture);
	fixture->flags = SCRIPT_MOVED;
	unwind_one(fixture, &codes);
	assert_int_equal(codes.flags & (FBT_STACK_APART | FBT_STACK_MOVED),
			 FBT_STACK_APART | FBT_STACK_MOVED);
	assert_int_equal(codes.count, 3);
	is_function(fixture, codes.codes[0], "_PyEval_EvalFrameDefault");
	is_function(fixture, codes.codes[1], "forward");
	is_function(fixture, codes.codes[2], "step");
}

static void those_that_do_not_fit_stand_apart(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;

	be_in_two_functions(fixture);
	/* The only call of the interpreter has no end. */
	fixture->frames[0].is_entry = fixture->frames[1].is_entry = false;
	unwind_one(fixture, &codes);
	assert_int_equal(codes.flags & (FBT_STACK_APART | FBT_STACK_MOVED), FBT_STACK_APART);
	assert_int_equal(codes.count, 3);
	fixture->flags = SCRIPT_PARTIAL;
	unwind_one(fixture, &codes);
	assert_int_equal(codes.flags & FBT_STACK_APART, 0);
	assert_int_equal(codes.count, 2);
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
	unwind_one(fixture, &codes);
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
	unwind_one(fixture, &codes);
	assert_int_equal(fixture->keeper.count, 3);
}

static void without_them_the_interpreter_stays(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;
	struct code_about about;

	unwind_one(fixture, &codes);
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
		FACT(without_them_the_interpreter_stays),
		FACT(what_was_copied_earlier_has_none),
		FACT(a_sample_in_the_interpreter_is_one_in_its_script),
		FACT(the_librarys_own_function_is_left_out_of_a_sample),
		FACT(a_sample_of_an_earlier_step_has_no_script),
		FACT(of_a_thread_that_went_on_they_stand_apart),
		FACT(those_that_do_not_fit_stand_apart),
		cmocka_unit_test(the_interpreter_is_known_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

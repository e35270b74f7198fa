/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Records of this process's own code. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "child_fixture.h"
#include "memfd_fixture.h"
#include "model/syscalls.h"
#include "model/stack_table.h"
#include "proc/status.h"
#include "record_keeper.h"
#include "stacks/registers.h"
#include "stacks/stacks.h"
#include "stderr_fixture.h"
#include "elf/symbols.h"

struct fixture {
	struct record_keeper keeper;
	struct record_output output;
	struct stacks *stacks;
	struct fbt_stack_place place;
};

/* Somewhere in a function of this file, and in none of any. */
__attribute__((noinline)) void stacks_test_place(void);
__attribute__((noinline)) void stacks_test_place(void)
{
	__asm__ volatile("nop\n\tnop" ::: "memory");
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->output = keeper_output(&fixture->keeper);
	fixture->stacks = stacks__new(&fixture->output, &(struct symbol_files){NULL, 0});
	fixture->place.tgid = (uint32_t)getpid();
	fixture->place.tid = fixture->place.owner = 8;
	fixture->place.start_ns = 1000;
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

static void take_at(struct fixture *fixture, uint64_t pc, uint64_t now_ns)
{
	fixture->place.registers[pc_of(syscalls_arch())] = pc;
	fixture->place.registers[sp_of(syscalls_arch())] = 0x1000;
	stacks__take(fixture->stacks, &fixture->place, now_ns);
}

static void take(struct fixture *fixture, uint64_t pc)
{
	take_at(fixture, pc, 1);
}

static void a_place_of_code_is_sent_once_with_its_name(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_code *code;
	const struct fbt_stack *stack;

	take(fixture, (uint64_t)stacks_test_place + 1);
	take(fixture, (uint64_t)stacks_test_place + 1);
	assert_int_equal(fixture->keeper.count, 3);
	code = kept(&fixture->keeper, 0, FBT_EVENT_CODE);
	assert_string_equal(kept_string(code, sizeof(*code), 0), "stacks_test_place");
	assert_non_null(strstr(kept_string(code, sizeof(*code), 1), "unit_stacks"));
	assert_int_equal(code->offset, 1);
	for (size_t i = 1; i < 3; i++) {
		stack = kept(&fixture->keeper, i, FBT_EVENT_STACK);
		assert_int_equal(stack->count, 1);
		assert_int_equal(stack->codes[0], code->id);
		assert_int_equal(stack->tid, 8);
		assert_int_equal(stack->start_ns, 1000);
		/* There are no bytes of the stack. */
		assert_int_equal(stack->header.flags, FBT_STACK_CUT);
	}
}

static void a_place_that_is_no_code_is_sent_as_it_is(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_code *code;
	const struct fbt_stack *stack;

	fixture->place.owner = 9;
	fixture->place.nr = 100000;
	take(fixture, 12);
	code = kept(&fixture->keeper, 0, FBT_EVENT_CODE);
	assert_int_equal(code->address, 12);
	assert_string_equal(kept_string(code, sizeof(*code), 0), "");
	assert_string_equal(kept_string(code, sizeof(*code), 1), "");
	stack = kept(&fixture->keeper, 1, FBT_EVENT_STACK);
	assert_int_equal(stack->header.flags, FBT_STACK_LOST | FBT_STACK_WAKER);
	assert_int_equal(stack->nr, FBT_NR_COUNT - 1);
}

static void samples_of_one_function_are_alike(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes[2];
	const struct fbt_code *code;

	fixture->place.registers[sp_of(syscalls_arch())] = 0x1000;
	for (uint64_t i = 0; i < 2; i++) {
		fixture->place.registers[pc_of(syscalls_arch())] =
			(uint64_t)stacks_test_place + 1 + i;
		stacks__sample(fixture->stacks, &fixture->place, false, 1, &codes[i]);
		assert_int_equal(codes[i].count, 1);
		assert_int_equal(codes[i].flags, FBT_STACK_CUT);
	}
	assert_int_equal(fixture->keeper.count, 1);
	code = kept(&fixture->keeper, 0, FBT_EVENT_CODE);
	assert_string_equal(kept_string(code, sizeof(*code), 0), "stacks_test_place");
	assert_int_equal(code->offset, 0);
	assert_int_equal(codes[0].codes[0], code->id);
	assert_int_equal(codes[1].codes[0], code->id);
}

static void a_sample_in_no_function_has_no_code(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes;

	fixture->place.registers[pc_of(syscalls_arch())] = 12;
	fixture->place.registers[sp_of(syscalls_arch())] = 0x1000;
	stacks__sample(fixture->stacks, &fixture->place, false, 1, &codes);
	assert_int_equal(codes.count, 1);
	assert_int_equal(codes.codes[0], 0);
	assert_int_equal(fixture->keeper.count, 0);
}

/* A file that is mapped as code at address, and nowhere else. Its path is text. */
static void map_code(uint8_t *address, size_t size, int number, char *text, size_t text_size)
{
	int fd;

	snprintf(text, text_size, "/tmp/fbt-stacks-%d-%d", getpid(), number);
	fd = open(text, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_ptr_equal(mmap(address, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0),
			 address);
	close(fd);
}

static void forget_records(struct fixture *fixture)
{
	fixture->keeper.count = 0;
	fixture->keeper.size = 0;
}

static const char *path_of_last_code(const struct fixture *fixture)
{
	const struct fbt_code *code = NULL;

	for (size_t i = 0; i < fixture->keeper.count; i++) {
		const void *record = fixture->keeper.bytes + fixture->keeper.at[i];

		if (((const struct fbt_header *)record)->type == FBT_EVENT_CODE)
			code = record;
	}
	assert_non_null(code);
	return kept_string(code, sizeof(*code), 1);
}

/* As over days, when programs come and go. */
static void files_that_are_not_mapped_any_more_give_way_to_others(void **state)
{
	struct fixture *fixture = *state;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *area = mmap(NULL, 301 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char first[64], path[64];

	assert_ptr_not_equal(area, MAP_FAILED);
	map_code(area + 300 * size, size, 300, first, sizeof(first));
	take_at(fixture, (uint64_t)area + 300 * size, NS_PER_S);
	assert_string_equal(path_of_last_code(fixture), first);
	for (int i = 0; i < 300; i++) {
		uint8_t *address = area + (size_t)i * size;

		forget_records(fixture);
		map_code(address, size, i, path, sizeof(path));
		take_at(fixture, (uint64_t)address, (uint64_t)(i + 2) * NS_PER_S);
		assert_string_equal(path_of_last_code(fixture), path);
		assert_int_equal(unlink(path), 0);
		assert_ptr_equal(mmap(address, size, PROT_NONE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 address);
	}
	/* What is mapped still has kept its place: nothing new is sent. */
	forget_records(fixture);
	take_at(fixture, (uint64_t)area + 300 * size, 400 * NS_PER_S);
	assert_int_equal(fixture->keeper.count, 1);
	unlink(first);
	munmap(area, 301 * size);
}

/* As after dlclose() and dlopen(). */
static void a_file_that_took_the_place_of_another_is_seen_in_time(void **state)
{
	struct fixture *fixture = *state;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *page = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char first[64], second[64];

	assert_ptr_not_equal(page, MAP_FAILED);
	map_code(page, size, 1, first, sizeof(first));
	take_at(fixture, (uint64_t)page, NS_PER_S);
	assert_string_equal(path_of_last_code(fixture), first);
	map_code(page, size, 2, second, sizeof(second));
	take_at(fixture, (uint64_t)page, 11 * NS_PER_S);
	assert_string_equal(path_of_last_code(fixture), second);
	munmap(page, size);
	unlink(first);
	unlink(second);
}

/* A process that does nothing. */
static pid_t start_child(void)
{
	pid_t child = child_fork();

	assert_true(child >= 0);
	while (!child)
		pause();
	return child;
}

static void end_child(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A second process with the same memory, which maps a file at page at a byte from orders. */
struct mapper {
	uint8_t *page;
	int orders[2];
	int answers[2];
	char path[64];
};

static int map_when_told(void *ctx)
{
	struct mapper *mapper = ctx;
	char byte;

	if (read(mapper->orders[0], &byte, 1) != 1)
		_exit(1);
	map_code(mapper->page, (size_t)sysconf(_SC_PAGESIZE), 2, mapper->path,
		 sizeof(mapper->path));
	if (write(mapper->answers[1], mapper, sizeof(*mapper)) != sizeof(*mapper) ||
	    read(mapper->orders[0], &byte, 1) != 1)
		_exit(1);
	_exit(0);
}

/*
 * A process that is in an uninterruptible wait from the first byte of orders to the third; at the
 * second the file is mapped.
 */
static pid_t start_vfork(struct mapper *mapper)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t child = child_fork();
	char byte;

	assert_true(child >= 0);
	if (child)
		return child;
	close(mapper->orders[1]);
	if (read(mapper->orders[0], &byte, 1) != 1)
		_exit(1);
	clone(map_when_told, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, mapper);
	for (;;)
		pause();
}

/* The map of a process that may not let it be read is not read again for what is known. */
static void a_map_is_not_read_again_in_an_uninterruptible_wait(void **state)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct fixture *fixture = *state;
	struct mapper mapper = {.page = NULL};
	char first[64];
	pid_t child;

	mapper.page = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mapper.page, MAP_FAILED);
	assert_int_equal(pipe(mapper.orders) || pipe(mapper.answers), 0);
	map_code(mapper.page, size, 1, first, sizeof(first));
	child = start_vfork(&mapper);
	fixture->place.tgid = (uint32_t)child;
	take_at(fixture, (uint64_t)mapper.page, NS_PER_S);
	assert_string_equal(path_of_last_code(fixture), first);
	assert_int_equal(write(mapper.orders[1], "ab", 2), 2);
	assert_int_equal(read(mapper.answers[0], &mapper, sizeof(mapper)), sizeof(mapper));
	child_await_state(child, 'D');
	take_at(fixture, (uint64_t)mapper.page, 11 * NS_PER_S);
	assert_string_equal(path_of_last_code(fixture), first);
	assert_int_equal(write(mapper.orders[1], "", 1), 1);
	child_await_state(child, 'S');
	take_at(fixture, (uint64_t)mapper.page, 12 * NS_PER_S);
	assert_string_equal(path_of_last_code(fixture), mapper.path);
	end_child(child);
	unlink(first);
	unlink(mapper.path);
	munmap(mapper.page, size);
}

/* Nor for the first time: who reads it would wait as long. */
static void a_map_is_not_read_first_in_an_uninterruptible_wait(void **state)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct fixture *fixture = *state;
	struct mapper mapper = {.page = NULL};
	pid_t child;

	mapper.page = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mapper.page, MAP_FAILED);
	assert_int_equal(pipe(mapper.orders) || pipe(mapper.answers), 0);
	child = start_vfork(&mapper);
	fixture->place.tgid = (uint32_t)child;
	assert_int_equal(write(mapper.orders[1], "ab", 2), 2);
	assert_int_equal(read(mapper.answers[0], &mapper, sizeof(mapper)), sizeof(mapper));
	child_await_state(child, 'D');
	take_at(fixture, (uint64_t)mapper.page, NS_PER_S);
	assert_string_equal(path_of_last_code(fixture), "");
	assert_int_equal(write(mapper.orders[1], "", 1), 1);
	child_await_state(child, 'S');
	take_at(fixture, (uint64_t)mapper.page, 2 * NS_PER_S);
	assert_string_equal(path_of_last_code(fixture), mapper.path);
	end_child(child);
	unlink(mapper.path);
	munmap(mapper.page, size);
}

/* As many as are kept, and all are those of one process. */
#define ALL_FILES 256

static void files_of_a_process_that_has_ended_give_way_to_others(void **state)
{
	struct fixture *fixture = *state;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *area = mmap(NULL, ALL_FILES * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	pid_t child;

	assert_ptr_not_equal(area, MAP_FAILED);
	for (int i = 0; i < ALL_FILES; i++) {
		map_code(area + (size_t)i * size, size, i, path, sizeof(path));
		assert_int_equal(unlink(path), 0);
	}
	child = start_child();
	assert_int_equal(munmap(area, ALL_FILES * size), 0);
	fixture->place.tgid = (uint32_t)child;
	for (int i = 0; i < ALL_FILES; i++) {
		forget_records(fixture);
		take_at(fixture, (uint64_t)area + (size_t)i * size, NS_PER_S);
	}
	end_child(child);
	forget_records(fixture);
	fixture->place.tgid = (uint32_t)getpid();
	take_at(fixture, (uint64_t)stacks_test_place, 2 * NS_PER_S);
	assert_non_null(strstr(path_of_last_code(fixture), "unit_stacks"));
}

#define MANY_FILES	300
#define PLACES_PER_FILE 250
#define PLACES_MAX	65536

/* Takes a stack at each place of a file. Returns how often the records had no room for it. */
static uint64_t take_many(struct fixture *fixture, const uint8_t *address, uint64_t now_ns)
{
	struct stack_table table = {.window = window__new()};
	uint64_t refused = 0;

	assert_non_null(table.window);
	for (uint64_t place = 0; place < PLACES_PER_FILE; place++) {
		forget_records(fixture);
		take_at(fixture, (uint64_t)address + place, now_ns);
		for (size_t i = 0; i < fixture->keeper.count; i++) {
			const void *record = fixture->keeper.bytes + fixture->keeper.at[i];

			assert_int_equal(stack_table_add(&table, record), 0);
		}
	}
	refused = table.window->unkept_records;
	stack_table_clear(&table);
	window__free(table.window);
	return refused;
}

/* The places of files that are forgotten stay taken. */
static void places_beyond_the_limit_are_counted_and_told_of_once(void **state)
{
	struct fixture *fixture = *state;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t refused = 0;
	uint8_t *area =
		mmap(NULL, MANY_FILES * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *said = NULL;
	char path[64];

	assert_ptr_not_equal(area, MAP_FAILED);
	assert_int_equal(stderr_setup(&said), 0);
	for (int i = 0; i < MANY_FILES; i++) {
		uint8_t *address = area + (size_t)i * size;

		map_code(address, size, i, path, sizeof(path));
		refused += take_many(fixture, address, (uint64_t)(i + 1) * NS_PER_S);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(munmap(address, size), 0);
	}
	assert_int_equal(refused, MANY_FILES * PLACES_PER_FILE - PLACES_MAX);
	assert_one_line(said, "65536 places");
	stderr_teardown(&said);
}

/* Where a function of the kernel's vDSO lies in it; 0: it has none. */
static uint64_t find_in_vdso(const void *vdso, const char *name)
{
	const Elf64_Ehdr *header = vdso;
	size_t size = header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr);
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	struct elf_symbols symbols;
	struct elf_file *elf;
	uint64_t address = 0;

	assert_int_equal(write(fd, vdso, size), size);
	assert_int_equal(elf_file__open(&elf, fd), 0);
	assert_int_equal(elf_symbols_read(&symbols, elf), 0);
	for (size_t i = 0; i < symbols.count; i++)
		if (!strcmp(symbols.items[i].name, name))
			address = symbols.items[i].address;
	elf_symbols_clear(&symbols);
	elf_file__free(elf);
	close(fd);
	return address;
}

#ifdef __x86_64__
static const char *const vdso_names[] = {"__vdso_clock_gettime", "clock_gettime"};
#else
static const char *const vdso_names[] = {"__kernel_clock_gettime", "__kernel_clock_gettime"};
#endif

static void the_kernels_own_code_has_names(void **state)
{
	struct fixture *fixture = *state;
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR), address;
	const struct fbt_code *code;
	const char *name;

	if (!vdso)
		skip();
	address = find_in_vdso((const void *)vdso, vdso_names[0]);
	assert_int_not_equal(address, 0);
	take(fixture, vdso + address + 1);
	code = kept(&fixture->keeper, 0, FBT_EVENT_CODE);
	name = kept_string(code, sizeof(*code), 0);
	assert_true(!strcmp(name, vdso_names[0]) || !strcmp(name, vdso_names[1]));
	assert_string_equal(kept_string(code, sizeof(*code), 1), "[vdso]");
	assert_true(strlen(kept_string(code, sizeof(*code), 2)) >= 32);
	assert_int_equal(code->offset, 1);
	assert_int_equal(code->address, address + 1);
}

static bool names_the_kernels_code(void *ctx)
{
	struct fixture *fixture = ctx;
	const struct fbt_code *code;

	fixture->place.tgid = (uint32_t)getpid();
	take(fixture, fixture->place.registers[pc_of(syscalls_arch())]);
	code = kept(&fixture->keeper, 0, FBT_EVENT_CODE);
	return *kept_string(code, sizeof(*code), 0);
}

static void it_has_them_where_files_in_memory_must_not_be_executable(void **state)
{
	struct fixture *fixture = *state;
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);

	if (!vdso)
		skip();
	fixture->place.registers[pc_of(syscalls_arch())] =
		vdso + find_in_vdso((const void *)vdso, vdso_names[0]) + 1;
	assert_true(holds_with_noexec_memfds(names_the_kernels_code, fixture));
}

static void a_process_that_is_gone_has_no_names(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_code *code;

	fixture->place.tgid = 1u << 30;
	take(fixture, (uint64_t)stacks_test_place + 1);
	code = kept(&fixture->keeper, 0, FBT_EVENT_CODE);
	assert_string_equal(kept_string(code, sizeof(*code), 0), "");
	stacks__forget(fixture->stacks, fixture->place.tgid);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(a_place_of_code_is_sent_once_with_its_name),
		FACT(a_place_that_is_no_code_is_sent_as_it_is),
		FACT(samples_of_one_function_are_alike),
		FACT(a_sample_in_no_function_has_no_code),
		FACT(files_that_are_not_mapped_any_more_give_way_to_others),
		FACT(a_file_that_took_the_place_of_another_is_seen_in_time),
		FACT(a_map_is_not_read_again_in_an_uninterruptible_wait),
		FACT(a_map_is_not_read_first_in_an_uninterruptible_wait),
		FACT(files_of_a_process_that_has_ended_give_way_to_others),
		FACT(places_beyond_the_limit_are_counted_and_told_of_once),
		FACT(the_kernels_own_code_has_names),
		FACT(it_has_them_where_files_in_memory_must_not_be_executable),
		FACT(a_process_that_is_gone_has_no_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "model/overflow.h"
#include "model/window.h"

static int open_window(void **state)
{
	*state = window__new();
	return *state ? 0 : -1;
}

static int close_window(void **state)
{
	window__free(*state);
	return 0;
}

static int add_process(struct window *window, uint32_t tgid, uint64_t start_ns, const char *comm)
{
	struct fbt_target target = {.tgid = tgid, .start_ns = start_ns};

	return window__add_process(window, &target, comm, "/bin/x", "x");
}

static int add_thread(struct window *window, uint32_t tgid, uint32_t tid, const char *comm)
{
	struct fbt_thread_name thread = {.tgid = tgid, .tid = tid};

	snprintf(thread.comm, sizeof(thread.comm), "%s", comm);
	return window__add_thread(window, &thread);
}

static void window_free_takes_null(void **state)
{
	window__free(NULL);
}

static void assert_title(struct window *window, const char *comm, const char *cmdline,
			 const char *title)
{
	struct fbt_target target = {.tgid = 7, .start_ns = 1};
	char text[PROCESS_TITLE_MAX];

	assert_int_equal(window__add_process(window, &target, comm, "/usr/bin/python3", cmdline),
			 0);
	assert_string_equal(window__process_title(window, 7, text), title);
}

static void a_title_is_the_command_line_if_the_name_is_its_begin(void **state)
{
	char text[PROCESS_TITLE_MAX];

	assert_string_equal(window__process_title(*state, 7, text), "?");
	assert_title(*state, "VLLM::Worker_TP", "VLLM::Worker_TP1", "VLLM::Worker_TP1");
	assert_title(*state, "VLLM::Worker_TP", "VLLM::Worker_TP1  rest", "VLLM::Worker_TP1");
	assert_title(*state, "python3", "python3 -m vllm", "python3");
	assert_title(*state, "vllm", "/usr/bin/python3 vllm serve", "vllm");
	assert_title(*state, "vllm", "", "vllm");
	assert_title(*state, "", "/usr/bin/python3", "?");
}

static void a_process_that_was_not_named_is_not_known(void **state)
{
	assert_null(window__process(*state, 7));
}

static void a_thread_that_was_not_named_is_not_known(void **state)
{
	struct window *window = *state;

	assert_int_equal(add_thread(window, 7, 8, "worker"), 0);
	assert_null(window__thread_name(window, 7));
	assert_null(window__thread_name(window, 9));
}

/* A window with processes 1 to WINDOW_PROCESSES_MAX, named "kept". */
static struct window *fill(void **state)
{
	struct window *window = *state;

	for (uint32_t tgid = 1; tgid <= WINDOW_PROCESSES_MAX; tgid++)
		assert_int_equal(add_process(window, tgid, 1, "kept"), 0);
	assert_int_equal(window->overflow_processes, 0);
	return window;
}

static void a_process_beyond_those_that_are_kept_is_counted(void **state)
{
	struct window *window = fill(state);

	assert_int_equal(add_process(window, 5000, 1, "p"), 0);
	assert_int_equal(window->overflow_processes, 1);
	assert_int_equal(window->processes.count, WINDOW_PROCESSES_MAX);
	assert_null(window__process(window, 5000));
}

static void a_process_that_is_not_kept_is_counted_once(void **state)
{
	struct window *window = fill(state);

	assert_null(window__touch_process(window, 5000));
	assert_int_equal(add_process(window, 5000, 1, "p"), 0);
	assert_int_equal(add_process(window, 5000, 9, "after execve"), 0);
	assert_null(window__touch_process(window, 5000));
	window__end_process(window, 5000, 20);
	assert_int_equal(window->overflow_processes, 1);
}

#define SECOND UINT64_C(1000000000)

static void processes_that_ended_without_a_step_make_room(void **state)
{
	struct window *window = fill(state);

	for (uint32_t tgid = 10; tgid < 20; tgid++)
		window__end_process(window, tgid, 5);
	window__note_step(window, 12);
	assert_int_equal(add_process(window, 5000, 6 + 5 * SECOND, "worker"), 0);
	assert_string_equal(window__process(window, 5000)->comm, "worker");
	assert_string_equal(window__process(window, 12)->comm, "kept");
	assert_int_equal(window->processes.count, WINDOW_PROCESSES_MAX - 9 + 1);
	assert_int_equal(window->overflow_processes, 9);
	/* What comes late of one that has gone does not bring it back. */
	assert_null(window__touch_process(window, 13));
	assert_true(window__has_ended(window, 13));
	assert_int_equal(window->overflow_processes, 9);
	/* Another one with its number is kept. */
	assert_int_equal(add_process(window, 13, 7 * SECOND, "next"), 0);
	assert_string_equal(window__process(window, 13)->comm, "next");
	assert_false(window__has_ended(window, 13));
}

/* The tracer of a supervisor that starts engines for weeks. */
static void in_a_window_without_an_end_processes_with_steps_make_room(void **state)
{
	struct window *window = fill(state);

	window->is_endless = true;
	window__note_step(window, 12);
	window__note_step(window, 13);
	window__end_process(window, 12, 5);
	assert_int_equal(add_process(window, 5000, 6 + 5 * SECOND, "worker"), 0);
	assert_string_equal(window__process(window, 5000)->comm, "worker");
	assert_null(window__process(window, 12));
	assert_string_equal(window__process(window, 13)->comm, "kept");
}

static void a_number_that_was_used_again_stays_known(void **state)
{
	struct window *window = *state;

	for (uint32_t tgid = 2; tgid <= WINDOW_PROCESSES_MAX; tgid++)
		assert_int_equal(add_process(window, tgid, 1, "kept"), 0);
	window__end_process(window, 7, 5);
	assert_int_equal(add_process(window, 7, 6, "second"), 0);
	assert_int_equal(add_process(window, 5000, 6 + 5 * SECOND, "worker"), 0);
	assert_string_equal(window__process(window, 7)->comm, "second");
	assert_string_equal(window__process(window, 5000)->comm, "worker");
}

static void processes_that_are_kept_stay_known_when_others_are_not(void **state)
{
	struct window *window = fill(state);

	assert_int_equal(add_process(window, 5000, 1, "p"), 0);
	assert_int_equal(add_process(window, 1, 9, "renamed"), 0);
	assert_string_equal(window__process(window, 1)->comm, "renamed");
	assert_int_equal(window->overflow_processes, 1);
}

static void what_is_not_kept_is_not_taken_for_the_one_that_had_its_number(void **state)
{
	struct window *window = fill(state);

	window__end_process(window, 7, 5);
	assert_int_equal(add_process(window, 7, 6, "new"), 0);
	assert_int_equal(window->overflow_processes, 1);
	assert_null(window__process(window, 7));
	assert_null(window__touch_process(window, 7));
	assert_string_equal(window->processes.items[6]->comm, "kept");
}

static void the_end_of_a_process_that_is_not_kept_is_known(void **state)
{
	struct window *window = fill(state);

	assert_int_equal(add_process(window, 5000, 1, "p"), 0);
	assert_false(window__has_ended(window, 5000));
	window__end_process(window, 5000, 20);
	assert_true(window__has_ended(window, 5000));
	assert_false(window__has_ended(window, 1));
}

static void threads_of_exited_processes_make_room_for_new_ones(void **state)
{
	struct window *window = *state;
	int err = 0;
	uint32_t tid = 100;

	assert_int_equal(add_process(window, 7, 1, "old"), 0);
	assert_int_equal(add_thread(window, 8, 1, "kept"), 0);
	for (; !err; tid++)
		err = add_thread(window, 7, tid, "t");
	assert_int_equal(err, -ENOSPC);

	window__touch_process(window, 7)->exit_ns = 5;
	/* The window does not look for processes that have exited on each call. */
	for (int tries = 0; err && tries < 10000; tries++)
		err = add_thread(window, 9, 50, "new");
	assert_int_equal(err, 0);
	assert_string_equal(window__thread_name(window, 50), "new");
	assert_string_equal(window__thread_name(window, 1), "kept");
	assert_null(window__thread_name(window, 100));
}

/* Looking through all processes each time would take minutes. */
static void threads_that_find_no_room_are_let_go_at_once(void **state)
{
	struct window *window = *state;

	for (uint32_t tid = 1; tid <= 400000; tid++)
		add_thread(window, tid / 100, tid, "t");
	assert_string_equal(window__thread_name(window, 1), "t");
	assert_null(window__thread_name(window, 400000));
}

static void a_kind_that_is_not_known_is_a_step(void **state)
{
	assert_string_equal(window__kind_name(*state, 3), "step");
	assert_string_equal(window__step_source(*state, 3), "function");
}

static void a_kind_out_of_range_is_a_step(void **state)
{
	assert_string_equal(window__kind_name(*state, FBT_KIND_COUNT), "step");
	assert_string_equal(window__step_source(*state, FBT_KIND_COUNT), "function");
}

static void kind_zero_is_the_interval(void **state)
{
	assert_string_equal(window__kind_name(*state, 0), "interval");
	assert_string_equal(window__step_source(*state, 0), "interval");
}

static void a_record_cannot_rename_the_interval(void **state)
{
	struct window *window = *state;
	struct fbt_kind record = {.kind = 0};

	assert_int_equal(window__add_kind(window, &record, "other", "/lib", NULL), 0);
	assert_string_equal(window__kind_name(window, 0), "interval");
	assert_string_equal(window__step_source(window, 0), "interval");
	assert_true(window->kind_known[0]);
}

static void a_kind_has_its_name_source_and_argument_names(void **state)
{
	struct window *window = *state;
	struct fbt_kind record = {.kind = 2, .source = FBT_SOURCE_USDT, .arg_count = 1};
	const char *args[] = {"n_tokens"};

	assert_int_equal(window__add_kind(window, &record, "decode", "/lib", args), 0);
	assert_string_equal(window__kind_name(window, 2), "decode");
	assert_string_equal(window__step_source(window, 2), "usdt");
	assert_string_equal(window->kinds[2].arg_names[0], "n_tokens");
}

static void a_later_kind_record_replaces_an_earlier_one(void **state)
{
	struct window *window = *state;
	struct fbt_kind record = {.kind = 2, .arg_count = 1};
	const char *args[] = {"n"};

	assert_int_equal(window__add_kind(window, &record, "first", "/lib", args), 0);
	record.arg_count = 0;
	assert_int_equal(window__add_kind(window, &record, "second", "/lib", NULL), 0);
	assert_string_equal(window__kind_name(window, 2), "second");
	assert_null(window->kinds[2].arg_names[0]);
}

static void processes_are_found_in_any_order_of_arrival(void **state)
{
	struct window *window = *state;
	static const uint32_t tgids[] = {50, 3, 99, 7, 1};

	for (size_t i = 0; i < 5; i++)
		assert_int_equal(add_process(window, tgids[i], 1, "p"), 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(window__process(window, tgids[i])->record.tgid, tgids[i]);
	assert_null(window__process(window, 8));
}

static void a_process_is_named_after_it_was_first_touched(void **state)
{
	struct window *window = *state;
	struct process *process = window__touch_process(window, 7);

	assert_string_equal(process->comm, "");
	assert_int_equal(add_process(window, 7, 1, "engine"), 0);
	assert_ptr_equal(window__process(window, 7), process);
	assert_string_equal(process->comm, "engine");
}

static void a_process_number_that_is_used_again_is_another_process(void **state)
{
	struct window *window = *state;

	assert_int_equal(add_process(window, 7, 1, "old"), 0);
	window__touch_process(window, 7)->exit_ns = 5;
	assert_int_equal(add_process(window, 7, 6, "new"), 0);
	assert_int_equal(window->processes.count, 2);
	assert_string_equal(window->processes.items[0]->comm, "old");
	assert_string_equal(window__process(window, 7)->comm, "new");
}

static void a_late_record_names_a_process_that_has_exited(void **state)
{
	struct window *window = *state;

	window__touch_process(window, 7)->exit_ns = 5;
	assert_int_equal(add_process(window, 7, 1, "engine"), 0);
	assert_int_equal(window->processes.count, 1);
	assert_int_equal(window__process(window, 7)->exit_ns, 5);
}

static void add_again(struct window *window, uint32_t parent_tgid, uint64_t start_ns)
{
	struct fbt_target target = {.tgid = 7, .parent_tgid = parent_tgid, .start_ns = start_ns};

	assert_int_equal(window__add_process(window, &target, "new", "/bin/new", "new -x"), 0);
}

static void execve_keeps_the_parent_and_the_start_of_a_process(void **state)
{
	struct window *window = *state;
	struct fbt_target forked = {.tgid = 7, .parent_tgid = 3, .start_ns = 100};
	const struct process *process;

	assert_int_equal(window__add_process(window, &forked, "old", "/bin/old", "old"), 0);
	add_again(window, 0, 200);
	process = window__process(window, 7);
	assert_int_equal(process->record.parent_tgid, 3);
	assert_int_equal(process->record.start_ns, 100);
	assert_int_equal(window->processes.count, 1);
}

static void execve_replaces_the_names_of_a_process(void **state)
{
	struct window *window = *state;
	const struct process *process;

	assert_int_equal(add_process(window, 7, 100, "old"), 0);
	add_again(window, 0, 200);
	process = window__process(window, 7);
	assert_string_equal(process->comm, "new");
	assert_string_equal(process->exe, "/bin/new");
	assert_string_equal(process->cmdline, "new -x");
}

static void a_record_with_a_parent_replaces_one_without(void **state)
{
	struct window *window = *state;

	assert_int_equal(add_process(window, 7, 100, "old"), 0);
	add_again(window, 3, 200);
	assert_int_equal(window__process(window, 7)->record.parent_tgid, 3);
	assert_int_equal(window__process(window, 7)->record.start_ns, 200);
}

static void a_process_that_was_only_touched_starts_as_its_record_says(void **state)
{
	struct window *window = *state;

	window__touch_process(window, 7);
	add_again(window, 0, 200);
	assert_int_equal(window__process(window, 7)->record.start_ns, 200);
}

static void threads_are_found_in_any_order_of_arrival(void **state)
{
	struct window *window = *state;

	assert_int_equal(add_thread(window, 7, 30, "c"), 0);
	assert_int_equal(add_thread(window, 7, 10, "a"), 0);
	assert_int_equal(add_thread(window, 7, 20, "b"), 0);
	assert_string_equal(window__thread_name(window, 10), "a");
	assert_string_equal(window__thread_name(window, 20), "b");
	assert_string_equal(window__thread_name(window, 30), "c");
}

static void a_thread_can_change_its_name(void **state)
{
	struct window *window = *state;

	assert_int_equal(add_thread(window, 7, 8, "old"), 0);
	assert_int_equal(add_thread(window, 7, 8, "new"), 0);
	assert_string_equal(window__thread_name(window, 8), "new");
	assert_int_equal(window->threads.count, 1);
}

static void a_thread_name_always_ends(void **state)
{
	struct window *window = *state;
	struct fbt_thread_name record = {.tgid = 7, .tid = 8};

	memset(record.comm, 'x', sizeof(record.comm));
	assert_int_equal(window__add_thread(window, &record), 0);
	assert_string_equal(window__thread_name(window, 8), "xxxxxxxxxxxxxxx");
}

static void nothing_is_lost_at_first(void **state)
{
	assert_int_equal(window__lost_total(*state), 0);
}

static void lost_total_counts_every_cause(void **state)
{
	struct window *window = *state;

	for (int i = 0; i < FBT_LOST_COUNT; i++)
		window->lost.count[i] = 1u << i;
	assert_int_equal(window__lost_total(window), 63);
}

static void lost_total_does_not_wrap(void **state)
{
	struct window *window = *state;

	window->lost.count[0] = UINT64_MAX;
	window->lost.count[1] = 2;
	assert_true(window__lost_total(window) == UINT64_MAX);
}

static void each_cause_of_loss_has_a_name(void **state)
{
	assert_string_equal(lost_cause_name(FBT_LOST_CALLS), "calls");
	assert_string_equal(lost_cause_name(FBT_LOST_STEPS), "steps");
	assert_string_equal(lost_cause_name(FBT_LOST_THREADS), "threads");
	assert_string_equal(lost_cause_name(FBT_LOST_BEGINS), "begins");
	assert_string_equal(lost_cause_name(FBT_LOST_NAMES), "processes");
	assert_string_equal(lost_cause_name(FBT_LOST_FILES), "files");
}

#define WINDOW_TEST(test) cmocka_unit_test_setup_teardown(test, open_window, close_window)

static int add_file(struct file_table *table, uint32_t id, const char *path)
{
	const struct fbt_file record = {.id = id, .tgid = 7, .fd = (int32_t)id};

	return file_table_add(table, &record, path);
}

static void files_are_found_whatever_order_they_come_in(void **state)
{
	static const uint32_t ids[] = {5, 1, 9, 3, 2, 8};
	struct file_table table = {0};
	char path[2] = "a";

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		path[0] = (char)('a' + ids[i]);
		assert_int_equal(add_file(&table, ids[i], path), 0);
	}
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		const struct file *file = file_table_find(&table, ids[i]);

		assert_non_null(file);
		assert_int_equal(file->record.fd, ids[i]);
		assert_int_equal(file->path[0], 'a' + ids[i]);
	}
	assert_null(file_table_find(&table, 0));
	assert_null(file_table_find(&table, 4));
	assert_null(file_table_find(&table, 10));
	file_table_clear(&table);
}

static void a_later_record_of_an_id_replaces_the_earlier(void **state)
{
	struct file_table table = {0};

	assert_int_equal(add_file(&table, 3, "/old"), 0);
	assert_int_equal(add_file(&table, 3, "/new"), 0);
	assert_string_equal(file_table_find(&table, 3)->path, "/new");
	file_table_clear(&table);
	assert_null(file_table_find(&table, 3));
}

static void fill_files(struct file_table *table)
{
	for (uint32_t id = 1; id <= FILE_TABLE_MAX; id++)
		assert_int_equal(add_file(table, id, "/path"), 0);
}

static void a_new_file_takes_the_place_of_those_that_were_not_used_for_longest(void **state)
{
	struct file_table table = {0};

	fill_files(&table);
	file_table_use(&table, 2);
	assert_int_equal(add_file(&table, FILE_TABLE_MAX + 1, "/one/more"), 0);
	assert_string_equal(file_table_find(&table, FILE_TABLE_MAX + 1)->path, "/one/more");
	assert_null(file_table_find(&table, 1));
	assert_string_equal(file_table_find(&table, 2)->path, "/path");
	assert_null(file_table_find(&table, FILE_TABLE_MAX / 2));
	assert_string_equal(file_table_find(&table, FILE_TABLE_MAX)->path, "/path");
	file_table_clear(&table);
}

/* The kernel announces a file once, and calls may name it forever. */
static void a_file_that_is_in_use_stays(void **state)
{
	struct file_table table = {0};

	for (uint32_t id = 1; id <= 5 * FILE_TABLE_MAX; id++) {
		assert_int_equal(add_file(&table, id, "/path"), 0);
		file_table_use(&table, 7);
	}
	assert_true(table.files.count <= FILE_TABLE_MAX);
	assert_non_null(file_table_find(&table, 7));
	assert_null(file_table_find(&table, 8));
	file_table_clear(&table);
}

static void files_that_are_all_in_use_make_room_by_their_age(void **state)
{
	struct file_table table = {0};

	fill_files(&table);
	for (uint32_t id = 1; id <= FILE_TABLE_MAX; id++)
		file_table_use(&table, id);
	file_table_pin(&table, 3);
	assert_int_equal(add_file(&table, FILE_TABLE_MAX + 1, "/one/more"), 0);
	assert_int_equal(table.files.count, FILE_TABLE_MAX / 2 + 2);
	assert_non_null(file_table_find(&table, 3));
	assert_null(file_table_find(&table, 4));
	file_table_clear(&table);
}

/* Else one that is named again and again would have no room in the end. */
static void not_all_files_stay_until_the_end(void **state)
{
	struct file_table table = {0};

	(void)state;
	fill_files(&table);
	for (uint32_t id = 1; id <= FILE_TABLE_MAX; id++)
		file_table_pin(&table, id);
	/* A record that replaces another one of the same file. */
	assert_int_equal(add_file(&table, 2, "/other"), 0);
	for (uint32_t id = 1; id <= 2 * FILE_TABLE_MAX; id++)
		assert_int_equal(add_file(&table, FILE_TABLE_MAX + id, "/one/more"), 0);
	assert_true(table.files.count <= FILE_TABLE_MAX);
	assert_string_equal(file_table_find(&table, 2)->path, "/other");
	assert_non_null(file_table_find(&table, FILES_PINNED_MAX));
	assert_null(file_table_find(&table, FILES_PINNED_MAX + 1));
	file_table_clear(&table);
}

static void the_file_of_a_hang_stays(void **state)
{
	struct window *window = *state;
	const struct fbt_hang hang = {.tgid = 7, .call.file = 5};
	const struct fbt_stop_sender nobody = {.time_ns = 0};

	for (uint32_t id = 1; id <= 2 * FILE_TABLE_MAX; id++) {
		const struct fbt_file record = {.id = id, .tgid = 7};

		assert_int_equal(window__add_file(window, &record, "/tmp/fifo"), 0);
		if (id == 10)
			window__add_hang(window, &hang, &nobody);
	}
	assert_string_equal(window__file(window, 5)->path, "/tmp/fifo");
	assert_null(window__file(window, 6));
}

static void who_stopped_the_latest_of_many_hangs_is_known(void **state)
{
	struct window *window = *state;
	struct fbt_hang hang = {.tgid = 7};
	struct fbt_stop_sender sender = {.header.type = FBT_EVENT_STOP_SENDER};

	for (uint32_t i = 1; i <= 2 * WINDOW_HANGS_MAX; i++) {
		hang.time_ns = i;
		sender.sender = 100 + i;
		window__add_hang(window, &hang, &sender);
	}
	assert_int_equal(window__hang_sender(window, &hang)->sender, 100 + 2 * WINDOW_HANGS_MAX);
	hang.time_ns = 1;
	assert_int_equal(window__hang_sender(window, &hang)->sender, 101);
	hang.time_ns = WINDOW_HANGS_MAX + 1;
	assert_null(window__hang_sender(window, &hang));
}

static inline const struct fbt_table *find_row(const struct row_table *table, uint32_t nr)
{
	vec_for_each (row, &table->rows) {
		if (row->nr == nr)
			return row;
	}
	return NULL;
}

static void set(struct row_table *table, uint32_t nr, uint64_t calls)
{
	const struct fbt_table row = {.nr = nr, .sum.calls = calls};

	assert_int_equal(row_table_set(table, &row), 0);
}

static void add_use(struct thread_table *table, uint32_t tid, uint64_t cpu_ns, bool is_known)
{
	const struct fbt_thread_use use = {
		.header.flags = is_known ? FBT_USE_CPU_KNOWN : 0,
		.tid = tid,
		.calls = 1,
		.call_ns = 2,
		.cpu_ns = cpu_ns,
		.delay_ns = 3,
	};

	assert_int_equal(thread_table_add(table, &use), 0);
}

static void the_busiest_threads_are_kept_and_the_others_added_up(void **state)
{
	struct thread_table table = {.overflow_count = 0};

	/* Values ascend in one order and descend in the other. */
	for (uint32_t i = 0; i < THREAD_TABLE_MAX; i++) {
		add_use(&table, i, 1000 - i, true);
		add_use(&table, 1000 + i, 100 + i, true);
	}
	assert_int_equal(table.threads.count, THREAD_TABLE_MAX);
	vec_for_each (use, &table.threads)
		assert_in_range(use->tid, 0, THREAD_TABLE_MAX - 1);
	assert_int_equal(table.overflow_count, THREAD_TABLE_MAX);
	assert_int_equal(table.rest.calls, THREAD_TABLE_MAX);
	assert_int_equal(table.rest.call_ns, 2 * THREAD_TABLE_MAX);
	assert_int_equal(table.rest.delay_ns, 3 * THREAD_TABLE_MAX);
	assert_int_equal(table.rest.cpu_ns,
			 100 * THREAD_TABLE_MAX + THREAD_TABLE_MAX * (THREAD_TABLE_MAX - 1) / 2);
	assert_int_equal(table.rest.header.flags, FBT_USE_CPU_KNOWN);
	thread_table_clear(&table);
}

static void what_threads_that_run_steps_used_is_known_of_the_others_too(void **state)
{
	struct fbt_thread_use use = {.header.flags = FBT_USE_CPU_KNOWN | FBT_USE_STEPS,
				     .tid = 1000,
				     .cpu_ns = 7,
				     .delay_ns = 5};
	struct thread_table table = {.overflow_count = 0};

	for (uint32_t i = 0; i < THREAD_TABLE_MAX; i++)
		add_use(&table, i, 1000, true);
	add_use(&table, 1001, 50, true);
	assert_int_equal(thread_table_add(&table, &use), 0);
	assert_int_equal(table.rest.cpu_ns, 57);
	assert_int_equal(table.rest.delay_ns, 8);
	assert_int_equal(table.rest_steps_cpu_ns, 7);
	assert_int_equal(table.rest_steps_delay_ns, 5);
	thread_table_clear(&table);
}

static void the_sum_of_what_is_not_known_is_not_known(void **state)
{
	struct thread_table table = {.overflow_count = 0};

	for (uint32_t i = 0; i < THREAD_TABLE_MAX; i++)
		add_use(&table, i, 1000, true);
	add_use(&table, 1000, 0, false);
	assert_int_equal(table.rest.header.flags, 0);
	add_use(&table, 1001, 5, true);
	assert_int_equal(table.rest.header.flags, 0);
	assert_int_equal(table.overflow_count, 2);
	thread_table_clear(&table);
}

static void rows_are_found_whatever_order_they_come_in(void **state)
{
	static const uint32_t numbers[] = {5, 1, 511, 3, 0, 8};
	struct row_table table = {0};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		set(&table, numbers[i], numbers[i] + 1);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_int_equal(find_row(&table, numbers[i])->sum.calls, numbers[i] + 1);
	for (size_t i = 1; i < table.rows.count; i++)
		assert_true(table.rows.items[i - 1].nr < table.rows.items[i].nr);
	assert_null(find_row(&table, 2));
	assert_null(find_row(&table, 510));
	row_table_clear(&table);
}

static void a_later_row_of_a_number_replaces_the_earlier(void **state)
{
	struct row_table table = {0};

	set(&table, 3, 5);
	set(&table, 9, 1);
	set(&table, 3, 6);
	assert_int_equal(table.rows.count, 2);
	assert_int_equal(find_row(&table, 3)->sum.calls, 6);
	row_table_clear(&table);
	assert_null(find_row(&table, 3));
}

static void a_process_of_few_numbers_takes_little(void **state)
{
	struct row_table table = {0};

	for (uint32_t nr = 100; nr < 110; nr++)
		set(&table, nr, 1);
	assert_true(table.rows.capacity * sizeof(*table.rows.items) <= 1024);
	row_table_clear(&table);
}

static int open_overflow(void **state)
{
	*state = overflow__new();
	return *state ? 0 : -1;
}

static int close_overflow(void **state)
{
	overflow__free(*state);
	return 0;
}

/* Adds processes from tgid on until one is not remembered. Returns its number. */
static uint32_t fill_overflow(struct overflow *overflow, uint32_t tgid)
{
	while (overflow__add(overflow, tgid, 0))
		tgid++;
	return tgid;
}

static void free_accepts_null(void **state)
{
	overflow__free(NULL);
}

static void a_process_that_was_not_added_is_not_known(void **state)
{
	assert_true(overflow__add(*state, 7, 1));
	assert_false(overflow__has(*state, 6));
	assert_false(overflow__has(*state, 8));
	assert_false(overflow__has_ended(*state, 8));
}

static void the_end_of_an_unknown_process_is_no_news(void **state)
{
	overflow__end(*state, 7, 5);
	assert_false(overflow__has(*state, 7));
	assert_false(overflow__has_ended(*state, 7));
}

static void beyond_what_is_remembered_only_announcements_count(void **state)
{
	uint32_t next = fill_overflow(*state, 1);

	assert_true(next > 10000);
	assert_false(overflow__add(*state, next, 0));
	assert_true(overflow__add(*state, next, 1));
	assert_false(overflow__has(*state, next));
}

static void processes_that_have_ended_make_room(void **state)
{
	uint32_t next = fill_overflow(*state, 1);

	overflow__end(*state, 9, 5);
	assert_true(overflow__add(*state, next, 0));
	assert_true(overflow__has(*state, next));
	assert_false(overflow__has(*state, 9));
	assert_true(overflow__has(*state, 8));
}

static void a_process_is_one_more_only_once(void **state)
{
	assert_true(overflow__add(*state, 7, 0));
	assert_false(overflow__add(*state, 7, 0));
	assert_false(overflow__add(*state, 7, 1));
}

static void overflow_is_found_in_any_order_of_arrival(void **state)
{
	static const uint32_t tgids[] = {50, 3, 99, 7, 1};

	for (size_t i = 0; i < 5; i++)
		assert_true(overflow__add(*state, tgids[i], 1));
	for (size_t i = 0; i < 5; i++)
		assert_true(overflow__has(*state, tgids[i]));
	assert_false(overflow__has(*state, 8));
}

static void a_late_record_of_a_process_that_has_ended_is_not_one_more(void **state)
{
	assert_true(overflow__add(*state, 7, 1));
	overflow__end(*state, 7, 5);
	assert_true(overflow__has_ended(*state, 7));
	assert_false(overflow__add(*state, 7, 0));
	assert_false(overflow__add(*state, 7, 4));
	assert_true(overflow__has_ended(*state, 7));
}

static void a_number_that_is_used_again_is_one_more(void **state)
{
	assert_true(overflow__add(*state, 7, 1));
	overflow__end(*state, 7, 5);
	assert_true(overflow__add(*state, 7, 6));
	assert_false(overflow__has_ended(*state, 7));
}

#define OVERFLOW_TEST(name) cmocka_unit_test_setup_teardown(name, open_overflow, close_overflow)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_free_takes_null),
		WINDOW_TEST(a_process_that_was_not_named_is_not_known),
		WINDOW_TEST(a_thread_that_was_not_named_is_not_known),
		WINDOW_TEST(a_process_beyond_those_that_are_kept_is_counted),
		WINDOW_TEST(a_process_that_is_not_kept_is_counted_once),
		WINDOW_TEST(processes_that_ended_without_a_step_make_room),
		WINDOW_TEST(in_a_window_without_an_end_processes_with_steps_make_room),
		WINDOW_TEST(a_number_that_was_used_again_stays_known),
		WINDOW_TEST(processes_that_are_kept_stay_known_when_others_are_not),
		WINDOW_TEST(what_is_not_kept_is_not_taken_for_the_one_that_had_its_number),
		WINDOW_TEST(the_end_of_a_process_that_is_not_kept_is_known),
		WINDOW_TEST(threads_of_exited_processes_make_room_for_new_ones),
		WINDOW_TEST(threads_that_find_no_room_are_let_go_at_once),
		WINDOW_TEST(a_kind_that_is_not_known_is_a_step),
		WINDOW_TEST(a_kind_out_of_range_is_a_step),
		WINDOW_TEST(a_title_is_the_command_line_if_the_name_is_its_begin),
		WINDOW_TEST(kind_zero_is_the_interval),
		WINDOW_TEST(a_record_cannot_rename_the_interval),
		WINDOW_TEST(a_kind_has_its_name_source_and_argument_names),
		WINDOW_TEST(a_later_kind_record_replaces_an_earlier_one),
		WINDOW_TEST(processes_are_found_in_any_order_of_arrival),
		WINDOW_TEST(a_process_is_named_after_it_was_first_touched),
		WINDOW_TEST(a_process_number_that_is_used_again_is_another_process),
		WINDOW_TEST(a_late_record_names_a_process_that_has_exited),
		WINDOW_TEST(execve_keeps_the_parent_and_the_start_of_a_process),
		WINDOW_TEST(execve_replaces_the_names_of_a_process),
		WINDOW_TEST(a_record_with_a_parent_replaces_one_without),
		WINDOW_TEST(a_process_that_was_only_touched_starts_as_its_record_says),
		WINDOW_TEST(threads_are_found_in_any_order_of_arrival),
		WINDOW_TEST(a_thread_can_change_its_name),
		WINDOW_TEST(a_thread_name_always_ends),
		WINDOW_TEST(nothing_is_lost_at_first),
		WINDOW_TEST(lost_total_counts_every_cause),
		WINDOW_TEST(lost_total_does_not_wrap),
		WINDOW_TEST(each_cause_of_loss_has_a_name),
		cmocka_unit_test(files_are_found_whatever_order_they_come_in),
		cmocka_unit_test(a_later_record_of_an_id_replaces_the_earlier),
		cmocka_unit_test(
			a_new_file_takes_the_place_of_those_that_were_not_used_for_longest),
		cmocka_unit_test(a_file_that_is_in_use_stays),
		cmocka_unit_test(files_that_are_all_in_use_make_room_by_their_age),
		cmocka_unit_test(not_all_files_stay_until_the_end),
		WINDOW_TEST(the_file_of_a_hang_stays),
		WINDOW_TEST(who_stopped_the_latest_of_many_hangs_is_known),
		cmocka_unit_test(the_busiest_threads_are_kept_and_the_others_added_up),
		cmocka_unit_test(what_threads_that_run_steps_used_is_known_of_the_others_too),
		cmocka_unit_test(the_sum_of_what_is_not_known_is_not_known),
		cmocka_unit_test(rows_are_found_whatever_order_they_come_in),
		cmocka_unit_test(a_later_row_of_a_number_replaces_the_earlier),
		cmocka_unit_test(a_process_of_few_numbers_takes_little),
		OVERFLOW_TEST(free_accepts_null),
		OVERFLOW_TEST(a_process_that_was_not_added_is_not_known),
		OVERFLOW_TEST(the_end_of_an_unknown_process_is_no_news),
		OVERFLOW_TEST(beyond_what_is_remembered_only_announcements_count),
		OVERFLOW_TEST(processes_that_have_ended_make_room),
		OVERFLOW_TEST(a_process_is_one_more_only_once),
		OVERFLOW_TEST(overflow_is_found_in_any_order_of_arrival),
		OVERFLOW_TEST(a_late_record_of_a_process_that_has_ended_is_not_one_more),
		OVERFLOW_TEST(a_number_that_is_used_again_is_one_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

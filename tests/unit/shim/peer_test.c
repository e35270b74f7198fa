/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu_peer_fixture.h"

static void free_accepts_null(void **state)
{
	gpu_peer__free(NULL);
}

static void a_process_without_cuda_is_told_once(void **state)
{
	struct fixture *fixture = *state;

	player_make(&fixture->player, 0, 0);
	close(fixture->player.fd);
	player_fork(&fixture->player, NULL);
	make_peer(fixture);
	assert_true(gpu_peer__is_waiting(fixture->peer));
	look(fixture);
	assert_said(fixture, FBT_GPU_NOT_CUDA, "");
	assert_false(gpu_peer__is_waiting(fixture->peer));
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + S - 1));
	look_after(fixture, LOOK_NS);
	assert_int_equal(fixture->keeper.count, 1);
	assert_silent(fixture->text);
	player_kill(&fixture->player);
}

/* Maps a file named libcuda.so.1, as a process that uses CUDA does. Returns the address. */
static void *map_libcuda(void)
{
	void *memory;
	char path[] = "/tmp/fbt_peer_XXXXXX", file[64];
	int fd;

	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof(file), "%s/libcuda.so.1", path);
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 4096), 0);
	memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(memory != MAP_FAILED);
	close(fd);
	unlink(file);
	rmdir(path);
	return memory;
}

static void wait_to_map_libcuda(struct player *player)
{
	while (!__atomic_load_n(&player->shared->pulse, __ATOMIC_ACQUIRE))
		usleep(100);
	map_libcuda();
	__atomic_store_n(&player->shared->pulse, 2, __ATOMIC_RELEASE);
}

static void tell_of_cuda(struct fixture *fixture, bool at_end)
{
	/* The memory is no ring here; the test and its child only synchronize by it. */
	player_make(&fixture->player, FBT_GPU_HEADER_BYTES, 0);
	player_fork(&fixture->player, wait_to_map_libcuda);
	make_peer(fixture);
	look(fixture);
	assert_said(fixture, FBT_GPU_NOT_CUDA, "");
	fixture->player.shared->pulse = 1;
	while (__atomic_load_n(&fixture->player.shared->pulse, __ATOMIC_ACQUIRE) != 2)
		usleep(100);
	if (at_end)
		gpu_peer__look_for_cuda(fixture->peer, fixture->now_ns);
	for (int i = 0; i < 4; i++)
		look_after(fixture, LOOK_NS);
	assert_said(fixture, FBT_GPU_ABSENT, "");
	gpu_peer__look_for_cuda(fixture->peer, fixture->now_ns);
	assert_int_equal(fixture->keeper.count, 2);
	assert_one_line(fixture->text, "without the shim");
}

static void cuda_without_a_shim_is_told_at_a_later_look(void **state)
{
	tell_of_cuda(*state, false);
}

static void cuda_without_a_shim_is_told_at_the_end(void **state)
{
	tell_of_cuda(*state, true);
}

/* Starts a process that has mapped libcuda and has no ring. */
static void start_lacking(struct fixture *fixture)
{
	player_make(&fixture->player, FBT_GPU_HEADER_BYTES, 0);
	player_fork(&fixture->player, wait_to_map_libcuda);
	fixture->player.shared->pulse = 1;
	while (__atomic_load_n(&fixture->player.shared->pulse, __ATOMIC_ACQUIRE) != 2)
		usleep(100);
}

static void a_shim_that_will_be_injected_is_not_missed_aloud(void **state)
{
	struct fixture *fixture = *state;
	bool from_start = false;

	start_lacking(fixture);
	make_peer(fixture);
	gpu_peer__await_injection(fixture->peer);
	assert_int_equal(gpu_peer__lacks_shim(fixture->peer, &from_start), 0);
	look(fixture);
	assert_int_equal(gpu_peer__lacks_shim(fixture->peer, &from_start), fixture->now_ns);
	assert_true(from_start);
	assert_int_equal(fixture->keeper.count, 0);
	assert_silent(fixture->text);
	/* Once the shim is there, the next look is due at once. */
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns));
	gpu_peer__take_shim(fixture->peer, fixture->now_ns);
	assert_true(gpu_peer__is_due(fixture->peer, fixture->now_ns));
	gpu_peer__do_without(fixture->peer, "libc: too old", fixture->now_ns);
	assert_said(fixture, FBT_GPU_NOT_INJECTED, "libc: too old");
	assert_int_equal(gpu_peer__lacks_shim(fixture->peer, &from_start), 0);
	for (int i = 0; i < 8; i++)
		look_after(fixture, LOOK_NS);
	assert_int_equal(fixture->keeper.count, 1);
	assert_one_line(fixture->text, "not injected (libc: too old)");
	/* After execve() the process may get another shim. */
	gpu_peer__restart(fixture->peer, fixture->now_ns);
	look(fixture);
	assert_int_equal(gpu_peer__lacks_shim(fixture->peer, &from_start), fixture->now_ns);
	assert_false(from_start);
	assert_int_equal(fixture->keeper.count, 1);
}

static void a_shim_that_comes_when_the_window_has_ended_is_told(void **state)
{
	struct fixture *fixture = *state;
	bool from_start;

	start_lacking(fixture);
	make_peer(fixture);
	gpu_peer__await_injection(fixture->peer);
	look(fixture);
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	gpu_peer__miss_shim(fixture->peer, fixture->now_ns);
	assert_said(fixture, FBT_GPU_STALLED,
		    "it was injected too late for this window; the next trace has its records");
	assert_int_equal(gpu_peer__lacks_shim(fixture->peer, &from_start), 0);
}

static void cuda_that_comes_later_is_seen_to_lack_a_shim_then(void **state)
{
	struct fixture *fixture = *state;
	bool from_start = true;

	player_make(&fixture->player, FBT_GPU_HEADER_BYTES, 0);
	player_fork(&fixture->player, wait_to_map_libcuda);
	make_peer(fixture);
	gpu_peer__await_injection(fixture->peer);
	look(fixture);
	assert_said(fixture, FBT_GPU_NOT_CUDA, "");
	assert_int_equal(gpu_peer__lacks_shim(fixture->peer, &from_start), 0);
	fixture->player.shared->pulse = 1;
	while (__atomic_load_n(&fixture->player.shared->pulse, __ATOMIC_ACQUIRE) != 2)
		usleep(100);
	for (int i = 0; i < 4; i++)
		look_after(fixture, LOOK_NS);
	assert_int_equal(gpu_peer__lacks_shim(fixture->peer, &from_start), fixture->now_ns);
	assert_false(from_start);
	assert_int_equal(fixture->keeper.count, 1);
}

/*
 * Looks at a process that was started with this variable and has mapped libcuda, but no shim. A
 * program must be started for this: /proc shows only the initial environment.
 */
static void look_at_started_with(struct fixture *fixture, const char *variable)
{
	static const char script[] =
		"import mmap, os, signal, tempfile\nd = tempfile.mkdtemp()\n"
		"f = open(d + '/libcuda.so.1', 'w+b'); f.truncate(4096)\n"
		"m = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE)\nos.unlink(f.name)\n"
		"os.rmdir(d)\nos.write(1, b'x')\nsignal.pause()\n";
	char *const environment[] = {(char *)variable, NULL};
	int ends[2];
	char byte;

	player_make(&fixture->player, 0, 0);
	close(fixture->player.fd);
	assert_int_equal(pipe(ends), 0);
	fixture->player.child = fork();
	if (!fixture->player.child) {
		dup2(ends[1], STDOUT_FILENO);
		execle("/usr/bin/python3", "python3", "-S", "-c", script, NULL, environment);
		_exit(1);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		skip();
	close(ends[0]);
	make_peer(fixture);
	look(fixture);
}

static void a_shim_that_was_named_and_is_not_loaded_is_told(void **state)
{
	struct fixture *fixture = *state;
	char path[] = "/tmp/fbt_peer_XXXXXX", file[64], variable[96], expected[200];

	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof(file), "%s/libferrum_cupti.so", path);
	snprintf(variable, sizeof(variable), "CUDA_INJECTION64_PATH=%s", file);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	look_at_started_with(fixture, variable);
	unlink(file);
	rmdir(path);
	snprintf(expected, sizeof(expected), "%s of CUDA_INJECTION64_PATH is not loaded", file);
	assert_said(fixture, FBT_GPU_ABSENT, expected);
	assert_one_line(fixture->text, "no GPU records: /tmp/fbt_peer_");
}

static void a_shim_that_was_named_and_is_not_there_is_told(void **state)
{
	look_at_started_with(*state, "CUDA_INJECTION64_PATH=/opt/x/libferrum_cupti.so");
	assert_said(*state, FBT_GPU_ABSENT,
		    "/opt/x/libferrum_cupti.so of CUDA_INJECTION64_PATH is not there");
}

static void another_library_in_its_place_is_told(void **state)
{
	look_at_started_with(*state, "CUDA_INJECTION64_PATH=/opt/nsys/libInjection64.so");
	assert_said(*state, FBT_GPU_ABSENT,
		    "CUDA_INJECTION64_PATH names /opt/nsys/libInjection64.so");
}

/* A forked child has libcuda mapped only because its parent had. */
static void nothing_is_missed_in_a_mere_fork(void **state)
{
	struct fixture *fixture = *state;
	bool from_start;
	void *mapped;

	/* The test is the parent of the played process. */
	mapped = map_libcuda();
	start_lacking(fixture);
	make_peer(fixture);
	gpu_peer__await_injection(fixture->peer);
	look(fixture);
	munmap(mapped, 4096);
	assert_said(fixture, FBT_GPU_NOT_CUDA, "");
	assert_int_equal(gpu_peer__lacks_shim(fixture->peer, &from_start), 0);
}

static void off_is_told(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	make_peer(fixture);
	gpu_peer__send_off(fixture->peer, fixture->now_ns);
	assert_said(fixture, FBT_GPU_OFF, "");
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + 100 * S));
	assert_int_equal(fixture->player.shared->armed, 0);
	assert_silent(fixture->text);
}

static void an_armed_shim_is_told_with_what_it_says_of_cupti(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_gpu_state *said;

	arm(fixture);
	said = last_state(fixture);
	assert_int_equal(said->cupti_version, 26);
	assert_int_equal(said->driver_version, 12080);
	assert_int_equal(said->shim_version, FBT_GPU_VERSION);
	assert_int_equal(said->clock_method, FBT_GPU_CLOCK_CALLBACK);
	assert_string_equal(kept_string(said, sizeof(*said), 1), "/usr/lib/libcupti.so.12");
	assert_true(said->time_ns <= fixture->now_ns);
	assert_true(said->arm_ns <= 10 * MS);
	assert_true(gpu_peer__was_armed(fixture->peer));
	assert_false(gpu_peer__is_waiting(fixture->peer));
	assert_silent(fixture->text);
}

static void records_are_sent_on(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_gpu_work *work;
	const struct fbt_gpu_flush *flush;

	arm(fixture);
	player_put_kernel(&fixture->player, 5, fixture->now_ns - 20, fixture->now_ns - 10);
	player_put_flush(&fixture->player, fixture->now_ns - 5, 0);
	poll_after(fixture, 10 * MS);
	assert_int_equal(fixture->keeper.count, 3);
	work = kept(&fixture->keeper, 1, FBT_EVENT_GPU_WORK);
	assert_int_equal(work->tgid, fixture->player.child);
	assert_int_equal(work->correlation, 5);
	flush = kept(&fixture->keeper, 2, FBT_EVENT_GPU_FLUSH);
	assert_int_equal(flush->tgid, fixture->player.child);
	assert_int_equal(flush->last, 0);
}

static void it_beats_in_time(void **state)
{
	struct fixture *fixture = *state;
	uint32_t beat;

	arm(fixture);
	for (int i = 0; i < 10; i++) {
		beat = fixture->player.shared->beat;
		fixture->player.shared->pulse++;
		for (uint64_t ns = 0; ns < FBT_GPU_BEAT_NS; ns += 10 * MS)
			poll_after(fixture, 10 * MS);
		assert_true(fixture->player.shared->beat != beat);
	}
}

static void a_shim_that_does_not_answer_is_waited_for_aloud_and_given_up(void **state)
{
	struct fixture *fixture = *state;

	ask(fixture);
	poll_after(fixture, 9 * S);
	assert_silent(fixture->text);
	poll_after(fixture, 2 * S);
	poll_after(fixture, S);
	assert_one_line(fixture->text, "waiting for CUPTI to start");
	assert_true(gpu_peer__is_waiting(fixture->peer));
	poll_after(fixture, 20 * S);
	assert_said(fixture, FBT_GPU_STALLED, "in 30 s");
	assert_false(gpu_peer__is_waiting(fixture->peer));
	assert_int_equal(fixture->player.shared->armed, 2);
	/* After a stall the shim is asked again, and may answer then. */
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + S));
	fixture->now_ns += 11 * S;
	look(fixture);
	assert_int_equal(fixture->player.shared->armed, 3);
	player_put_state(&fixture->player, FBT_GPU_ARMED, "", "");
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
}

static void a_pulse_that_stops_is_a_stall(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_gpu_flush *flush;

	arm(fixture);
	for (int i = 0; i < 20; i++) {
		fixture->player.shared->pulse++;
		poll_after(fixture, S);
	}
	assert_said(fixture, FBT_GPU_ARMED, "");
	player_put_kernel(&fixture->player, 5, 10, 20);
	poll_after(fixture, 6 * S);
	assert_said(fixture, FBT_GPU_STALLED, "");
	/* The last flush record tells its readers that no more records come. */
	assert_int_equal(fixture->keeper.count, 4);
	kept(&fixture->keeper, 1, FBT_EVENT_GPU_WORK);
	flush = kept(&fixture->keeper, 2, FBT_EVENT_GPU_FLUSH);
	assert_int_equal(flush->last, 1);
	assert_one_line(fixture->text, "does not respond");
	/* When the pulse returns, the shim continues as armed. */
	fixture->player.shared->pulse++;
	player_put_kernel(&fixture->player, 6, 10, 20);
	poll_after(fixture, 10 * S);
	assert_int_equal(fixture->player.shared->armed, 1);
	assert_said(fixture, FBT_GPU_ARMED, "");
	poll_after(fixture, 6 * S);
	assert_said(fixture, FBT_GPU_STALLED, "");
	assert_int_equal(fixture->keeper.count, 8);
	kept(&fixture->keeper, 4, FBT_EVENT_GPU_WORK);
	kept(&fixture->keeper, 6, FBT_EVENT_GPU_FLUSH);
	/* A stalled shim is not waited for at the end. */
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_int_equal(fixture->player.shared->armed, 2);
}

static void a_busy_cupti_is_asked_for_again(void **state)
{
	struct fixture *fixture = *state;

	refuse(fixture, FBT_GPU_BUSY, "nsys holds CUPTI");
	assert_one_line(fixture->text, "(nsys holds CUPTI)");
	fixture->now_ns += 10 * S;
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns - 1));
	look(fixture);
	player_put_state(&fixture->player, FBT_GPU_BUSY, "nsys holds CUPTI", "");
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	/* The same refusal is not reported twice. */
	assert_int_equal(fixture->keeper.count, 1);
	assert_one_line(fixture->text, "nsys");
}

/* It may pass: the engine or its driver may not have been ready. Each try costs the engine a
 * little. */
static void a_failure_is_tried_again_five_times(void **state)
{
	struct fixture *fixture = *state;

	refuse(fixture, FBT_GPU_FAILED, "cuptiSubscribe: 999");
	for (uint32_t try = 0; try < 5; try++) {
		fixture->now_ns += 10 * S;
		assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns - 1));
		assert_true(gpu_peer__is_due(fixture->peer, fixture->now_ns));
		look(fixture);
		player_put_state(&fixture->player, FBT_GPU_FAILED, "cuptiSubscribe: 999", "");
		answer(fixture, FBT_GPU_DORMANT);
		poll_after(fixture, 10 * MS);
	}
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + 1000 * S));
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_one_line(fixture->text, "999");
}

static void a_driver_that_comes_late_is_found(void **state)
{
	struct fixture *fixture = *state;

	refuse(fixture, FBT_GPU_NO_DRIVER, "");
	fixture->now_ns += 10 * S;
	look(fixture);
	player_put_state(&fixture->player, FBT_GPU_ARMED, "", "");
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
}

static void what_will_not_change_is_asked_for_once(void **state)
{
	struct fixture *fixture = *state;

	refuse(fixture, FBT_GPU_NO_CUPTI, "");
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + 1000 * S));
	assert_one_line(fixture->text, "libcupti");
	assert_int_equal(fixture->player.shared->armed, 2);
}

static void a_shim_that_answers_nothing_has_failed(void **state)
{
	struct fixture *fixture = *state;

	ask(fixture);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_FAILED, "not say why");
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + 1000 * S));
}

static void a_dead_shim_is_not_asked(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	fixture->player.shared->phase = FBT_GPU_DEAD;
	/*
	 * An earlier tracer armed this shim; later the shim was refused CUPTI, and finally it gave
	 * up.
	 */
	player_put_state(&fixture->player, FBT_GPU_ARMED, "", "");
	player_put_state(&fixture->player, FBT_GPU_BUSY, "", "");
	player_put_state(&fixture->player, FBT_GPU_NO_DRIVER, "cuInit says 100", "");
	make_peer(fixture);
	look(fixture);
	assert_said(fixture, FBT_GPU_NO_DRIVER, "cuInit says 100");
	assert_false(gpu_peer__was_armed(fixture->peer));
	assert_int_equal(fixture->player.shared->armed, 0);
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + 1000 * S));
}

static void a_dead_shim_that_said_nothing_has_failed(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	fixture->player.shared->phase = FBT_GPU_DEAD;
	make_peer(fixture);
	look(fixture);
	assert_said(fixture, FBT_GPU_FAILED, "given up");
}

/* A sound shim reports a refusal once. A process that repeats refusals for ever is no shim. */
static void a_flood_of_refusals_is_one(void **state)
{
	static const enum fbt_gpu_status refusals[] = {FBT_GPU_NO_CUPTI, FBT_GPU_OLD_CUPTI,
						       FBT_GPU_NO_DRIVER, FBT_GPU_FAILED};
	struct fixture *fixture = *state;

	ask(fixture);
	for (int i = 0; i < 1000; i++)
		player_put_state(&fixture->player, refusals[i % 4], "", "");
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_NO_CUPTI, "");
	assert_int_equal(fixture->keeper.count, 1);
	assert_one_line(fixture->text, "libcupti");
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	while ((text = strchr(text, '\n'))) {
		lines++;
		text++;
	}
	return lines;
}

static void a_status_that_changes_for_ever_is_not_logged_for_ever(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	make_peer(fixture);
	for (int i = 0; i < 200; i++) {
		fixture->player.shared->version = FBT_GPU_VERSION + 1;
		fixture->player.shared->magic = i % 2 ? FBT_GPU_MAGIC : 1;
		look_after(fixture, LOOK_NS);
	}
	assert_int_equal(fixture->keeper.count, 200);
	assert_in_range(count_lines(stderr_text(fixture->text)), 2, 40);
	assert_non_null(strstr(stderr_text(fixture->text), "keeps changing"));
}

static void a_shim_of_another_version_is_told(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	fixture->player.shared->version = 9;
	make_peer(fixture);
	look(fixture);
	assert_said(fixture, FBT_GPU_OTHER_SHIM, "version 9, not 1");
	assert_int_equal(last_state(fixture)->shim_version, 9);
	assert_one_line(fixture->text, "(version 9, not 1)");
}

static void another_tracer_is_told(void **state)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct fixture *fixture = *state;
	char detail[64], byte;
	int ends[2];
	pid_t other;

	player_start(&fixture->player);
	assert_int_equal(pipe(ends), 0);
	other = fork();
	if (!other) {
		fcntl(fixture->player.fd, F_SETLK, &lock);
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	make_peer(fixture);
	look(fixture);
	snprintf(detail, sizeof(detail), "process %d has them", other);
	assert_said(fixture, FBT_GPU_TAKEN, detail);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	look_after(fixture, LOOK_NS);
	assert_int_equal(fixture->player.shared->armed, 1);
	close(ends[0]);
	close(ends[1]);
}

static void a_ring_that_goes_bad_is_told_and_its_records_end(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	player_put_kernel(&fixture->player, 5, 10, 20);
	fixture->player.head += 4;
	player_publish(&fixture->player);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_BAD_RING, "");
	kept(&fixture->keeper, 1, FBT_EVENT_GPU_FLUSH);
	assert_one_line(fixture->text, "shared memory");
	/* The process may have a new ring by then. */
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + S));
	assert_true(gpu_peer__is_due(fixture->peer, fixture->now_ns + 100 * S));
}

/* After a stop of the process or of the tool, the shim takes its tracer for dead and disarms. */
static void a_shim_that_stops_of_itself_is_asked_again(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	player_put_flush(&fixture->player, 5, 1);
	player_put_state(&fixture->player, FBT_GPU_ENDED, "", "");
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ENDED, "");
	assert_int_equal(fixture->player.shared->armed, 3);
	player_put_state(&fixture->player, FBT_GPU_ARMED, "", "");
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
	/* No second flush record is made up: the shim sent its own. */
	assert_int_equal(fixture->keeper.count, 4);
}

static void a_process_that_ends_leaves_what_it_had_published(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_gpu_flush *flush;

	arm(fixture);
	player_put_kernel(&fixture->player, 5, 10, 20);
	kill(fixture->player.child, SIGKILL);
	waitpid(fixture->player.child, NULL, 0);
	gpu_peer__end(fixture->peer, fixture->now_ns + S);
	kept(&fixture->keeper, 1, FBT_EVENT_GPU_WORK);
	flush = kept(&fixture->keeper, 2, FBT_EVENT_GPU_FLUSH);
	assert_int_equal(flush->last, 1);
	assert_int_equal(flush->time_ns, 0); /* the shim had sent no flush */
	assert_said(fixture, FBT_GPU_EXITED, "");
	assert_string_equal(kept_string(last_state(fixture), sizeof(struct fbt_gpu_state), 1),
			    "/usr/lib/libcupti.so.12");
	fixture->player.child = 0;
}

static void execve_ends_one_shim_and_looks_for_the_next(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	gpu_peer__restart(fixture->peer, fixture->now_ns);
	assert_said(fixture, FBT_GPU_EXITED, "");
	assert_int_equal(fixture->player.shared->armed, 2);
	assert_true(gpu_peer__is_waiting(fixture->peer));
	look(fixture);
	assert_int_equal(fixture->player.shared->armed, 3);
}

static void leaving_waits_for_the_last_records(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	assert_int_equal(fixture->player.shared->armed, 2);
	poll_after(fixture, 10 * MS);
	assert_false(gpu_peer__is_settled(fixture->peer));
	player_put_kernel(&fixture->player, 5, 10, 20);
	player_put_flush(&fixture->player, 5, 1);
	player_put_state(&fixture->player, FBT_GPU_ENDED, "", "");
	poll_after(fixture, 10 * MS);
	assert_false(gpu_peer__is_settled(fixture->peer));
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_said(fixture, FBT_GPU_ENDED, "");
	assert_int_equal(fixture->keeper.count, 4);
	assert_silent(fixture->text);
}

static void leaving_takes_no_for_an_end(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	gpu_peer__give_up(fixture->peer, fixture->now_ns);
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_said(fixture, FBT_GPU_STALLED, "last records");
	kept(&fixture->keeper, 1, FBT_EVENT_GPU_FLUSH);
}

static void leaving_a_shim_that_has_not_answered_does_not_wait(void **state)
{
	struct fixture *fixture = *state;

	ask(fixture);
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_said(fixture, FBT_GPU_STALLED, "window ended");
	assert_int_equal(fixture->keeper.count, 1);
}

static void leaving_a_ring_that_goes_bad_is_settled(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	fixture->player.head += 4;
	player_publish(&fixture->player);
	poll_after(fixture, 10 * MS);
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_said(fixture, FBT_GPU_BAD_RING, "");
}

/* A process may send any status but those that the tool itself reports. */
static void what_only_we_can_say_is_not_taken_from_a_process(void **state)
{
	static const enum fbt_gpu_status ours[] = {
		FBT_GPU_ABSENT,	  FBT_GPU_EXITED,     FBT_GPU_STALLED,
		FBT_GPU_BAD_RING, FBT_GPU_OTHER_SHIM, FBT_GPU_TAKEN,
		FBT_GPU_OFF,	  FBT_GPU_NOT_CUDA,   FBT_GPU_NOT_INJECTED};
	struct fixture *fixture = *state;

	arm(fixture);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		player_put_state(&fixture->player, ours[i], "", "");
	player_put_state(&fixture->player, FBT_GPU_ARMED, "again", "");
	poll_after(fixture, 10 * MS);
	assert_int_equal(fixture->keeper.count, 1);
}

static void its_text_cannot_write_to_the_terminal(void **state)
{
	struct fixture *fixture = *state;

	refuse(fixture, FBT_GPU_FAILED, "\033[2J\nprocess 1: all is well\r");
	assert_one_line(fixture->text,
			"does not collect (\\x1b[2J\\nprocess 1: all is well\\x0d): ");
}

/* A tracer that has died had armed the shim. The shim has not seen the new tracer's wish yet. */
static void work_that_another_tracer_asked_for_is_not_ours(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	fixture->player.shared->armed = 1;
	fixture->player.shared->phase = FBT_GPU_WORKING;
	fixture->player.shared->served = 1;
	make_peer(fixture);
	look(fixture);
	assert_int_equal(fixture->player.shared->armed, 3);
	player_put_kernel(&fixture->player, 5, 10, 20);
	player_put_flush(&fixture->player, 5, 1);
	player_put_state(&fixture->player, FBT_GPU_ENDED, "", "");
	poll_after(fixture, 10 * MS);
	assert_int_equal(fixture->keeper.count, 0);
	player_put_kernel(&fixture->player, 6, 10, 20);
	player_put_state(&fixture->player, FBT_GPU_ARMED, "", "");
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_int_equal(fixture->keeper.count, 2);
	kept(&fixture->keeper, 0, FBT_EVENT_GPU_WORK);
	assert_said(fixture, FBT_GPU_ARMED, "");
}

/*
 * The shim is still arming for a tracer that has died, answers that, and sees our wish only then.
 * Asked once more at each end, it would never come to serve the latest wish.
 */
static void a_wish_that_waits_for_another_is_not_repeated(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	fixture->player.shared->armed = 2;
	fixture->player.shared->phase = FBT_GPU_WORKING;
	make_peer(fixture);
	look(fixture);
	assert_int_equal(fixture->player.shared->armed, 3);
	player_put_state(&fixture->player, FBT_GPU_ARMED, "", "");
	fixture->player.shared->served = 1;
	poll_after(fixture, 10 * MS);
	player_put_state(&fixture->player, FBT_GPU_ENDED, "", "");
	poll_after(fixture, 10 * MS);
	assert_int_equal(fixture->player.shared->armed, 3);
	assert_true(gpu_peer__is_waiting(fixture->peer));
	player_put_kernel(&fixture->player, 6, 10, 20);
	player_put_state(&fixture->player, FBT_GPU_ARMED, "", "");
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
	kept(&fixture->keeper, fixture->keeper.count - 2, FBT_EVENT_GPU_WORK);
	assert_int_equal(fixture->player.shared->armed, 3);
}

static void put_description(struct fixture *fixture)
{
	struct {
		struct fbt_gpu_device device;
		char text[8];
	} device = {.device = {.id = 1}, .text = "GPU"};
	struct {
		struct fbt_gpu_name name;
		char text[8];
	} frame = {.name = {.id = 3}, .text = "kernel"};

	player_put(&fixture->player, &frame, sizeof(frame), FBT_EVENT_GPU_NAME);
	player_put(&fixture->player, &device, sizeof(device), FBT_EVENT_GPU_DEVICE);
}

/* A shim sends devices and names once, and before its answer. Nobody knows whose wish it is at. */
static void what_a_shim_describes_before_it_answers_is_kept(void **state)
{
	struct fixture *fixture = *state;

	player_start(&fixture->player);
	fixture->player.shared->armed = 1;
	make_peer(fixture);
	look(fixture);
	assert_int_equal(fixture->player.shared->armed, 3);
	put_description(fixture);
	player_put_kernel(&fixture->player, 5, 10, 20);
	player_put_state(&fixture->player, FBT_GPU_ARMED, "", "");
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_int_equal(fixture->keeper.count, 3);
	kept(&fixture->keeper, 0, FBT_EVENT_GPU_NAME);
	kept(&fixture->keeper, 1, FBT_EVENT_GPU_DEVICE);
	assert_said(fixture, FBT_GPU_ARMED, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(a_process_without_cuda_is_told_once),
		TEST(cuda_without_a_shim_is_told_at_a_later_look),
		TEST(cuda_without_a_shim_is_told_at_the_end),
		TEST(a_shim_that_will_be_injected_is_not_missed_aloud),
		TEST(a_shim_that_comes_when_the_window_has_ended_is_told),
		TEST(cuda_that_comes_later_is_seen_to_lack_a_shim_then),
		TEST(nothing_is_missed_in_a_mere_fork),
		TEST(a_shim_that_was_named_and_is_not_loaded_is_told),
		TEST(a_shim_that_was_named_and_is_not_there_is_told),
		TEST(another_library_in_its_place_is_told),
		TEST(off_is_told),
		TEST(an_armed_shim_is_told_with_what_it_says_of_cupti),
		TEST(records_are_sent_on),
		TEST(it_beats_in_time),
		TEST(a_shim_that_does_not_answer_is_waited_for_aloud_and_given_up),
		TEST(a_pulse_that_stops_is_a_stall),
		TEST(a_busy_cupti_is_asked_for_again),
		TEST(a_failure_is_tried_again_five_times),
		TEST(a_driver_that_comes_late_is_found),
		TEST(what_will_not_change_is_asked_for_once),
		TEST(a_shim_that_answers_nothing_has_failed),
		TEST(a_dead_shim_is_not_asked),
		TEST(a_dead_shim_that_said_nothing_has_failed),
		TEST(a_flood_of_refusals_is_one),
		TEST(a_status_that_changes_for_ever_is_not_logged_for_ever),
		TEST(a_shim_of_another_version_is_told),
		TEST(another_tracer_is_told),
		TEST(a_ring_that_goes_bad_is_told_and_its_records_end),
		TEST(a_shim_that_stops_of_itself_is_asked_again),
		TEST(a_process_that_ends_leaves_what_it_had_published),
		TEST(execve_ends_one_shim_and_looks_for_the_next),
		TEST(leaving_waits_for_the_last_records),
		TEST(leaving_takes_no_for_an_end),
		TEST(leaving_a_shim_that_has_not_answered_does_not_wait),
		TEST(leaving_a_ring_that_goes_bad_is_settled),
		TEST(what_only_we_can_say_is_not_taken_from_a_process),
		TEST(its_text_cannot_write_to_the_terminal),
		TEST(work_that_another_tracer_asked_for_is_not_ours),
		TEST(a_wish_that_waits_for_another_is_not_repeated),
		TEST(what_a_shim_describes_before_it_answers_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

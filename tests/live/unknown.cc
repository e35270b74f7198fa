// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// unknown TRUTH WHAT: a program whose functions have names that mean nothing, until SIGTERM. WHAT:
//	engine	 a thread that makes steps of layers, with prefills and pauses; others that are idle or
//		 compute now and then
//	pool	 steps of which a worker computes a half, and spins until there is more
//	paced	 steps of a function that waits for its turn first
//	phases	 two functions in turn, neither of which is most of the work
//	handler	 a loop that waits for events, and what handles them
//	requests functions that last from 50 us to 100 ms
//	pause	 a loop that sleeps
// The account is when each step began and how long it lasted, in ns of CLOCK_MONOTONIC.
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <poll.h>
#include <string>
#include <thread>
#include <time.h>
#include <vector>
#include "program.h"

static volatile sig_atomic_t over;

static uint64_t now_ns()
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void nap(long us)
{
	struct timespec left = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&left, nullptr);
}

struct span {
	uint64_t begin, ns;
};

static std::vector<span> account;

// In the program itself: what it is called by has no other place on the stack.
struct timed {
	uint64_t begin = now_ns();
	~timed() { account.push_back({begin, now_ns() - begin}); }
};

static float weights[32768];
static volatile float sink;

// About 15 us for each round.
STEP void mix(int rounds)
{
	float sum = 0;

	for (int i = 0; i < rounds; i++)
		for (float weight : weights)
			sum += weight * (float)i;
	sink = sum;
	STAY();
}

STEP void fold(int rounds)
{
	mix(rounds);
	mix(rounds);
	STAY();
}

STEP void recurse(int rounds, int depth)
{
	if (depth)
		recurse(rounds, depth - 1);
	fold(rounds);
	STAY();
}

// The step: twelve layers, of which some are calls of a function by itself.
STEP void turn(int rounds)
{
	timed all;

	for (int i = 0; i < 4; i++)
		recurse(rounds, 2);
	STAY();
}

STEP void wheel()
{
	for (unsigned int i = 1; !over; i++) {
		turn(i % 50 ? 2 : 12);
		if (i % 3 == 0)
			nap(500);
	}
	STAY();
}

static std::atomic<int> given, taken;

STEP void share(int rounds)
{
	for (int i = 0; i < 8; i++)
		fold(rounds);
	STAY();
}

STEP void helper()
{
	while (!over) {
		if (taken.load() == given.load())
			continue;
		share(2);
		taken++;
	}
	STAY();
}

STEP void pair_turn()
{
	timed all;

	given++;
	share(2);
	while (taken.load() != given.load() && !over)
		;
	STAY();
}

STEP void pair_wheel()
{
	while (!over)
		pair_turn();
	STAY();
}

STEP void paced_turn()
{
	nap(2000);
	turn(2);
	STAY();
}

STEP void paced_wheel()
{
	while (!over)
		paced_turn();
	STAY();
}

STEP void first_phase()
{
	share(2);
	STAY();
}

STEP void second_phase()
{
	for (int i = 0; i < 32; i++)
		mix(1);
	STAY();
}

STEP void phases()
{
	while (!over) {
		first_phase();
		second_phase();
	}
	STAY();
}

STEP void handle()
{
	share(2);
	STAY();
}

static int ends[2];

STEP void listen_and_handle()
{
	struct pollfd wanted = {ends[0], POLLIN, 0};
	char byte;

	while (!over) {
		if (poll(&wanted, 1, 20) < 1 || read(ends[0], &byte, 1) != 1)
			continue;
		handle();
	}
	STAY();
}

static void ask()
{
	while (!over)
		if (write(ends[1], "x", 1) != 1)
			break;
}

STEP void answer(int rounds)
{
	for (int i = 0; i < rounds; i++)
		mix(1);
	STAY();
}

STEP void requests()
{
	uint64_t random = 1;

	while (!over) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		answer(3 << (random >> 33) % 12);
	}
	STAY();
}

STEP void pause_often()
{
	while (!over)
		nap(200);
	STAY();
}

static std::mutex mutex;
static std::condition_variable changed;

static void idle()
{
	std::unique_lock<std::mutex> lock(mutex);

	changed.wait(lock, [] { return over != 0; });
}

static void now_and_then()
{
	for (int i = 0; !over; i++) {
		mix(5 + i * 7 % 60);
		nap(9000);
	}
}

static void run(const std::string &what)
{
	std::vector<std::thread> others;

	for (int i = 0; i < 3; i++)
		others.emplace_back(idle);
	others.emplace_back(what == "pool"	? helper
			    : what == "handler" ? ask
			    : what == "engine"	? now_and_then
						: idle);
	std::thread worker(what == "engine"	? wheel
			   : what == "pool"	? pair_wheel
			   : what == "paced"	? paced_wheel
			   : what == "phases"	? phases
			   : what == "handler"	? listen_and_handle
			   : what == "requests" ? requests
						: pause_often);
	worker.join();
	close(ends[0]);
	changed.notify_all();
	for (std::thread &other : others)
		other.join();
}

int main(int argc, char **argv)
{
	struct sigaction action = {};
	FILE *truth = open_truth(argv);

	action.sa_handler = [](int) { over = 1; };
	sigaction(SIGTERM, &action, nullptr);
	signal(SIGPIPE, SIG_IGN);
	if (argc < 3 || pipe(ends))
		return EXIT_FAILURE;
	wait_for_go();
	run(argv[2]);
	fprintf(truth, "{\"steps\": [");
	for (size_t i = 0; i < account.size(); i++)
		fprintf(truth, "%s[%lu, %lu]", i ? ", " : "", account[i].begin, account[i].ns);
	fprintf(truth, "]}\n");
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}

// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// stacks TRUTH ROUNDS: steps of C++ of which every twentieth makes a slow call, each in another way.
// The account has for each of these what glibc's backtrace makes of the stack, in the function that
// makes the call: where its callers were, up to the step; and how long the call took, at most. With a third argument only that way is
// taken, once, and the call takes three seconds.
#include <atomic>
#include <chrono>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <thread>
#include <time.h>
#include <vector>
#include "program.h"

#define EVERY 20
#define SLOW_US 30000

static long slow_us = SLOW_US;
static std::string truth;
static struct timespec call_began;

static long us_since(const struct timespec &then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - then.tv_sec) * 1000000 + (now.tv_nsec - then.tv_nsec) / 1000;
}

static void nap(long us)
{
	struct timespec left = {us / 1000000, us % 1000000 * 1000};

	while (nanosleep(&left, &left))
		;
}

// What called the caller of this function: addresses in the program, of the calls.
STEP static void account(const char *way)
{
	void *addresses[64];
	int count = backtrace(addresses, 64);
	Dl_info info;

	if (!dladdr((void *)nap, &info))
		exit(EXIT_FAILURE);
	if (!truth.empty())
		truth += ", ";
	truth += "{\"way\": \"" + std::string(way) + "\", \"frames\": [";
	for (int i = 2; i < count; i++)
		truth += std::string(i > 2 ? ", " : "") +
			 std::to_string((char *)addresses[i] - 1 - (char *)info.dli_fbase);
	truth += "], \"us\": ";
	clock_gettime(CLOCK_MONOTONIC, &call_began);
}

// The call has returned: a microsecond more than was measured was not reached.
STEP static void account_end(void)
{
	truth += std::to_string(us_since(call_began) + 1) + "}";
}

struct Holder {
	std::mutex lock;
	std::atomic<int> asked{0}, held{0};
	int pipe[2];

	STEP void evict_sleep();
	STEP void run();
	STEP void ask(int what);

private:
	// The end may have been asked for meanwhile.
	void done(int what)
	{
		asked.compare_exchange_strong(what, 0);
	}
};

static Holder holder;

STEP void Holder::evict_sleep()
{
	lock.lock();
	held = 1;
	nap(slow_us);
	lock.unlock();
	STAY();
}

STEP void Holder::run()
{
	while (asked >= 0) {
		if (asked == 1) {
			evict_sleep();
			done(1);
		} else if (asked == 2) {
			nap(slow_us);
			done(2);
			if (write(pipe[1], "x", 1) != 1)
				exit(EXIT_FAILURE);
		}
		nap(200);
	}
}

STEP void Holder::ask(int what)
{
	held = 0;
	asked = what;
	while (what == 1 && !held)
		nap(50);
}

STEP static void take_lock(Holder &from)
{
	/* What users have sent to an engine lies on its stack. */
	volatile char prompt[32];

	for (size_t i = 0; i < sizeof(prompt); i++)
		prompt[i] = (char)('A' + i % 26);
	account("lock");
	from.lock.lock();
	account_end();
	prompt[0]++;
	from.lock.unlock();
	STAY();
}

STEP static long read_pipe(Holder &from)
{
	char byte;

	account("pipe");
	if (read(from.pipe[0], &byte, 1) != 1)
		exit(EXIT_FAILURE);
	account_end();
	STAY();
	return byte;
}

template <typename Time> STEP static void pause_for(Time time)
{
	account("nap");
	nap((long)time.count());
	account_end();
	STAY();
}

// A frame of 48 KiB, as those of graph builders.
STEP static long deep_frame(long us)
{
	volatile char room[48 << 10];

	for (size_t i = 0; i < sizeof(room); i += 512)
		room[i] = (char)i;
	account("deep");
	nap(us);
	account_end();
	return room[512];
}

STEP static long forward(int depth)
{
	volatile long sum = depth;

	if (depth > 1) {
		sum += forward(depth - 1);
		return sum;
	}
	account("recursion");
	nap(slow_us);
	account_end();
	return sum;
}

// A frame below which the copy does not reach: more than 64 KiB.
STEP static long too_deep(long us)
{
	volatile char room[80 << 10];

	for (size_t i = 0; i < sizeof(room); i += 512)
		room[i] = (char)i;
	account("cut");
	nap(us);
	account_end();
	return room[512];
}

static const char *const ways[] = {"lock", "pipe", "nap", "deep", "recursion", "cut"};
#define WAYS 6

STEP static void spend(long us)
{
	struct timespec begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (us_since(begin) < us)
		;
}

extern "C" STEP long engine_step(int way)
{
	long sum = 0;

	spend(500);
	switch (way) {
	case 0:
		take_lock(holder);
		break;
	case 1:
		sum += read_pipe(holder);
		break;
	case 2:
		pause_for(std::chrono::microseconds(slow_us));
		break;
	case 3:
		sum += deep_frame(slow_us);
		break;
	case 4:
		sum += forward(9);
		break;
	case 5:
		sum += too_deep(slow_us);
		break;
	}
	STAY();
	return sum;
}

static void run_way(int way)
{
	if (way == 0 || way == 1)
		holder.ask(way + 1);
	engine_step(way);
}

int main(int argc, char **argv)
{
	FILE *file;

	if (pipe(holder.pipe))
		return EXIT_FAILURE;
	std::thread helper([] { holder.run(); });
	pthread_setname_np(helper.native_handle(), "kv-evict");
	wait_for_go();
	for (int i = 0; argc > 3 && i < WAYS; i++) {
		slow_us = 3000000;
		if (argv[3] == std::string(ways[i]))
			run_way(i);
	}
	for (long i = 1; argc <= 3 && i <= number_at(argv, 2, 2) * WAYS * EVERY; i++) {
		if (i % EVERY)
			engine_step(-1);
		else
			run_way((int)(i / EVERY % WAYS));
		nap(300);
	}
	holder.asked = -1;
	helper.join();
	file = open_truth(argv);
	fprintf(file, "{\"stacks\": [%s]}\n", truth.c_str());
	return fclose(file) ? EXIT_FAILURE : EXIT_SUCCESS;
}

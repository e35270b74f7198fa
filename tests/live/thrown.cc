// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// thrown TRUTH CALLS: calls of step functions, of which every third is left by an exception: that its
// caller catches (by_throw), the caller's caller (by_far), or the function itself, so that it returns
// (by_own). by_tail is left by one of the function that it jumps to. Then threads make ten calls of
// by_exit each, and end in the tenth. The account has how each call ended, and for those that returned
// how long it lasted at least and at most.
#include <pthread.h>
#include <stdexcept>
#include <time.h>
#include <vector>
#include "program.h"

#define SPIN_NS 20000
#define THREADS 8
#define EXITS	10

struct call {
	bool thrown;
	double least_us;
	double most_us;
};

static std::vector<call> calls[4];
static double least_us;

static double now_us()
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

STEP static void spin()
{
	double start = now_us();

	while (now_us() - start < SPIN_NS / 1e3)
		;
	least_us = now_us() - start;
}

STEP static int work(int number)
{
	spin();
	if (number % 3 == 0)
		throw std::runtime_error("third");
	STAY();
	return number;
}

extern "C" {
STEP int by_throw(int number)
{
	int result = work(number);

	STAY();
	return result;
}

STEP int by_far(int number)
{
	int result = work(number);

	STAY();
	return result;
}

STEP int by_own(int number)
{
	try {
		number = work(number);
	} catch (const std::runtime_error &) {
		number = -number;
	}
	STAY();
	return number;
}

STEP int by_tail(int number)
{
	syscall(SYS_getppid);
	return work(number);
}

STEP int by_exit(int number)
{
	spin();
	if (number == EXITS)
		pthread_exit(NULL);
	STAY();
	return number;
}
}

STEP static int middle(int (*run)(int), int number)
{
	int result = run(number);

	STAY();
	return result;
}

#define CALL(index, call)                                                                          \
	do {                                                                                       \
		double start = now_us();                                                           \
		bool thrown = false;                                                               \
                                                                                                   \
		try {                                                                              \
			call;                                                                      \
		} catch (const std::runtime_error &) {                                             \
			thrown = true;                                                             \
		}                                                                                  \
		calls[index].push_back({thrown, least_us, now_us() - start});                      \
		usleep(50);                                                                        \
	} while (0)

static void *make_calls(void *)
{
	for (int i = 1; i <= EXITS; i++)
		by_exit(i);
	return NULL;
}

static void run(int count)
{
	int (*volatile far)(int) = by_far;

	/* Each from a place of its own. The last ones return. */
	for (int i = 0; i <= count / 3 * 3 + 1; i++) {
		CALL(0, by_throw(i));
		CALL(1, middle(far, i));
		CALL(2, by_own(i));
		CALL(3, by_tail(i));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, make_calls, NULL))
			exit(EXIT_FAILURE);
		pthread_join(thread, NULL);
	}
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"by_throw", "by_far", "by_own", "by_tail"};
	FILE *truth;

	wait_for_go();
	run((int)number_at(argv, 2, 99));
	truth = open_truth(argv);
	fprintf(truth, "{\"threads\": %d, \"exits\": %d", THREADS, EXITS);
	for (int i = 0; i < 4; i++) {
		fprintf(truth, ", \"%s\": [", names[i]);
		for (size_t j = 0; j < calls[i].size(); j++)
			fprintf(truth, "%s[%s, %.3f, %.3f]", j ? ", " : "",
				calls[i][j].thrown ? "true" : "false", calls[i][j].least_us,
				calls[i][j].most_us);
		fprintf(truth, "]");
	}
	fprintf(truth, "}\n");
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}

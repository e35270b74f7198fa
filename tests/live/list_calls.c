/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * list_calls TRUTH: functions whose names look like that of a step, for --list-steps. They call
 * each other and themselves, end with jumps, are left by longjmp, and are called from places that
 * cannot be probed. The program runs for RUN_NS after the go; its log says how long each outermost
 * call took, by the clock around it.
 */
#include <setjmp.h>
#include <string.h>
#include <time.h>
#include "program.h"

#define RUN_NS	  1200000000ull
#define CALLS_MAX 4096
#define OTHERS	  100 /* number of other calls through the shared call site in a round */
#define PARTS	  4
#define SLEEP_US  300

/*
 * Pads a function above 32 bytes, the minimum size of a candidate. Smaller functions only call
 * others.
 */
#define PAD() __asm__ volatile(".rept 32; nop; .endr")

int outer_step(int us);
int middle_step(int us);
int inner_step(int us);
int batch_step(int us);
int part_step(int us);
int again_step(int depth);
int thrown_step(int us);
int nowhere_step(int us);
int shared_step(int us);
int spread_step(int us);
int decode_int(int us) __asm__("_ZN6engine6decodeEi");
int decode_double(double us) __asm__("_ZN6engine6decodeEd");
int sleeps(int us);
int returns(int us);

static jmp_buf thrown;

STEP int sleeps(int us)
{
	PAD();
	if (us > 0)
		usleep((useconds_t)us);
	STAY();
	return 0;
}

STEP int returns(int us)
{
	return us;
}

STEP int inner_step(int us)
{
	sleeps(us);
	PAD();
	return 1;
}

STEP int middle_step(int us)
{
	PAD();
	return inner_step(us);
}

STEP int outer_step(int us)
{
	int result = middle_step(us);

	PAD();
	return result + 1;
}

STEP int part_step(int us)
{
	PAD();
	return sleeps(us);
}

STEP int batch_step(int us)
{
	for (int i = 0; i < PARTS; i++)
		part_step(us);
	PAD();
	return 0;
}

/* Sleeps once at each of three depths. */
STEP int again_step(int depth)
{
	PAD();
	if (depth > 1)
		again_step(depth - 1);
	return sleeps(SLEEP_US);
}

/* Every third call is left by longjmp, and the next call comes from the same place. */
STEP int thrown_step(int us)
{
	static int calls;

	PAD();
	if (++calls % 3 == 0)
		longjmp(thrown, 1);
	return sleeps(us);
}

STEP int nowhere_step(int us)
{
	PAD();
	return sleeps(us);
}

STEP int shared_step(int us)
{
	PAD();
	return sleeps(us);
}

STEP int spread_step(int us)
{
	PAD();
	return sleeps(us);
}

STEP int decode_int(int us)
{
	PAD();
	return sleeps(us);
}

STEP int decode_double(double us)
{
	sleeps((int)us);
	PAD();
	return 0;
}

static struct took {
	const char *name;
	size_t count;
	double us[CALLS_MAX];
} outer = {"outer_step"}, batch = {"batch_step"}, again = {"again_step"}, throws = {"thrown_step"},
  nowhere = {"nowhere_step"}, shared = {"shared_step"}, spread = {"spread_step"},
  by_int = {"_ZN6engine6decodeEi"}, by_double = {"_ZN6engine6decodeEd"};

static unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec;
}

/* A call from this place, recorded in the account. */
#define CALL(took, call)                                                                           \
	do {                                                                                       \
		unsigned long long start = now_ns();                                               \
                                                                                                   \
		call;                                                                              \
		(took).us[(took).count++] = (double)(now_ns() - start) / 1e3;                      \
	} while (0)

/* Code in no file that calls its second argument with its first. For x86-64. */
static int (*new_caller(void))(int us, int (*function)(int us))
{
	/* sub $8,%rsp; call *%rsi; add $8,%rsp; ret */
	static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd6,
					     0x48, 0x83, 0xc4, 0x08, 0xc3};
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(EXIT_FAILURE);
	memcpy(memory, code, sizeof(code));
	return (int (*)(int, int (*)(int)))memory;
}

/* The only call site of shared_step, from which other functions are called much more often. */
static void dispatch(void)
{
	int (*volatile functions[OTHERS])(int);

	for (int i = 0; i < OTHERS; i++)
		functions[i] = i ? returns : shared_step;
	for (int i = 0; i < OTHERS; i++) {
		unsigned long long start = now_ns();

		functions[i](SLEEP_US);
		if (!i)
			shared.us[shared.count++] = (double)(now_ns() - start) / 1e3;
	}
}

static void run(int (*caller)(int us, int (*function)(int us)))
{
	CALL(outer, outer_step(4 * SLEEP_US));
	CALL(batch, batch_step(SLEEP_US));
	CALL(again, again_step(3));
	if (!setjmp(thrown))
		CALL(throws, thrown_step(SLEEP_US));
	else
		throws.count++;
	CALL(nowhere, caller(SLEEP_US, nowhere_step));
	dispatch();
	CALL(spread, spread_step(SLEEP_US));
	CALL(spread, spread_step(SLEEP_US));
	CALL(by_int, decode_int(SLEEP_US));
	CALL(by_double, decode_double(2 * SLEEP_US));
	CALL(by_double, decode_double(2 * SLEEP_US));
}

static void tell(FILE *truth, const struct took *took, const char *end)
{
	fprintf(truth, "\"%s\": [", took->name);
	for (size_t i = 0; i < took->count; i++)
		fprintf(truth, "%s%.3f", i ? ", " : "", took->us[i]);
	fprintf(truth, "]%s\n", end);
}

int main(int argc, char **argv)
{
	int (*caller)(int us, int (*function)(int us)) = new_caller();
	unsigned long long end;
	FILE *truth;

	wait_for_go();
	end = now_ns() + RUN_NS;
	while (now_ns() < end && spread.count < CALLS_MAX - 2)
		run(caller);
	truth = open_truth(argv);
	fputs("{", truth);
	tell(truth, &outer, ",");
	tell(truth, &batch, ",");
	tell(truth, &again, ",");
	tell(truth, &throws, ",");
	tell(truth, &nowhere, ",");
	tell(truth, &shared, ",");
	tell(truth, &spread, ",");
	tell(truth, &by_int, ",");
	tell(truth, &by_double, "}");
	if (fclose(truth))
		return EXIT_FAILURE;
	/* The tool reads the program's files and detaches while the program is alive. */
	pause();
	return EXIT_SUCCESS;
}

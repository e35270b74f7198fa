/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * fork_tree TRUTH: a tree of processes that grows until the go. Eight processes fork a child every
 * few ms; each child forks two more, one of which ends at once. After the go, all processes that
 * are alive rest, make 10 getppid calls each, and stay until stdin ends.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include "program.h"

#define TREE_MAX  600
#define FORKERS	  8
#define PERIOD_US 30000
#define CALLS	  10
#define REST_US	  300000

struct tree {
	_Atomic int resting;
	int calling[2]; /* a pipe whose end is the signal to make the calls */
	_Atomic int count;
	_Atomic int done;
	_Atomic int parents[TREE_MAX]; /* number of pids */
	_Atomic int pids[TREE_MAX];
};

static void make_calls(struct tree *tree)
{
	char byte;

	if (read(tree->calling[0], &byte, 1))
		exit(EXIT_FAILURE);
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	atomic_fetch_add(&tree->done, 1);
	pause();
}

/* True in a child that has a place in the table. */
static bool fork_one(struct tree *tree)
{
	int index = atomic_fetch_add(&tree->count, 1);
	pid_t parent = getpid(), child = index < TREE_MAX ? fork() : -1;

	if (child < 0)
		atomic_fetch_sub(&tree->count, 1);
	if (child)
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(tree->calling[1]);
	atomic_store(&tree->parents[index], parent);
	atomic_store(&tree->pids[index], getpid());
	return true;
}

static void live_as_child(struct tree *tree, unsigned int seed)
{
	usleep(rand_r(&seed) % 10000);
	if (!atomic_load(&tree->resting)) {
		if (fork_one(tree))
			make_calls(tree);
		if (!fork())
			_exit(EXIT_SUCCESS);
	}
	make_calls(tree);
}

static void live_as_forker(struct tree *tree, unsigned int seed)
{
	while (!atomic_load(&tree->resting)) {
		if (fork_one(tree))
			live_as_child(tree, seed);
		usleep(PERIOD_US / 2 + rand_r(&seed) % PERIOD_US);
	}
	make_calls(tree);
}

static int write_truth(struct tree *tree, char **argv)
{
	FILE *truth = open_truth(argv);
	int count = atomic_load(&tree->count);

	fprintf(truth, "{\"root\": %d, \"calls\": %d, \"parents\": {", getpid(), CALLS);
	for (int i = 0; i < count; i++)
		fprintf(truth, "%s\"%d\": %d", i ? ", " : "", atomic_load(&tree->pids[i]),
			atomic_load(&tree->parents[i]));
	fprintf(truth, "}}\n");
	return fclose(truth);
}

int main(int argc, char **argv)
{
	struct tree *tree = mmap(NULL, sizeof(*tree), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err;

	if (tree == MAP_FAILED || pipe(tree->calling))
		return EXIT_FAILURE;
	for (unsigned int i = 0; i < FORKERS; i++)
		if (fork_one(tree))
			live_as_forker(tree, i);
	wait_for_go();
	atomic_store(&tree->resting, 1);
	usleep(REST_US);
	close(tree->calling[1]);
	while (atomic_load(&tree->done) < atomic_load(&tree->count))
		usleep(5000);
	err = write_truth(tree, argv);
	while (getchar() != EOF)
		;
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A process that --gpu=inject should refuse or accept. It brings itself into the states that its
 * arguments name, in their order, prints "ready" and waits for the end of its standard input.
 *
 *   map=FILE       has FILE in its memory, as code
 *   strict filter  is under seccomp, with a filter that allows everything
 *   cancel         has cancelled a thread
 *   files          has no descriptor left
 *   filesize       may write no file of more than 1 MiB
 *   memory data    has 1 MiB of address space, or of data, left
 *   user=UID       becomes another user
 *   threads        may not have more threads than it has
 *   sealed         is not dumpable, and has no new privileges
 *   trace=PID      traces that process
 *   chroot=FOLDER  lives in there
 *   leaderless     goes on in another thread than the first
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void need(int done, const char *what)
{
	if (done)
		return;
	perror(what);
	_exit(1);
}

static void map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;

	need(fd >= 0 && !fstat(fd, &status), path);
	need(mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) !=
		     MAP_FAILED,
	     "mmap");
	close(fd);
}

static void filter(const char *value)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {.len = 1, .filter = &allow};

	(void)value;
	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

static void *wait_for_cancel(void *arg)
{
	pause();
	return arg;
}

static void cancel(const char *value)
{
	pthread_t thread;

	(void)value;
	need(!pthread_create(&thread, NULL, wait_for_cancel, NULL), "pthread_create");
	need(!pthread_cancel(thread) && !pthread_join(thread, NULL), "pthread_cancel");
}

static void limit(int resource, rlim_t value)
{
	struct rlimit limits = {.rlim_cur = value, .rlim_max = value};

	need(!setrlimit((__rlimit_resource_t)resource, &limits), "setrlimit");
}

static void use_up_files(const char *value)
{
	DIR *folder = opendir("/proc/self/fd");
	rlim_t count = 0;

	(void)value;
	need(folder != NULL, "/proc/self/fd");
	/*
	 * "." and ".." are counted too; one of them stands for the folder's own descriptor, which
	 * is closed again.
	 */
	while (readdir(folder))
		count++;
	closedir(folder);
	limit(RLIMIT_NOFILE, count - 3);
}

/* One MiB more than the value in a line of /proc/self/status. */
static rlim_t one_more(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[256];

	need(file != NULL, "/proc/self/status");
	while (!kib && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, strlen(name)))
			kib = strtoul(line + strlen(name), NULL, 10);
	}
	fclose(file);
	return (kib + 1024) * 1024;
}

static void use_up_memory(const char *value)
{
	(void)value;
	limit(RLIMIT_AS, one_more("VmSize:"));
}

static void use_up_data(const char *value)
{
	(void)value;
	limit(RLIMIT_DATA, one_more("VmData:"));
}

static void limit_file_size(const char *value)
{
	(void)value;
	limit(RLIMIT_FSIZE, 1 << 20);
}

static void become(const char *value)
{
	uid_t uid = (uid_t)strtoul(value, NULL, 10);

	need(!setresuid(uid, uid, uid), "setresuid");
}

static void use_up_threads(const char *value)
{
	(void)value;
	limit(RLIMIT_NPROC, 1);
}

static void seal(const char *value)
{
	(void)value;
	need(!prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable");
	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
}

static void trace(const char *value)
{
	need(!ptrace(PTRACE_SEIZE, (pid_t)strtol(value, NULL, 10), NULL, NULL), "ptrace");
}

static void enter(const char *value)
{
	need(!chroot(value) && !chdir("/"), "chroot");
}

/* Waits using only the calls that seccomp's strict mode allows. */
static void wait_strictly(void)
{
	char byte;

	if (write(STDOUT_FILENO, "ready\n", 6) == 6)
		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
	syscall(SYS_exit, 0);
}

/* Waits in a call in which a thread may be interrupted. */
static void wait_for_end(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
	ssize_t wrote = write(STDOUT_FILENO, "ready\n", 6);

	need(wrote == 6 && poll(&input, 1, -1) == 1, "wait");
	exit(0);
}

static void strict(const char *value)
{
	(void)value;
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "seccomp");
	wait_strictly();
}

static void *wait_alone(void *arg)
{
	need(!pthread_join(*(pthread_t *)arg, NULL), "pthread_join");
	wait_for_end();
	return NULL;
}

static void leave_first_thread(const char *value)
{
	static pthread_t first;
	pthread_t second;

	(void)value;
	first = pthread_self();
	need(!pthread_create(&second, NULL, wait_alone, &first), "pthread_create");
	pthread_exit(NULL);
}

static const struct {
	const char *name;
	void (*reach)(const char *value);
} states[] = {
	{"map=", map},
	{"strict", strict},
	{"filter", filter},
	{"cancel", cancel},
	{"filesize", limit_file_size},
	{"files", use_up_files},
	{"memory", use_up_memory},
	{"data", use_up_data},
	{"user=", become},
	{"threads", use_up_threads},
	{"sealed", seal},
	{"trace=", trace},
	{"chroot=", enter},
	{"leaderless", leave_first_thread},
};

static int reach(const char *word)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		size_t length = strlen(states[i].name);

		if (strncmp(word, states[i].name, length) != 0)
			continue;
		states[i].reach(word + length);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		need(reach(argv[i]), argv[i]);
	wait_for_end();
	return 0;
}

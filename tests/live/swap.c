/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * swap FOLDER VICTIM NAME…: attacks the names in FOLDER. For ever, it puts one thing after another
 * there: links to VICTIM's file and folder, pipes, folders, files of its own, and existing files
 * under other names. It prints a line for each of its own files that has grown.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include "program.h"

struct swap {
	const char *victim;
	char other[512]; /* where the former object of that name goes */
};

static void put_file(const struct swap *self, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

	(void)self;
	if (fd < 0)
		return;
	if (write(fd, "mine\n", 5) != 5)
		perror(path);
	close(fd);
}

static void put_link_to_file(const struct swap *self, const char *path)
{
	char victim[512];

	snprintf(victim, sizeof(victim), "%s/secret", self->victim);
	if (symlink(victim, path))
		return;
}

static void put_link_to_folder(const struct swap *self, const char *path)
{
	if (symlink(self->victim, path))
		return;
}

static void put_hard_link(const struct swap *self, const char *path)
{
	char victim[512];

	snprintf(victim, sizeof(victim), "%s/open", self->victim);
	if (link(victim, path))
		return;
}

static void put_pipe(const struct swap *self, const char *path)
{
	(void)self;
	if (mkfifo(path, 0666))
		return;
}

static void put_folder(const struct swap *self, const char *path)
{
	(void)self;
	if (mkdir(path, 0777))
		return;
}

static void put_back(const struct swap *self, const char *path)
{
	if (rename(self->other, path))
		return;
}

static void put_nothing(const struct swap *self, const char *path)
{
	(void)self;
	(void)path;
}

/* Checks whether somebody has written to one of our files. */
static void look(const char *path)
{
	struct stat file;

	if (lstat(path, &file) || !S_ISREG(file.st_mode) || file.st_uid != geteuid() ||
	    file.st_size <= 5)
		return;
	printf("%s: %lld bytes, uid %u\n", path, (long long)file.st_size,
	       (unsigned int)file.st_uid);
	fflush(stdout);
}

/* Removes what its rights allow. */
static void clear(const struct swap *self, const char *path)
{
	look(path);
	look(self->other);
	if (!rename(path, self->other)) {
		look(self->other);
		return;
	}
	if (unlink(path) && errno == EISDIR)
		rmdir(path);
	rmdir(self->other);
}

int main(int argc, char **argv)
{
	static void (*const puts[])(const struct swap *self, const char *path) = {
		put_nothing,   put_file, put_link_to_file, put_link_to_folder, put_nothing,
		put_hard_link, put_pipe, put_folder,	   put_back,
	};
	struct swap self = {.victim = argv[2]};
	unsigned int seed = 1;

	if (argc < 4)
		return EXIT_FAILURE;
	snprintf(self.other, sizeof(self.other), "%s/other", argv[1]);
	for (;;) {
		char path[512];

		snprintf(path, sizeof(path), "%s/%s", argv[1],
			 argv[3 + rand_r(&seed) % (argc - 3)]);
		clear(&self, path);
		puts[(unsigned int)rand_r(&seed) % (sizeof(puts) / sizeof(*puts))](&self, path);
		usleep((unsigned int)rand_r(&seed) % 4000);
	}
}

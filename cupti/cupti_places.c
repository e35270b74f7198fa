/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "cupti_places.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libcupti is in the folder of one of these libraries, or in a folder near it. */
static const char *const neighbours[] = {"libcudart", "libcublas", "libnvrtc",
					 "libcudnn",  "libtorch",  "libc10_cuda"};

/* The engine has not chosen the libcupti in the driver's folder, so that one is tried last. */
#define DRIVER "libcuda.so"

/*
 * Paths from the folder of such a library: in the toolkit, in NVIDIA's wheels, and from torch's
 * folder.
 */
static const char *const beside[] = {
	"",
	"/../../cuda_cupti/lib",
	"/../extras/CUPTI/lib64",
	"/../../cu13/lib",
	"/../../nvidia/cuda_cupti/lib",
	"/../../nvidia/cu13/lib",
};

static const char *const below_home[] = {"/lib64", "/lib", "/extras/CUPTI/lib64"};

/* The last name is the link of the development package, which may be all that is installed. */
static const struct {
	const char *name;
	uint32_t major;
} names[] = {
	{"libcupti.so.14", 14},	  {"libcupti.so.13", 13}, {"libcupti.so.12", 12},
	{"libcupti.so.11.8", 11}, {"libcupti.so", 0},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_library(const char *file, const char *prefix)
{
	return !strncmp(file, prefix, strlen(prefix)) && strstr(file, ".so");
}

static void add_folder(struct cupti_places *places, const char *path, size_t length)
{
	for (size_t i = 0; i < CUPTI_FOLDERS; i++) {
		char *folder = places->folders[i];

		if (!*folder) {
			memcpy(folder, path, length);
			folder[length] = '\0';
			return;
		}
		if (strlen(folder) == length && !memcmp(folder, path, length))
			return;
	}
}

void cupti_places__add_library(struct cupti_places *places, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *file = slash ? slash + 1 : path;

	if (strlen(path) >= CUPTI_PATH_BYTES)
		return;
	if (is_library(file, "libcupti") && !*places->mapped)
		strcpy(places->mapped, path); /* NOLINT: measured above */
	if (!slash)
		return;
	for (size_t i = 0; i < COUNT(neighbours); i++)
		if (is_library(file, neighbours[i]))
			add_folder(places, path, (size_t)(slash - path));
	if (is_library(file, DRIVER) && !*places->driver)
		snprintf(places->driver, sizeof(places->driver), "%.*s", (int)(slash - path), path);
}

static int on_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	if (info->dlpi_name && *info->dlpi_name)
		cupti_places__add_library(ctx, info->dlpi_name);
	return 0;
}

void cupti_places__look(struct cupti_places *places)
{
	dl_iterate_phdr(on_library, places);
	places->homes[0] = secure_getenv("CUDA_HOME");
	places->homes[1] = secure_getenv("CUDA_PATH");
	places->homes[2] = "/usr/local/cuda";
}

/* Tries all names in one folder. NULL: where the dynamic linker looks. */
static bool try_folder(const struct cupti_places *places, const char *folder, const char *below,
		       bool (*take)(void *ctx, const char *path), void *ctx)
{
	for (size_t i = 0; i < COUNT(names); i++) {
		char path[2 * CUPTI_PATH_BYTES];
		int length = snprintf(path, sizeof(path), "%s%s%s%s", folder ? folder : "", below,
				      folder ? "/" : "", names[i].name);

		/* A driver does not support a CUPTI of a newer major version. */
		if (places->driver_major && names[i].major > places->driver_major)
			continue;
		if (length > 0 && (size_t)length < sizeof(path) && take(ctx, path))
			return true;
	}
	return false;
}

bool cupti_places__try(const struct cupti_places *places, bool (*take)(void *ctx, const char *path),
		       void *ctx)
{
	for (size_t i = 0; i < CUPTI_FOLDERS && *places->folders[i]; i++)
		for (size_t k = 0; k < COUNT(beside); k++)
			if (try_folder(places, places->folders[i], beside[k], take, ctx))
				return true;
	for (size_t i = 0; i < COUNT(places->homes); i++)
		for (size_t k = 0; k < COUNT(below_home) && places->homes[i] && *places->homes[i];
		     k++)
			if (try_folder(places, places->homes[i], below_home[k], take, ctx))
				return true;
	if (try_folder(places, NULL, "", take, ctx))
		return true;
	return *places->driver && try_folder(places, places->driver, "", take, ctx);
}

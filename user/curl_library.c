/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "curl_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include "log.h"

#ifdef FBT_WITHOUT_CURL

int curl_library_load(struct curl_library *curl)
{
	log_err("--otlp: this is a static build, which cannot send: use one that is not");
	return -ENOSYS;
}

#else

/* The second is the same library with GnuTLS, which Debian's git brings. */
static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

static int find_functions(struct curl_library *curl, void *library)
{
#define FIND(name)                                                                                 \
	curl->name = (__typeof__(curl->name))dlsym(library, "curl_" #name);                        \
	if (!curl->name) {                                                                         \
		log_err("--otlp: libcurl is too old: it has no curl_%s; 7.66 has", #name);         \
		return -ENOSYS;                                                                    \
	}
	CURL_LIBRARY_FUNCTIONS(FIND)
#undef FIND
	return 0;
}

int curl_library_load(struct curl_library *curl)
{
	void *library = NULL;
	int err;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		log_err("--otlp: %s is not installed: apt-get install libcurl4", names[0]);
		return -ENOENT;
	}
	err = find_functions(curl, library);
	if (err)
		return err;
	if (curl->global_init(CURL_GLOBAL_DEFAULT)) {
		log_err("--otlp: libcurl does not start");
		return -ENOMEM;
	}
	if (!(curl->version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS)) {
		log_err("--otlp: this libcurl waits while it resolves names, and tracing would "
			"wait with it: install one with AsynchDNS, as Debian's is");
		return -ENOSYS;
	}
	return 0;
}

#endif

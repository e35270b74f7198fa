/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libcurl, loaded when something is to be sent and not before: it brings 28 more libraries (LDAP,
 * Kerberos, SSH …), 4 MiB and 7 ms, which a root tool that sends nothing shall not carry.
 */
#ifndef FBT_CURL_LIBRARY_H
#define FBT_CURL_LIBRARY_H

#include <curl/curl.h>

#define CURL_LIBRARY_FUNCTIONS(X)                                                                  \
	X(global_init)                                                                             \
	X(version_info)                                                                            \
	X(slist_append)                                                                            \
	X(slist_free_all)                                                                          \
	X(easy_init)                                                                               \
	X(easy_cleanup)                                                                            \
	X(easy_setopt)                                                                             \
	X(easy_getinfo)                                                                            \
	X(easy_strerror)                                                                           \
	X(multi_init)                                                                              \
	X(multi_cleanup)                                                                           \
	X(multi_add_handle)                                                                        \
	X(multi_remove_handle)                                                                     \
	X(multi_perform)                                                                           \
	X(multi_poll)                                                                              \
	X(multi_info_read)

/* curl->easy_init is curl_easy_init, and so on. Numbers for easy_setopt are long. */
struct curl_library {
#define CURL_LIBRARY_MEMBER(name) __typeof__(curl_##name) *name;
	CURL_LIBRARY_FUNCTIONS(CURL_LIBRARY_MEMBER)
#undef CURL_LIBRARY_MEMBER
};

/*
 * Loads and starts it. It stays until the process ends: a name that is still being resolved keeps a
 * thread in it. 0; -ENOENT, -ENOSYS (a static build, FBT_WITHOUT_CURL; a libcurl that is too old,
 * or would wait while it resolves names), -ENOMEM: all logged.
 */
int curl_library_load(struct curl_library *curl);

#endif

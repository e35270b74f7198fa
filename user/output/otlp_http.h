/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * POST requests to a collector, one at a time, over libcurl's multi interface. Only
 * otlp_request__wait waits. Certificates are checked, redirects are not followed, and an answer is
 * cut off at OTLP_ANSWER_MAX. Proxies are those of the environment, as libcurl reads it
 * (http_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY). The process must ignore SIGPIPE.
 */
#ifndef FBT_OUTPUT_OTLP_HTTP_H
#define FBT_OUTPUT_OTLP_HTTP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "output/otlp_endpoint.h"

#define OTLP_ANSWER_MAX 65536

struct otlp_request;

/* How a request ended. Pointers are valid until the next request begins. */
struct otlp_result {
	const char *error; /* why there is no complete answer; NULL: the rest is valid */
	long status;	   /* of HTTP */
	const char *answer;
	size_t answer_size; /* a NUL follows */
	int64_t retry_after_s;
};

/* endpoint is borrowed. 0 or -errno, logged except -ENOMEM. */
int otlp_request__new(struct otlp_request **request, const struct otlp_endpoint *endpoint,
		      long connect_ms, long whole_ms);
void otlp_request__free(struct otlp_request *request);

/* body is allocated by malloc, and owned from here on. 0 or -ENOMEM. */
int otlp_request__begin(struct otlp_request *request, char *body, size_t size);

/* Continues without waiting. true: the request has ended, and *result is set. */
bool otlp_request__go_on(struct otlp_request *request, struct otlp_result *result);

/* Waits until the request can continue, at most ms milliseconds. */
void otlp_request__wait(struct otlp_request *request, int ms);

/*
 * What the answer of a collector means, and how long to wait before the next attempt (OTLP
 * specification 1.x, OTLP/HTTP Response). Pure. An answer may be hostile.
 */
enum otlp_verdict {
	OTLP_TAKEN,   /* except for rejected_spans */
	OTLP_REFUSED, /* must not be retried */
	OTLP_RETRY,   /* 429, 502, 503, 504 */
};

struct otlp_answer {
	enum otlp_verdict verdict;
	uint64_t rejected_spans; /* claimed by the collector: may be any number */
	bool foreign;		 /* accepted, but the answer is not that of a collector */
	char reason[256];	 /* "HTTP 503: message"; "" if there is nothing to say */
};

/* status: HTTP status code. body: size bytes, and a NUL after them. */
void otlp_answer_read(struct otlp_answer *answer, long status, const char *body, size_t size);

/* The longest wait, whatever Retry-After says. */
#define OTLP_RETRY_MAX_NS UINT64_C(600000000000)

/*
 * The wait after a number of failures in a row (1, 2, …): retry_after_s if that is above 0, else
 * exponential from 1 s to 30 s, minus a random part of up to half. random: any number.
 */
uint64_t otlp_retry_ns(uint32_t failures, int64_t retry_after_s, uint32_t random);

/*
 * libcurl is loaded only when something is to be sent: it pulls in 28 more libraries (LDAP,
 * Kerberos, SSH …), 4 MiB and 7 ms, which a root tool that sends nothing should not carry.
 */
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

/* curl->easy_init is curl_easy_init, and so on. Numbers passed to easy_setopt must be long. */
struct curl_library {
#define CURL_LIBRARY_MEMBER(name) __typeof__(curl_##name) *name;
	CURL_LIBRARY_FUNCTIONS(CURL_LIBRARY_MEMBER)
#undef CURL_LIBRARY_MEMBER
};

/*
 * Loads and initializes libcurl. It stays loaded, because a name that is still being resolved keeps
 * a thread in it. 0; or, all logged: -ENOENT; -ENOSYS a static build (FBT_WITHOUT_CURL), or a
 * libcurl that is too old or resolves names synchronously; -ENOMEM.
 */
int curl_library_load(struct curl_library *curl);

#endif

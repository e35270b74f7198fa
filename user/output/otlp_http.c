/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/otlp_http.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_read.h"
#include "base/log.h"
#include "base/version.h"

#ifdef FBT_WITHOUT_CURL

int curl_library_load(struct curl_library *curl)
{
	log_err("--otlp: not available in a static build; use a dynamically linked one");
	return -ENOSYS;
}

#else

/* The second name is the same library with GnuTLS, on which Debian's git depends. */
static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

static int find_functions(struct curl_library *curl, void *library)
{
#define FIND(name)                                                                                 \
	curl->name = (__typeof__(curl->name))dlsym(library, "curl_" #name);                        \
	if (!curl->name) {                                                                         \
		log_err("--otlp: libcurl is too old, it has no curl_%s; use 7.66 or newer",        \
			#name);                                                                    \
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
		log_err("--otlp: %s is not installed; apt-get install libcurl4", names[0]);
		return -ENOENT;
	}
	err = find_functions(curl, library);
	if (err)
		return err;
	if (curl->global_init(CURL_GLOBAL_DEFAULT)) {
		log_err("--otlp: libcurl cannot be initialized");
		return -ENOMEM;
	}
	if (!(curl->version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS)) {
		log_err("--otlp: this libcurl resolves names synchronously, which would block "
			"tracing; install one with AsynchDNS, such as Debian's");
		return -ENOSYS;
	}
	return 0;
}

#endif

#define BACKOFF_MAX_S 30

static enum otlp_verdict judge_status(long status)
{
	if (status >= 200 && status < 300)
		return OTLP_TAKEN;
	if (status == 429 || status == 502 || status == 503 || status == 504)
		return OTLP_RETRY;
	return OTLP_REFUSED;
}

static struct json_object *get(struct json_object *object, const char *key, json_type type)
{
	struct json_object *value = NULL;

	if (!json_object_is_type(object, json_type_object) ||
	    !json_object_object_get_ex(object, key, &value))
		return NULL;
	return json_object_is_type(value, type) ? value : NULL;
}

/* In OTLP/JSON an int64 is a string, but readers accept numbers too. */
static uint64_t get_count(struct json_object *object, const char *key)
{
	struct json_object *value = get(object, key, json_type_int);
	int64_t count = 0;

	if (value)
		count = json_object_get_int64(value);
	value = get(object, key, json_type_string);
	if (value)
		count = strtoll(json_object_get_string(value), NULL, 10);
	return count > 0 ? (uint64_t)count : 0;
}

static void set_reason(struct otlp_answer *answer, const char *start, struct json_object *message)
{
	snprintf(answer->reason, sizeof(answer->reason), "%s%s%s", start,
		 *start && message ? ": " : "", message ? json_object_get_string(message) : "");
}

static void read_success(struct otlp_answer *answer, struct json_object *root)
{
	struct json_object *partial = get(root, "partialSuccess", json_type_object);
	struct json_object *message = get(partial, "errorMessage", json_type_string);

	answer->rejected_spans = get_count(partial, "rejectedSpans");
	if (message && !json_object_get_string_len(message))
		message = NULL;
	set_reason(answer, "", message);
}

void otlp_answer_read(struct otlp_answer *answer, long status, const char *body, size_t size)
{
	struct json_object *root = NULL;
	char error[64], start[64];
	bool sound = !json_read(body, size, &root, error, sizeof(error));

	*answer = (struct otlp_answer){.verdict = judge_status(status)};
	if (answer->verdict == OTLP_TAKEN) {
		answer->foreign = size && !json_object_is_type(root, json_type_object);
		read_success(answer, root);
	} else {
		snprintf(start, sizeof(start), "HTTP %ld%s", status,
			 status >= 300 && status < 400 ? ", a redirect, which is not followed"
						       : "");
		set_reason(answer, start, get(root, "message", json_type_string));
	}
	if (sound)
		json_object_put(root);
}

uint64_t otlp_retry_ns(uint32_t failures, int64_t retry_after_s, uint32_t random)
{
	uint64_t wait_ns = BACKOFF_MAX_S * NS_PER_S;

	if (retry_after_s > 0) {
		if ((uint64_t)retry_after_s >= OTLP_RETRY_MAX_NS / NS_PER_S)
			return OTLP_RETRY_MAX_NS;
		return (uint64_t)retry_after_s * NS_PER_S;
	}
	if (failures <= 5)
		wait_ns = NS_PER_S << (failures ? failures - 1 : 0);
	return wait_ns - wait_ns / 2 / 1024 * (random % 1025);
}

#define HEX "0123456789abcdef"

struct otlp_request {
	const struct otlp_endpoint *endpoint;
	struct curl_library curl;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	const char *authorities; /* CA file that is not used yet; NULL: it is in use */
	char *body;		 /* NULL: no request is under way */
	char answer[OTLP_ANSWER_MAX + 1];
	size_t answer_size;
	size_t header_bytes;
	bool answer_cut;
	bool headers_end;
	char error[CURL_ERROR_SIZE];
};

/* Returning less than was given ends the transfer. */
static size_t take_answer(char *data, size_t size, size_t count, void *ctx)
{
	struct otlp_request *request = ctx;
	size_t bytes = size * count, room = OTLP_ANSWER_MAX - request->answer_size;

	if (bytes > room) {
		request->answer_cut = true;
		bytes = room;
	}
	memcpy(request->answer + request->answer_size, data, bytes);
	request->answer_size += bytes;
	return bytes;
}

/*
 * libcurl stores headers, in old versions without a limit. It also accepts an answer that ends
 * within its headers, so this checks that the empty line after them has come.
 */
static size_t take_header(char *data, size_t size, size_t count, void *ctx)
{
	struct otlp_request *request = ctx;
	size_t bytes = size * count;

	if (bytes >= 5 && !memcmp(data, "HTTP/", 5))
		request->headers_end = false;
	else if (bytes && (data[0] == '\r' || data[0] == '\n'))
		request->headers_end = true;
	request->header_bytes += bytes;
	return request->header_bytes > OTLP_ANSWER_MAX ? 0 : bytes;
}

static int add_header(struct otlp_request *request, const char *header)
{
	struct curl_slist *longer = request->curl.slist_append(request->headers, header);

	if (!longer)
		return -ENOMEM;
	request->headers = longer;
	return 0;
}

static int add_headers(struct otlp_request *request)
{
	int err = add_header(request, "Content-Type: application/json");

	/* No "Expect: 100-continue": some collectors do not support it. */
	if (!err)
		err = add_header(request, "Expect:");
	vec_for_each (header, &request->endpoint->headers) {
		if (!err)
			err = add_header(request, *header);
	}
	return err;
}

/* Sets the options of all requests. These calls can only fail for lack of memory. */
static int set_options(struct otlp_request *request, long connect_ms, long whole_ms)
{
	const struct curl_library *curl = &request->curl;
	CURL *easy = request->easy;
	char agent[128];
	CURLcode failed;

	snprintf(agent, sizeof(agent), "ferrum-bpftrace/%s", tool_version());
	failed = curl->easy_setopt(easy, CURLOPT_URL, request->endpoint->url);
	if (!failed)
		failed = curl->easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
	if (!failed)
		failed = curl->easy_setopt(easy, CURLOPT_USERAGENT, agent);
	curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
	curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, whole_ms);
	curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
	curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
	curl->easy_setopt(easy, CURLOPT_WRITEDATA, request);
	curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	curl->easy_setopt(easy, CURLOPT_HEADERDATA, request);
#if LIBCURL_VERSION_NUM >= 0x075700
	/*
	 * Without this, giving up waits for the resolver's thread if a name server does not answer.
	 */
	curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	return failed ? -ENOMEM : 0;
}

static bool has_hashes(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = strlen(entry->d_name) == 10 && strspn(entry->d_name, HEX) == 8 &&
			!strcmp(entry->d_name + 8, ".0");
	if (dir)
		closedir(dir);
	return found;
}

/*
 * OpenSSL needs 0.1 s to read the file of all certificate authorities, which blocks everything
 * else. From a directory with hashes it reads only the one that it needs. If the verification
 * fails, because the directory has fewer authorities than the file, the next attempt reads the
 * file.
 */
static void prefer_folder(struct otlp_request *request)
{
	const curl_version_info_data *info = request->curl.version_info(CURLVERSION_NOW);

	if (info->age < CURLVERSION_SEVENTH || !info->ssl_version ||
	    strncmp(info->ssl_version, "OpenSSL/", 8) || !info->cainfo || !info->capath ||
	    !has_hashes(info->capath))
		return;
	request->authorities = info->cainfo;
	request->curl.easy_setopt(request->easy, CURLOPT_CAINFO, NULL);
}

static void forget_folder(struct otlp_request *request)
{
	if (request->authorities)
		request->curl.easy_setopt(request->easy, CURLOPT_CAINFO, request->authorities);
	request->authorities = NULL;
}

int otlp_request__new(struct otlp_request **result, const struct otlp_endpoint *endpoint,
		      long connect_ms, long whole_ms)
{
	struct otlp_request *request = calloc(1, sizeof(*request));
	int err;

	*result = NULL;
	if (!request)
		return -ENOMEM;
	request->endpoint = endpoint;
	err = curl_library_load(&request->curl);
	if (err) {
		free(request);
		return err;
	}
	request->multi = request->curl.multi_init();
	request->easy = request->curl.easy_init();
	err = request->multi && request->easy ? add_headers(request) : -ENOMEM;
	if (!err)
		err = set_options(request, connect_ms, whole_ms);
	if (err) {
		otlp_request__free(request);
		return err;
	}
	prefer_folder(request);
	*result = request;
	return 0;
}

/* Ends the request without a result. Does nothing if there is none. */
static void cancel_request(struct otlp_request *request)
{
	if (!request->body)
		return;
	request->curl.multi_remove_handle(request->multi, request->easy);
	free(request->body);
	request->body = NULL;
}

void otlp_request__free(struct otlp_request *request)
{
	if (!request)
		return;
	cancel_request(request);
	if (request->easy)
		request->curl.easy_cleanup(request->easy);
	if (request->multi)
		request->curl.multi_cleanup(request->multi);
	request->curl.slist_free_all(request->headers);
	free(request);
}

int otlp_request__begin(struct otlp_request *request, char *body, size_t size)
{
	const struct curl_library *curl = &request->curl;

	cancel_request(request);
	request->answer_size = request->header_bytes = 0;
	request->answer_cut = request->headers_end = false;
	request->error[0] = '\0';
	curl->easy_setopt(request->easy, CURLOPT_POSTFIELDS, body);
	curl->easy_setopt(request->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	if (curl->multi_add_handle(request->multi, request->easy)) {
		free(body);
		return -ENOMEM;
	}
	request->body = body;
	return 0;
}

static const char *describe_error(const struct otlp_request *request, CURLcode code)
{
	long os_errno = 0;

	request->curl.easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &os_errno);
	if (code == CURLE_COULDNT_CONNECT && os_errno)
		return strerror((int)os_errno);
	return request->error[0] ? request->error : request->curl.easy_strerror(code);
}

static void read_result(struct otlp_request *request, CURLcode code, struct otlp_result *result)
{
	const struct curl_library *curl = &request->curl;
	curl_off_t retry_after_s = 0;

	*result = (struct otlp_result){.answer = request->answer};
	if (!code && !request->headers_end)
		code = CURLE_PARTIAL_FILE;
	if (code && !(code == CURLE_WRITE_ERROR && request->answer_cut)) {
		result->error = describe_error(request, code);
		if (code == CURLE_PEER_FAILED_VERIFICATION)
			forget_folder(request);
		return;
	}
	request->answer[request->answer_size] = '\0';
	result->answer_size = request->answer_size;
	curl->easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &result->status);
	curl->easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
	result->retry_after_s = retry_after_s;
}

bool otlp_request__go_on(struct otlp_request *request, struct otlp_result *result)
{
	CURLMsg *message;
	int count;

	if (!request->body)
		return false;
	request->curl.multi_perform(request->multi, &count);
	message = request->curl.multi_info_read(request->multi, &count);
	if (!message || message->msg != CURLMSG_DONE)
		return false;
	read_result(request, message->data.result, result);
	cancel_request(request);
	return true;
}

void otlp_request__wait(struct otlp_request *request, int ms)
{
	request->curl.multi_poll(request->multi, NULL, 0, ms, NULL);
}

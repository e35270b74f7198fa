/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp_request.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "curl_library.h"

#define HEX "0123456789abcdef"

struct otlp_request {
	const struct otlp_endpoint *endpoint;
	struct curl_library curl;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	const char *authorities; /* file that is not used yet, NULL: it is */
	char *body;		 /* NULL: none is under way */
	char answer[OTLP_ANSWER_MAX + 1];
	size_t answer_size;
	size_t header_bytes;
	bool answer_cut;
	bool headers_end;
	char error[CURL_ERROR_SIZE];
};

/* What is less than all of it ends the transfer. */
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
 * libcurl keeps them: older ones without an end. And it takes an answer that ends within them for a
 * whole one, so their last line, the empty one, is looked for.
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

	/* A collector has no reason to see the headers first, and some do not know how. */
	if (!err)
		err = add_header(request, "Expect:");
	vec_for_each (header, &request->endpoint->headers) {
		if (!err)
			err = add_header(request, *header);
	}
	return err;
}

/* All that is the same for every request. Only a lack of memory makes these fail. */
static int set_options(struct otlp_request *request, long connect_ms, long whole_ms)
{
	const struct curl_library *curl = &request->curl;
	CURL *easy = request->easy;
	CURLcode failed;

	failed = curl->easy_setopt(easy, CURLOPT_URL, request->endpoint->url);
	if (!failed)
		failed = curl->easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
	if (!failed)
		failed = curl->easy_setopt(easy, CURLOPT_USERAGENT, "ferrum-bpftrace/" FBT_VERSION);
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
	/* Else, where a name server is silent, giving up would wait for the resolver's thread. */
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
 * The file of all authorities takes OpenSSL 0.1 s to read, in which nothing else would be done; of
 * a folder with their hashes it only reads the one it needs. Where that folder knows less than the
 * file, the next attempt reads the file.
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

void otlp_request__free(struct otlp_request *request)
{
	if (!request)
		return;
	otlp_request__cancel(request);
	if (request->easy)
		request->curl.easy_cleanup(request->easy);
	if (request->multi)
		request->curl.multi_cleanup(request->multi);
	request->curl.slist_free_all(request->headers);
	free(request);
}

void otlp_request__cancel(struct otlp_request *request)
{
	if (!request->body)
		return;
	request->curl.multi_remove_handle(request->multi, request->easy);
	free(request->body);
	request->body = NULL;
}

int otlp_request__begin(struct otlp_request *request, char *body, size_t size)
{
	const struct curl_library *curl = &request->curl;

	otlp_request__cancel(request);
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
	otlp_request__cancel(request);
	return true;
}

void otlp_request__wait(struct otlp_request *request, int ms)
{
	request->curl.multi_poll(request->multi, NULL, 0, ms, NULL);
}

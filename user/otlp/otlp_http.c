/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp/otlp_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_read.h"
#include "base/log.h"
#include "base/version.h"
#include "otlp/otlp_tls.h"

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
	if (!answer->rejected_spans)
		answer->rejected_spans = get_count(partial, "rejectedDataPoints");
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

#define REASON_MAX    256
#define EVENT_SLACK_S 60 /* evhttp's own limits, beyond ours */

struct otlp_request {
	const struct otlp_endpoint *endpoint;
	uint64_t connect_ns;
	uint64_t whole_ns;
	struct event_base *base;
	struct event *alarm;  /* ends a wait */
	struct otlp_tls *tls; /* NULL: http */
	char *host;	      /* without brackets */
	char *authority;      /* the header Host */
	const char *target;   /* path and query: within endpoint->url */
	uint16_t port;
	/* Of the request that is under way: */
	struct evdns_base *dns;
	struct evhttp_connection *connection;
	bufferevent_event_cb next_on_event;
	void *next_ctx;
	char *body; /* NULL: no request is under way */
	uint64_t begin_ns;
	bool is_connected;
	bool is_over;
	char answer[OTLP_ANSWER_MAX + 1];
	size_t answer_size;
	long status;
	int64_t retry_after_s;
	char error[REASON_MAX]; /* "": none */
};

static void fail(struct otlp_request *request, const char *reason)
{
	if (!request->error[0])
		snprintf(request->error, sizeof(request->error), "%s", reason);
	request->is_over = true;
}

/* Seconds, or a date as in RFC 9110; 0: none, or one that has passed. */
static int64_t read_retry_after(const char *text)
{
	struct tm date = {0};
	const char *end;
	char *rest;
	long long seconds;
	time_t wait_s;

	if (!text)
		return 0;
	errno = 0;
	seconds = strtoll(text, &rest, 10);
	if (rest != text && !*rest)
		return errno || seconds < 0 ? 0 : seconds;
	end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
	if (!end || *end)
		return 0;
	wait_s = timegm(&date) - time(NULL);
	return wait_s > 0 ? wait_s : 0;
}

static void take_head(struct otlp_request *request, struct evhttp_request *http)
{
	request->status = evhttp_request_get_response_code(http);
	request->retry_after_s = read_retry_after(
		evhttp_find_header(evhttp_request_get_input_headers(http), "Retry-After"));
}

/* What there is room for. An answer that is longer is cut, and ends here. */
static void on_piece(struct evhttp_request *http, void *ctx)
{
	struct otlp_request *request = ctx;
	struct evbuffer *piece = evhttp_request_get_input_buffer(http);
	size_t room = OTLP_ANSWER_MAX - request->answer_size;
	int taken;

	if (request->is_over)
		return;
	if (evbuffer_get_length(piece) > room) {
		take_head(request, http);
		request->is_over = true;
	}
	taken = evbuffer_remove(piece, request->answer + request->answer_size, room);
	if (taken > 0)
		request->answer_size += (size_t)taken;
}

static const char *describe(enum evhttp_request_error error)
{
	switch (error) {
	case EVREQ_HTTP_TIMEOUT:
		return "no answer in time";
	case EVREQ_HTTP_EOF:
		return "the connection was closed before the answer was complete";
	case EVREQ_HTTP_INVALID_HEADER:
		return "the answer is not HTTP";
	case EVREQ_HTTP_DATA_TOO_LONG:
		return "the answer has too many headers";
	default:
		return "the connection failed";
	}
}

static void on_error(enum evhttp_request_error error, void *ctx)
{
	int os_error = errno;

	if (error == EVREQ_HTTP_BUFFER_ERROR && os_error)
		fail(ctx, strerror(os_error));
	else
		fail(ctx, describe(error));
}

static void on_answer(struct evhttp_request *http, void *ctx)
{
	struct otlp_request *request = ctx;
	int os_error = errno;

	if (request->is_over)
		return;
	if (!http || !evhttp_request_get_response_code(http)) {
		fail(request, os_error ? strerror(os_error) : "the connection failed");
		return;
	}
	take_head(request, http);
	request->is_over = true;
}

/* There is no connection, so TLS has nothing to say. */
static bool is_unreachable(int os_error)
{
	return os_error == ECONNREFUSED || os_error == EHOSTUNREACH || os_error == ENETUNREACH ||
	       os_error == ETIMEDOUT;
}

/* Before evhttp, which does not pass on why there is no connection. */
static void on_event(struct bufferevent *stream, short what, void *ctx)
{
	struct otlp_request *request = ctx;
	bufferevent_event_cb next = request->next_on_event;
	int os_error = errno, dns_error;

	if (what & BEV_EVENT_CONNECTED) {
		request->is_connected = true;
	} else if (what & BEV_EVENT_ERROR) {
		dns_error = bufferevent_socket_get_dns_error(stream);
		if (dns_error)
			fail(request, evutil_gai_strerror(dns_error));
		else if (is_unreachable(os_error) || !request->tls ||
			 !otlp_tls_describe(request->tls, stream, request->error,
					    sizeof(request->error)))
			fail(request, os_error ? strerror(os_error) : "the connection was closed");
		request->is_over = true;
	} else if (what & BEV_EVENT_EOF) {
		fail(request, "the connection was closed");
	}
	errno = os_error;
	next(stream, what, request->next_ctx);
}

static void on_alarm(evutil_socket_t fd, short what, void *ctx)
{
}

/* What libevent has to say is said by the error of the request. */
static void on_log(int severity, const char *message)
{
	log_debug("otlp: libevent: %s", message);
}

/* Splits the URL, which otlp_endpoint_parse has checked. 0 or -ENOMEM. */
static int set_address(struct otlp_request *request, bool *is_https)
{
	const char *url = request->endpoint->url;
	const char *host = strstr(url, "://") + 3;
	size_t authority = strcspn(host, "/?"), length;
	const char *port = NULL;

	*is_https = !strncasecmp(url, "https", 5);
	request->target = host + authority;
	request->authority = strndup(host, authority);
	if (!request->authority)
		return -ENOMEM;
	length = *host == '[' ? strcspn(host, "]") + 1 : strcspn(request->authority, ":");
	if (length < authority && host[length] == ':')
		port = host + length + 1;
	request->port = port ? (uint16_t)strtoul(port, NULL, 10) : *is_https ? 443 : 80;
	request->host = *host == '[' ? strndup(host + 1, length - 2) : strndup(host, length);
	return request->host ? 0 : -ENOMEM;
}

static int open_base(struct otlp_request *request)
{
	struct event_config *config = event_config_new();

	event_set_log_callback(on_log);
	if (config) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
		request->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (request->base)
		request->alarm = evtimer_new(request->base, on_alarm, NULL);
	return request->alarm ? 0 : -ENOMEM;
}

int otlp_request__new(struct otlp_request **result, const struct otlp_endpoint *endpoint,
		      long connect_ms, long whole_ms)
{
	struct otlp_request *request = calloc(1, sizeof(*request));
	bool is_https;
	int err;

	*result = NULL;
	if (!request)
		return -ENOMEM;
	request->endpoint = endpoint;
	request->connect_ns = (uint64_t)connect_ms * NS_PER_MS;
	request->whole_ns = (uint64_t)whole_ms * NS_PER_MS;
	err = set_address(request, &is_https);
	if (!err)
		err = open_base(request);
	if (!err && is_https)
		err = otlp_tls__new(&request->tls, request->host);
	if (err) {
		otlp_request__free(request);
		return err;
	}
	*result = request;
	return 0;
}

/* Ends the request without a result. Does nothing if there is none. */
static void cancel_request(struct otlp_request *request)
{
	if (request->connection)
		evhttp_connection_free(request->connection);
	request->connection = NULL;
	/* What libevent frees later, it frees now. */
	if (request->body)
		event_base_loop(request->base, EVLOOP_NONBLOCK);
	if (request->dns)
		evdns_base_free(request->dns, 0);
	request->dns = NULL;
	free(request->body);
	request->body = NULL;
}

void otlp_request__free(struct otlp_request *request)
{
	if (!request)
		return;
	cancel_request(request);
	if (request->alarm)
		event_free(request->alarm);
	if (request->base)
		event_base_free(request->base);
	otlp_tls__free(request->tls);
	free(request->authority);
	free(request->host);
	free(request);
}

static bool is_address(const char *host)
{
	struct in6_addr address;

	return strchr(host, ':') || inet_pton(AF_INET, host, &address) == 1;
}

/*
 * A resolver that does not wait. It is a new one each time, so it has today's /etc/resolv.conf and
 * /etc/hosts; without the former it asks this machine.
 */
static int open_resolver(struct otlp_request *request)
{
	if (is_address(request->host))
		return 0;
	request->dns = evdns_base_new(request->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!request->dns)
		return -ENOMEM;
	(void)evdns_base_resolv_conf_parse(request->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
	return 0;
}

static int open_connection(struct otlp_request *request)
{
	struct timeval slack = {EVENT_SLACK_S + (time_t)(request->whole_ns / NS_PER_S), 0};
	struct bufferevent *stream;
	int err = open_resolver(request);

	if (err)
		return err;
	stream = request->tls ? otlp_tls__open(request->tls, request->base)
			      : bufferevent_socket_new(request->base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (!stream)
		return -ENOMEM;
	request->connection = evhttp_connection_base_bufferevent_new(
		request->base, request->dns, stream, request->host, request->port);
	if (!request->connection) {
		bufferevent_free(stream);
		return -ENOMEM;
	}
	evhttp_connection_set_timeout_tv(request->connection, &slack);
	evhttp_connection_set_max_headers_size(request->connection, OTLP_ANSWER_MAX);
	return 0;
}

/* A header of the endpoint: "Name: value", or "Name;" without a value. */
static int add_header(struct evkeyvalq *headers, const char *header)
{
	size_t length = strcspn(header, ":;");
	const char *value = header + length + (header[length] != '\0');
	char *name = strndup(header, length);
	int err = name ? 0 : -ENOMEM;

	if (!err && evhttp_add_header(headers, name, value + strspn(value, " ")))
		err = -ENOMEM;
	free(name);
	return err;
}

static int fill_request(const struct otlp_request *request, struct evhttp_request *http,
			size_t size)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(http);
	struct evbuffer *body = evhttp_request_get_output_buffer(http);
	char agent[128];
	int err = 0;

	snprintf(agent, sizeof(agent), "ferrum-bpftrace/%s", tool_version());
	if (evhttp_add_header(headers, "Host", request->authority) ||
	    evhttp_add_header(headers, "Content-Type", "application/json") ||
	    evhttp_add_header(headers, "Connection", "close"))
		return -ENOMEM;
	vec_for_each (header, &request->endpoint->headers) {
		if (!err)
			err = add_header(headers, *header);
	}
	if (!err && !evhttp_find_header(headers, "User-Agent") &&
	    evhttp_add_header(headers, "User-Agent", agent))
		err = -ENOMEM;
	if (!err && evbuffer_add_reference(body, request->body, size, NULL, NULL))
		err = -ENOMEM;
	return err;
}

/* Sends what is prepared. From here on evhttp owns http. */
static void send_request(struct otlp_request *request, struct evhttp_request *http)
{
	struct bufferevent *stream = evhttp_connection_get_bufferevent(request->connection);
	bufferevent_data_cb on_read, on_write;

	evhttp_request_set_chunked_cb(http, on_piece);
	evhttp_request_set_error_cb(http, on_error);
	errno = 0;
	if (evhttp_make_request(request->connection, http, EVHTTP_REQ_POST, request->target)) {
		fail(request, errno ? strerror(errno) : "the connection failed");
		return;
	}
	if (request->is_over)
		return;
	bufferevent_getcb(stream, &on_read, &on_write, &request->next_on_event, &request->next_ctx);
	if (!on_read && !on_write && request->next_on_event)
		bufferevent_setcb(stream, NULL, NULL, on_event, request);
}

int otlp_request__begin(struct otlp_request *request, char *body, size_t size)
{
	struct evhttp_request *http;
	int err;

	cancel_request(request);
	request->answer_size = 0;
	request->status = 0;
	request->retry_after_s = 0;
	request->is_connected = request->is_over = false;
	request->error[0] = '\0';
	request->body = body;
	request->begin_ns = clock_ns(CLOCK_MONOTONIC);
	http = evhttp_request_new(on_answer, request);
	err = http ? fill_request(request, http, size) : -ENOMEM;
	if (!err)
		err = open_connection(request);
	if (err) {
		if (http)
			evhttp_request_free(http);
		cancel_request(request);
		return err;
	}
	send_request(request, http);
	return 0;
}

/* The variable that names a proxy, which is not used; NULL: none is set. */
static const char *find_proxy(bool is_https)
{
	static const char *const names[][4] = {
		{"http_proxy", "all_proxy", "ALL_PROXY", NULL},
		{"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}};

	for (size_t i = 0; i < 4 && names[is_https][i]; i++) {
		const char *value = getenv(names[is_https][i]);

		if (value && *value)
			return names[is_https][i];
	}
	return NULL;
}

static void watch_time(struct otlp_request *request)
{
	uint64_t passed_ns = clock_ns(CLOCK_MONOTONIC) - request->begin_ns;

	if (request->is_over)
		return;
	if (!request->is_connected && passed_ns >= request->connect_ns)
		fail(request, "no connection in time");
	else if (passed_ns >= request->whole_ns)
		fail(request, "no answer in time");
}

static void read_result(struct otlp_request *request, struct otlp_result *result)
{
	const char *proxy = find_proxy(request->tls);
	size_t used = strlen(request->error);

	if (used && !request->is_connected && proxy)
		snprintf(request->error + used, sizeof(request->error) - used,
			 " (%s is set, but proxies are not supported)", proxy);
	request->answer[request->answer_size] = '\0';
	*result = (struct otlp_result){
		.error = used ? request->error : NULL,
		.answer = request->answer,
		.answer_size = request->answer_size,
		.status = request->status,
		.retry_after_s = request->retry_after_s,
	};
}

bool otlp_request__go_on(struct otlp_request *request, struct otlp_result *result)
{
	if (!request->body)
		return false;
	if (!request->is_over)
		event_base_loop(request->base, EVLOOP_NONBLOCK);
	watch_time(request);
	if (!request->is_over)
		return false;
	read_result(request, result);
	cancel_request(request);
	return true;
}

void otlp_request__wait(struct otlp_request *request, int ms)
{
	struct timeval wait = {ms / 1000, ms % 1000 * 1000};

	if (request->is_over && request->body)
		return;
	event_add(request->alarm, &wait);
	event_base_loop(request->base, EVLOOP_ONCE);
	event_del(request->alarm);
}

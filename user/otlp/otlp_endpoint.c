/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp/otlp_endpoint.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"

#define TIMEOUT_MAX_MS 3600000
#define URL_MAX	       2048
#define SHOWN_MAX      256
#define HEADERS_MAX    64
#define PATH	       "/v1/traces"
#define METRICS_PATH   "/v1/metrics"
#define RPC_PORT       4317
#define ALNUM	       "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HOST_CHARS     ALNUM "-._~"
/* RFC 9110, token. */
#define TOKEN_CHARS ALNUM "!#$%&'*+-.^_`|~"

/* Refuses a URL. A URL that may hold a password, or is longer than a line, is not shown. */
static int refuse(const char *url, const char *why)
{
	log_err("--otlp %s: %s", strchr(url, '@') || strlen(url) > SHOWN_MAX ? "URL" : url, why);
	return -EINVAL;
}

/*
 * Reads the port after a host, including its ":". Returns the number; 0: there is none; -1: it is
 * invalid.
 */
static int read_port(const char *text, size_t length)
{
	int port = 0;

	if (!length)
		return 0;
	if (text[0] != ':' || length < 2 || length > 6)
		return -1;
	for (size_t i = 1; i < length; i++) {
		if (!isdigit((unsigned char)text[i]))
			return -1;
		port = port * 10 + text[i] - '0';
	}
	return port && port <= 65535 ? port : -1;
}

/* The length of the host: a name, or an IPv6 address in brackets; 0: neither. */
static size_t measure_host(const char *text)
{
	size_t length;

	if (*text != '[')
		return strspn(text, HOST_CHARS);
	/* With a zone: [fe80::1%25eth0]. */
	length = 1 + strspn(text + 1, HOST_CHARS ":%");
	return length > 1 && text[length] == ']' ? length + 1 : 0;
}

static bool is_plain(const char *text)
{
	for (; *text; text++) {
		if (*text <= ' ' || *text > '~' || *text == '\\')
			return false;
	}
	return true;
}

/* Where the host begins; NULL: not HTTP. */
static const char *skip_scheme(const char *url)
{
	if (!strncasecmp(url, "http://", 7))
		return url + 7;
	return strncasecmp(url, "https://", 8) ? NULL : url + 8;
}

static int check_url(struct otlp_endpoint *endpoint, const char *url)
{
	const char *host = skip_scheme(url);
	size_t authority, length;
	int port;

	if (!host)
		return refuse(url, "expected http://HOST:4318 or https://HOST:4318");
	if (strlen(url) > URL_MAX || !is_plain(url))
		return refuse(url, "a URL has at most 2048 bytes, all of them printable ASCII "
				   "without spaces");
	if (strchr(url, '#'))
		return refuse(url, "a fragment (#) is not allowed");
	authority = strcspn(host, "/?");
	if (memchr(host, '@', authority))
		return refuse(url,
			      "a user or password is not allowed here, where ps shows it; put keys "
			      "into OTEL_EXPORTER_OTLP_HEADERS");
	length = measure_host(host);
	port = length && length <= authority ? read_port(host + length, authority - length) : -1;
	if (port < 0)
		return refuse(url, "expected a host and a port, as http://HOST:4318");
	endpoint->has_port_of_rpc = port == RPC_PORT;
	return 0;
}

int otlp_endpoint_parse(struct otlp_endpoint *endpoint, const char *url)
{
	int err = check_url(endpoint, url);
	const char *path, *query;
	size_t base;

	if (err)
		return err;
	path = skip_scheme(url);
	path += strcspn(path, "/?");
	base = (size_t)(path - url);
	query = path + strcspn(path, "?");
	if (query - path > 1)
		base = (size_t)(query - url);
	if (asprintf(&endpoint->label, "%.*s%s", (int)base, url, query - path > 1 ? "" : PATH) < 0)
		endpoint->label = NULL;
	if (endpoint->label && asprintf(&endpoint->url, "%s%s", endpoint->label, query) < 0)
		endpoint->url = NULL;
	return endpoint->url ? 0 : -ENOMEM;
}

int otlp_endpoint_for_metrics(struct otlp_endpoint *endpoint, const struct otlp_endpoint *traces,
			      const char *given)
{
	size_t length = strlen(traces->label), suffix = strlen(PATH);
	char *url = NULL;
	int err;

	if (given && *given) {
		err = otlp_endpoint_parse(endpoint, given);
		return err;
	}
	if (length < suffix || strcmp(traces->label + length - suffix, PATH) != 0) {
		log_err("--otlp-metrics: the path of --otlp does not end with " PATH
			"; name that of metrics in OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
		return -EINVAL;
	}
	if (asprintf(&url, "%.*s" METRICS_PATH "%s", (int)(length - suffix), traces->label,
		     traces->url + length) < 0)
		return -ENOMEM;
	err = otlp_endpoint_parse(endpoint, url);
	free(url);
	return err;
}

/*
 * Decodes %XX in place. false: a % without two digits, or a byte that is not allowed in a header.
 */
static bool decode_value(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		unsigned char byte = (unsigned char)*from;

		if (byte == '%') {
			char digits[3] = {from[1], from[1] ? from[2] : '\0', '\0'};

			if (!isxdigit((unsigned char)digits[0]) ||
			    !isxdigit((unsigned char)digits[1]))
				return false;
			byte = (unsigned char)strtoul(digits, NULL, 16);
			from += 2;
		}
		if ((byte < ' ' && byte != '\t') || byte == 0x7f)
			return false;
		*to++ = (char)byte;
	}
	*to = '\0';
	return true;
}

static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return text;
}

/* Headers that frame the request or describe its body. */
static bool is_ours(const char *name)
{
	static const char *const ours[] = {"Connection",
					   "Content-Encoding",
					   "Content-Length",
					   "Content-Type",
					   "Expect",
					   "Host",
					   "TE",
					   "Transfer-Encoding",
					   "Upgrade"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (!strcasecmp(name, ours[i]))
			return true;
	}
	return false;
}

/*
 * Turns NAME=VALUE into "Name: value". *header stays NULL if the entry is invalid, and *why says
 * why.
 */
static int make_header(char *entry, char **header, const char **why)
{
	char *equals = strchr(entry, '='), *name, *value;

	*why = "it is not NAME=VALUE";
	if (!equals)
		return 0;
	*equals = '\0';
	name = trim(entry);
	value = trim(equals + 1);
	if (!*name || name[strspn(name, TOKEN_CHARS)])
		return 0;
	*why = "that header is written by this program";
	if (is_ours(name))
		return 0;
	*why = "its value has a byte that no header may hold, or a % without two digits";
	if (!decode_value(value))
		return 0;
	/* For libcurl, "Name:" means not to send that header. */
	value = trim(value);
	if (asprintf(header, *value ? "%s: %s" : "%s;%s", name, value) < 0) {
		*header = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int add_header(struct otlp_endpoint *endpoint, char *entry, int number)
{
	const char *why = "there are more than 64";
	char *header = NULL;
	int err = 0;

	if (!*trim(entry))
		return 0;
	if (endpoint->headers.count < HEADERS_MAX)
		err = make_header(entry, &header, &why);
	if (!err && !header)
		log_warn("OTEL_EXPORTER_OTLP_HEADERS: entry %d is left out: %s", number, why);
	if (err || !header)
		return err;
	err = vec_push(&endpoint->headers, header);
	if (err)
		free(header);
	return err;
}

int otlp_endpoint_add_headers(struct otlp_endpoint *endpoint, const char *text)
{
	char *copy = strdup(text), *rest = copy, *entry;
	int number = 0, err = copy ? 0 : -ENOMEM;

	while (!err && (entry = strsep(&rest, ",")))
		err = add_header(endpoint, entry, ++number);
	free(copy);
	return err;
}

void otlp_endpoint_set_timeout(struct otlp_endpoint *endpoint, const char *text)
{
	char *end;
	long ms = strtol(text, &end, 10);

	if (end != text && !*end && ms > 0 && ms <= TIMEOUT_MAX_MS)
		endpoint->timeout_ms = ms;
	else
		log_warn("OTEL_EXPORTER_OTLP_TIMEOUT: not a number of milliseconds from 1 to %d: "
			 "ignored",
			 TIMEOUT_MAX_MS);
}

void otlp_endpoint_clear(struct otlp_endpoint *endpoint)
{
	vec_for_each (header, &endpoint->headers)
		free(*header);
	vec_free(&endpoint->headers);
	free(endpoint->url);
	free(endpoint->label);
	*endpoint = (struct otlp_endpoint){0};
}

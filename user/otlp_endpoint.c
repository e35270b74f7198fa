/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp_endpoint.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "log.h"

#define URL_MAX	    2048
#define SHOWN_MAX   256
#define HEADERS_MAX 64
#define PATH	    "/v1/traces"
#define RPC_PORT    4317
#define ALNUM	    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HOST_CHARS  ALNUM "-._~"
/* RFC 9110, token. */
#define TOKEN_CHARS ALNUM "!#$%&'*+-.^_`|~"

/* What may hold a password, or is longer than a line, is not shown. */
static int refuse(const char *url, const char *why)
{
	log_err("--otlp %s: %s", strchr(url, '@') || strlen(url) > SHOWN_MAX ? "URL" : url, why);
	return -EINVAL;
}

/* The port behind a host, ":" included. Its number, 0 if there is none, -1 if it is not sound. */
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

/* Bytes of the host: a name, or an address of IPv6 in brackets; 0 if it is neither. */
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

/* Where the host begins; NULL: not a scheme we speak. */
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
		return refuse(url, "not http://HOST:4318 or https://HOST:4318");
	if (strlen(url) > URL_MAX || !is_plain(url))
		return refuse(url, "a URL has no spaces, controls or other bytes that are not "
				   "printable ASCII, and at most 2048 bytes");
	if (strchr(url, '#'))
		return refuse(url, "a fragment (#) means nothing to a collector");
	authority = strcspn(host, "/?");
	if (memchr(host, '@', authority))
		return refuse(url, "no user or password here, where ps shows it: "
				   "OTEL_EXPORTER_OTLP_HEADERS is for keys");
	length = measure_host(host);
	port = length && length <= authority ? read_port(host + length, authority - length) : -1;
	if (port < 0)
		return refuse(url, "not a host and a port: http://HOST:4318");
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
	endpoint->health = calloc(1, sizeof(*endpoint->health));
	return endpoint->url && endpoint->health ? 0 : -ENOMEM;
}

/* Undoes %XX in place. False: a % without two digits, or a byte no header may hold. */
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

/* What frames the request, or says what its body is. */
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

/* NAME=VALUE to "Name: value". *header stays NULL if it is not sound: that is why. */
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
	/* To libcurl "Name:" means to send no such header. */
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

void otlp_endpoint_clear(struct otlp_endpoint *endpoint)
{
	vec_for_each (header, &endpoint->headers)
		free(*header);
	vec_free(&endpoint->headers);
	free(endpoint->url);
	free(endpoint->label);
	free(endpoint->health);
	*endpoint = (struct otlp_endpoint){0};
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp/otlp_tls.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define HEX "0123456789abcdef"

/* Debian, Alpine; Fedora, Red Hat; openSUSE; OpenELEC; BSD. */
static const char *const files[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem",
	"/etc/ssl/cert.pem",
};
static const char *const folders[] = {"/etc/ssl/certs", "/etc/pki/tls/certs"};

struct otlp_tls {
	char *host;
	SSL_CTX *context;
	const char *file; /* authorities that are not used yet; NULL: they are in use */
};

void otlp_tls_prepare(void)
{
	(void)OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, NULL);
	ERR_clear_error();
}

static const char *from_environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static const char *find_file(void)
{
	const char *given = from_environment("OTEL_EXPORTER_OTLP_CERTIFICATE");

	if (!given)
		given = from_environment("SSL_CERT_FILE");
	if (given)
		return given;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (!access(files[i], R_OK))
			return files[i];
	}
	return NULL;
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

static const char *find_folder(void)
{
	const char *given = from_environment("SSL_CERT_DIR");

	if (from_environment("OTEL_EXPORTER_OTLP_CERTIFICATE"))
		return NULL;
	if (given)
		return given;
	if (from_environment("SSL_CERT_FILE"))
		return NULL;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if (has_hashes(folders[i]))
			return folders[i];
	}
	return NULL;
}

const char *otlp_tls_authorities(void)
{
	const char *file = find_file();

	return file ? file : find_folder();
}

/*
 * OpenSSL needs 0.1 s to read the file of all certificate authorities, which blocks everything
 * else. From a directory with hashes it reads only the one that it needs. If the verification
 * fails, because the directory has fewer authorities than the file, the next stream reads the file.
 */
static int add_authorities(struct otlp_tls *tls)
{
	const char *folder = find_folder();

	tls->file = find_file();
	if (folder && SSL_CTX_load_verify_locations(tls->context, NULL, folder))
		return 0;
	if (!tls->file) {
		log_err("--otlp: no certificate authorities are found on this system, so no https "
			"server can be trusted; install ca-certificates, or name a file in "
			"OTEL_EXPORTER_OTLP_CERTIFICATE");
		return -ENOENT;
	}
	if (!SSL_CTX_load_verify_locations(tls->context, tls->file, NULL)) {
		log_err("--otlp: %s: no certificates can be read from it", tls->file);
		return -ENOENT;
	}
	tls->file = NULL;
	return 0;
}

int otlp_tls__new(struct otlp_tls **result, const char *host)
{
	struct otlp_tls *tls = calloc(1, sizeof(*tls));
	int err = -ENOMEM;

	*result = NULL;
	if (!tls)
		return err;
	tls->host = strdup(host);
	tls->context = SSL_CTX_new(TLS_client_method());
	if (tls->host && tls->context) {
		SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
		SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
		err = add_authorities(tls);
	}
	if (err) {
		otlp_tls__free(tls);
		return err;
	}
	*result = tls;
	return 0;
}

void otlp_tls__free(struct otlp_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context);
	free(tls->host);
	free(tls);
}

/* Whom the certificate must be of. An address has no server name. */
static bool expect_host(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *expected = SSL_get0_param(ssl);
	char address[INET6_ADDRSTRLEN + 1];
	struct in6_addr parsed;

	/* Without a zone. */
	snprintf(address, sizeof(address), "%.*s", (int)strcspn(host, "%"), host);
	if (inet_pton(AF_INET, address, &parsed) == 1 || inet_pton(AF_INET6, address, &parsed) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(expected, address);
	X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

struct bufferevent *otlp_tls__open(struct otlp_tls *tls, struct event_base *base)
{
	struct bufferevent *stream;
	SSL *ssl = SSL_new(tls->context);

	if (!ssl || !expect_host(ssl, tls->host)) {
		SSL_free(ssl);
		return NULL;
	}
	stream = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_CONNECTING,
						BEV_OPT_CLOSE_ON_FREE);
	if (!stream)
		SSL_free(ssl);
	return stream;
}

bool otlp_tls_describe(struct otlp_tls *tls, struct bufferevent *stream, char *text, size_t size)
{
	long verified = SSL_get_verify_result(bufferevent_openssl_get_ssl(stream));
	unsigned long error = bufferevent_get_openssl_error(stream);
	const char *reason = error ? ERR_reason_error_string(error) : NULL;

	ERR_clear_error();
	if (verified != X509_V_OK) {
		if (tls->file)
			(void)SSL_CTX_load_verify_locations(tls->context, tls->file, NULL);
		tls->file = NULL;
		snprintf(text, size, "the certificate is not accepted: %s",
			 X509_verify_cert_error_string(verified));
		return true;
	}
	if (!error)
		return false;
	snprintf(text, size, "TLS: %s", reason ? reason : "the handshake failed");
	return true;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * TLS to a collector, by OpenSSL. The server must prove that it is the host of the URL, with a
 * certificate of an authority that this system trusts: those of OTEL_EXPORTER_OTLP_CERTIFICATE (a
 * file), else of SSL_CERT_DIR and SSL_CERT_FILE (openssl-env(7)), else where distributions have
 * them. TLS 1.2 or newer.
 */
#ifndef FBT_OTLP_TLS_H
#define FBT_OTLP_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct bufferevent;
struct event_base;
struct otlp_tls;

/*
 * Initializes OpenSSL, whose configuration may load libraries: later, none can be loaded
 * (filter.h).
 */
void otlp_tls_prepare(void);

/* The file, or else the folder, of the system's authorities; NULL: there is none. Static. */
const char *otlp_tls_authorities(void);

/*
 * host: a name, or an address without brackets; copied. 0; -ENOMEM; -ENOENT: there are no
 * authorities, logged.
 */
int otlp_tls__new(struct otlp_tls **tls, const char *host);
void otlp_tls__free(struct otlp_tls *tls);

/* A new stream, not connected, which owns its socket. NULL: -ENOMEM. */
struct bufferevent *otlp_tls__open(struct otlp_tls *tls, struct event_base *base);

/*
 * Why the stream has failed, if that is for TLS to say; else returns false, and text is unchanged.
 * If it was the certificate, the next stream knows more authorities.
 */
bool otlp_tls_describe(struct otlp_tls *tls, struct bufferevent *stream, char *text, size_t size);

#endif

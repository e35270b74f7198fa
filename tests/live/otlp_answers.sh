#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --otlp: whatever the collector or another server answers, the outputs are the same, unsent
# escalations are reported, and a server without a valid certificate is not trusted.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/otlp/lib.sh
. tests/live/otlp/lib.sh

capture_one
answered 'not found' "${not_sent}HTTP 404" 404
answered 'server error' "${not_sent}HTTP 500" 500
sent 'server error: not sent again' 'len(Q) == 1'
answered 'redirect' "${not_sent}HTTP 302, a redirect" 302
answered 'a second, please' '^otlp: 1 of 1 escalations were sent to' 429:1 200
answered 'an hour, please' "${not_sent}HTTP 429: as you wish" 429:3600
sent 'an hour, please: not sent again' 'len(Q) == 1'
answered 'closed once' '^otlp: 1 of 1 escalations were sent to' close 200
answered 'garbage once' '^otlp: 1 of 1 escalations were sent to' garbage 200
answered 'half an answer once' '^otlp: 1 of 1 escalations were sent to' half 200
answered 'in part' 'some spans were rejected: too\\nold' partial
answered 'a web page' 'accepted, but the answer is not a collector.s' html
is 'a web page: it counts as sent' "$(grep -c 'escalations were sent' "$OUT.err")" 1

# No server listens on the port any more.
replay 'closed port' "${not_sent}Connection refused" --otlp "$URL"
is 'closed port: one warning, one line at the end' "$(grep -c '^ferrum-bpftrace: otlp: ' "$OUT.err")" 2
OTEL_EXPORTER_OTLP_TIMEOUT=500 replay 'no such host' 'were not sent: http://nowhere.invalid/v1/traces: ' \
	--otlp http://nowhere.invalid

# The query and the environment are used.
start_collector 200
OTEL_SERVICE_NAME='llm "one"' replay 'query' "sent to $URL/in$" --otlp "$URL/in?key=s3cret"
end_collector query
sent 'query: the collector gets it' 'Q[0]["path"] == "/in?key=s3cret"'
sent 'query: the service is named' '[p["resource"]["service.name"] for p in P.values()] == ["llm \"one\""]'

# with_authorities FOLDER NAME REGEX: the replay with that folder as the system's certificates
with_authorities()
{
	# shellcheck disable=SC2016
	within=(unshare --mount sh -c 'mount --bind "$0" /etc/ssl/certs && exec "$@"' "$1")
	shift
	start_collector --tls "$TMP/both" 200
	replay "$@" --otlp "https://127.0.0.1:$PORT"
	end_collector "$1"
	within=()
}

# A certificate that no authority has signed, then the same one as a trusted one of the system: in a
# folder of hashes, and in a file of all authorities.
if [ ! -d /etc/ssl/certs ] || ! openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
	-days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout "$TMP/key" \
	-out "$TMP/certificate" 2>/dev/null; then
	echo 'SKIP certificates: no openssl command, or not the folders of Debian'
else
	cat "$TMP/key" "$TMP/certificate" >"$TMP/both"
	mkdir "$TMP/hashes" "$TMP/file" "$TMP/other"
	cp "$TMP/certificate" "$TMP/hashes/$(openssl x509 -hash -noout -in "$TMP/certificate").0"
	cp "$TMP/certificate" "$TMP/file/ca-certificates.crt"
	cp "$TMP/certificate" "$TMP/other/ca-certificates.crt"
	touch "$TMP/other/01234567.0"
	with_authorities /etc/ssl/certs 'strange certificate' 'were not sent: https://127.*certificate'
	sent 'strange certificate: nothing was sent' 'Q == []'
	with_authorities "$TMP/hashes" 'known by its hash' '1 of 1 escalations were sent to https'
	with_authorities "$TMP/file" 'known by the file' '1 of 1 escalations were sent to https'
	with_authorities "$TMP/other" 'known by the file only' '1 of 1 escalations were sent to https'
fi
finish

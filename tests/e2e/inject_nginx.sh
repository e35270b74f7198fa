#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# nginx is injected again and again while it serves files over keep-alive connections: each of its
# workers, and the new workers after a reload. The master waits for signals in rt_sigsuspend, in
# which no thread is interrupted.
# shellcheck source=tests/e2e/inject/lib.sh
. "$(dirname "$0")/inject/lib.sh"

# Debian's package starts a server on port 80, so only the program is unpacked for this test.
find_nginx()
{
	local at=$CACHE.debian/nginx

	NGINX=$(PATH=$PATH:/usr/sbin command -v nginx) && return
	NGINX=$at/usr/sbin/nginx
	[ ! -x "$NGINX" ] || return 0
	command -v apt-get >/dev/null || skip 'nginx is not installed'
	mkdir -p "$at"
	(cd "$TMP" && apt-get -q download nginx && dpkg-deb -x nginx_*.deb "$at") \
		>"$TMP/apt" 2>&1
	"$NGINX" -v >>"$TMP/apt" 2>&1 && return
	sed 's/^/# /' "$TMP/apt"
	rm -rf "$at"
	skip 'nginx is not installed, and apt-get could not fetch it'
}

write_site()
{
	mkdir -p "$TMP/site" "$TMP/logs"
	for size in 1 100 4000 70000 500000; do
		head -c "$size" /dev/urandom >"$TMP/site/$size"
	done
	# Its workers run as another user. A connection is kept for any number of requests.
	cat >"$TMP/nginx.conf" <<-CONF
		daemon off;
		master_process on;
		worker_processes 2;
		pid $TMP/nginx.pid;
		error_log $TMP/error.log notice;
		env INJECT_PROBE_FILE;
		events { worker_connections 256; }
		http {
			access_log off;
			keepalive_requests 1000000000;
			keepalive_timeout 600s;
			client_body_temp_path $TMP/logs;
			proxy_temp_path $TMP/logs;
			fastcgi_temp_path $TMP/logs;
			uwsgi_temp_path $TMP/logs;
			scgi_temp_path $TMP/logs;
			server { listen 127.0.0.1:$PORT; root $TMP/site; }
		}
	CONF
}

workers()
{
	ps -o pid= --ppid "$MASTER" | tr -d ' '
}

# shellcheck disable=SC2317
serves()
{
	[ "$(workers | wc -l)" = 2 ] && python3 -c \
		"import socket; socket.create_connection(('127.0.0.1', $PORT)).close()" 2>/dev/null
}

# start_load: sets LOAD
start_load()
{
	start nginx-load python3 "$PARTS/http_load.py" "$PORT" 8 files "$TMP/site"
	LOAD=$STARTED
}

# shellcheck disable=SC2317
new_workers()
{
	local pid

	for pid in $OLD; do
		[ ! -e "/proc/$pid" ] || return 1
	done
	serves
}

# Waits for new workers and for the end of the old ones, which first finish their requests.
reload()
{
	OLD=$(workers)
	kill -USR1 "$LOAD"
	holds 'the load is told of it' until_true 60 grep -q '^may close' "$TMP/nginx-load.out"
	kill -HUP "$MASTER"
	holds 'nginx reloads' until_true 120 new_workers
}

find_nginx
PORT=$(python3 "$PARTS/free_port.py")
write_site
"$NGINX" -c "$TMP/nginx.conf" -e "$TMP/error.log" 2>"$TMP/nginx.err" </dev/null &
MASTER=$!
holds 'nginx starts' until_true 120 serves
start_load
for worker in $(workers); do
	inject 'nginx, worker' "$worker"
done
inject_not 'nginx, master' "$MASTER" no_thread -T 1
reload
for worker in $(workers); do
	inject 'nginx, new worker' "$worker"
done
end nginx-load "$LOAD"
kill -QUIT "$MASTER"
wait "$MASTER"
is 'nginx ends in order' $? 0
holds 'no worker has died' test -z "$(grep -E 'exited on signal|\[(alert|crit|emerg)\]' "$TMP/error.log")"
finish

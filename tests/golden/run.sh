#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Replays each case of this folder, or those named, and compares what comes out with what is
# expected. UPDATE=1 rewrites the expectations: their diff is then what to review.
set -u
cd "$(dirname "$0")" || exit 1
root=$(cd ../.. && pwd)
arch=$(uname -m | sed 's/aarch64/arm64/')
build=$(cd "$root" && realpath -m "${FBT_BUILD:-build/$arch-gcc}")
tool=$(cd "$root" && realpath -m "${FBT:-$build/ferrum-bpftrace}")
events=$build/tests/events
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

if [ ! -x "$tool" ]; then
	echo "not ok - $tool is built"
	exit 1
fi

# The converter needs nothing of the tool's build options.
build_converter()
{
	local sources=(events.c records.c gpu_records.c line.c "$root"/user/{output/capture,base/log,base/text,base/timed_write,model/syscalls}.c)
	local source

	for source in "${sources[@]}" "$root"/include/fbt_{event,gpu}.h; do
		[ "$events" -nt "$source" ] && continue
		mkdir -p "$(dirname "$events")"
		"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter \
			-I"$root/include" -I"$root/user" "${sources[@]}" -o "$events"
		return
	done
}

# Runs the tool in its own folder and with no environment: nothing of this machine may show.
replay()
{
	local report=$1
	shift
	(cd "$work/run" && env -i PATH="$PATH" LC_ALL=C TZ=UTC "$tool" --replay ../capture "$@" \
		--report "$report" >"report.$report" 2>"stderr.$report")
}

# Files as they are compared: the text report under its usual ending, stderr only if not empty.
run_case()
{
	local code=0 options=()

	[ ! -e "$1.options" ] || read -ra options <"$1.options"
	rm -rf "$work/run" "$work/capture"
	mkdir "$work/run"
	"$events" "$1.events" "$work/capture" || return 1
	replay text --trace trace.json --profile profile.jsonl "${options[@]}" || code=$?
	replay json --trace none --profile none "${options[@]}" || code=$?
	[ "$code" = 0 ] || echo "exit status $code" >>"$work/run/stderr.text"
	mv "$work/run/report.text" "$work/run/report.txt"
	mv "$work/run/stderr.text" "$work/run/stderr"
	rm "$work/run/stderr.json"
	[ -s "$work/run/stderr" ] || rm "$work/run/stderr"
	# Ferrum's own rules, whatever is expected.
	"$tool" validate "$work/run/trace.json" "$work/run/profile.jsonl" >/dev/null || return 1
	# And those of who reads a Kineto trace.
	[[ "${options[*]}" != *kineto* ]] || python3 ../kineto_check.py "$work/run/trace.json"
}

check_file()
{
	local expected=$1.$2 actual=$work/run/$2

	if [ "${UPDATE:-}" = 1 ]; then
		if [ -e "$actual" ]; then cp "$actual" "$expected"; else rm -f "$expected"; fi
		return 0
	fi
	[ -e "$expected" ] || expected=/dev/null
	[ -e "$actual" ] || actual=/dev/null
	diff -u --label "$1.$2 expected" --label "$1.$2 actual" "$expected" "$actual"
}

check_case()
{
	local good=1 file

	run_case "$1" || good=0
	for file in trace.json profile.jsonl report.txt report.json stderr; do
		[ "$good" = 0 ] && break
		check_file "$1" "$file" || good=0
	done
	if [ "$good" = 1 ]; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		status=1
	fi
}

build_converter || exit 1
[ $# -gt 0 ] || set -- *.events
for case in "$@"; do
	check_case "${case%.events}"
done
exit $status

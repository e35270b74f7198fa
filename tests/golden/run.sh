#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Replays each case of this folder, or the named ones, and compares the outputs with the expected
# ones; then the profile that it gave. UPDATE=1 rewrites the expected outputs; review their diff.
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

for program in "$tool" "$events"; do
	[ -x "$program" ] && continue
	echo "not ok - $program is built"
	exit 1
done

# Runs the tool in its own folder and without an environment, so that nothing of this machine shows.
run_tool()
{
	(cd "$work/run" && env -i PATH="$PATH" LC_ALL=C TZ=UTC "$tool" "$@")
}

replay()
{
	local report=$1
	shift
	run_tool --replay ../capture "$@" --report "$report" >"$work/run/report.$report" 2>"$work/run/stderr.$report"
}

# steps_of REPORT: the number in a JSON report
steps_of()
{
	grep -o '"steps":[0-9]*' "$1" | head -n 1
}

# profile_replays OPTION…: the profile can be replayed, and gives as many steps, and a page that is right
profile_replays()
{
	grep -q '"event":"step_prof"' "$work/run/profile.jsonl" || return 0
	mkdir "$work/run/again"
	if ! run_tool --replay profile.jsonl --trace none --profile none --report json --html again/page.html \
		"$@" >"$work/run/again/report" 2>"$work/run/again/stderr"; then
		echo '# the profile cannot be replayed:'
		cat "$work/run/again/stderr"
		return 1
	fi
	if [ "$(steps_of "$work/run/again/report")" != "$(steps_of "$work/run/report.json")" ]; then
		echo "# the profile replayed has $(steps_of "$work/run/again/report"), not $(steps_of "$work/run/report.json")"
		return 1
	fi
	python3 ../html_check.py "$work/run/again/page.html" "$work/run/again/report"
}

# figure KEY: that count of the window
figure()
{
	grep -o "\"$1\":[0-9]*" <<<"$window" | cut -d: -f2
}

# escalations_add_up PROFILE: the profile has a line for each escalation that its window counts, and
# those that were not shown are marked
escalations_add_up()
{
	local lines window

	lines=$(grep '"event":"escalation_prof"' "$1")
	window=$(grep '"event":"window_prof"' "$1")
	[ "$(grep -c . <<<"$lines")" = "$(figure escalations)" ] &&
		[ "$(grep -c '"not_shown":"rate_limit"' <<<"$lines")" = "$(figure escalations_suppressed)" ] &&
		[ "$(grep -c '"not_shown":"repeated"' <<<"$lines")" = "$(figure escalations_repeated)" ] && return
	echo "# $1: its escalation_prof lines are not those that its window counts"
	return 1
}

# Prose is wrapped at 80 columns. Rows of tables have columns, two spaces apart; a line that is too wide
# has one long word and nothing else beside its label.
prose_is_narrow()
{
	local wide

	wide=$(LC_ALL=C.UTF-8 grep -E '^.{81}' "$1" | LC_ALL=C.UTF-8 grep -vE '[^ ]( {2,}[^ ]+( [^ ]+)*){4}|^(.{16}|  )?[^ ]+$')
	[ -z "$wide" ] && return
	echo "# $1: wider than 80 columns:"
	echo "$wide"
	return 1
}

# Prepares files for the comparison: the text report gets its usual ending, and an empty stderr is
# left out.
run_case()
{
	local code=0 options=()

	[ ! -e "$1.options" ] || read -ra options <"$1.options"
	rm -rf "$work/run" "$work/capture"
	mkdir "$work/run"
	"$events" "$1.events" "$work/capture" || return 1
	replay text --trace trace.json --profile profile.jsonl "${options[@]}" || code=$?
	replay json --trace none --profile none "${options[@]}" || code=$?
	replay none --trace none --profile none --folded folded "${options[@]}" || code=$?
	[ "$code" = 0 ] || echo "exit status $code" >>"$work/run/stderr.text"
	mv "$work/run/report.text" "$work/run/report.txt"
	mv "$work/run/stderr.text" "$work/run/stderr"
	rm "$work/run/stderr.json" "$work/run/stderr.none"
	[ -s "$work/run/folded" ] || rm -f "$work/run/folded"
	[ -s "$work/run/stderr" ] || rm "$work/run/stderr"
	# ferrum's own rules, whatever is expected.
	"$tool" validate "$work/run/trace.json" "$work/run/profile.jsonl" >/dev/null || return 1
	escalations_add_up "$work/run/profile.jsonl" || return 1
	replay none --trace none --profile none --html page.html "${options[@]}"
	rm "$work/run/report.none" "$work/run/stderr.none"
	python3 ../html_check.py "$work/run/page.html" "$work/run/report.json" || return 1
	prose_is_narrow "$work/run/report.txt" || return 1
	profile_replays "${options[@]}" || return 1
	# The rules of a Kineto trace's readers.
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
	for file in trace.json profile.jsonl report.txt report.json folded stderr; do
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

[ $# -gt 0 ] || set -- *.events
for case in "$@"; do
	check_case "${case%.events}"
done
exit $status

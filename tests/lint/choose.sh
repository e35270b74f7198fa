#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Tests tests/choose.sh on made-up histories, with the sets and kernels of this tree: no rhythm of
# pushes may leave out a slow test or a kernel.
set -u
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0 number=0
# Fixed dates and names, so that each commit has the same hash everywhere.
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_CONFIG_GLOBAL=/dev/null
unset CAP DAY SLICE KERNEL

# is NAME GOT WANTED
is()
{
	[ "$2" = "$3" ] && echo "ok - $1" && return
	diff <(echo "$3") <(echo "$2") | sed -n 's/^[<>]/# &/p'
	echo "not ok - $1"
	status=1
}

slow_tests()
{
	awk '$3 == "slow" { print "tests/" $1 ".sh" }' tests/sets.txt | sort
}

# new_history NAME: an empty repository in $work/NAME, in which test files are not tracked
new_history()
{
	mkdir -p "$work/$1/tests"
	cp -r tests/choose.sh tests/sets.txt tests/kernels "$work/$1/tests"
	git -C "$work/$1" init -q
	printf 'tests/*\n!tests/verified\n' >"$work/$1/.git/info/exclude"
}

# commit NAME COUNT
commit()
{
	for _ in $(seq "$2"); do
		git -C "$work/$1" commit -q --allow-empty -m "change $((++number))"
	done
}

# chosen NAME: the slow tests of a turn in that history
chosen()
{
	"$work/$1/tests/choose.sh" turn 2>>"$work/$1.why"
}

# With one push a day, whatever its commit, all tests run within four days.
new_history daily
commit daily 1
for DAY in 20000 20001 20002 20003; do
	DAY=$DAY chosen daily
done >"$work/turns"
is 'a push a day: each slow test runs within four days' "$(sort -u "$work/turns")" "$(slow_tests)"

# On one day, and on each fourth day, no number of commits a push keeps a test from ever running.
new_history by4
for _ in $(seq 32); do
	commit by4 4
	DAY=20000 chosen by4 >>"$work/turns.by4"
	"$work/by4/tests/choose.sh" kernels >>"$work/kernels.by4"
done
is '32 pushes of 4 commits on one day: each slow test runs' "$(sort -u "$work/turns.by4")" "$(slow_tests)"
is 'and each kernel is booted' "$(sort -u "$work/kernels.by4")" \
	"$(awk '/^[a-z]/ { print $1 ":" $2 }' tests/kernels/kernels.txt | grep -vx x86_64:6.1 | sort)"
is 'a turn takes at most the seconds that it may' \
	"$(awk '/ s of tests, at most / && $2 > $NF' "$work"/*.why)" ''

# Tests of what has changed come next. If that is unknown, the turn is as full.
new_history based
echo 'base 0 2026-01-01' >"$work/based/tests/verified"
git -C "$work/based" add tests/verified
commit based 1
mkdir -p "$work/based/tests/live"
echo >"$work/based/tests/live/gpu_killed.sh"
git -C "$work/based" add -f tests/live/gpu_killed.sh
commit based 1
is 'what has changed since tests/verified is known' "$("$work/based/tests/choose.sh" changed)" \
	tests/live/gpu_killed.sh
for DAY in 0 1 2 3; do
	DAY=$DAY chosen based | grep -cx tests/live/gpu_killed.sh
done >"$work/counts"
is 'a test that has changed runs on each day' "$(tr '\n' ' ' <"$work/counts")" '1 1 1 1 '
is 'while the BPF programs are as they were, one more kernel is booted' \
	"$("$work/based/tests/choose.sh" kernels | wc -l)" 1
mkdir "$work/based/bpf"
echo >"$work/based/bpf/steps.bpf.h"
for _ in $(seq 32); do
	commit based 1
	"$work/based/tests/choose.sh" kernels
done >"$work/kernels.bpf"
is 'once they have changed, each kernel that loads them is booted, of arm64 too' \
	"$(sort -u "$work/kernels.bpf")" "$(awk '$5 == "live" { print $1 ":" $2 }' \
		tests/kernels/kernels.txt | grep -vx x86_64:6.1 | sort)"
is 'and the oldest and the newest one each time' \
	"$(sort "$work/kernels.bpf" | uniq -c | awk '$1 == 32 { print $2 }' | tr '\n' ' ')" \
	'x86_64:5.15 x86_64:newest '
git clone -q --depth 1 "file://$work/based" "$work/shallow"
cp -r tests/choose.sh tests/sets.txt "$work/shallow/tests"
"$work/shallow/tests/choose.sh" base >/dev/null
is 'a shallow clone does not take its oldest commit for the base' $? 1
is 'and has a full turn nevertheless' \
	"$([ "$(chosen shallow | wc -l)" -gt 10 ] && echo full)" full
exit $status

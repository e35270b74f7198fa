#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Chooses tests by tests/sets.txt and by what has changed:
#
#	choose.sh fast       the scripts of the fast set
#	choose.sh all        all but those of the set `engines`
#	choose.sh engines    those that need a whole engine
#	choose.sh base       the commit on which `make test-all` passed last; fails if that is not known
#	choose.sh changed    the files that have changed since, those that are not committed too
#	choose.sh turn       what else than the fast set .ci/run runs; why goes to stderr
#	choose.sh kernels    the kernels that .ci/run boots, as ARCH:NAME
#
# The slow set has four slices. A turn begins with the slice of the day (UTC), so each slow test runs
# within four days on which something is pushed. Then come the tests whose subjects have changed, and
# then others, in an order that the commit's hash decides, until CAP seconds are full.
# Neither asks how many commits a push has, or what ran before: a clean clone does not know that.
# DAY=N, a number of days since 1970, chooses as on that day; SLICE=N and KERNEL=NAME name what is first.
set -u
cd "$(dirname "$0")/.." || exit 1

CAP=${CAP:-600}
SLICES=4

find_base()
{
	local commit

	# The commit that wrote the line, not the one that the line names: a rebase changes the
	# latter.
	commit=$(git log -1 --format=%H -G'^base ' -- tests/verified 2>/dev/null)
	[ -n "$commit" ] || return 1
	# In a shallow clone, the oldest commit seems to have written everything.
	! git rev-parse --verify -q "$commit^" >/dev/null &&
		[ "$(git rev-parse --is-shallow-repository)" = true ] && return 1
	echo "$commit"
}

changed_files()
{
	local base

	base=$(find_base) || return 1
	{
		git diff --name-only "$base"
		git ls-files --others --exclude-standard
	} | sort -u
}

# set_lines SET…: their lines of sets.txt, scripts only
set_lines()
{
	local sets=" $* "

	awk -v sets="$sets" '/^(live|e2e)\// && index(sets, " " $3 " ")' tests/sets.txt
}

scripts()
{
	awk '{ print "tests/" $1 ".sh" }'
}

# is_subject FILE SUBJECT…
is_subject()
{
	local file=$1 subject

	shift
	for subject; do
		[[ $subject != */ ]] || subject+='*'
		# shellcheck disable=SC2053 # it is a glob
		[[ $file != $subject ]] || return 0
	done
	return 1
}

# has_changed NAME SUBJECT…: one of $changed is a subject of that test
has_changed()
{
	local name=$1 file

	shift
	for file in $changed; do
		is_subject "$file" "tests/$name.*" "tests/${name}_*" "$@" && return 0
	done
	return 1
}

# hash_text TEXT: sets hash
hash_text()
{
	local i code

	hash=0
	for ((i = 0; i < ${#1}; i++)); do
		printf -v code %d "'${1:i:1}"
		hash=$(((hash * 16777619 ^ code) & 0x7fffffff))
	done
}

# Sets commit, changed, and slice (that of the day).
look()
{
	commit=$(git rev-parse --verify -q HEAD 2>/dev/null)
	changed=$(changed_files)
	slice=${SLICE:-$((${DAY:-$(($(date +%s) / 86400))} % SLICES))}
}

# candidates: "SECONDS NAME WHY", in order of priority
candidates()
{
	local name seconds set subjects why hash

	while read -r name seconds set _ subjects; do
		why='2 filling'
		hash_text "$name"
		set -f
		# shellcheck disable=SC2086
		if [ "$set $((hash % SLICES))" = "slow $slice" ]; then
			why='0 slice'
		elif has_changed "$name" $subjects; then
			why='1 changed'
		fi
		set +f
		hash_text "$name $commit"
		[ "$set $why" = 'nightly 2 filling' ] || echo "${why% *} $hash $seconds $name ${why#* }"
	done < <(set_lines slow nightly) | sort -n -k1,1 -k2,2 | cut -d' ' -f3-
}

choose_turn()
{
	local seconds name why total=0 left=() base

	look
	base=$(find_base) || base='an unknown commit'
	echo "choice: $(wc -w <<<"$changed") files have changed since $base" >&2
	echo "choice: slice $slice of the slow set first" >&2
	while read -r seconds name why; do
		if [ $((total + seconds)) -gt "$CAP" ]; then
			left+=("$name")
			continue
		fi
		total=$((total + seconds))
		echo "choice: $name ($why, $seconds s)" >&2
		echo "tests/$name.sh"
	done < <(candidates)
	echo "choice: $total s of tests, at most $CAP" >&2
	[ ${#left[@]} = 0 ] || echo "choice: left for later: ${left[*]}" >&2
}

# One kernel more than the smoke test boots. If the BPF programs have changed, it is one of those that
# load them, beside the oldest and the newest one of x86-64.
choose_kernels()
{
	local all file hash ends=()

	look
	hash_text "$commit"
	mapfile -t all < <(kernels_that '[a-z]+')
	for file in $changed; do
		is_subject "$file" bpf/ include/ vmlinux/ || continue
		mapfile -t all < <(kernels_that live)
		mapfile -t ends < <(printf '%s\n' "${all[@]}" | grep x86_64 | sed -n '1p;$p')
		printf '%s\n' "${ends[@]}"
		mapfile -t all < <(printf '%s\n' "${all[@]}" | grep -vxF "$(printf '%s\n' "${ends[@]}")")
		break
	done
	echo "${KERNEL:-${all[hash % ${#all[@]}]}}"
}

# kernels_that RUN: all that run what this expression says, but for that of the smoke test
kernels_that()
{
	awk -v runs="^$1\$" '/^[a-z]/ && $5 ~ runs { print $1 ":" $2 }' tests/kernels/kernels.txt |
		grep -vx x86_64:6.1
}

case ${1:-} in
fast) set_lines fast | scripts ;;
all) set_lines fast slow nightly | scripts ;;
engines) { set_lines engines && set_lines fast slow | grep '^e2e/'; } | scripts ;;
base) find_base ;;
changed) changed_files ;;
turn) choose_turn ;;
kernels) choose_kernels ;;
*)
	sed -n '/^# Chooses/,/^$/{/^#/p}' "$0" | head -n 9 >&2
	exit 2
	;;
esac

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
#	choose.sh note       a line for tests/verified that says so
#
# The slow set has four slices. A turn is one slice and those tests whose subjects have changed, until
# CAP seconds are full. The slice is one that tests/verified does not name, or the one named longest
# ago; so each test is run within four changes that commit that file, and without it the number of
# commits decides. Where it is not known what has changed, or it is more than 60 commits, further
# slices fill the time.
set -u
cd "$(dirname "$0")/.." || exit 1

CAP=${CAP:-450}
SLICES=4
COMMITS=60

find_base()
{
	local commit

	# The commit that wrote the line, not the one it names: a rebase changes that.
	commit=$(git log -1 --format=%H -G'^base ' -- tests/verified 2>/dev/null)
	[ -n "$commit" ] || return 1
	# The oldest commit of a shallow clone seems to have written everything.
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

slice_of()
{
	local sum

	read -r sum _ < <(printf %s "$1" | cksum)
	echo $((sum % SLICES))
}

# by_turn NOTED CANDIDATE…: the candidates in the order of their turn. First those that tests/verified does
# not note, from the one that the number of commits tells; then those noted, longest ago first.
by_turn()
{
	local noted=$1 item i fresh=()

	shift
	for ((i = 0; i < $#; i++)); do
		item=$((1 + (commits + i) % $#)) item=${!item}
		[[ " $noted " == *" $item "* ]] || fresh+=("$item")
	done
	echo "${fresh[*]}" "$(tr ' ' '\n' <<<"$noted" | tac | awk 'NF && !seen[$0]++' | tac | tr '\n' ' ')"
}

# Sets base, commits, wide (1 where the slices are to fill the time), changed and slices.
look()
{
	local noted

	wide=0 changed=
	if base=$(find_base); then
		commits=$(git rev-list --count "$base..HEAD")
		changed=$(changed_files)
		[ "$commits" -le $COMMITS ] || wide=1
	else
		commits=$(git rev-list --count HEAD 2>/dev/null || echo 0)
		wide=1
	fi
	noted=$(noted_turns 2)
	# shellcheck disable=SC2046
	read -ra slices <<<"$(by_turn "$noted" $(seq 0 $((SLICES - 1))))"
	[ -z "${SLICE:-}" ] || slices=("$SLICE" "${slices[@]/$SLICE/}")
}

noted_turns()
{
	awk -v field="$1" '$1 == "turn" { printf "%s ", $field }' tests/verified 2>/dev/null
}

# candidates: "SECONDS NAME WHY" in the order of their claim
candidates()
{
	local slice name seconds set subjects why

	while read -r slice; do
		while read -r name seconds set _ subjects; do
			set -f
			# shellcheck disable=SC2086
			why=$(has_changed "$name" $subjects && echo changed)
			set +f
			[ "$set" = slow ] || [ -n "$why" ] || continue
			if [ "$slice" = "${slices[0]}" ]; then
				echo "0 $seconds $name ${why:-slice}"
			elif [ -n "$why" ]; then
				echo "1 $seconds $name $why"
			elif [ "$wide" = 1 ]; then
				echo "2 $seconds $name slice"
			fi
		done < <(set_lines slow nightly | while read -r line; do
			[ "$(slice_of "${line%% *}")" != "$slice" ] || echo "$line"
		done)
	done < <(printf '%s\n' "${slices[@]}" | grep .) | sort -s -k1,1n | cut -d' ' -f2-
}

choose_turn()
{
	local seconds name why total=0 left=()

	look
	if [ "$wide" = 0 ]; then
		echo "choice: $commits commits and $(wc -w <<<"$changed") files since ${base:-tests/verified}" >&2
	else
		echo "choice: $commits commits since what tests/verified knows: all slices, as far as there is time" >&2
	fi
	echo "choice: slice ${slices[0]} of the slow set first" >&2
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

# One more than the smoke test boots, or all of x86-64 where the programs in the kernel have changed.
choose_kernels()
{
	local all order file

	look
	mapfile -t all < <(awk '/^[a-z]/ { print $1 ":" $2 }' tests/kernels/kernels.txt | grep -vx x86_64:6.1)
	read -ra order <<<"$(by_turn "$(noted_turns 3)" "${all[@]}")"
	for file in $changed; do
		is_subject "$file" bpf/ include/ vmlinux/ && printf '%s\n' "${all[@]}" | grep x86_64 && return
	done
	echo "${KERNEL:-${order[0]}}"
}

case ${1:-} in
fast) set_lines fast | scripts ;;
all) set_lines fast slow nightly | scripts ;;
engines) { set_lines engines && set_lines fast slow | grep '^e2e/'; } | scripts ;;
base) find_base ;;
changed) changed_files ;;
turn) choose_turn ;;
kernels) choose_kernels ;;
note)
	look
	echo "turn ${slices[0]} $(choose_kernels | tail -n 1)"
	;;
*)
	sed -n '/^# Chooses/,/^$/{/^#/p}' "$0" | head -n 10 >&2
	exit 2
	;;
esac

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Runs a tier of the tests, see CONTRIBUTING.md:
#
#	tier.sh fast       unit, golden, the fast set, and two tests on one emulated kernel
#	tier.sh change     that, lint, sanitizers, fuzz corpora, a turn of the slow set and one more
#	                   kernel; tests/choose.sh says which
#	tier.sh all        everything but what `make test-engines` and `make soak` run
#	tier.sh smoke, tier.sh boot ARCH:NAME…    the kernels of these
#	tier.sh prepare changed|all    the checks of `all` that run beside live tests
#
# Kernels are emulated beside live tests, which mostly sleep, and are through before those tests that
# want the machine for themselves; so are the checks of `all`. KERNEL_NICE=0 is for a machine that has other work too, where they
# would not get on otherwise. The last line is the sum, as of tests/run.sh.
set -u
cd "$(dirname "$0")/.." || exit 1

arch=$(uname -m | sed 's/aarch64/arm64/')
export FBT_BUILD=${FBT_BUILD:-build/$arch-gcc}
# Stages choose the number of jobs and the build folder themselves, so those options of this make
# are not passed on.
export MAKEFLAGS
MAKEFLAGS=$(sed -E 's/ ?-j[0-9]*( |$)/ /; s/ ?--jobserver-[a-z]+=[^ ]+//g; s/ O=[^ ]+//' <<<"${MAKEFLAGS:-}")
make=${MAKE:-make}
niceness=${KERNEL_NICE:-10}
passed=0
failed=0
skipped=0
reasons=() failures=() stages=() side='' beside=kernels
work=$(mktemp -d) || exit 1

# shellcheck disable=SC2317 # it is called by the trap
clean_up()
{
	[ -z "$side" ] || kill -- "-$side" 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# add NAME STATUS SECONDS LOG: adds up the last line of a stage
add()
{
	local line good bad skips

	line=$(tail -n 5 "$4" | grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' | tail -n 1)
	read -r good _ bad _ skips _ <<<"${line:-0 passed, 0 failed}"
	if [ "$2" != 0 ] && [ "$bad" = 0 ]; then
		echo "  FAIL     $1: exit status $2" | tee -a "$4"
		bad=1
	fi
	mapfile -t -O ${#failures[@]} failures < <(sed -nE 's/^ *FAIL +/  /p' "$4")
	passed=$((passed + good))
	failed=$((failed + bad))
	skipped=$((skipped + ${skips:-0}))
	mapfile -t -O ${#reasons[@]} reasons < <(sed -n '/^skipped:$/,/^[0-9]/{/^  /p}' "$4")
	stages+=("$(printf '  %6d s  %s' "$3" "$1")")
}

# stage NAME COMMAND…
stage()
{
	local name=$1 start=$SECONDS status

	shift
	echo "== $name"
	"$@" 2>&1 </dev/null | tee "$work/stage"
	status=${PIPESTATUS[0]}
	add "$name" "$status" $((SECONDS - start)) "$work/stage"
	return "$status"
}

# start_beside COMMAND…: starts it; join prints its output
start_beside()
{
	# In a process group of its own, so that it can be ended together with all that it has
	# started.
	set -m
	{
		SECONDS=0
		"$@"
		echo "$? $SECONDS" >"$work/side.status"
	} >"$work/side" 2>&1 </dev/null &
	side=$!
	set +m
}

join()
{
	local status seconds

	[ -n "$side" ] || return
	wait "$side"
	side=
	read -r status seconds <"$work/side.status" || status=1
	echo "== $1, beside these"
	cat "$work/side"
	add "$1, beside these" "$status" "${seconds:-0}" "$work/side"
}

# finish: prints the stages' durations, what was left out, what failed, and the sum. A failure is
# told again here because the end of a long output is what is kept of it.
finish()
{
	echo '== stages'
	printf '%s\n' "${stages[@]}"
	[ ${#reasons[@]} = 0 ] || { echo 'skipped:' && printf '%s\n' "${reasons[@]}" | sort | uniq -c |
		sed -E 's/^ +1 /  /; s/^ +([0-9]+) (.*)/  \2 (\1 times)/; s/^ +/  /'; }
	[ ${#failures[@]} = 0 ] || { echo 'failed:' && printf '%s\n' "${failures[@]}" | sort -u; }
	echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
	[ "$failed" = 0 ]
	exit
}

# shellcheck disable=SC2317 # a stage
build()
{
	"$make" -s -j"$(nproc)" WERROR=1 O="$FBT_BUILD" TESTS='unit golden live e2e' build-tests
}

# smoke: the quickest check that the programs load on the oldest kernel of a Debian release, with
# either kind of uprobe
smoke()
{
	local why

	if ! why=$(packaging/deps.sh kernels "$arch" 2>&1); then
		echo "$why"
		[ -z "${CI:-}" ] || return 1
		printf 'skipped:\n  kernels/6.1: %s\n0 passed, 0 failed, 1 skipped\n' "${why##*$'\n'}"
		return
	fi
	KERNELS=6.1 KERNEL_TESTS=tests/live/vmlinux.sh,tests/live/perf_uprobes.sh KERNEL_SECONDS=600 \
		nice -n "$niceness" "$make" -s test-kernels
}

# boot ARCH:NAME…: boots these kernels one after the other, with their usual tests
boot()
{
	local kernels=" $* " commands=() names

	names=$(grep -oE ' x86_64:[^ ]+' <<<"$kernels" | cut -d: -f2 | tr '\n' ' ')
	[ -z "$names" ] || commands+=("KERNELS='${names% }' nice -n $niceness $make -s test-kernels")
	names=$(grep -oE ' arm64:[^ ]+' <<<"$kernels" | cut -d: -f2 | tr '\n' ' ')
	[ -z "$names" ] || commands+=("KERNELS='${names% }' nice -n $niceness $make -s test-kernels-arm64")
	tests/sum.sh "${commands[@]}"
}

# run_tests KERNEL-COMMAND… -- FILE…: the kernels of that command beside unit, golden and those
# files
run_tests()
{
	local kernels=()

	while [ "$1" != -- ]; do
		kernels+=("$1")
		shift
	done
	shift
	start_beside "${kernels[@]}"
	stage 'unit and golden' tests/run.sh unit golden
	stage 'live and e2e, two at once' env LANE=any tests/run.sh "$@"
	join "$beside"
	[ -z "$(lane_alone "$@")" ] || stage 'live and e2e, alone' env LANE=alone tests/run.sh "$@"
}

lane_alone()
{
	local file

	for file; do
		file=${file#tests/}
		awk -v name="${file%.sh}" '$1 == name && $4 == "alone"' tests/sets.txt
	done
}

# Checks that trace nothing.
run_checks()
{
	stage lint env TIDY="$1" "$make" -s lint
	stage sanitizers "$make" -s -j"$(nproc)" SAN=1 TESTS='unit golden' run-tests
	stage 'fuzz corpora' "$make" -s -j"$(nproc)" fuzz-corpus
}

# prepare TIDY: those of them that take no account of time, and what the others run
prepare()
{
	local lowest="nice -n 19 $make -s"

	tests/sum.sh "TIDY=$1 $lowest lint" "$lowest fuzz-corpus" \
		"$lowest SAN=1 TESTS='unit golden' build-tests"
}

# Notes in tests/verified the commit on which everything passed. That file must be committed.
note()
{
	[ "$failed" = 0 ] && [ -z "${CI:-}" ] && [ -z "$(git status --porcelain 2>/dev/null)" ] || return
	cat >tests/verified <<-END
		# What make test-all passed on last: tests/choose.sh asks what has changed since the commit of
		# this line. Commit it with the change.
		base $(git rev-parse HEAD) $(date -u +%F)
	END
	echo "tests/verified has a new line, which is to be committed: $(tail -n 1 tests/verified)"
}

case ${1:-} in
fast)
	stage build build || finish
	mapfile -t files < <(tests/choose.sh fast)
	run_tests tests/tier.sh smoke -- "${files[@]}"
	;;
change)
	stage build build || finish
	mapfile -t files < <({ tests/choose.sh fast && tests/choose.sh turn; } | sort -u)
	mapfile -t kernels < <(tests/choose.sh kernels)
	echo "choice: kernels ${kernels[*]}"
	run_tests tests/sum.sh 'tests/tier.sh smoke' "tests/tier.sh boot ${kernels[*]}" -- "${files[@]}"
	run_checks changed
	;;
all)
	stage build build || finish
	mapfile -t files < <(tests/choose.sh all)
	mapfile -t kernels < <(awk '/^[a-z]/ { print $1 ":" $2 }' tests/kernels/kernels.txt)
	beside='kernels and checks'
	run_tests tests/sum.sh "tests/tier.sh boot ${kernels[*]}" 'tests/tier.sh prepare all' -- "${files[@]}"
	stage sanitizers "$make" -s -j"$(nproc)" SAN=1 TESTS='unit golden' run-tests
	note
	;;
smoke)
	smoke
	exit
	;;
prepare)
	prepare "$2"
	exit
	;;
boot)
	shift
	boot "$@"
	exit
	;;
*)
	echo 'usage: tests/tier.sh fast|change|all|smoke|boot|prepare' >&2
	exit 2
	;;
esac
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Shared by run.sh and corpus.sh. fuzz.mk starts them at the root of the tree.

: "${FUZZ_BIN:?is set by fuzz.mk}" "${FUZZ_WORK:?}" "${TARGETS:?}"
# shellcheck disable=SC2034 # whoever sources this uses it
corpora=tests/fuzz/corpus

# A unit that takes more than 10 s, or more memory than this, is a finding too.
limits=(-timeout=10 -rss_limit_mb=512 -close_fd_mask=3)
# Freed memory is kept for a while, so that its use is noticed. By default that would be half of the
# limit.
export ASAN_OPTIONS=quarantine_size_mb=16:detect_stack_use_after_return=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}

# Maximum bytes of an input: findings need few bytes, and long inputs are slow.
max_len_of()
{
	case $1 in
	names | options | proc | seccomp) echo 1024 ;;
	flow | metadata) echo 2048 ;;
	*) echo 4096 ;;
	esac
}

# fuzz TARGET LOG FOLDERS… OPTIONS…: the exit status is libFuzzer's; new inputs go to the first folder
fuzz()
{
	local target=$1 log=$2 dictionary=tests/fuzz/dict/$1.dict

	shift 2
	[ ! -e "$dictionary" ] || set -- "$@" -dict="$dictionary"
	"$FUZZ_BIN/$target" "${limits[@]}" -max_len="$(max_len_of "$target")" -print_final_stats=1 \
		-artifact_prefix="$FUZZ_WORK/$target-" "$@" >"$log" 2>&1
}

# The last figure of that name in libFuzzer's output: "ft" features, "cov" edges.
figure()
{
	grep -oE "$2: [0-9]+" "$1" | tail -n 1 | cut -d' ' -f2
}

executions()
{
	sed -n 's/^stat::number_of_executed_units: //p' "$1"
}

# The finding in one line: the sanitizer's words, or ours.
finding()
{
	grep -hE 'runtime error: |not so: |^SUMMARY: |ERROR: ' "$1" | head -n 1
}

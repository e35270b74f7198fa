#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# make fuzz-corpus: each target runs its corpus, and FUZZ_RUNS more inputs derived from it. The
# inputs are always the same, so failures are reproducible.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=lib.sh
. tests/fuzz/lib.sh

status=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$FUZZ_WORK"
for target in $TARGETS; do
	log=$FUZZ_WORK/$target.corpus.log
	mkdir -p "$scratch/$target" "$corpora/$target"
	count=$(find "$corpora/$target" -type f | wc -l)
	if fuzz "$target" "$log" -seed=1 -runs="$((count + ${FUZZ_RUNS:?}))" "$scratch/$target" \
		"$corpora/$target"; then
		echo "ok - $target takes $count inputs, and $FUZZ_RUNS made from them"
	else
		finding "$log"
		echo "not ok - $target takes $count inputs, and $FUZZ_RUNS made from them: see" \
			"$log and $FUZZ_WORK/$target-*"
		status=1
	fi
done
exit $status

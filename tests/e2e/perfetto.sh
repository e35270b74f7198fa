#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Traces in Perfetto's format, read with the protos of its own Python package, hold what the JSON traces
# hold, of each case of tests/golden.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
: "${FBT:=$FBT_BUILD/ferrum-bpftrace}"
: "${FBT_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/ferrum-bpftrace}"
package=$FBT_CACHE/perfetto
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -d "$package/perfetto" ] || python3 -m pip install --quiet --disable-pip-version-check \
	--target "$package" 'perfetto==0.59.1' protobuf >"$work/pip" 2>&1 || {
	rm -rf "$package"
	echo "SKIP pip cannot install perfetto: $(tail -n 1 "$work/pip")"
	exit 77
}
status=0 flows=0 counters=0 slices=0 stacks=0

# trace FORMAT FILE CASE
trace()
{
	local options=()

	[ ! -e "tests/golden/$3.options" ] || read -ra options <"tests/golden/$3.options"
	"$FBT" --replay "$work/capture" --profile none --report none "${options[@]}" \
		--trace-format "$1" --trace "$work/$2" --folded "$work/folded" >/dev/null 2>&1
	return 0
}

for case in tests/golden/*.events; do
	name=$(basename "$case" .events)
	"$FBT_BUILD/tests/events" "$case" "$work/capture" || { echo "not ok - $name" && status=1 && continue; }
	! grep -q kineto "tests/golden/$name.options" 2>/dev/null || continue
	trace ferrum trace.json "$name"
	trace perfetto trace.pftrace "$name"
	if count=$(PYTHONPATH=$package python3 tests/perfetto_check.py "$work/trace.json" "$work/trace.pftrace" \
		"$work/folded" 2>&1); then
		echo "ok - $name"
		read -r s _ c _ f _ k _ <<<"$count"
		slices=$((slices + s)) counters=$((counters + c)) flows=$((flows + f)) stacks=$((stacks + k))
	else
		echo "$count"
		echo "not ok - $name"
		status=1
	fi
done
# The cases have them all.
if [ $slices -gt 1000 ] && [ $counters -gt 500 ] && [ $flows -gt 2 ] && [ $stacks -gt 5 ]; then
	echo "ok - $slices slices, $counters counters, $flows flows and $stacks stacks were compared"
else
	echo "not ok - $slices slices, $counters counters, $flows flows and $stacks stacks were compared"
	status=1
fi
exit $status

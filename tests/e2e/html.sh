#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The HTML report in a real browser: it draws, zooms and explains a step, offline and without an error,
# and names from the traced process do nothing in it.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
: "${FBT:=$FBT_BUILD/ferrum-bpftrace}"
for program in chromium chromedriver; do
	command -v $program >/dev/null || { echo "SKIP needs $program" && exit 77; }
done
for python in python3 /usr/bin/python3 ''; do
	[ -n "$python" ] || { echo 'SKIP needs python3-selenium' && exit 77; }
	! "$python" -c 'import selenium' 2>/dev/null || break
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Steps of 1 ms, of two classes; every 50th of them waits 40 ms for a lock; two functions; names that are
# markup.
{
	echo 'window detail=escalated'
	echo 'target tgid=7 comm=<b>x</b> exe=/usr/bin/engine cmdline=</script><script>document.title+=/owned/</script><img/src=x/onerror=alert(1)>'
	echo 'thread tid=7 comm=<i>t</i>'
	echo 'kind kind=1 name=</script><script>document.title+=/owned/</script> args=n_tokens'
	echo 'kind kind=2 name=embed'
	echo 'code id=1 function=__lll_lock_wait path=/usr/lib/x86_64-linux-gnu/libc.so.6'
	echo 'code id=2 function=KvCache::take offset=0x20'
	echo 'code id=3 function=forward offset=0x10'
	for ((i = 0; i < 1000; i++)); do
		at=$((i * 50000 + 1000))
		if ((i % 50 == 49)); then
			echo "stack tid=7 start=$((at + 100))us name=futex codes=1,2,3"
			echo "call tid=7 start=$((at + 100))us dur=40000us name=futex ret=0"
			echo "step tid=7 kind=1 start=${at}us end=$((at + 41000))us run_delay=0 cpu=1000us asleep=40000us" \
				'futex=1/40000us args=64'
		else
			us=$((1000 + i % 7 * 10))
			echo "step tid=7 kind=1 start=${at}us end=$((at + us))us run_delay=0 cpu=${us}us asleep=0" \
				"args=$((i % 2 * 60 + 4))"
		fi
	done
	echo 'step tid=7 kind=2 start=50100ms end=50110ms'
	echo 'table name=futex sum=20/800ms'
	echo 'thread_use tid=7 cpu=900ms delay=10ms calls=20 call=800ms comm=<i>t</i> steps=1'
	echo 'thread_use tid=8 cpu=300ms delay=500ms calls=0 call=0 comm=<b>w</b>'
	echo 'end end=51s'
} >"$work/events"
"$FBT_BUILD/tests/events" "$work/events" "$work/capture" || { echo 'not ok - the records are made' && exit 1; }
"$FBT" --replay "$work/capture" --class-by n_tokens --trace none --profile none --report none \
	--html "$work/page.html" 2>/dev/null
"$FBT_BUILD/tests/events" tests/golden/gpu.events "$work/gpu" || { echo 'not ok - GPU records are made' && exit 1; }
"$FBT" --replay "$work/gpu" --trace none --profile none --report none --html "$work/gpu.html" 2>/dev/null
# Steps that hang, locks whose holder was seen, who had the CPU or ended waits, functions that have grown, losses,
# and a function that is sampled.
for case in hang hang_looks looks scripts explained woken grown lost gpu_late async_sampled; do
	"$FBT_BUILD/tests/events" tests/golden/$case.events "$work/$case" ||
		{ echo "not ok - records of $case are made" && exit 1; }
	options=()
	[ ! -e tests/golden/$case.options ] || read -ra options <tests/golden/$case.options
	"$FBT" --replay "$work/$case" "${options[@]}" --trace none --profile none --report none \
		--html "$work/$case.html" 2>/dev/null
done
# Steps without system calls, of a thread whose use is known.
sed 's/^end /thread_use tid=7 cpu=500ms delay=1ms comm=engine steps=1\n&/' tests/golden/probes.events >"$work/events"
"$FBT_BUILD/tests/events" "$work/events" "$work/probes" || { echo 'not ok - steps without calls are made' && exit 1; }
"$FBT" --replay "$work/probes" --trace none --profile none --report none --html "$work/probes.html" 2>/dev/null
# Two files that have a function of the same name each.
{
	echo 'window detail=escalated'
	echo 'target tgid=7 comm=x exe=/usr/bin/engine'
	echo 'thread tid=7 comm=x'
	echo 'kind kind=1 name=llama_decode path=/usr/lib/libllama.so address=0x1000'
	echo 'kind kind=2 name=llama_decode path=/opt/canary/libllama.so address=0x1000'
	for ((i = 0; i < 300; i++)); do
		at=$((i * 50000 + 1000))
		echo "step tid=7 kind=1 start=${at}us end=$((at + 1000))us cpu=1000us"
		((i % 3)) || echo "step tid=7 kind=2 start=$((at + 2000))us end=$((at + 9000))us cpu=7000us"
	done
	echo 'end end=16s'
} >"$work/events"
"$FBT_BUILD/tests/events" "$work/events" "$work/twins" || { echo 'not ok - twins are made' && exit 1; }
"$FBT" --replay "$work/twins" --trace none --profile none --report none --html "$work/twins.html" 2>/dev/null
# As if there had been more steps, and more escalated ones, than are kept for certain.
sed -E 's/"stride":1,"escalated_kept":[0-9]+/"stride":4,"escalated_kept":1000/' "$work/page.html" >"$work/thin.html"
sed -E 's/"stride":1,"escalated_kept":[0-9]+/"stride":4,"escalated_kept":15/' "$work/page.html" >"$work/thinner.html"
HTML_CASES="$work" HTML_THIN="$work/thin.html" HTML_THINNER="$work/thinner.html" HTML_TWINS="$work/twins.html" HTML_GPU="$work/gpu.html" "$python" tests/e2e/html_browser.py "$work/page.html" "$work"

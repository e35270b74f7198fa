#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What diff says of constructed captures and of their profiles: diff/NAME.txt, .json and .profiles.txt hold its
# words. UPDATE=1 rewrites them; review their diff.
set -u
cd "$(dirname "$0")" || exit 1
root=$(cd ../.. && pwd)
build=$(cd "$root" && realpath -m "${FBT_BUILD:-build/$(uname -m | sed 's/aarch64/arm64/')-gcc}")
tool=$(cd "$root" && realpath -m "${FBT:-$build/ferrum-bpftrace}")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# make NAME SCRIPT: $work/NAME.fbt and .jsonl of what the Python script prints, which has step() and line()
make()
{
	python3 - >"$work/$1.events" <<-END || exit 1
		state, now = 1, 1000
		def spread():
		    "The same numbers in each run, from -0.5 to 0.5."
		    global state
		    state = (state * 1103515245 + 12345) % 2**31
		    return state / 2**31 - 0.5
		def line(text):
		    print(text)
		def step(us, wait=0, tokens=None, kind=1, tid=7):
		    "Computes for us and waits for a lock, both give or take 5 %."
		    global now
		    us = round(us * (1 + 0.1 * spread()))
		    wait = round(wait * (1 + 0.1 * spread()))
		    print(f'step tid={tid} kind={kind} start={now}us end={now + us + wait}us cpu={us}us run_delay=0 asleep={wait}us'
		          + (f' futex=1/{wait}us' if wait else '') + (f' args={tokens}' if tokens is not None else ''))
		    now += us + wait + 500
		$2
		line(f'end end={now + 1000}us')
	END
	"$build/tests/events" "$work/$1.events" "$work/$1.fbt" || exit 1
	"$tool" --replay "$work/$1.fbt" --report none --trace none --profile "$work/$1.jsonl" 2>/dev/null
}

check()
{
	if [ "${UPDATE:-}" = 1 ]; then
		cp "$work/$1" "diff/$1"
	elif ! diff -u --label "diff/$1 expected" --label "diff/$1 actual" "diff/$1" "$work/$1"; then
		echo "not ok - diff: $1"
		status=1
		return
	fi
	echo "ok - diff: $1"
}

# compare NAME STATUS A B OPTION…
compare()
{
	local name=$1 wanted=$2 a=$3 b=$4 got

	shift 4
	for form in txt json profiles.txt; do
		(
			cd "$work" || exit 1
			ending=fbt
			[ $form != profiles.txt ] || ending=jsonl
			report=text
			[ $form != json ] || report=json
			env -i PATH="$PATH" LC_ALL=C "$tool" diff "$a.$ending" "$b.$ending" "$@" --report $report \
				>"$name.$form" 2>stderr
			code=$?
			sed 's/^/stderr: /' stderr >>"$name.$form"
			exit $code
		)
		got=$?
		if [ $got = "$wanted" ]; then
			echo "ok - diff: $name.$form: exit status $wanted"
		else
			echo "not ok - diff: $name.$form: exit status $got, wanted $wanted"
			status=1
		fi
		check "$name.$form"
	done
}

head_of='
line("window detail=steps host=one version=0.1.0 kernel=6.1.0 arch=x86_64")
line("target tgid=7 comm=engine exe=/usr/bin/engine cmdline=engine")
line("thread tid=7 comm=engine")
'
sized=$head_of'
line("kind kind=1 name=llama_decode args=n_tokens")
'
make before "$sized"'
for i in range(3000):
    if i % 10: step(900, 100, tokens=1 + i % 4)
    else: step(20000, tokens=512 + i % 64)
'
# The small steps wait for longer for a lock, there are other large ones, records were lost, another machine.
make after "${sized/host=one/host=two}"'
for i in range(3000):
    if i % 5: step(900, 350, tokens=1 + i % 4)
    elif i % 10: step(90000, tokens=4096)
    else: step(20000, tokens=512 + i % 64)
line("lost calls=12")
'
compare worse 3 before after
compare better 0 after before --threshold 30
compare same 0 before before

# Nothing is known of what steps had to do; twice as many large ones.
plain=$head_of'
line("kind kind=1 name=engine_step")
'
make plain "$plain"'
for i in range(3000): step(20000 if i % 10 == 0 else 1000)
'
make mixed "$plain"'
for i in range(3000): step(20000 if i % 5 == 0 else 1000)
'
compare mixed 0 plain mixed
make slower "$plain"'
for i in range(3000): step(20000 if i % 10 == 0 else 1200)
'
compare slower 3 plain slower

# Code that takes more than twice as long: its steps have no counterpart, but for three. Rare steps may differ.
make moved "$plain"'
for i in range(3000): step(20000 if i % 10 == 0 else 1000 if i % 1000 == 5 else 2300)
'
compare moved 1 plain moved
make rare_before "$plain"'
for i in range(3000): step(4000 if i % 100 == 0 else 1000)
'
make rare_after "$plain"'
for i in range(3000): step(12000 if i % 300 == 0 else 1000)
'
compare rare 0 rare_before rare_after

# Steps of all sizes: what they wait for can be compared.
make spread "$plain"'
for i in range(6000): step(200 * 2 ** (8 * (spread() + 0.5)))
'
make waits "$plain"'
for i in range(6000):
    us = 200 * 2 ** (8 * (spread() + 0.5))
    step(us, us / 2)
'
compare waits 3 spread waits

# Too little to be compared, another function, intervals, and names that are markup or turn text around.
make few "$plain"'
for i in range(20): step(1000)
'
compare few 1 plain few
make other "${plain/engine_step/other_step}"'
for i in range(300): step(1000)
'
compare other 1 plain other
make hostile "$head_of"'
line("kind kind=1 name=\"</script><b>x\\xe2\\x80\\xae\\x1b[31m\" args=<i>n</i>")
for i in range(600): step(1000, tokens=3)
'
compare hostile 0 hostile hostile --margin 20

# Two libraries have a function of that name.
make pooled "$plain"'
line("kind kind=2 name=engine_step")
for i in range(3000): step(20000 if i % 10 == 0 else 1000, kind=1 + i % 2)
'
compare pooled 0 plain pooled

# A profile of two windows that recorded other arguments: one is no size in terms of the other.
make batches "${sized/n_tokens/batch}"'
for i in range(3000): step(1000, tokens=1 + i % 4)
'
make prompts "${sized/n_tokens/prompt}"'
for i in range(3000): step(1000, tokens=256 + i % 4)
'
cat "$work/batches.jsonl" "$work/prompts.jsonl" >"$work/both.jsonl"
sizes=$("$tool" diff "$work/batches.jsonl" "$work/both.jsonl" --report json 2>/dev/null | grep -o '"size_by":"[a-z]*"' | sort -u)
if [ "$sizes" = '"size_by":"work"' ]; then
	echo 'ok - diff: of two arguments neither is the size'
else
	echo "not ok - diff: of two arguments neither is the size: $sizes"
	status=1
fi

# With --flag each process tells of the same window, and of the same losses. One had no steps.
make flags "$plain"'
line("lost calls=12")
for i in range(1000): step(1000)
'
for pid in 7 8 9; do
	[ $pid = 9 ] && last=8000 || last=7000
	grep -v step_prof "$work/flags.jsonl" | sed "s/\"tag\":\"[^\"]*\"/\"tag\":\"pid${pid}_176410800$last\"/"
done >"$work/ends"
cat "$work/flags.jsonl" "$work/ends" >"$work/flag.jsonl"
told=$("$tool" diff "$work/flag.jsonl" "$work/flags.jsonl" --report json 2>/dev/null |
	grep -o '"\(windows\|lost\)":[0-9]*' | head -2 | tr '\n' ' ')
if [ "$told" = '"windows":3 "lost":36 ' ]; then
	echo 'ok - diff: a window of several processes counts once'
else
	echo "not ok - diff: a window of several processes counts once: $told"
	status=1
fi
exit $status

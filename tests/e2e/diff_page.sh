#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The page of diff in a real browser: it draws, a click leads to a class, it asks for nothing, and names from the
# traced process do nothing in it.
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

# make NAME US: small steps of US, large ones of 20 ms, and names that are markup
make()
{
	local at=1000 us i

	{
		echo 'window detail=steps host=<b>host</b> version=0.1.0 kernel=6.1.0'
		echo 'target tgid=7 comm=engine exe=/usr/bin/engine cmdline=engine'
		echo 'thread tid=7 comm=engine'
		echo 'kind kind=1 name=</script><script>document.title+=/owned/</script> args=<i>n</i>'
		for ((i = 0; i < 2400; i++)); do
			us=$(((i % 10 == 0 ? 20000 : $2) * (950 + i * 7919 % 101) / 1000))
			echo "step tid=7 kind=1 start=${at}us end=$((at + us))us cpu=${us}us run_delay=0 args=$((i % 10 == 0 ? 512 : 4))"
			at=$((at + us + 500))
		done
		echo "end end=$((at + 1000))us"
	} >"$work/events"
	"$FBT_BUILD/tests/events" "$work/events" "$work/$1" || { echo 'not ok - the records are made' && exit 1; }
}

make '<i>a<img src=x onerror=alert(1)>' 1000
make b 1300
tool=$(realpath "$FBT")
(cd "$work" && "$tool" diff '<i>a<img src=x onerror=alert(1)>' b --report none --html page.html)
if [ $? = 3 ]; then echo 'ok - a regression'; else echo 'not ok - a regression'; fi
"$python" tests/e2e/diff_page_browser.py "$work/page.html" "$work"

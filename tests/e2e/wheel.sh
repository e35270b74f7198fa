#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The wheel: pip installs it, and the tool is run from there: it finds its libraries, traces, and goes
# with pip uninstall. The tag is that which auditwheel computes from the libraries' symbols.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/package/lib.sh
. "$PWD/tests/e2e/package/lib.sh"

install_checkers
build_package wheel
wheel=$(echo "$DIST"/ferrum_bpftrace-*.whl)
version=$(packaging/version.sh)
tag=${wheel##*-py3-none-}
"$BIN/auditwheel" show "$wheel" >"$TMP/audit" 2>&1
is 'auditwheel reads it' $? 0
has 'the tag is the one that its libraries allow' <(tr '\n' ' ' <"$TMP/audit") "constrains the platform tag to \"${tag%.whl}\""
holds 'its metadata are right' "$BIN/twine" check --strict "$wheel"
# W007: it has no Python.
holds 'its contents are right' "$BIN/check-wheel-contents" --ignore W007 "$wheel"

venv=$TMP/venv
python3 -m venv "$venv" || skip 'python3 has no venv'
list_venv()
{
	find "$venv" ! -name '*.pyc' ! -name __pycache__ -printf '%P\n' | sort
}
list_venv >"$TMP/before"
holds 'pip installs it' "$venv/bin/pip" -q install --no-index --disable-pip-version-check "$wheel"
# Not the tool of the build by mistake.
FBT=$venv/bin/ferrum-bpftrace
is 'it says its version' "$("$FBT" --version)" "ferrum-bpftrace $version"
is 'pip says the same' "$("$venv/bin/pip" show ferrum-bpftrace 2>/dev/null | sed -n 's/^Version: //p')" "$version"
"$FBT" engine-env >"$TMP/env" 2>&1
has 'it finds the shim' "$TMP/env" "CUDA_INJECTION64_PATH='$venv/lib/ferrum-bpftrace/libferrum_cupti\\.so'"
has 'and the library for Python' "$TMP/env" "LD_PRELOAD='$venv/lib/ferrum-bpftrace/libferrum_python\\.so'"
for library in cupti python; do
	holds "libferrum_$library.so can be loaded" python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$venv/lib/ferrum-bpftrace/libferrum_$library.so"
done
holds 'man pages are there' test -s "$venv/share/man/man8/ferrum-bpftrace.8" -a -s "$venv/share/man/man5/ferrum-bpftrace-profile.5"
trace_engine '--steps 200'
check_truth 'from the environment'

# A real Python engine, with the library that came in the wheel.
cat >"$TMP/engine.py" <<'END'
import time

class Engine:
    def step(self, batch):
        return sum(range(batch))

engine = Engine()
for number in range(10**9):
    engine.step(1000)
    time.sleep(0.005)
END
python3 "$TMP/engine.py" </dev/null >/dev/null 2>&1 &
engine=$!
# A version manager's python3 is a script first.
# shellcheck disable=SC2317 # called by name
is_python()
{
	[[ $(readlink "/proc/$engine/exe") == *python3* ]]
}
holds 'a Python engine runs' wait_for 30 is_python
"$FBT" -p "$engine" --python inject --step py:__main__:Engine.step -n 50 --trace none --profile "$TMP/python.jsonl" --report json \
	>"$TMP/python.report" 2>"$TMP/python.err"
is 'a Python engine is traced with its library' $? 0
is 'for as many steps as asked for' "$(grep -c '"event":"step_prof".*Engine.step' "$TMP/python.jsonl")" 50
# It is injected as a memory file.
range=$(sed -n 's| .*/memfd:libferrum\.so.*||p' "/proc/$engine/maps" | head -n 1)
holds 'which is the one of the wheel' cmp "/proc/$engine/map_files/$range" "$venv/lib/ferrum-bpftrace/libferrum_python.so"
kill "$engine"

holds 'pip removes it' "$venv/bin/pip" -q uninstall -y --disable-pip-version-check ferrum-bpftrace
list_venv >"$TMP/after"
is 'no file is left' "$(comm -13 "$TMP/before" "$TMP/after" | while read -r name; do [ -d "$venv/$name" ] || echo "$name"; done)" ''
finish

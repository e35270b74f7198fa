#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The image from scratch and the DaemonSet. In a root that has nothing but what the image has, with
# exactly the capabilities of the manifest and no_new_privs: a real trace in the PID namespace of the
# host, and one clear line in another. The same in a container, where podman can run one. The
# manifest, docs/privileges.md, the Dockerfile and the code name the same capabilities.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/package/lib.sh
. "$PWD/tests/e2e/package/lib.sh"

manifest=packaging/kubernetes/daemonset.yaml
build_package image-root
image=$DIST/image

# --- the same capabilities everywhere ---

# Prints the values of a list in the manifest, one a line.
listed()
{
	sed -n "/^ *$1:\$/,/^ *[a-zA-Z]*:/s/^ *- \([A-Z_]*\)\$/\1/p" "$manifest"
}
wanted=$(listed add | sort)
holds 'the manifest adds capabilities' test "$(wc -l <<<"$wanted")" -ge 3
is 'it drops all others' "$(listed drop)" ALL
# shellcheck disable=SC2016
documented=$(sed -n 's/^| \(CAP_[A-Z_, ]*\) | always |$/\1/p' docs/privileges.md | head -n 1 | grep -oE 'CAP_[A-Z_]+' | sed 's/CAP_//' | sort)
is 'docs/privileges.md: the same are always kept' "$documented" "$wanted"
# The first two statements of the function: what any trace keeps.
coded=$(sed -n '/^uint64_t sandbox_wanted/,/^$/p' user/sandbox/capabilities.c | sed -n '/tracing =/,/;$/p; /wanted =/,/;$/p' |
	grep -oE 'CAP_[A-Z_]+' | sed 's/CAP_//' | sort -u)
is 'so does the code' "$coded" "$wanted"
is 'and the Dockerfile' "$(grep -oE 'cap-add=[A-Z_]+' packaging/docker/Dockerfile | sed 's/.*=//' | sort)" "$wanted"
has 'the manifest is in the PID namespace of the host' "$manifest" '^ +hostPID: true$'

# --- a root from scratch ---

holds 'the root has no other program' test "$(find "$image/root" -type f -perm /111 ! -name '*.so')" = "$image/root/usr/bin/ferrum-bpftrace"
mkdir -p "$TMP/root"
cp -r "$image/root/." "$TMP/root"
mkdir -p "$TMP/root/proc" "$TMP/root/sys" "$TMP/root/dev" "$TMP/root$SHARED"

# write_scratch FILE UNSHARE-OPTION…: a program that runs the tool as the container of the manifest
# does: in the root, which is read-only, with its own /proc. Mounts are in a namespace of their own.
write_scratch()
{
	local file=$1

	shift
	cat >"$file" <<-END
		#!/bin/bash
		exec unshare --mount --propagation private $* bash -c '
			root=$TMP/root
			mount --bind "\$root" "\$root" && mount -o remount,bind,ro "\$root" || exit 125
			mount -t proc proc "\$root/proc" && mount --rbind /sys "\$root/sys" || exit 125
			mount --rbind /dev "\$root/dev" && mount --bind "$SHARED" "\$root$SHARED" || exit 125
			exec python3 $PWD/tests/e2e/package/scratch.py "\$root" "$SHARED" "$(tr '\n' ',' <<<"$wanted")" \\
				/usr/bin/ferrum-bpftrace "\$@"' entry "\$@"
	END
	chmod +x "$file"
}
write_scratch "$TMP/hosted"
write_scratch "$TMP/nested" --pid --fork

FBT=$TMP/hosted
is 'it runs there' "$("$FBT" --version)" "ferrum-bpftrace $(packaging/version.sh)"
"$FBT" doctor >"$TMP/doctor" 2>&1
is 'doctor finds nothing that would keep it from tracing' $? 0
trace_engine '--steps 200'
check_truth 'with exactly these capabilities'
is 'no capability is missed' "$(grep -c CAP_ "$OUT.err")" 0

# The folder of the examples, made as they say, is one that root can write into.
made=$(sed -n 's/^    sudo \(install -d .*\)$/\1/p' docs/install.md)
volume=$(sed -n 's/.* -v \([^ ]*\):\/out -w \/out .*/\1/p' docs/install.md)
is 'the examples of docs/install.md and the Dockerfile are the same' \
	"$(sed -n 's/^#\tsudo \(install -d .*\)$/\1/p; s/.* -v \([^ ]*\):\/out -w \/out .*/\1/p' packaging/docker/Dockerfile)" \
	"$made"$'\n'"$volume"
install -d -m 0755 -o 65534 "$SHARED/user"
eval "${made//$volume/$SHARED/volume}"
start_engine --steps 0 --sleep-us 20000
go
for folder in user volume; do
	"$FBT" -p "$ENGINE" -n 20 --step engine_step -o "$folder/example" --report none >"$TMP/out.example" 2>&1
	echo $?
done >"$TMP/examples"
is 'root cannot write into a folder of another user, but into the one of the examples' \
	"$(paste -sd' ' "$TMP/examples")" '1 0'
is 'the profile is there' "$(grep -c '"event":"step_prof"' "$SHARED/volume/example.jsonl")" 20
kill "$ENGINE"
exec 7>&-

# As the manifest starts it, but for the folder, and for the step of an engine that nobody knows.
mapfile -t args < <(sed -n '/^ *args:$/,/^ *env:$/s/^ *- //p' "$manifest" | sed "s|/var/lib/ferrum-bpftrace|$SHARED|")
holds 'the manifest has arguments' test ${#args[@]} -ge 2
rm -f "$OUT".*
start_engine --steps 0 --sleep-us 20000
launch "$FBT" "${args[@]}" --step engine_step --ready-fd 6 >"$SHARED/log" 2>"$SHARED/log.err"
touch "$SHARED/trace-now"
holds 'a window opens when the file is there' wait_attached "$TOOL"
go
# shellcheck disable=SC2317 # called by name
profiles()
{
	cat "$SHARED"/ferrum_profile_*.jsonl 2>/dev/null | grep -c '"event":"step_prof".*"kind":"engine_step"'
}
# shellcheck disable=SC2317 # called by name
has_steps()
{
	[ "$(profiles)" -ge 1 ]
}
# The profile of a window by flag is written when it ends: what one can wait for is the end.
sleep 1
rm "$SHARED/trace-now"
holds 'the engine is in its profile, once the file has gone' wait_for 60 has_steps
kill -TERM "$TOOL"
wait "$TOOL"
is 'it ends with 0 when the pod is deleted' $? 0
has 'its report is in the log' "$SHARED/log" 'engine_step'
kill "$ENGINE"
exec 7>&-

# --- without hostPID ---

"$TMP/nested" -p 1 -d 1 >"$TMP/out.nested" 2>&1
is 'in another PID namespace it fails' $? 1
is 'with one line' "$(wc -l <"$TMP/out.nested")" 1
has 'which names hostPID: true' "$TMP/out.nested" 'PID namespace: .*hostPID: true'
"$TMP/nested" doctor >"$TMP/doctor" 2>&1
is 'doctor fails there' $? 1
has 'and names it' <(tr -s ' \n' ' ' <"$TMP/doctor") 'PID namespace .*hostPID: true'

# --- a container ---

# in_container OPTION… -- ARGUMENT…: runs the image with the rights of the manifest
in_container()
{
	local more=()

	while [ "$1" != -- ]; do
		more+=("$1")
		shift
	done
	shift
	"${podman[@]}" run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --cap-drop=all \
		--cap-add="$(paste -sd, <<<"$wanted")" --security-opt no-new-privileges \
		--security-opt seccomp=unconfined --read-only "${more[@]}" fbt:test "$@"
}

# shellcheck disable=SC2317 # called by lib.sh
undo()
{
	[ -z "${podman[*]:-}" ] || "${podman[@]}" rmi -f fbt:test >/dev/null 2>&1
}

if ! command -v podman >/dev/null || ! command -v runc >/dev/null; then
	echo 'SKIP there is no podman, or no runc'
	finish
fi
podman=(podman --runtime runc --storage-driver vfs --root "$TMP/podman" --runroot "$TMP/podman.run" --cgroup-manager cgroupfs)
"${podman[@]}" build --isolation chroot -t fbt:test "$image" >"$TMP/build" 2>&1
is 'podman builds the image' $? 0
if ! in_container -- --version >"$TMP/version" 2>"$TMP/version.err" && ! grep -q ferrum-bpftrace "$TMP/version"; then
	sed 's/^/# /' "$TMP/version.err"
	echo "SKIP podman cannot run a container here"
	finish
fi
has 'it runs' "$TMP/version" '^ferrum-bpftrace '
start_engine --steps 0 --sleep-us 20000
go
in_container --pid=host -v "$SHARED:/out" -w /out -- -p "$ENGINE" -n 20 --step engine_step -o container --report json >"$TMP/report" 2>"$TMP/report.err"
is 'it traces an engine of the host' $? 0
is 'for as many steps as asked for' "$(grep -c '"event":"step_prof"' "$SHARED/container.jsonl")" 20
in_container -- -p 1 -d 1 >"$TMP/out.nested" 2>&1
is 'without --pid=host it fails' $? 1
has 'and says what to set' "$TMP/out.nested" 'PID namespace: .*--pid=host.*hostPID: true'
kill "$ENGINE"
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The tarball: checksums hold, it runs where it is unpacked and sends to a collector, its bill of
# materials is valid and has what is linked, and a build of the same sources in another folder gives
# the same bytes. The manifest for Kubernetes is valid, install-strip strips, and uninstall removes all
# that install has put there.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/package/lib.sh
. "$PWD/tests/e2e/package/lib.sh"

install_checkers
build_package tarball
version=$(packaging/version.sh)
name=ferrum-bpftrace-$version-linux-$(uname -m | sed 's/aarch64/arm64/')
tarball=$DIST/$name.tar.gz

(cd "$DIST" && sha256sum --quiet -c SHA256SUMS) >"$TMP/sums" 2>&1
is 'the checksums of the packages hold' "$? $(cat "$TMP/sums")" '0 '
has 'they have the tarball' "$DIST/SHA256SUMS" "  $name.tar.gz\$"
mkdir "$TMP/unpacked"
tar -C "$TMP/unpacked" -xzf "$tarball"
folder=$TMP/unpacked/$name
(cd "$folder" && sha256sum --quiet -c SHA256SUMS) >"$TMP/sums" 2>&1
is 'and those of its files' "$? $(cat "$TMP/sums")" '0 '
is 'all files have one' "$(find "$folder" -type f ! -name SHA256SUMS | wc -l)" "$(wc -l <"$folder/SHA256SUMS")"
is 'nobody but the owner can write to it' "$(find "$folder" -perm /022 ! -type l | wc -l)" 0
FBT=$folder/bin/ferrum-bpftrace
is 'the tool needs no library' "$(readelf -d "$FBT" | grep -c NEEDED)" 0
is 'it says its version' "$("$FBT" --version)" "ferrum-bpftrace $version"
"$FBT" engine-env >"$TMP/env"
has 'it finds its libraries' "$TMP/env" "$folder/lib/ferrum-bpftrace/libferrum_python.so"
has 'the man page has the version' "$folder/share/man/man8/ferrum-bpftrace.8" "^\\.TH .*bpftrace ${version//+/\\+}\""
trace_engine '--steps 200'
check_truth 'from the tarball'
# What sends is linked into it too.
for script in otlp metrics; do
	FBT=$FBT FBT_BUILD=$FBT_BUILD tests/live/$script.sh >"$TMP/$script.log" 2>&1
	status=$?
	grep -E '^(#|not ok)' "$TMP/$script.log" | sed 's/^/# /'
	is "from the tarball: live/$script.sh passes" "$status $(grep -c '^not ok' "$TMP/$script.log")" '0 0'
done

# --- bill of materials ---

sbom=$folder/share/doc/ferrum-bpftrace/ferrum-bpftrace.spdx.json
holds 'the bill of materials is valid SPDX' "$BIN/pyspdxtools" -i "$sbom"
holds 'it also lies beside the tarball' cmp "$sbom" "$DIST/$name.spdx.json"
# Not by the map that it was made from: as the linker is asked again, and by what libraries say of
# themselves in the program.
cat >"$TMP/sbom.py" <<'END'
import hashlib
import json
import subprocess
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    bill = json.load(file)
program = open(sys.argv[2], "rb").read()
packages = {package["name"]: package for package in bill["packages"]}
linked = {relation["relatedSpdxElement"] for relation in bill["relationships"] if relation["relationshipType"] == "STATIC_LINK"}
wrong = []
for name, package in packages.items():
    if name == "ferrum-bpftrace":
        continue
    have = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True, check=True).stdout
    if package["versionInfo"] != have:
        wrong.append(f"{name}: {package['versionInfo']}, not {have}")
    if package["SPDXID"] not in linked:
        wrong.append(f"{name}: is not linked")
for name, text in (("libssl-dev", b"\0%s\0"), ("zlib1g-dev", b"inflate %s "), ("libc6-dev", b"\0%s\0")):
    version = packages[name]["versionInfo"].split(":")[-1].split("-")[0].split(".dfsg")[0]
    if text % version.encode() not in program:
        wrong.append(f"{name}: the program does not say {version}")
for library in sys.argv[3:]:
    if library not in packages:
        wrong.append(f"{library} is missing")
for file in bill["files"]:
    sums = {item["algorithm"]: item["checksumValue"] for item in file["checksums"]}
    if file["fileName"] == "./bin/ferrum-bpftrace" and sums["SHA256"] != hashlib.sha256(program).hexdigest():
        wrong.append("the checksum is of another program")
print("; ".join(wrong) or f"right: {len(packages) - 1}")
END
# The libraries that the makefile asks for, but for those of the compiler and libc.
mapfile -t wanted < <(for library in bpf elf z json-c capstone iberty crypto cap-ng seccomp; do
	file=$(gcc -print-file-name="lib$library.a")
	dpkg-query -S "$(realpath "$file")" "$(realpath "$file" | sed 's|^/usr||')" 2>/dev/null | sed 's/:.*//' | head -n 1
done)
is 'nine libraries are looked for' ${#wanted[@]} 9
python3 "$TMP/sbom.py" "$sbom" "$FBT" "${wanted[@]}" >"$TMP/sbom" 2>&1
has 'it lists what is linked, with the versions' "$TMP/sbom" '^right: 1[0-9]$'

# --- the same bytes ---

# Another folder, user mask, locale and time zone, and all of it built anew.
mkdir "$TMP/again"
{ git ls-files && git ls-files --others --exclude-standard; } | sort -u | while read -r file; do
	[ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --no-recursion --null -T - -cf - | tar -C "$TMP/again" -xf -
(cd "$TMP/again" && umask 077 && LC_ALL=C.UTF-8 TZ=Asia/Tokyo nice make -s -j2 VERSION="$version" \
	epoch="$(cd "$OLDPWD" && packaging/version.sh --date)" tarball wheel) >"$TMP/again.log" 2>&1 ||
	tail -n 5 "$TMP/again.log" | sed 's/^/# /'
# What is here may be of before a change that does not matter to make.
build_package wheel
for file in "$name.tar.gz" "$name.spdx.json" "$(cd "$DIST" && echo ferrum_bpftrace-*.whl)"; do
	holds "another build gives the same bytes: $file" cmp "$DIST/$file" "$TMP/again/build/dist/$file"
done

# --- the manifest, install and uninstall ---

for release in 1.30 1.37; do
	"$BIN/kubernetes-validate" -k $release --strict packaging/kubernetes/daemonset.yaml >"$TMP/manifest" 2>&1
	is "the manifest is valid by the schema of Kubernetes $release" "$? $(grep -c 'passed for resource' "$TMP/manifest")" '0 2'
done
sed 's/hostPID: true/hostPid: true/' packaging/kubernetes/daemonset.yaml >"$TMP/wrong.yaml"
"$BIN/kubernetes-validate" -k 1.37 --strict "$TMP/wrong.yaml" >/dev/null 2>&1
is 'a wrong one is not' $? 1

make_here()
{
	make -s O="$FBT_BUILD" DEPS=0 DESTDIR="$TMP/dest" prefix=/opt/fbt "$@" >"$TMP/make" 2>&1 || cat "$TMP/make"
}
tool=$TMP/dest/opt/fbt/bin/ferrum-bpftrace
mkdir "$TMP/dest"
touch "$TMP/dest/other"
make_here install
has 'install keeps symbols' <(file "$tool") 'not stripped'
make_here install-strip
has 'install-strip removes them' <(file "$tool") ', stripped'
is 'what was installed runs' "$("$tool" --version)" "ferrum-bpftrace $version"
make_here uninstall
is 'uninstall leaves no file' "$(find "$TMP/dest" ! -type d -printf '%P ')" 'other '
is 'and nothing of its own folders' "$(find "$TMP/dest" -type d -name '*ferrum-bpftrace*')" ''
finish

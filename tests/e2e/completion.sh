#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The completion files, in the shells themselves: every option and sub-command that --help-all and the
# man page have, the values of enumerations, files, directories, processes, and COMMAND after --.
. "$(dirname "$0")/../live/lib.sh"

files=$FBT_BUILD/completion
make -s O="$FBT_BUILD" completions >"$TMP/make" 2>&1 || { cat "$TMP/make" && not_ok 'completion is built' && finish; }

# Without the help of the generator's tables: as people read them.
options=$("$FBT" --help-all | grep -oE '^ +(-[A-Za-z?], )?--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | LC_ALL=C sort -u | paste -sd' ')
commands=$("$FBT" --usage | sed -n 's/.*\[OPTION\.\.\.\] \([a-z][a-z-]*\).*/\1/p' | LC_ALL=C sort | paste -sd' ')
values_of()
{
	"$FBT" -p 1 "$1" is-no-value 2>&1 | sed -n 's/.*(expected \(.*\)).*/\1/p' | sed 's/,\| or / /g' | tr -s ' ' '\n' | LC_ALL=C sort | paste -sd' '
}
holds '--help-all has options, and --usage sub-commands' test "${#options}" -gt 500 -a "${#commands}" -gt 30
details=$(values_of --detail)
is 'values are told from a message' "$(wc -w <<<"$details")" 4

mkdir -p "$TMP/files/a_folder" "$TMP/zsh"
touch "$TMP/files/a_file.fbt"
cp "$files/ferrum-bpftrace.zsh" "$TMP/zsh/_ferrum-bpftrace"
sleep 1000 &
sleeper=$!
lines=(
	'ferrum-bpftrace --'
	'ferrum-bpftrace '
	'ferrum-bpftrace --detail '
	'ferrum-bpftrace --detail=esc'
	"ferrum-bpftrace --dir $TMP/files/"
	"ferrum-bpftrace validate $TMP/files/a_fi"
	"ferrum-bpftrace -p 1 -- cat $TMP/files/a_fi"
	"ferrum-bpftrace doctor ${sleeper%?}"
	"ferrum-bpftrace -p 1,${sleeper%?}"
	'ferrum-bpftrace engine-env '
)

# check SHELL: its proposals are in $TMP/got, a line for each of the lines above
check()
{
	local got

	# Paths may be proposed whole, or from the last / on; directories may end with one.
	sed -i "s|$TMP/files/||g; s|--detail=||g; s|a_folder/|a_folder|" "$TMP/got"
	mapfile -t got <"$TMP/got"
	is "$1: it answers all" "${#got[@]}" "${#lines[@]}"
	is "$1: all options" "${got[0]}" "$options"
	is "$1: all sub-commands" "${got[1]}" "$commands"
	is "$1: the values of an enumeration" "${got[2]}" "$details"
	is "$1: and after =" "${got[3]}" escalated
	is "$1: directories only, where one is wanted" "${got[4]}" a_folder
	is "$1: files of a sub-command" "${got[5]}" a_file.fbt
	is "$1: files of COMMAND, after --" "${got[6]}" a_file.fbt
	holds "$1: processes of a sub-command" grep -qw -- "$sleeper" <<<"${got[7]}"
	holds "$1: processes after a comma" grep -qE -- "(^|[ ,])$sleeper( |\$)" <<<"${got[8]}"
	is "$1: nothing where nothing may follow" "${got[9]}" ''
}

# As bash splits them: at spaces, and at each =.
for line in "${lines[@]}"; do
	mapfile -t words < <(sed 's/=/ = /; s/ /\n/g' <<<"${line#ferrum-bpftrace }")
	bash --norc tests/e2e/completion/bash.sh "$files/ferrum-bpftrace.bash" "${words[@]}"
done >"$TMP/got"
# -p and its like are proposed too.
sed -i -E '1s/(^| )-[A-Za-z]\b//g; 1s/^ //' "$TMP/got"
check bash
if command -v zsh >/dev/null; then
	python3 tests/e2e/completion/zsh.py "$TMP/zsh" "${lines[@]}" >"$TMP/got"
	check zsh
else
	echo 'SKIP zsh is not installed'
fi
if command -v fish >/dev/null; then
	for line in "${lines[@]}"; do
		# shellcheck disable=SC2016 # fish's
		fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$files/ferrum-bpftrace.fish" "$line" |
			cut -f1 | LC_ALL=C sort | paste -sd' '
	done >"$TMP/got"
	check fish
else
	echo 'SKIP fish is not installed'
fi

# A text that cannot be quoted must end the build, and an empty table too.
# shellcheck disable=SC2317 # called by name
refuses()
{
	! packaging/completion/generate.sh "$1" 2>/dev/null >/dev/null
}
holds 'empty tables are refused' refuses bash </dev/null
kill "$sleeper"
finish

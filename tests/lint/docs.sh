#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Checks the documentation: README's size, links between pages, the paths, options and targets that
# pages name, the version, and that the marks of tests/fill_docs.py enclose something.
set -u
cd "$(dirname "$0")/../.." || exit 1

status=0
shopt -s nullglob
pages=(README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs/*.md)

# state NAME: the fact is that standard input, the complaints, is empty
state()
{
	local found

	found=$(cat)
	[ -z "$found" ] && echo "ok - $1" && return
	printf '%s\n' "$found"
	echo "not ok - $1"
	status=1
}

readme_size()
{
	LC_ALL=C.UTF-8 grep -nE '^.{101,}$' README.md
	awk 'END { if (NR > 250) print FILENAME ": " NR " lines" }' README.md
}

# The report in README is short enough to be seen as a whole.
sample_size()
{
	awk '/^<!-- report-short -->$/ { start = NR } /^<!-- \/report-short -->$/ { end = NR }
		# Without the two lines of the fence.
		END { if (end - start - 3 > 30) print FILENAME ": the report has " end - start - 3 " lines" }' README.md
}

# Prints FILE TARGET for each link that is no URL.
links()
{
	local page

	for page in "${pages[@]}"; do
		sed -n '/^    /!p' "$page" | grep -oE '\]\([^)]+\)' | sed "s|^](|$page |; s|)\$||" |
			grep -v ' https\?://'
	done
}

# The anchors of a page, as GitHub derives them from headings.
anchors()
{
	sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' |
		sed "s/[^[:alnum:] _-]//g; s/ /-/g"
}

dead_links()
{
	local page target file anchor

	while read -r page target; do
		file=${target%%#*} anchor=${target#"$file"}
		file=${file:+$(dirname "$page")/$file}
		[ -e "${file:-$page}" ] || { echo "$page: $target: no such file" && continue; }
		[ -z "$anchor" ] || anchors "${file:-$page}" | grep -qxF -- "${anchor#\#}" ||
			echo "$page: $target: no such heading"
	done < <(links)
}

# Each word in code that looks like a path of this tree. A bare name of a test belongs to
# tests/live; a * is taken literally. tests/verified exists after the first pass of make test-all.
# shellcheck disable=SC2016
dead_paths()
{
	local page path

	while IFS=$'\t' read -r page path; do
		compgen -G "$path" >/dev/null || compgen -G "tests/live/$path" >/dev/null ||
			compgen -G "user/$path*" >/dev/null || echo "$page: $path: no such file"
	done < <(for page in "${pages[@]}"; do
		sed '/^<!-- [a-z-]* -->$/,/^<!-- \/[a-z-]* -->$/d' "$page" | code_of | tr -s ' ' '\n' |
			sed 's|^\./||; s|[.,:;]$||; /^tests\/verified$/d' |
			grep -E '^((user|bpf|cupti|python|include|tests|docs|packaging|vmlinux|\.ci|\.github)/[A-Za-z0-9_./*-]*|[a-z_0-9]+\.(sh|py)|(base|proc|sandbox|model|steps|gpu|judge|output|report|kernel|inject|shim|trace|commands)/[a-z_0-9./*]+)$' |
			sort -u | sed "s|^|$page\t|"
	done)
}

# Text between backticks, which may continue on the next line of the same paragraph, and code
# blocks, which are indented by four spaces.
code_of()
{
	awk -v RS= '/^    / { print; next } { gsub(/\n/, " "); count = split($0, part, "`")
		for (i = 2; i <= count; i += 2) if (i < count) print part[i] }'
}

# The table of folders in docs/design.md names files by their stems: "| `base/` | … | `vec`, `log` |".
# shellcheck disable=SC2016
dead_stems()
{
	local folder stem

	while read -r folder stem; do
		compgen -G "user/$folder${stem%.[ch]}.[ch]" >/dev/null ||
			echo "docs/design.md: $folder$stem: no such file"
	done < <(awk -F '`' '/^\| `[a-z]+\/` \|/ { for (i = 4; i <= NF; i += 2) if ($i ~ /^[a-z_.]+$/) print $2, $i }' docs/design.md)
}

# Names of functions, types and constants in docs/design.md.
# shellcheck disable=SC2016
dead_names()
{
	local name

	while read -r name; do
		grep -rqw -- "$name" user bpf include cupti python tests/lint || echo "docs/design.md: $name: not in the sources"
	done < <(grep -oE '`[A-Za-z]+_[A-Za-z][A-Za-z_]*`' docs/design.md | tr -d '`' | sort -u)
}

# Options in backticks are ours, and the man page must have them.
# shellcheck disable=SC2016
unknown_options()
{
	local page option

	while read -r page option; do
		sed 's/\\-/-/g; s/\\f[BIRP]//g' docs/ferrum-bpftrace.8 | grep -qE -- "(^|[ ,])$option([ ,=]|\$)" ||
			echo "$page: $option: the man page does not have it"
	done < <(for page in README.md docs/*.md; do
		grep -oE '`--[a-z][a-z-]+' "$page" | tr -d '`' | grep -v -- '-$' | sort -u |
			sed "s|^|$page |"
	done)
}

# shellcheck disable=SC2016
unknown_targets()
{
	local page target

	while read -r page target; do
		grep -qE "^$target:" Makefile tests/*/*.mk packaging/*.mk || echo "$page: make $target: no such target"
	done < <(for page in "${pages[@]}"; do
		grep -oE '(`|^    |sudo )make( [A-Z]+=[^ `]+)* [a-z][a-z0-9-]+' "$page" | sed "s/.* //; s|^|$page |" |
			sort -u
	done)
}

empty_marks()
{
	awk '/^<!-- [a-z-]+ -->$/ { mark = $2; start = FNR; next }
		/^<!-- \/[a-z-]+ -->$/ {
			if ($2 != "/" mark) print FILENAME ":" FNR ": ends " $2 ", not " mark
			else if (FNR - start < 3) print FILENAME ":" FNR ": " mark " is empty"
			mark = ""
		}' "${pages[@]}"
}

versions()
{
	local version page

	read -r version <packaging/version.txt
	for page in docs/*.[1-8]; do
		grep -q "\"ferrum.*bpftrace $version\"" "$page" ||
			echo "$page: its footer does not say $version, as packaging/version.txt does"
	done
	grep -q "^## $version" CHANGELOG.md || echo "CHANGELOG.md: no section $version"
}

state 'README has at most 250 lines of at most 100 columns' < <(readme_size)
state "README's report has at most 30 lines" < <(sample_size)
state 'links between pages lead somewhere' < <(dead_links)
state 'each path that a page names exists' < <(dead_paths)
state 'each file that the table of folders names exists' < <(dead_stems)
state 'each name that docs/design.md has is in the sources' < <(dead_names)
state 'each option that a page names is in the man page' < <(unknown_options)
state 'each target of make that a page names exists' < <(unknown_targets)
state 'samples are there, between their marks' < <(empty_marks)
state 'man pages and changelog have the version of packaging/version.txt' < <(versions)
exit $status

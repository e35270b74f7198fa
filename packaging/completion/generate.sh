#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Writes the completion of a shell from the tables that tables.c prints:
#
#	generate.sh bash|zsh|fish <TABLES
#
# The shell's own part is ferrum-bpftrace.SHELL; rows take the place of its lines @OPTIONS@ and
# @COMMANDS@.
set -euo pipefail

shell=${1:?usage: generate.sh bash|zsh|fish <TABLES}
cd "$(dirname "$0")"

awk -F '\t' -v shell="$shell" -v quote="'" '
# What the value of an option, or the word of a sub-command, is: pids, words, dir, file, or none.
function kind_of(value, words) {
	if (words != "-") return "words"
	if (value ~ /^-/ || value == "-") return "none"
	if (value ~ /PID/) return "pids"
	if (value ~ /DIR/) return "dir"
	if (value ~ /FILE|PATH|BASE/) return "file"
	return "none"
}
# Without examples, defaults and details.
function shorten(text,   lead) {
	if (match(text, /^With [^:]*: /)) {
		lead = substr(text, 1, RLENGTH)
		text = substr(text, RLENGTH + 1)
	}
	sub(/(; |: | [(]|[.] |, e[.]g[.]).*/, "", text)
	return lead text
}
function quoted(text) {
	gsub(quote, quote "\\" quote quote, text)
	return quote text quote
}
# In the specifications of _arguments.
function for_zsh(text) {
	gsub(/[\]\[:]/, "\\\\&", text)
	return text
}
function bash_option(name, letter, kind, words,   pattern) {
	names = names " --" name (letter == "-" ? "" : " -" letter)
	if (kind == "-") return
	pattern = "--" name (letter == "-" ? "" : " | -" letter)
	return "\t" pattern ") kind=" kind (words == "-" ? "" : " words=" quoted(words)) " ;;\n"
}
function zsh_option(name, letter, kind, value, words, text,   spec, action) {
	spec = "[" for_zsh(text) "]"
	if (kind != "-") {
		action = kind == "words" ? "(" words ")" : kind == "none" ? " " : "_ferrum_bpftrace_" kind
		if (kind == "file" && words != "-") action = "_ferrum_bpftrace_file " words
		spec = spec ":" for_zsh(value) ":" action
	}
	name = quoted("*--" name (kind == "-" ? "" : "=") spec)
	return "\t\t" name " \\\n" (letter == "-" ? "" : "\t\t" quoted("*-" letter (kind == "-" ? "" : "+") spec) " \\\n")
}
function fish_option(name, letter, kind, words, text,   line) {
	if (kind != "-") names = names " --" name (letter == "-" ? "" : " -" letter)
	line = "complete -c ferrum-bpftrace -n __ferrum_bpftrace_is_ours -l " name
	if (letter != "-") line = line " -s " letter
	if (kind == "none") line = line " -x"
	else if (kind == "file") line = line " -rF" (words == "-" ? "" : " -a " quoted(words))
	else if (kind == "dir") line = line " -xa " quoted("(__fish_complete_directories (commandline -ct))")
	else if (kind == "pids") line = line " -xa " quoted("(__ferrum_bpftrace_pids)")
	else if (kind == "words") line = line " -xa " quoted(words)
	return line " -d " quoted(text) "\n"
}
$1 == "option" {
	kind = $4 == "-" ? "-" : kind_of($4, $5)
	words = $5
	# Files of which there may be none.
	if (kind == "file" && $6 ~ /(, | )or none/) words = "none"
	text = shorten($6)
	if (shell == "bash") options = options bash_option($2, $3, kind, words)
	if (shell == "zsh") options = options zsh_option($2, $3, kind, $4, words, text)
	if (shell == "fish") options = options fish_option($2, $3, kind, words, text)
}
$1 == "command" {
	# Those that read something read files, unless their words say otherwise.
	kind = kind_of($3, "-")
	if (kind == "none" && $3 != "-" && $3 !~ /^\[?-/) kind = "file"
	if (shell == "bash") {
		all = all " " $2
		commands = commands "\t" $2 ") kind=" kind " ;;\n"
	}
	if (shell == "zsh") {
		all = all "\t\t" quoted($2 ":" $4) "\n"
		commands = commands "\t" $2 ") " (kind == "none" ? "_message " quoted("no more arguments") : "_ferrum_bpftrace_" kind) " ;;\n"
	}
	if (shell == "fish") {
		commands = commands "complete -c ferrum-bpftrace -n __ferrum_bpftrace_is_first -a " $2 " -d " quoted($4) "\n"
		if (kind == "file")
			commands = commands "complete -c ferrum-bpftrace -n " quoted("__ferrum_bpftrace_is " $2) " -F\n"
		if (kind == "pids")
			commands = commands "complete -c ferrum-bpftrace -n " quoted("__ferrum_bpftrace_is " $2) " -a " quoted("(__ferrum_bpftrace_pids)") "\n"
	}
	count++
}
FNR != NR && /@OPTIONS@/ { printf "%s", options; next }
FNR != NR && /@COMMANDS@/ { printf "%s", commands; next }
FNR != NR && /@NAMES@/ { sub(/@NAMES@/, shell == "bash" ? quoted(substr(names, 2)) : substr(names, 2)) }
FNR != NR && /@ALL@/ {
	if (shell == "bash") sub(/@ALL@/, quoted(substr(all, 2)))
	else { printf "%s", all; next }
}
FNR != NR { print }
END {
	if (!options || !count) { print "completion: the tables are empty" >"/dev/stderr"; exit 1 }
}' - "ferrum-bpftrace.$shell"

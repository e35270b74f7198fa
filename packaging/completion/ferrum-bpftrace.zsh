#compdef ferrum-bpftrace
# zsh completion for ferrum-bpftrace(8), generated from its tables of options and sub-commands.
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

# Processes, not threads of the kernel; several are separated by commas.
_ferrum_bpftrace_pids()
{
	local folder name
	local -a found
	local before=${PREFIX%"${PREFIX##*,}"}

	for folder in /proc/<->(N); do
		{ name=$(<$folder/cmdline) } 2>/dev/null || continue
		name=${name//$'\0'/ }
		[[ -n $name ]] || continue
		found+=("${folder:t}:${${name//:/\\:}[1,60]}")
	done
	compset -P '*,'
	_describe -V 'process' found -S ''
}

_ferrum_bpftrace_file()
{
	local -a words=($@)

	_alternative 'files:file:_files' "words:word:(${(j: :)words:#-*})"
}

_ferrum_bpftrace_dir()
{
	_files -/
}

_ferrum_bpftrace_first()
{
	local -a commands=(
@ALL@
	)

	_describe 'sub-command' commands
}

_ferrum_bpftrace()
{
	local after=${words[(i)--]} curcontext=$curcontext state line
	local -A opt_args

	# After -- comes a COMMAND with words of its own.
	if (( after < CURRENT )); then
		shift $after words
		(( CURRENT -= after ))
		_normal
		return
	fi
	_arguments -s -C \
@OPTIONS@
		'1: :_ferrum_bpftrace_first' '*: :->words' && return
	[[ $state == words ]] || return 1
	case ${line[1]} in
@COMMANDS@
	esac
}

_ferrum_bpftrace "$@"

# bash completion for ferrum-bpftrace(8), generated from its tables of options and sub-commands.
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Works with and without the package bash-completion.

# Sets kind, and words, to what the value of the option is. Fails if it has none.
_ferrum_bpftrace_value()
{
	kind='' words=''
	case $1 in
@OPTIONS@
	*) return 1 ;;
	esac
}

# Processes, not threads of the kernel: by number, or by the first letters of their name.
_ferrum_bpftrace_pids()
{
	local before=${cur%"${cur##*,}"} last=${cur##*,} folder name

	for folder in /proc/[0-9]*; do
		name=''
		if [[ $last != [0-9]* && -n $last ]]; then
			{ read -r name <"$folder/comm"; } 2>/dev/null
			[[ $name == "$last"* ]] || continue
		elif [[ ${folder#/proc/} != "$last"* ]]; then
			continue
		fi
		# What has no command line is the kernel's.
		{ read -rn 1 name <"$folder/cmdline"; } 2>/dev/null && [[ -n $name ]] || [[ -n $name ]] || continue
		COMPREPLY+=("$before${folder#/proc/}")
	done
	# More may follow after a comma.
	compopt -o nospace 2>/dev/null
}

_ferrum_bpftrace_complete()
{
	case $kind in
	words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
	pids) _ferrum_bpftrace_pids ;;
	dir)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		;;
	file)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur" && [[ -n $cur ]]
			compgen -f -- "$cur")
		;;
	esac
}

_ferrum_bpftrace()
{
	local cur=${COMP_WORDS[COMP_CWORD]} kind words command='' i=1 prefix=''
	local options=@NAMES@
	local commands=@ALL@

	COMPREPLY=()
	# What comes before the word: a sub-command, or -- and a COMMAND.
	while [ "$i" -lt "$COMP_CWORD" ]; do
		case ${COMP_WORDS[i]} in
		--)
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			elif [ $((i + 1)) = "$COMP_CWORD" ]; then
				mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			else
				kind=file words=''
				_ferrum_bpftrace_complete
			fi
			return
			;;
		-*)
			if _ferrum_bpftrace_value "${COMP_WORDS[i]}"; then
				i=$((i + 1))
				# bash takes --option=value for three words.
				[ "${COMP_WORDS[i]}" != = ] || [ "$i" = "$COMP_CWORD" ] || i=$((i + 1))
				if [ "$i" -ge "$COMP_CWORD" ]; then
					[ "$cur" != = ] || cur=''
					_ferrum_bpftrace_complete
					return
				fi
			fi
			;;
		*) command=${command:-${COMP_WORDS[i]}} ;;
		esac
		i=$((i + 1))
	done
	case $cur in
	# Where COMP_WORDBREAKS has no =.
	--*=*)
		_ferrum_bpftrace_value "${cur%%=*}" || return
		prefix=${cur%%=*}=
		cur=${cur#*=}
		_ferrum_bpftrace_complete
		COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
		;;
	-*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur") ;;
	*)
		kind=words words=$commands
		case $command in
		'') ;;
@COMMANDS@
		*) kind=none ;;
		esac
		[ "$kind" = words ] || words=''
		_ferrum_bpftrace_complete
		;;
	esac
}

complete -F _ferrum_bpftrace ferrum-bpftrace

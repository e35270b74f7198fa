# fish completion for ferrum-bpftrace(8), generated from its tables of options and sub-commands.
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

# Processes, not threads of the kernel; several are separated by commas.
function __ferrum_bpftrace_pids
    set -l before (string match -r '^.*,' -- (commandline -ct | string replace -r '^--?[a-z]+=?' ''))
    for folder in (string match -r '^/proc/[0-9]+$' -- /proc/*)
        # It may have ended.
        set -l line (cat $folder/cmdline 2>/dev/null | string split0 | string join ' ')
        test -n "$line"; and printf '%s%s\t%s\n' "$before" (string replace /proc/ '' $folder) (string sub -l 60 -- "$line")
    end
end

# The words after the program that are neither options nor, as far as can be told, their values.
function __ferrum_bpftrace_words
    set -l tokens (commandline -opc)
    set -l value 0
    for token in $tokens[2..-1]
        if test $value = 1
            set value 0
        else if string match -q -- '--*=*' $token
            continue
        else if string match -q -- '-*' $token
            contains -- $token $__ferrum_bpftrace_with_value; and set value 1
        else
            echo $token
        end
    end
end

# Whether no COMMAND has begun, after which all is that program's.
function __ferrum_bpftrace_is_ours
    not contains -- -- (commandline -opc)
end

function __ferrum_bpftrace_is_first
    __ferrum_bpftrace_is_ours; and test (count (__ferrum_bpftrace_words)) = 0
end

function __ferrum_bpftrace_is
    __ferrum_bpftrace_is_ours; and test "$(__ferrum_bpftrace_words | head -n 1)" = $argv[1]
end

function __ferrum_bpftrace_command
    set -l tokens (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $tokens); or return
    complete -C "$(string join ' ' -- (string escape -- $tokens[(math $at + 1)..-1]))"
end

set -g __ferrum_bpftrace_with_value @NAMES@
complete -c ferrum-bpftrace -f
complete -c ferrum-bpftrace -n 'not __ferrum_bpftrace_is_ours' -a '(__ferrum_bpftrace_command)'
@COMMANDS@
@OPTIONS@

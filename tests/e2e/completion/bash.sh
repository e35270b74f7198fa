# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Prints what the completion function proposes: bash -f bash.sh FILE WORD… where the last word is the one
# that is completed. As in bash, --option=value is three words.
# shellcheck disable=SC1090
source "$1"
shift
COMP_WORDS=(ferrum-bpftrace "$@")
COMP_CWORD=$#
export COMP_LINE="ferrum-bpftrace $*"
export COMP_POINT=${#COMP_LINE}
_ferrum_bpftrace 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | paste -sd' '

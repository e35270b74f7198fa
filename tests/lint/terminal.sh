#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Text from outside goes to a terminal through log.c and terminal.c only, which escape it. Other files
# that print are named here, with what keeps them harmless.
set -u
cd "$(dirname "$0")/../.." || exit 1

allowed=$(sed 's/#.*//' <<'END'
terminal log            # they escape
report_text             # report_line, report_field: by terminal_text
report_about report_escalations report_gpu report_headline report_kind report_process # numbers, words of ours, shorten_text
doctor_print            # as terminal.c
gpu_shim                # a path that is checked
env_hash_command        # a hash
json json_read report_json # JSON; the report's is for terminals (struct json, shown)
json_expect profile jsonl_window sink_jsonl # into memory, a file
capture sink_otlp otlp_request # no terminal
END
)
status=0

for file in user/*.c; do
	name=$(basename "$file" .c)
	grep -qw -- "$name" <<<"$allowed" && continue
	# Of stdio, whatever takes a stream or goes to stdout.
	found=$(grep -nE '(^|[^a-z_])(v?d?printf|v?fprintf|fputs|fputc|putc|puts|putchar|fwrite|perror|psignal|argp_error|argp_failure)(_unlocked)? *\(' "$file")
	[ -z "$found" ] && continue
	while read -r line; do
		echo "terminal: $file:$line: use terminal_line or log.h"
	done <<<"$found"
	status=1
done
[ $status = 0 ] && echo 'ok - what is printed is escaped in one place' ||
	echo 'not ok - what is printed is escaped in one place'
exit $status

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Only base/log.c and base/format.c print text from outside to a terminal; they escape it. Other
# files that print are listed here, with the reason why they are harmless.
set -u
cd "$(dirname "$0")/../.." || exit 1

allowed=$(sed 's/#.*//' <<'END'
base/format base/log      # they escape
report/report             # report_line, report_field: by terminal_text
report/text report/gpu report/kind report/times report/threads report/driver report/ranks # numbers, our words, shorten_text
diff/text commands/diff   # by terminal_text, numbers, a newline
commands/doctor_check     # as base/format
shim/library              # a path that is checked
commands/env_hash         # a hash
base/json base/json_read report/json # JSON; the report's is for terminals (struct json, shown)
base/text commands/validate output/jsonl output/jsonl_window # into memory, a file
output/capture output/folded_table output/memory_copy otlp/otlp otlp/otlp_http output/perfetto_file html/page # no terminal
metrics/prom              # escapes as its format asks, into a file
END
)
status=0

for file in user/*.c user/*/*.c; do
	name=${file#user/} name=${name%.c}
	grep -qw -- "$name" <<<"$allowed" && continue
	# All functions of stdio that take a stream or write to stdout.
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

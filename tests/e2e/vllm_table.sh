#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The rows of the table of Python engines that are about vLLM, held against the source of the installed vLLM:
# modules, classes, methods, arguments and attributes are there, and no runner of its workers is missing.
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/vllm/lib.sh
. tests/e2e/vllm/lib.sh

# Of its macros too.
gcc -E -P -Iinclude -Iuser user/python/engines.c >"$TMP/engines.c"
is 'the table can be read' $? 0
python3 tests/e2e/vllm/table.py "$TMP/engines.c" "$VENV"/lib/python3*/site-packages || FAILED=1
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# C++ and Rust programs with many threads that come and go, throw, panic and wait are injected again
# and again.
# shellcheck source=tests/e2e/inject/lib.sh
. "$(dirname "$0")/inject/lib.sh"

check_cxx()
{
	command -v g++ >/dev/null || { echo 'SKIP g++ is not installed: no C++ program' && return; }
	build_threads "$TMP/threads"
	start c++ "$TMP/threads"
	inject c++ "$STARTED"
	end c++ "$STARTED"
}

check_rust()
{
	command -v rustc >/dev/null || { echo 'SKIP rustc is not installed: no Rust program' && return; }
	if ! rustc --edition 2021 -O -o "$TMP/rust" "$PARTS/threads.rs" 2>"$TMP/rustc"; then
		sed 's/^/# /' "$TMP/rustc"
		not_ok 'rustc compiles'
		return
	fi
	start rust "$TMP/rust" "$TMP/end"
	inject rust "$STARTED"
	touch "$TMP/end"
	wait "$STARTED"
	is 'rust ends in order' $? 0
	facts rust
}

check_cxx
check_rust
finish

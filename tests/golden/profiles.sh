#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Profiles as --replay reads them.
cd "$(dirname "$0")/../.." || exit 1
build=${FBT_BUILD:-build/$(uname -m | sed 's/aarch64/arm64/')-gcc}
exec python3 tests/golden/profiles.py "$(realpath -m "${FBT:-$build/ferrum-bpftrace}")" "$build/tests/events"

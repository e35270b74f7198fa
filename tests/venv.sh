#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# venv.sh FOLDER: makes a virtual environment that is kept, in place of what is there. The tests' python3 is a
# link in the build folder: an environment made from that one is broken when the build goes.
# venv.sh --check FOLDER: whether its python still runs
set -u
if [ "$1" = --check ]; then
	exec "$2/bin/python" -c '' 2>/dev/null
fi
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))') || exit
exec "$python" -m venv --clear "$1"

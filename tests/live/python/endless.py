# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Makes steps until it is killed."""
import time


def step():
    time.sleep(0.002)


while True:
    step()

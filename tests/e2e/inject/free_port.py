# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Prints the number of a port of the loopback that nobody listens on."""
import socket

with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1])

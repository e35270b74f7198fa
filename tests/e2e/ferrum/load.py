#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Asks an OpenAI-style server on PORT for texts of TOKENS tokens, one after the other.

usage: load.py PORT TOKENS COUNT     so many; prints when it began (monotonic, us) and the tokens
       load.py PORT TOKENS until FILE
       load.py PORT TOKENS panic     one with the token that model.py calls UNKNOWN; prints the answer
       load.py PORT get PATH         what the server says there
"""
import http.client
import json
import os
import sys
import time

PORT, TOKENS, HOW = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def ask(method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def complete(prompt):
    return ask("POST", "/v1/completions", json.dumps({
        "model": "model", "max_tokens": int(TOKENS), "temperature": 0.8, "prompt": prompt}))


def count_tokens():
    status, text = complete("What is slow, and why?")
    if status != 200:
        sys.exit("%d %s" % (status, text))
    return json.loads(text)["usage"]["completion_tokens"]


begin_us = time.monotonic_ns() // 1000
if TOKENS == "get":
    print(ask("GET", HOW)[1])
elif HOW == "panic":
    print(*complete("a <unknown> b"))
elif HOW == "until":
    while not os.path.exists(sys.argv[4]):
        count_tokens()
else:
    print(begin_us, sum(count_tokens() for _ in range(int(HOW))))

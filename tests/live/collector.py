#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A small collector of OTLP/HTTP with JSON, which looks at every request as closely as it can.

collector.py serve LOG [ANSWER…]    listens on a free port of 127.0.0.1, prints it, and writes what
                                    came as one line of JSON a request. The Nth request gets the Nth
                                    answer, later ones the last: a status, STATUS:RETRY_AFTER, or
                                    partial, html, garbage, half, close, hang. --tls FILE (key and
                                    certificate) speaks https.
collector.py ask LOG EXPRESSION     prints a Python expression over what came. It may use

    Q       requests: path, headers, status (our answer), problems, spans, resources
    P       spans of steps (those without a parent) that were answered by 200, by step number;
            attributes in one dict, children by name
    H       spans of hangs that were answered by 200, as they came
    M       the last request to /v1/metrics that was answered by 200: for each name the points, with
            attributes in one dict
    G S     escalation_prof that are shown, and step_prof, of $OUT.profile, by step number
"""
import ast
import functools
import http.server
import json
import os
import re
import socket
import ssl
import sys

STEP_KEYS = [
    "brick.name", "brick.budget_us", "brick.actual_us", "brick.efficiency", "brick.over_budget",
    "escalation.reason", "syscall.overhead_percent", "syscall.dominant", "syscall.mmap_us",
    "syscall.futex_us", "syscall.ioctl_us", "syscall.read_us", "syscall.write_us",
    "syscall.other_us", "syscall.compute_us", "syscall.total_us", "escalation.cause",
    "escalation.evidence", "escalation.fired", "step.number", "thread.id"]
EVENT_KEYS = ["cause", "cause.us", "cause.call"]
STACK_KEYS = {"cause.stack", "cause.stack_unnamed", "cause.waker_stack", "cause.waker_stack_unnamed"}
# Whom the step waited for, as in the profile.
OTHERS = ("cpu_taken_", "holder_", "others_seen", "peer_", "waker_", "woken_")
HANG_KEYS = ["brick.name", "hang.evidence", "hang.open_us", "thread.id"]
HANG_MORE = {"hang." + name for name in ("threads", "call", "call_us", "stack", "stack_unnamed")}
CHILD_KEYS = ["syscall.calls", "syscall.duration_us", "syscall.aggregated"]

# The messages of opentelemetry-proto 1.x that a request consists of, with the names of the JSON
# mapping.
MESSAGES = {
    "Request": {"resourceSpans": ["ResourceSpans"]},
    "ResourceSpans": {"resource": "Resource", "scopeSpans": ["ScopeSpans"], "schemaUrl": "string"},
    "Resource": {"attributes": ["KeyValue"], "droppedAttributesCount": "uint32"},
    "ScopeSpans": {"scope": "Scope", "spans": ["Span"], "schemaUrl": "string"},
    "Scope": {"name": "string", "version": "string", "attributes": ["KeyValue"],
              "droppedAttributesCount": "uint32"},
    "Span": {"traceId": "id16", "spanId": "id8", "traceState": "string", "parentSpanId": "id8",
             "flags": "uint32", "name": "string", "kind": "SpanKind",
             "startTimeUnixNano": "uint64", "endTimeUnixNano": "uint64",
             "attributes": ["KeyValue"], "droppedAttributesCount": "uint32",
             "events": ["Event"], "droppedEventsCount": "uint32", "status": "Status"},
    "Event": {"timeUnixNano": "uint64", "name": "string", "attributes": ["KeyValue"],
              "droppedAttributesCount": "uint32"},
    "Status": {"message": "string", "code": "StatusCode"},
    "MetricsRequest": {"resourceMetrics": ["ResourceMetrics"]},
    "ResourceMetrics": {"resource": "Resource", "scopeMetrics": ["ScopeMetrics"],
                        "schemaUrl": "string"},
    "ScopeMetrics": {"scope": "Scope", "metrics": ["Metric"], "schemaUrl": "string"},
    "Metric": {"name": "string", "description": "string", "unit": "string", "gauge": "Gauge",
               "sum": "Sum", "exponentialHistogram": "ExponentialHistogram"},
    "Gauge": {"dataPoints": ["NumberDataPoint"]},
    "Sum": {"dataPoints": ["NumberDataPoint"], "aggregationTemporality": "Temporality",
            "isMonotonic": "bool"},
    "ExponentialHistogram": {"dataPoints": ["ExponentialHistogramDataPoint"],
                             "aggregationTemporality": "Temporality"},
    "NumberDataPoint": {"attributes": ["KeyValue"], "startTimeUnixNano": "uint64",
                        "timeUnixNano": "uint64", "asDouble": "double", "asInt": "int64"},
    "ExponentialHistogramDataPoint": {
        "attributes": ["KeyValue"], "startTimeUnixNano": "uint64", "timeUnixNano": "uint64",
        "count": "uint64", "sum": "double", "scale": "sint32", "zeroCount": "uint64",
        "zeroThreshold": "double", "positive": "Buckets", "negative": "Buckets"},
    "Buckets": {"offset": "sint32", "bucketCounts": ["uint64"]},
    "KeyValue": {"key": "string", "value": "AnyValue"},
    "AnyValue": {"stringValue": "string", "boolValue": "bool", "intValue": "int64",
                 "doubleValue": "double"},
}


def is_integer(value, low, high):
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_decimal(value, low, high):
    """64-bit integers are strings, because JSON numbers would lose digits."""
    return (isinstance(value, str) and bool(re.fullmatch(r"0|-?[1-9][0-9]*", value)) and
            low <= int(value) <= high)


def is_id(value, size):
    return (isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{%d}" % (2 * size), value)) and
            int(value, 16) != 0)


SCALARS = {
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "double": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "uint32": lambda value: is_integer(value, 0, 2**32 - 1),
    "sint32": lambda value: is_integer(value, -2**31, 2**31 - 1),
    "Temporality": lambda value: is_integer(value, 1, 2),
    "int64": lambda value: is_decimal(value, -2**63, 2**63 - 1),
    "uint64": lambda value: is_decimal(value, 0, 2**64 - 1),
    "id8": lambda value: is_id(value, 8),
    "id16": lambda value: is_id(value, 16),
    "SpanKind": lambda value: is_integer(value, 1, 5),
    "StatusCode": lambda value: is_integer(value, 0, 2),
}


def check_type(value, wanted, where, problems):
    if isinstance(wanted, list):
        if not isinstance(value, list):
            problems.append("%s is no array" % where)
            return
        for index, item in enumerate(value):
            check_type(item, wanted[0], "%s[%d]" % (where, index), problems)
    elif wanted in SCALARS:
        if not SCALARS[wanted](value):
            problems.append("%s is no %s: %r" % (where, wanted, value))
    elif not isinstance(value, dict):
        problems.append("%s is no object" % where)
    else:
        for key, item in value.items():
            if key in MESSAGES[wanted]:
                check_type(item, MESSAGES[wanted][key], where + "." + key, problems)
            else:
                problems.append("%s has no member %s" % (wanted, key))
        if wanted == "AnyValue" and len(value) != 1:
            problems.append("%s has %d values" % (where, len(value)))


def refuse_twice(pairs):
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key twice in one object")
    return dict(pairs)


def refuse_constant(name):
    raise ValueError("%s is not JSON" % name)


PYTHON = {"step." + name for name in ("gil_us", "gc_us", "gc_collections", "gc_generation")}


def flatten(message, keys, where, problems):
    """Converts attributes to a dict. Only these are allowed, in any order, one that only repeated
    spans have, those of Python, and stacks in events."""
    attributes = {}
    for item in message.get("attributes", []):
        kind, value = next(iter(item["value"].items()))
        if item["key"] in attributes:
            problems.append("%s: %s twice" % (where, item["key"]))
        attributes[item["key"]] = int(value) if kind == "intValue" else value
    more = STACK_KEYS if keys is EVENT_KEYS else {"escalation.repeated", "escalation.as_usual"} | PYTHON
    if keys is HANG_KEYS:
        more = HANG_MORE
    if keys is STEP_KEYS:
        more = more | {key for key in attributes if key.startswith(OTHERS)}
    wanted = set(keys)
    if keys is STEP_KEYS and not any(key.startswith("syscall.") for key in attributes):
        # Of a window that traces no system calls.
        wanted = {key for key in wanted if not key.startswith("syscall.")}
    if set(attributes) - more != wanted:
        problems.append("%s: attributes are %s" % (where, sorted(attributes)))
    return attributes


def take_spans(resource_spans, problems):
    """The spans of one resource, after their form was checked."""
    spans = []
    resource = flatten(resource_spans["resource"],
                       ["service.name", "host.name", "process.pid"], "resource", problems)
    for scope in resource_spans["scopeSpans"]:
        if scope["scope"]["name"] != "ferrum-bpftrace" or not scope["scope"]["version"]:
            problems.append("scope is %s" % scope["scope"])
        for span in scope["spans"]:
            keys = CHILD_KEYS if "parentSpanId" in span else HANG_KEYS if span["name"] == "hang" else STEP_KEYS
            attributes = flatten(span, keys, span["name"], problems)
            events = [dict(event, attributes=flatten(event, EVENT_KEYS, event["name"], problems),
                           time=int(event["timeUnixNano"])) for event in span.get("events", [])]
            spans.append(dict(span, attributes=attributes, resource=resource, events=events,
                              start=int(span["startTimeUnixNano"]),
                              end=int(span["endTimeUnixNano"])))
    return spans


def check_tree(spans, problems):
    by_id = {(span["traceId"], span["spanId"]): span for span in spans}
    if len({span["spanId"] for span in spans}) != len(spans):
        problems.append("a span id twice")
    for span in spans:
        name = span["name"]
        if span["kind"] != 1:
            problems.append("%s is not internal" % name)
        if span["end"] < span["start"]:
            problems.append("%s ends before it starts" % name)
        for event in span["events"]:
            if event["name"] != "ferrum.cause" or not event["attributes"].keys() & STACK_KEYS:
                problems.append("%s has an event %s" % (name, event))
            if not span["start"] <= event["time"] <= span["end"]:
                problems.append("%s: its event is outside of it" % name)
        if "parentSpanId" not in span:
            if not name:
                problems.append("a step without a name")
            continue
        parent = by_id.get((span["traceId"], span["parentSpanId"]))
        if parent is None:
            problems.append("%s has no parent here" % name)
        elif span["start"] != parent["start"] or span["end"] > parent["end"]:
            problems.append("%s is not inside its step" % name)
        if not span["attributes"].get("syscall.aggregated"):
            problems.append("%s does not say that it is a sum" % name)


def take_metrics(body, problems):
    """The points of each metric, after their form was checked."""
    metrics = {}
    for resource in body["resourceMetrics"]:
        source = flatten(resource["resource"],
                         ["service.name", "service.instance.id", "host.name"], "resource", problems)
        for metric in [m for scope in resource["scopeMetrics"] for m in scope["metrics"]]:
            kinds = metric.keys() & {"gauge", "sum", "exponentialHistogram"}
            if len(kinds) != 1 or metric["name"] in metrics:
                problems.append("%s: is %s" % (metric["name"], sorted(kinds)))
                continue
            kind = kinds.pop()
            for point in metric[kind]["dataPoints"]:
                point["attributes"] = {item["key"]: item["value"]["stringValue"]
                                       for item in point["attributes"]}
                point["instance"] = source.get("service.instance.id")
                if kind == "exponentialHistogram" and int(point["count"]) != int(
                        point["zeroCount"]) + sum(map(int, point["positive"]["bucketCounts"])):
                    problems.append("%s: its buckets are not its count" % metric["name"])
            metrics[metric["name"]] = metric[kind]["dataPoints"]
    return metrics


def read_body(raw, path):
    problems, spans = [], []
    try:
        body = json.loads(raw.decode("utf-8"), object_pairs_hook=refuse_twice,
                          parse_constant=refuse_constant)
    except ValueError as error:
        return ["not JSON: %s" % error], [], {}
    if path.endswith("/v1/metrics"):
        check_type(body, "MetricsRequest", "body", problems)
        return problems, [], {} if problems else take_metrics(body, problems)
    check_type(body, "Request", "body", problems)
    if problems:
        return problems, [], {}
    try:
        for resource_spans in body["resourceSpans"]:
            spans += take_spans(resource_spans, problems)
        check_tree(spans, problems)
    except KeyError as error:
        problems.append("no %s" % error)
    if not spans:
        problems.append("no spans")
    return problems, spans, {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def next_answer(self):
        answers = self.server.answers
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def reply(self, status, body, more=()):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def break_off(self, data):
        self.connection.sendall(data)
        self.close_connection = True

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        problems, spans, metrics = read_body(raw, self.path)
        answer = self.next_answer()
        if self.headers["Content-Type"] != "application/json":
            problems.append("Content-Type is %s" % self.headers["Content-Type"])
        line = json.dumps({"path": self.path, "headers": dict(self.headers), "status": answer,
                           "problems": problems, "spans": spans, "metrics": metrics}) + "\n"
        # At once: two tools may send at the same time, and a question may come meanwhile.
        with open(self.server.log, "ab", buffering=0) as log:
            log.write(line.encode())
        if answer == "garbage":
            self.break_off(b"\x16\x03\x01\x02garbage\r\n\r\n")
        elif answer == "half":
            self.break_off(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"par")
        elif answer == "close":
            self.break_off(b"")
        elif answer == "hang":
            self.rfile.read(1)
            self.close_connection = True
        elif answer == "html":
            self.reply(200, "<html>It works!</html>")
        elif answer == "partial":
            self.reply(200, json.dumps({"partialSuccess": {"rejectedSpans": "1",
                                                           "errorMessage": "too\nold"}}))
        else:
            status, _, after = answer.partition(":")
            self.reply(int(status), "{}" if status == "200" else '{"message":"as you wish"}',
                       [("Retry-After", after)] if after else [])


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that ends in the middle is what some tests are about


def serve(log, answers, tls):
    server = Server(("127.0.0.1", 0), Handler)
    server.log = log
    server.answers = answers or ["200"]
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def load_profile(event):
    with open(os.environ["OUT"] + ".profile", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["shape"]["step"]: dict(row["shape"], us=row["stage_us"])
            for row in rows if row["event"] == event and row["shape"].get("not_shown") != "rate_limit"}


def load_requests(log):
    if not os.path.exists(log):
        return []
    with open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def load_steps(log):
    steps, children = {}, []
    for request in load_requests(log):
        for span in request["spans"] if request["status"] == "200" else []:
            if "parentSpanId" in span:
                children.append(span)
            elif span["name"] != "hang":
                steps[span["attributes"]["step.number"]] = dict(span, children={})
    by_id = {span["spanId"]: span for span in steps.values()}
    for child in children:
        by_id[child["parentSpanId"]]["children"][child["name"]] = child
    return steps


def load_hangs(log):
    return [span for q in load_requests(log) if q["status"] == "200" for span in q["spans"] if span["name"] == "hang"]


def load_metrics(log):
    return [q["metrics"] for q in load_requests(log) if q["metrics"] and q["status"] == "200"][-1]


def ask(log, expression):
    makers = {"Q": functools.partial(load_requests, log), "P": functools.partial(load_steps, log),
              "H": functools.partial(load_hangs, log), "M": functools.partial(load_metrics, log),
              "G": lambda: load_profile("escalation_prof"),
              "S": lambda: load_profile("step_prof"), "O": lambda: OTHERS}
    tree = ast.parse(expression.replace("\n", " "), mode="eval")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    try:
        namespace = {name: makers[name]() for name in used if name in makers}
        print(eval(compile(tree, "expression", "eval"), namespace))
    except Exception as error:  # the reader is a test: one line says it all
        print("%s: %s" % (type(error).__name__, error))


def main():
    verb, log, *rest = sys.argv[1:]
    if verb == "ask":
        ask(log, rest[0])
        return
    tls = None
    if rest[:1] == ["--tls"]:
        tls = rest[1]
        del rest[:2]
    serve(log, rest, tls)


main()

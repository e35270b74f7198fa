#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""table.py TABLE PACKAGES: whether what the rows of TABLE (user/python/engines.c, preprocessed) say of vLLM is
true of its source in the folder PACKAGES. Prints facts."""
import ast
import os
import re
import sys

TABLE, PACKAGES = sys.argv[1:]
# Gone since: what an older release has.
OLD = re.compile(r"vllm\.worker\.")
# Where objects are made that a path begins with, by the path's first two parts.
OBJECTS = {"self.scheduler": ("vllm/v1/core/sched/scheduler.py", "Scheduler"),
           "scheduler_output": ("vllm/v1/core/sched/output.py", "SchedulerOutput")}
WORKERS = "vllm/v1/worker/gpu_worker.py"
failed = False


def fact(name, is_true, *figures):
    global failed
    print("#", *figures) if figures else None
    print("ok -" if is_true else "not ok -", name)
    failed |= not is_true


def read_rows():
    with open(TABLE, encoding="utf-8") as file:
        text = re.search(r"rows\[\] = \{(.*?)\};", file.read(), re.S).group(1)
    rows = re.sub(r'"\s*"', "", text)
    return [re.fullmatch(r"py:([\w.]+):([\w.]+)(?:\((.*)\))?", row).groups() for row in re.findall(r'"(.*?)"', rows)]


def parse(path):
    with open(os.path.join(PACKAGES, path), encoding="utf-8") as file:
        return ast.parse(file.read())


def find(tree, kind, name):
    return next((node for node in tree.body if isinstance(node, kind) and node.name == name), None)


def attributes_of(path, name):
    """What objects of a class have: annotated, or assigned in a method."""
    for node in ast.walk(find(parse(path), ast.ClassDef, name)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def is_attribute(path):
    """The last part of "self.scheduler.running" is an attribute of what the rest is."""
    owner, _, attribute = path.rpartition(".")
    return owner in OBJECTS and attribute in attributes_of(*OBJECTS[owner])


def check_number(where, row, method, text, names):
    """row: all numbers of the function, of which text is one; names: all functions of the table."""
    name, expression = text.split("=")
    inner = re.fullmatch(r"(TIME|BEFORE)\((.*)\)", expression)
    if inner:
        known = names if inner[1] == "TIME" else {part.split("=")[0] for part in row.split(",")}
        fact(f"{where}: {name}: {inner[2]} is there", inner[2] in known)
    elif expression != "INNER":
        path = re.sub(r"^len\((.*)\)$", r"\1", expression)
        arguments = [argument.arg for argument in method.args.args]
        fact(f"{where}: {name}: {path} is there", path.split(".")[0] in arguments and is_attribute(path))


def check_row(module, qualname, numbers, names):
    path = module.replace(".", "/") + ".py"
    if not os.path.exists(os.path.join(PACKAGES, path)):
        fact(f"{module} is there", False)
        return
    owner, name = qualname.split(".")
    found = find(parse(path), ast.ClassDef, owner)
    method = found and find(found, ast.FunctionDef, name)
    fact(f"{module}:{qualname} is there, and a plain function", method is not None and
         not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(method)))
    for text in numbers.split(",") if method and numbers else []:
        check_number(f"{module}:{qualname}", numbers, method, text, names)


def runners():
    """The modules that a worker takes its GPUModelRunner from."""
    for node in ast.walk(parse(WORKERS)):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "GPUModelRunner" for alias in node.names):
            yield node.module


rows = [row for row in read_rows() if row[0].startswith("vllm.") and not OLD.match(row[0])]
fact("there are rows", len(rows) >= 6, len(rows), "rows")
for row in rows:
    check_row(*row, {qualname for _, qualname, _ in rows})
for module in set(runners()):
    fact(f"both functions of {module}", {"GPUModelRunner.execute_model", "GPUModelRunner.sample_tokens"}
         <= {qualname for name, qualname, _ in rows if name == module})
sys.exit(failed)

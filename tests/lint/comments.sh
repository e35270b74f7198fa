#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Whatever a comment names exists: a file, by the end of its path, or a function written as
# object__verb or verb_noun().
set -u
cd "$(dirname "$0")/../.." || exit 1

if python3 - <<'END'; then
import re
import subprocess
import sys

# Foreign files: the kernel's, CUDA's, and those that a build creates.
FOREIGN = re.compile(r"(include/uapi/)?(linux|asm|sys)/\S+|cu(pti|da)\w*\.h|output_json\.h|decode-insn\.c|groups\.h|nv_escape\.h|nv-ioctl-numbers\.h|uvm_ioctl\.h|torch/\S+|.*\.skel\.h|inject_code\.h|html_page\.h")
FOREIGN_CALLS = {"prepend_path", "bpf_check_classic", "seccomp_check_filter"}
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)

tracked = subprocess.check_output(["git", "ls-files"], text=True).split()
ends = {"/".join(path.split("/")[i:]) for path in tracked for i in range(path.count("/") + 1)}
comments, code = [], []
for path in tracked:
    if not re.fullmatch(r"(user|bpf|cupti|python|include|tests)/.*\.(c|h|sh|py)", path):
        continue
    with open(path, errors="replace", encoding="utf-8") as file:
        text = file.read()
    if path.endswith((".c", ".h")):
        found = [match for match in COMMENT.finditer(text) if match[0][0] == "/"]
        code.append(COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", text))
    else:
        found = re.finditer(r"(?m)(?:^|\s)#[ !].*", text)
        code.append(text)
    comments += [(path, text.count("\n", 0, match.start()) + 1, match[0]) for match in found]
words = set(re.findall(r"\w+", "\n".join(code)))
stale = []
for path, line, comment in comments:
    for match in re.finditer(r"(?<![\w/.<~*-])(\w[\w./-]*\.(?:c|h|sh|py|mk|md|txt))\b(?![\w/.])", comment):
        if not (match[1] in ends or FOREIGN.fullmatch(match[1]) or re.search("[A-Z]", match[1])):
            stale.append((path, line + comment.count("\n", 0, match.start()), match[1]))
    for match in re.finditer(r"\b([a-z]\w*__\w+)\b|\b([a-z]\w*_\w+)\(\)", comment):
        if (match[1] or match[2]) not in words | FOREIGN_CALLS:
            stale.append((path, line + comment.count("\n", 0, match.start()), match[0]))
for path, line, name in stale:
    print(f"comments: {path}:{line}: there is no {name}")
sys.exit(bool(stale))
END
	echo 'ok - files and functions that comments name are there'
else
	echo 'not ok - files and functions that comments name are there'
	exit 1
fi

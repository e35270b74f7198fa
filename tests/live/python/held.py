# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine that takes its step function away from whoever has armed it, as another tool could: held.py TRUTH

Says ready, and makes steps until its input ends; then TRUTH has their number. A line of input is obeyed before
the next step, and answered by a file TRUTH.LINE: "take" while the function is armed, and "give" afterwards. On
3.11, whose functions are armed by __code__, an audit hook forbids any change of that from take to give. On others
take writes the pointer that the function had at first, and give nothing."""
import ctypes, json, os, select, sys, time


class Batch:
    number = 0


def step(batch):
    return batch


def hook(event, args):
    if forbids and event == 'object.__setattr__' and args[1] == '__code__':
        raise RuntimeError('forbidden')


def pointer():
    """Where the function has it: tp_vectorcall_offset of its type."""
    header = 0 if getattr(sys, '_is_gil_enabled', lambda: True)() else 16
    offset = ctypes.c_ssize_t.from_address(id(type(step)) + 56 + header).value
    return ctypes.c_size_t.from_address(id(step) + offset)


def take():
    if has_code:
        forbids.append(True)
    else:
        pointer().value = original


def give():
    forbids.clear()


has_code, forbids = sys.version_info[:2] == (3, 11), []
if has_code:
    sys.addaudithook(hook)
original = pointer().value
batch = Batch()
print('ready', flush=True)
while True:
    if select.select([sys.stdin], [], [], 0.002)[0]:
        line = os.read(0, 100).decode().strip()
        if not line:
            break
        {'take': take, 'give': give}[line]()
        open(sys.argv[1] + '.' + line, 'w').close()
    batch.number += 1
    step(batch)
with open(sys.argv[1] + '.new', 'w') as file:
    json.dump({'steps': batch.number}, file)
os.rename(sys.argv[1] + '.new', sys.argv[1])

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""One event loop: streams, timers, an executor and child processes, each checked.

Says "ready"; SIGTERM ends it, and it says how it went.
"""
import asyncio
import concurrent.futures
import hashlib
import signal
import time

WRONG = {}
ROUNDS = {}
CLIENTS = []
ENDED = []


def expect(name, good, what):
    if not good:
        WRONG.setdefault(name, []).append(what)


async def repeat(name, step, stop):
    ROUNDS[name] = 0
    try:
        while not stop.is_set():
            await step(name)
            ROUNDS[name] += 1
    except Exception as error:  # pylint: disable=broad-except
        expect(name, False, repr(error))


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()
    ENDED.append(writer)


async def make_client(port, seed):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    CLIENTS.append(writer)
    data = hashlib.shake_128(bytes([seed])).digest(20000)

    async def step(name):
        size = (ROUNDS[name] * 131 + seed) % len(data) + 1
        writer.write(data[:size])
        expect(name, await reader.readexactly(size) == data[:size], "another answer")
        # The loop must wait at times.
        await asyncio.sleep(0.003)

    return step


async def sleep(name):
    for wanted in (0.001, 0.007):
        begin = time.monotonic()
        await asyncio.sleep(wanted)
        # The loop runs timers early by up to its clock's resolution.
        early = wanted - (time.monotonic() - begin)
        expect(name, early < 0.001, f"{early * 1e3:.3f} ms early")


async def execute(name):
    number = ROUNDS[name]
    loop = asyncio.get_running_loop()
    expect(name, await loop.run_in_executor(None, pow, number, 3) == number**3, f"{number}")
    await asyncio.sleep(0.002)


async def run_process(name):
    word = f"round {ROUNDS[name]}\n".encode()
    process = await asyncio.create_subprocess_exec(
        "/bin/cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate(word)
    expect(name, output == word and process.returncode == 0, f"{output!r} {process.returncode}")
    await asyncio.sleep(0.03)


async def main():
    # One thread, because more would start at times, and look like threads left behind.
    executor = concurrent.futures.ThreadPoolExecutor(max_workers=1)
    asyncio.get_running_loop().set_default_executor(executor)
    stop = asyncio.Event()
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    steps = {"sleep": sleep, "executor": execute, "subprocess": run_process}
    for seed in range(4):
        steps[f"stream {seed}"] = await make_client(port, seed)
    tasks = [asyncio.create_task(repeat(name, step, stop)) for name, step in steps.items()]
    print("ready", flush=True)
    await asyncio.wait(tasks)
    for writer in CLIENTS:
        writer.close()
    while len(ENDED) < len(CLIENTS):
        await asyncio.sleep(0.01)
    server.close()
    for name in steps:
        for wrong in WRONG.get(name, [])[:3]:
            print(f"# {name}: {wrong}")
        good = name not in WRONG and ROUNDS[name] > 0
        print(f"{'ok' if good else 'not ok'} - {name} is right")
        print(f"# {name}: {ROUNDS[name]} rounds")


asyncio.run(main())

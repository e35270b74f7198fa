# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine whose worker begins, or loads its modules, once the trace has begun: late.py TRUTH WORKERS

The launcher says ready, waits for its go, and starts one worker after the other: the next begins when the
one before has ended, as in a restart. A worker is a plain interpreter at first; then it loads the engine's
modules (packages/) and makes steps until TRUTH.stop has its number. The tokens of a step are its number, so
that a missing one shows. With BEGINS in the environment, the first worker makes steps before the launcher
says ready, and the next one begins a second after its end. With COLLECTS in the environment, launcher and workers collect garbage all the
time, and the launcher waits for a second go before the first worker. TRUTH has for each worker its pid and how many steps it made. The launcher ends
when its input does.
"""
import gc, json, os, subprocess, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'packages'))


def stops(truth):
    try:
        with open(truth + '.stop') as file:
            return int(file.read() or 0)
    except FileNotFoundError:
        return 0


def collect():
    while True:
        gc.collect(0)


def load_and_run(truth, number):
    time.sleep(0.5)
    from vllm.v1.worker.gpu_model_runner import CPUModelRunner, SchedulerOutput
    runner = CPUModelRunner()
    while stops(truth) < number:
        runner.execute_model(SchedulerOutput([runner.calls + 1]))
        if runner.calls == 1:
            open(truth + '.begun', 'w').close()
        time.sleep(0.002)
    return {'pid': os.getpid(), 'steps': runner.calls}


def run_worker(truth, number):
    if os.environ.get('COLLECTS'):
        threading.Thread(target=collect, daemon=True).start()
    if os.environ.get('CLOSES'):
        # As a daemon does.
        os.closerange(3, 1 << 16)
    with open('/proc/self/comm', 'w') as comm:
        comm.write('late-worker%d' % number)
    print(json.dumps(load_and_run(truth, number)), flush=True)


def start(truth, number):
    command = [sys.executable, sys.argv[0], truth, 'worker', str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def launch(truth, workers):
    """With no workers it becomes the engine itself."""
    counts = []
    begins = start(truth, 1) if os.environ.get('BEGINS') else None
    while begins and not os.path.exists(truth + '.begun'):
        time.sleep(0.02)
    print('ready', flush=True)
    sys.stdin.readline()
    if os.environ.get('COLLECTS'):
        threading.Thread(target=collect, daemon=True).start()
        sys.stdin.readline()
    if not workers:
        counts = [load_and_run(truth, 1)]
    for number in range(1, workers + 1):
        worker = begins if begins and number == 1 else start(truth, number)
        counts.append(json.loads(worker.communicate()[0]))
        if worker.returncode:
            sys.exit(worker.returncode)
        if begins:
            time.sleep(1)
    with open(truth + '.new', 'w') as file:
        json.dump(counts, file)
    os.rename(truth + '.new', truth)
    sys.stdin.read()


if sys.argv[2] == 'worker':
    run_worker(sys.argv[1], int(sys.argv[3]))
else:
    launch(sys.argv[1], int(sys.argv[2]))

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine of several processes, of the names of vLLM, SGLang or TensorRT-LLM: tree.py ENGINE TRUTH STEPS

'vllm_v2' has vLLM's second model runner; 'uni' and 'queue' are vLLM with one GPU, whose engine core is its
own worker: the second with a queue of batches, as it is with asynchronous scheduling.

The first process is a launcher, which starts an API server, which starts the engine, which starts its
workers. Each runs its part of a real engine's classes (packages/). TRUTH.pids has the pids by name when
the launcher says ready. Each waits for its go, makes its steps, and TRUTH has what each counted, by pid.
"""
import json, os, select, subprocess, sys, time
from multiprocessing import resource_tracker

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'packages'))

# The children of each role, and how it calls itself.
ENGINES = {
    'vllm': {'launch': ('vllm', ['api']), 'api': ('vllm-api', ['core']),
             'core': ('VLLM::EngineCore', ['worker0', 'worker1']),
             'worker0': ('VLLM::Worker_TP0', []), 'worker1': ('VLLM::Worker_TP1', [])},
    'sglang': {'launch': ('sglang', ['api']), 'api': ('sglang-http', ['worker0', 'worker1', 'detokenizer']),
               'worker0': ('sglang::sched_TP0', []), 'worker1': ('sglang::sched_TP1', []),
               'detokenizer': ('sglang::detoken', [])},
    'tensorrt_llm': {'launch': ('trtllm-serve', ['api']), 'api': ('trtllm-llmapi', ['worker0', 'worker1']),
                     'worker0': ('mpi-rank0', []), 'worker1': ('mpi-rank1', [])},
    'uni': {'launch': ('vllm', ['api']), 'api': ('vllm-api', ['core']), 'core': ('VLLM::EngineCore', [])},
    # Some of whose processes begin when the trace has, and stay until the launcher's input ends.
    'late': {'launch': ('late', ['worker0', 'worker1']), 'worker0': ('late-worker0', []),
             'worker1': ('late-worker1', []), 'newcomer': ('late-newcomer', [])},
}
ENGINES['vllm_v2'], ENGINES['queue'] = ENGINES['vllm'], ENGINES['uni']


def pause():
    time.sleep(0.001)


def run_vllm_core(steps):
    from vllm.v1.engine.core import EngineCoreProc
    core = EngineCoreProc()
    yield
    for n in range(steps):
        core.scheduler.running = [None] * (n % 5)
        core.step_fn()
        pause()
    yield {'EngineCore.step': core.calls, 'n_requests': core.requests}


def run_vllm_worker(steps):
    from vllm.v1.worker.gpu_model_runner import CPUModelRunner, SchedulerOutput
    yield from run_runner(CPUModelRunner(), SchedulerOutput, steps)


def run_runner(runner, scheduler_output, steps):
    yield
    for n in range(steps):
        runner.execute_model(scheduler_output([n % 7 + 1] * (n % 3 + 1)))
        runner.sample_tokens(None)
        pause()
    yield {'GPUModelRunner.execute_model': runner.calls, 'GPUModelRunner.sample_tokens': runner.samples,
           'n_tokens': runner.tokens, 'n_requests': runner.requests}


def run_vllm_v2_worker(steps):
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner
    yield from run_runner(GPUModelRunner(), SchedulerOutput, steps)


def run_uni_core(steps, queue=False):
    from uni import Core
    core = Core(queue)
    yield
    for n in range(steps):
        core.scheduler.running = [None] * (n % 5)
        core.iterate()
        pause()
    yield {'EngineCore.' + core.step_fn.__name__: core.calls, 'n_requests': core.requests,
           'n_tokens': sum(row['n_tokens'] or 0 for row in core.each), 'each': core.each}


def run_queue_core(steps):
    yield from run_uni_core(steps, True)


def run_vllm_api(steps):
    # As the real one's client of the engine core does.
    import vllm.v1.engine.core
    assert vllm.v1.engine.core
    yield
    yield {}


run_vllm_v2_api = run_uni_api = run_queue_api = run_vllm_api
run_vllm_v2_core = run_vllm_core


def run_sglang_worker(steps):
    from sglang.srt.managers.scheduler import ScheduleBatch, Scheduler
    scheduler, last = Scheduler(), None
    yield
    for n in range(steps):
        if n % 50 == 0:
            batch = ScheduleBatch(n // 50 % 4 + 1)
            batch.prepare_for_extend(4096)
        else:
            batch.prepare_for_decode()
        result = scheduler.run_batch(batch)
        if last:
            scheduler.process_batch_result(*last)
        last = batch, result
        pause()
    yield {'Scheduler.run_batch': scheduler.batches, 'Scheduler.process_batch_result': scheduler.results,
           'n_requests': scheduler.requests, 'each': scheduler.each}


def run_tensorrt_llm_worker(steps):
    from tensorrt_llm._torch.pyexecutor.py_executor import PyExecutor
    executor = PyExecutor()
    yield
    executor._executor_loop(steps, pause)
    yield {'PyExecutor._forward_step': executor.calls, 'n_prefill': executor.prefill,
           'n_decode': executor.decode}


def run_late_worker(steps):
    part = run_tensorrt_llm_worker(steps)
    yield next(part)
    without = {name: value for name, value in os.environ.items() if name != 'LD_PRELOAD'}
    newcomer = subprocess.Popen([sys.executable] + sys.argv[:4] + ['newcomer'], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, env=without)
    newcomer.stdout.readline()
    counts = next(part)
    sys.stdin.read()
    newcomer.communicate('\n')
    yield counts


def run_nothing(steps):
    yield
    yield {}


def await_go():
    # A thread that reads a pipe is not taken for an injection; one that polls it is.
    select.select([sys.stdin], [], [])
    sys.stdin.readline()


def main():
    engine, truth, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    role = sys.argv[4] if len(sys.argv) > 4 else 'launch'
    title, roles = ENGINES[engine][role]
    with open('/proc/self/comm', 'w') as comm:
        comm.write(title)
    children = [subprocess.Popen([sys.executable] + sys.argv[:4] + [child], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True) for child in roles]
    part = globals().get('run_%s_%s' % (engine, role.rstrip('01')), run_nothing)(steps)
    next(part)
    pids = {role: os.getpid()}
    if role == 'api':
        # The real ones have it: a Python process that is of no engine.
        resource_tracker.ensure_running()
        pids['tracker'] = resource_tracker._resource_tracker._pid
    for child in children:
        pids.update(json.loads(child.stdout.readline()))
    if role == 'launch':
        with open(truth + '.pids', 'w') as file:
            json.dump(pids, file)
    print('ready' if role == 'launch' else json.dumps(pids), flush=True)
    await_go()
    for child in children:
        child.stdin.write('\n')
        child.stdin.flush()
    if engine == 'late' and role == 'launch':
        sys.stdin.read()
    for child in children:
        child.stdin.close()
    counts = {str(os.getpid()): next(part)}
    for child in children:
        counts.update(json.loads(child.stdout.readline()))
        child.wait()
    if role == 'launch':
        with open(truth + '.new', 'w') as file:
            json.dump(counts, file)
        os.rename(truth + '.new', truth)
    else:
        print(json.dumps(counts), flush=True)


main()

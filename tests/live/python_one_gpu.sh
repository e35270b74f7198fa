#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# vLLM with one GPU, as doubles: the engine's step calls the worker's functions on its own thread, so these
# are no steps. Their tokens and times are the engine's step's. python/uni.py keeps its own account of each.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh
# shellcheck source=tests/live/python/tree.sh
. tests/live/python/tree.sh

each='[row for counts in T.values() for row in counts.get("each", [])]'

check_uni()
{
	check_tree
	only_steps api core
	fact "$NAME: each step has the tokens that were executed in it" \
		"[s['arg.n_tokens'] for s in S] == [row['n_tokens'] for row in $each] and len(S) == $steps"
	none "$NAME: how long the passes took" \
		"[(s['step'], s['arg.execute_us'], row) for s, row in zip(S, $each)
			if not row['execute_model'][0] <= (s['arg.execute_us'] or 0) <= row['execute_model'][1]]"
	fact "$NAME: what never is in a step is absent" \
		"all((s['arg.execute_us'] is None) == (s['arg.n_tokens'] is None) for s in S)"
}

# has_classes_by NUMBER
has_classes_by()
{
	fact "$NAME: classes are by $1" \
		"'$1' in {c['by'] for k in R['kinds'] for c in k.get('classes', [])}"
}

check_step()
{
	check_uni
	none "$NAME: how long sampling took" \
		"[(s['step'], s['arg.sample_us'], row) for s, row in zip(S, $each)
			if not row['sample_tokens'][0] <= (s['arg.sample_us'] or 0) <= row['sample_tokens'][1]]"
	has_classes_by n_tokens
}

# One of each way to arm a function; for nights all that are there.
ways='/^3\.11/ && !old++ || /^3\.1[2-9]/ && !new++'
while read -r version PYTHON; do
	preload=$LIBRARY run_tree "$version" uni core
	check_step
done < <(interpreters | awk "$(at_length "$ways" 1)")
unset PYTHON
preload='' run_tree injected uni api --python=inject
check_uni

# With a queue a step waits for the batch that the step before has launched.
preload=$LIBRARY run_tree 'a queue of batches' queue core
check_uni
fact "$NAME: tokens that each step waits for" "[s['arg.n_waited'] for s in S] == [row['n_waited'] for row in $each]"
has_classes_by n_waited

# Without the inner functions there is nothing to tell.
preload=$LIBRARY run_tree 'one function alone' uni core \
	--step 'py:vllm.v1.engine.core:EngineCore.step(n_tokens=INNER,n_requests=len(self.scheduler.running))'
fact "$NAME: its calls, without tokens" \
	"len(S) == $steps and all(s['arg.n_tokens'] is None and s['arg.n_requests'] is not None for s in S)"
finish

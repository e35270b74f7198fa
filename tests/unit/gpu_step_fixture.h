/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A step of 6.2 ms with GPU figures that add up. Include after cmocka.h. */
#ifndef FBT_GPU_STEP_FIXTURE_H
#define FBT_GPU_STEP_FIXTURE_H

#include <math.h>
#include <stdlib.h>
#include "model/gpu.h"
#include "model/step.h"

#define GPU_STEP_NS   UINT64_C(6200000)
#define GPU_STEP_TGID 42

/* x86-64 */
#define NR_READ	 0
#define NR_FUTEX 202

/* The sentence that no other tool can say: 1.8 ms idle, 1.1 in a futex, 0.4 in user code. */
static inline struct gpu_figures make_figures(void)
{
	return (struct gpu_figures){
		.device = 3,
		.busy_ns = 4400999,
		.kernel_ns = 4000000,
		.memcpy_ns = 500000,
		.memset_ns = 1999,
		.h2d_ns = 300000,
		.d2h_ns = 200000,
		.transfer_ns = 500000,
		.exposed_copy_ns = 400999,
		.work_sum_ns = 6601498,
		.idle_ns = 1799001,
		.host_wait_ns = 1500001,
		.launch_ns = 199000,
		.queue_ns = 100000,
		.kernel_wait_ns = 4000,
		.dependency_ns = 96000,
		.wait_blocked_ns = 1100000,
		.wait_user_ns = 400001,
		.wait_calls = {{NR_FUTEX, true, 1100000}},
		.hta_host_wait_ns = 1700000,
		.view_start_ns = 1000000001000,
		.view_end_ns = 1000007001000,
		.view_busy_ns = 5000000,
		.kernels = 42,
		.memcpys = 2,
		.memsets = 1,
		.graph_nodes = 40,
		.h2d_bytes = 1048576,
		.d2h_bytes = 4096,
		.memset_bytes = 64,
		.launches = 5,
		.launch_latency_ns = 6000,
		.launch_api_ns = 4000,
		.queue_delay_ns = 1000,
		.wait_behind_ns = 2000,
		.work_ns = 3100,
		.tklqt_ns = 25000,
		.queue_depth = 1.5,
		.idle_empty = 0.9,
	};
}

/* Free with step_gpu_free. */
static inline struct step_gpu *make_gpu(void)
{
	struct step_gpu *gpu = calloc(1, sizeof(*gpu));

	assert_non_null(gpu);
	gpu->complete = true;
	gpu->all = make_figures();
	assert_int_equal(vec_push(&gpu->devices, gpu->all), 0);
	gpu->sync_ns = 3000000;
	gpu->sync_useful_ns = 2900000;
	gpu->sync_tail_ns = 50000;
	gpu->sync_spin_ns = 1000000;
	gpu->exposed_syscall_ns = 1100000;
	gpu->overlapped_syscall_ns = 200000;
	gpu->cuda_internal_ns = 2000000;
	gpu->calls_known = true;
	gpu->gpu_only_ns = 3000000;
	gpu->gpu_host_ns = 1400999;
	gpu->bound = GPU_BOUND_WAIT;
	gpu->bound_idle = 0.27404854;
	gpu->bound_work = 0.775;
	gpu->bound_empty = 0.9;
	gpu->joined = 44;
	gpu->by_time = 1;
	return gpu;
}

#endif

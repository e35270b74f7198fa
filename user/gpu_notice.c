/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_notice.h"

#include "gpu_table.h"
#include "log.h"

/* Of a text that the target may have made up. */
#define DETAIL_MAX 200

/* NULL: nothing is wrong, or it takes words of its own. */
static const struct {
	const char *what;
	const char *advice;
} problems[FBT_GPU_STATUS_COUNT] = {
	[FBT_GPU_STALLED] = {"its shim does not answer", "is the process stopped?"},
	[FBT_GPU_NO_CUPTI] = {"it has no libcupti",
			      "install the CUDA toolkit or the wheel nvidia-cuda-cupti where it "
			      "runs, or name the file in FERRUM_CUPTI_LIBRARY when it starts"},
	[FBT_GPU_OLD_CUPTI] = {"its CUPTI is too old", "use that of CUDA 12.6 or newer"},
	[FBT_GPU_NO_DRIVER] = {"CUPTI finds no NVIDIA driver",
			       "nvidia-smi, run where the process runs, says why"},
	[FBT_GPU_BUSY] = {"another tool has CUPTI",
			  "end nsys, ncu, cuda-gdb or the PyTorch profiler in it"},
	[FBT_GPU_FAILED] = {"CUPTI does not collect",
			    "FERRUM_CUPTI_LIBRARY can name another libcupti when it starts"},
	[FBT_GPU_BAD_RING] = {"what it shares is not what a shim would",
			      "is its libferrum_cupti.so the one of ferrum-bpftrace gpu-env?"},
	[FBT_GPU_OTHER_SHIM] = {"its shim is of another version than this program",
				"restart it with the one of ferrum-bpftrace gpu-env"},
	[FBT_GPU_TAKEN] = {"another tracer reads them", "end that one first"},
	[FBT_GPU_NOT_INJECTED] = {"the shim was not put into it",
				  "restart it with the shim, ferrum-bpftrace gpu-env says how"},
};

static void warn(const struct fbt_gpu_state *state, const char *detail)
{
	const char *what = problems[state->status].what;
	const char *advice = problems[state->status].advice;

	if (*detail)
		log_warn("process %u: GPU records are off: %s (%.*s): %s", state->tgid, what,
			 DETAIL_MAX, detail, advice);
	else
		log_warn("process %u: GPU records are off: %s: %s", state->tgid, what, advice);
}

void gpu_notice_log(const struct fbt_gpu_state *state, const char *detail)
{
	char version[32];

	switch (state->status) {
	case FBT_GPU_ABSENT:
		log_info("process %u: no GPU records: %s (ferrum-bpftrace gpu-env says how to "
			 "have them)",
			 state->tgid,
			 *detail ? detail : "it uses CUDA, but was not started with the shim");
		break;
	case FBT_GPU_ARMED:
		log_debug("process %u: GPU records are on, CUPTI %s, after %.3f s", state->tgid,
			  gpu_cupti_version_name(state->cupti_version, version),
			  (double)state->arm_ns / 1e9);
		break;
	case FBT_GPU_ENDED:
	case FBT_GPU_EXITED:
	case FBT_GPU_NOT_CUDA:
	case FBT_GPU_OFF:
		log_debug("process %u: GPU status %s", state->tgid,
			  gpu_status_name((enum fbt_gpu_status)state->status));
		break;
	default:
		warn(state, detail);
	}
}

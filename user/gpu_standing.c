/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_standing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_use.h"
#include "decode.h"
#include "gpu_notice.h"
#include "log.h"

void gpu_standing_clear(struct gpu_standing *standing)
{
	free(standing->library);
	standing->library = NULL;
}

void gpu_standing_say(struct gpu_standing *standing, enum fbt_gpu_status status, const char *detail,
		      uint64_t time_ns)
{
	const char *const strings[] = {detail, standing->library};
	struct fbt_gpu_state *state = &standing->state;

	standing->renewed = false;
	if (standing->said && state->status == status)
		return;
	standing->said = true;
	state->status = status;
	state->time_ns = time_ns;
	if (status != FBT_GPU_ARMED)
		state->arm_ns = 0;
	if (record_send_strings(standing->output, state, sizeof(*state), FBT_EVENT_GPU_STATE,
				strings, 2))
		log_warn("process %u: no memory for its GPU status", state->tgid);
	if (standing->logged++ < GPU_STANDING_LINES)
		gpu_notice_log(state, detail);
	else if (standing->logged == GPU_STANDING_LINES + 1)
		log_info("process %u: its GPU status keeps changing: no more is said of it",
			 state->tgid);
}

void gpu_standing_learn(struct gpu_standing *standing, const struct fbt_gpu_state *said)
{
	const char *library = decode_string(&said->header, 1);
	char *copy = *library ? strdup(library) : NULL;

	standing->state.cupti_version = said->cupti_version;
	standing->state.driver_version = said->driver_version;
	standing->state.shim_version = FBT_GPU_VERSION;
	standing->state.clock_method = said->clock_method;
	if (!copy)
		return;
	free(standing->library);
	standing->library = copy;
}

bool gpu_standing_is_refusal(uint32_t status)
{
	return status == FBT_GPU_NO_CUPTI || status == FBT_GPU_OLD_CUPTI ||
	       status == FBT_GPU_NO_DRIVER || status == FBT_GPU_BUSY || status == FBT_GPU_FAILED;
}

static void note_lack(struct gpu_standing *standing, uint64_t now_ns)
{
	if (standing->lacks_ns)
		return;
	standing->lacks_ns = now_ns;
	standing->lacked = !standing->said;
}

void gpu_standing_say_absent(struct gpu_standing *standing, uint64_t now_ns)
{
	bool open = !standing->said || standing->state.status == FBT_GPU_NOT_CUDA;
	uint32_t tgid = standing->state.tgid;
	char detail[CUDA_USE_DETAIL_SIZE];
	bool lacks;

	if (!open && !standing->renewed)
		return;
	lacks = cuda_use_lacks_shim(tgid, detail);
	if (lacks && standing->injects && !cuda_use_will_have_shim(tgid)) {
		if (!cuda_use_is_inherited(tgid)) {
			note_lack(standing, now_ns);
			return;
		}
		lacks = false;
	}
	if (lacks)
		gpu_standing_say(standing, FBT_GPU_ABSENT, detail, now_ns);
	else if (open)
		gpu_standing_say(standing, FBT_GPU_NOT_CUDA, "", now_ns);
}

void gpu_standing_renew(struct gpu_standing *standing)
{
	standing->lacks_ns = 0;
	standing->renewed = standing->injects;
}

bool gpu_standing_awaits_shim(const struct gpu_standing *standing)
{
	return standing->lacks_ns &&
	       (!standing->said || standing->renewed || standing->state.status == FBT_GPU_NOT_CUDA);
}

static const char *advice_for(int err)
{
	if (err == -EMFILE)
		return ": trace fewer processes, or raise ulimit -n";
	if (err == -EACCES || err == -EPERM)
		return ": run with sudo, or grant CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE";
	return "";
}

/* Of what could not be looked at nothing is claimed. */
static void say_unknown(struct gpu_standing *standing, int err)
{
	if (!standing->unknown)
		log_warn("process %u: cannot look for GPU records in it: %s%s",
			 standing->state.tgid, strerror(-err), advice_for(err));
	standing->unknown = true;
}

void gpu_standing_explain(struct gpu_standing *standing, int err, uint32_t version, uint32_t holder,
			  uint64_t now_ns)
{
	char detail[64];

	switch (err) {
	case -ESRCH:
		break;
	case -EBUSY:
		if (holder)
			snprintf(detail, sizeof(detail), "process %u has them", holder);
		else
			snprintf(detail, sizeof(detail), "one in another container, or itself");
		gpu_standing_say(standing, FBT_GPU_TAKEN, detail, now_ns);
		break;
	case -EPROTONOSUPPORT:
		snprintf(detail, sizeof(detail), "version %u, not %u", version, FBT_GPU_VERSION);
		standing->state.shim_version = version;
		gpu_standing_say(standing, FBT_GPU_OTHER_SHIM, detail, now_ns);
		break;
	case -EBADMSG:
		gpu_standing_say(standing, FBT_GPU_BAD_RING, "", now_ns);
		break;
	case -ENOENT:
		gpu_standing_say_absent(standing, now_ns);
		break;
	case -EACCES:
	case -EPERM:
		if (cuda_use_is_there(standing->state.tgid))
			say_unknown(standing, err);
		else
			gpu_standing_say_absent(standing, now_ns);
		break;
	default:
		say_unknown(standing, err);
	}
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "subscriber.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * CUPTI's release notes of 13.0 U1: fixed a potential deadlock when CONCURRENT_KERNEL is disabled,
 * as at the end of each window, a potential crash in cuptiActivityFlushAll, and a segfault in long
 * runs with CUDA graphs.
 */
static bool allows_any_version(void)
{
	const char *any = secure_getenv("FERRUM_CUPTI_ANY_VERSION");

	return any && !strcmp(any, "1");
}

static enum fbt_gpu_status judge_version(const struct shim *shim, char *detail)
{
	static const char *const names[] = {"11.8", "12.0", "12.2", "12.3", "12.4", "12.5"};
	uint32_t version = shim->library.version;

	if (version < CUPTI_VERSION_11_8) {
		snprintf(detail, CUPTI_DETAIL_BYTES, "CUPTI 11.8 or newer is needed");
		return FBT_GPU_OLD_CUPTI;
	}
	if (version == CUPTI_VERSION_13_0 && !allows_any_version()) {
		snprintf(detail, CUPTI_DETAIL_BYTES,
			 "CUPTI 13.0 may block the engine when records end, or crash it; 13.0 U1 "
			 "does not; FERRUM_CUPTI_ANY_VERSION=1 when the engine starts uses it all "
			 "the same");
		return FBT_GPU_OLD_CUPTI;
	}
	if (version >= CUPTI_VERSION_12_6 || shim->attached_early)
		return FBT_GPU_ARMED;
	snprintf(detail, CUPTI_DETAIL_BYTES,
		 "CUPTI %s could crash an engine whose CUDA graphs were made before it came; "
		 "FERRUM_CUPTI_EARLY=1 when the engine starts prevents that",
		 names[version - CUPTI_VERSION_11_8]);
	return FBT_GPU_OLD_CUPTI;
}

enum fbt_gpu_status subscriber__find_cupti(struct shim *shim, char *detail)
{
	int err = 0;

	cuda_driver__find(&shim->driver);
	shim->driver_version = cuda_driver__version(&shim->driver);
	if (!shim->library.calls.subscribe)
		err = cupti_library__load(&shim->library, shim->driver_version / 1000, detail);
	if (err == -ENOSYS)
		return FBT_GPU_OLD_CUPTI;
	if (err)
		return FBT_GPU_NO_CUPTI;
	if (cuda_driver__may_hang(&shim->driver, shim->driver_version)) {
		snprintf(detail, CUPTI_DETAIL_BYTES,
			 "the engine uses MPS on a GPU before Hopper, where CUPTI may hang "
			 "cooperative launches: driver 580 or newer mends that");
		return FBT_GPU_FAILED;
	}
	return judge_version(shim, detail);
}

enum fbt_gpu_status subscriber__judge(const struct shim *shim, uint32_t result, const char *call,
				      char *detail)
{
	if (result == CUPTI_MULTIPLE_SUBSCRIBERS)
		return FBT_GPU_BUSY;
	snprintf(detail, CUPTI_DETAIL_BYTES, "%s: %s (%u)", call,
		 cupti_library__result(&shim->library.calls, result), result);
	/*
	 * Without a driver CUPTI returns CUPTI_ERROR_UNKNOWN; but not only then, and libcuda may be
	 * there without a driver. If it has devices, it is something else.
	 */
	if ((result == CUPTI_UNKNOWN || result == CUPTI_NOT_INITIALIZED) &&
	    (!shim->driver_version || !cuda_driver__devices(&shim->driver)))
		return FBT_GPU_NO_DRIVER;
	return FBT_GPU_FAILED;
}

/* No callback is ever enabled: the shim only wants to be the subscriber. */
static void on_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
}

/* Subscribes under our name. If another tool is subscribed, params->holder gets its name. */
static uint32_t subscribe_by_name(struct shim *shim, struct cupti_subscriber_params *params)
{
	return shim->library.calls.subscribe_v2(&shim->subscriber, on_callback, NULL, params);
}

/*
 * From CUPTI 13.2 on, a client that subscribes with subscribe_v2 must use the newer calls
 * throughout. There, subscribe_v2 is called only to learn who is subscribed.
 */
static uint32_t subscribe(struct shim *shim, struct cupti_subscriber_params *params)
{
	const struct cupti_calls *calls = &shim->library.calls;
	uint32_t result;

	if (calls->subscribe_v2 && shim->library.version < CUPTI_VERSION_13_2)
		return subscribe_by_name(shim, params);
	result = calls->subscribe(&shim->subscriber, on_callback, NULL);
	if ((result != CUPTI_MULTIPLE_SUBSCRIBERS && result != CUPTI_NOT_COMPATIBLE) ||
	    !calls->subscribe_v2)
		return result;
	if (!subscribe_by_name(shim, params)) {
		/*
		 * The other tool has just left. Still report busy: the two kinds of calls must not
		 * be mixed.
		 */
		calls->unsubscribe(shim->subscriber);
		params->holder[0] = '\0';
	}
	return CUPTI_MULTIPLE_SUBSCRIBERS;
}

enum fbt_gpu_status subscriber__take(struct shim *shim, char *detail)
{
	char holder[CUPTI_HOLDER_BYTES] = "";
	struct cupti_subscriber_params params = {
		.size = sizeof(params),
		.name = "ferrum-bpftrace",
		.holder = holder,
		.holder_size = sizeof(holder),
	};
	uint32_t result;

	if (shim->subscriber)
		return FBT_GPU_ARMED;
	result = subscribe(shim, &params);
	if (!result)
		return FBT_GPU_ARMED;
	shim->subscriber = NULL;
	holder[sizeof(holder) - 1] = '\0';
	if (result == CUPTI_MULTIPLE_SUBSCRIBERS && *holder)
		snprintf(detail, CUPTI_DETAIL_BYTES, "held by %s", holder);
	return subscriber__judge(shim, result, "cuptiSubscribe", detail);
}

void subscriber__leave(struct shim *shim)
{
	if (!shim->subscriber || shim->early)
		return;
	shim->library.calls.unsubscribe(shim->subscriber);
	shim->subscriber = NULL;
}

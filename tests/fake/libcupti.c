/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A double of libcupti, on that of libcuda, written from documented behaviour only. It is as the
 * real one is at its worst, and ends the process where a client breaks a rule ("fake cupti: …").
 *
 *	FAKE_CUPTI_VERSION       what cuptiGetVersion says, and how long records are
 *	FAKE_CUPTI_NO_DRIVER     as if there were no driver: 999
 *	FAKE_CUPTI_FAIL_FIRST    so many subscriptions fail: 999
 *	FAKE_CUPTI_HOLDER        name of another tool that is subscribed already …
 *	FAKE_CUPTI_HOLDER_FILE   … while this file exists
 *	FAKE_CUPTI_THIEF_FILE    another profiler records while this file exists
 *	FAKE_CUPTI_ZERO          every Nth kernel has no times
 *	FAKE_CUPTI_POOL_KERNELS  after so many kernels for each device buffer, they have no times
 *	                         until their kind is disabled
 *	FAKE_CUPTI_DROP          every Nth record of work is dropped
 *	FAKE_CUPTI_GRAPH_SHIFT   from the second subscription on, the numbers of graphs' work are
 *	                         too large by this
 *	FAKE_CUPTI_LATE          percent of buffers that come when the flush has returned …
 *	FAKE_CUPTI_LATE_MS       … so much later (20)
 *	FAKE_CUPTI_SKIP          percent of buffers that come one flush later
 *	FAKE_CUPTI_SWALLOW       the Nth buffer never comes back
 *	FAKE_CUPTI_IN_ORDER      records come in the order in which they were made
 *	FAKE_CUPTI_CLOCK_SETTLES cuptiGetTimestamp is far off until so many records were delivered
 *	FAKE_CUPTI_TICKS         another tool has set the clock: it counts ticks of a CPU
 *	FAKE_CUPTI_FLUSH_MS      a flush takes so much longer
 *	FAKE_CUPTI_LOG           file: a line for each call of the client
 */
#include "fake_cupti_thief.h"

/* The client's entry points. NVIDIA's headers are not used here. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define CALL __attribute__((visibility("default"))) int

#define MANY_NS 100000000000000ull

/* The name of the subscriber, or NULL. */
static const char *find_subscriber(void)
{
	const char *file = cupti.config.holder_file;

	if (cupti.subscribed)
		return "CUPTI";
	return cupti.config.holder && (!file || access(file, F_OK) == 0) ? cupti.config.holder
									 : NULL;
}

static int subscribe(struct subscriber **subscriber, callback_function callback, void *userdata)
{
	if (!subscriber)
		return FAKE_INVALID_PARAMETER;
	if (!has_driver())
		return FAKE_UNKNOWN;
	if (find_subscriber())
		return FAKE_TAKEN;
	if (cupti.failures < cupti.config.fail_first) {
		cupti.failures++;
		return FAKE_UNKNOWN;
	}
	thief_turn();
	lock_state();
	cupti.callback = callback;
	cupti.userdata = userdata;
	cupti.subscribed = true;
	cupti.subscriptions++;
	unlock_state();
	*subscriber = (struct subscriber *)&cupti;
	return FAKE_OK;
}

CALL cuptiSubscribe(struct subscriber **subscriber, callback_function callback, void *userdata)
{
	check_free("cuptiSubscribe");
	return note(subscribe(subscriber, callback, userdata), "cuptiSubscribe");
}

#if FAKE_CUPTI_MAJOR >= 13
struct subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_name_size;
};

CALL cuptiSubscribe_v2(struct subscriber **subscriber, callback_function callback, void *userdata,
		       struct subscriber_params *params)
{
	int result;

	check_free("cuptiSubscribe_v2");
	if (params && params->size != sizeof(*params))
		return note(FAKE_INVALID_PARAMETER, "cuptiSubscribe_v2");
	result = subscribe(subscriber, callback, userdata);
	if (result == FAKE_TAKEN && params && params->old_name && params->old_name_size)
		snprintf(params->old_name, params->old_name_size, "%s", find_subscriber());
	return note(result, "cuptiSubscribe_v2 %s", params && params->name ? params->name : "");
}
#endif

CALL cuptiUnsubscribe(struct subscriber *subscriber)
{
	check_free("cuptiUnsubscribe");
	if (!cupti.subscribed || subscriber != (struct subscriber *)&cupti)
		return note(FAKE_INVALID_PARAMETER, "cuptiUnsubscribe");
	for (int i = 0; i < KIND_COUNT; i++)
		if (cupti.kinds[i])
			die("cuptiUnsubscribe called with kind %d still enabled", i);
	lock_state();
	cupti.subscribed = false;
	cupti.callback = NULL;
	memset(cupti.callbacks, 0, sizeof(cupti.callbacks));
	unlock_state();
	return note(FAKE_OK, "cuptiUnsubscribe");
}

CALL cuptiEnableCallback(uint32_t enable, struct subscriber *subscriber, uint32_t domain,
			 uint32_t cbid)
{
	check_caller("cuptiEnableCallback");
	if (!cupti.subscribed || subscriber != (struct subscriber *)&cupti)
		return note(FAKE_INVALID_PARAMETER, "cuptiEnableCallback");
	if ((domain == FAKE_DRIVER || domain == FAKE_RUNTIME) && cbid < CBIDS)
		cupti.callbacks[domain][cbid] = enable != 0;
	return note(FAKE_OK, "cuptiEnableCallback %u %u %u", enable, domain, cbid);
}

CALL cuptiEnableDomain(uint32_t enable, struct subscriber *subscriber, uint32_t domain)
{
	check_caller("cuptiEnableDomain");
	if (!cupti.subscribed || subscriber != (struct subscriber *)&cupti)
		return note(FAKE_INVALID_PARAMETER, "cuptiEnableDomain");
	if (domain == FAKE_DRIVER || domain == FAKE_RUNTIME)
		memset(cupti.callbacks[domain], enable != 0, CBIDS);
	return note(FAKE_OK, "cuptiEnableDomain %u %u", enable, domain);
}

static int set_kind(const char *name, uint32_t kind, bool enable)
{
	int result = check_ready(name);

	if (result)
		return result;
	if (kind == KIND_SERIAL_KERNEL && enable)
		die("%s of KERNEL: that serializes kernels", name);
	if (kind >= KIND_COUNT || !record_bytes(kind))
		return FAKE_INVALID_KIND;
	lock_state();
	cupti.kinds[kind] = enable;
	if (kind == KIND_KERNEL && !enable)
		cupti.pooled = 0;
	if (kind == KIND_DRIVER || kind == KIND_RUNTIME)
		memset(cupti.apis[kind == KIND_DRIVER ? FAKE_DRIVER : FAKE_RUNTIME], enable, CBIDS);
	count_apis();
	unlock_state();
	return FAKE_OK;
}

CALL cuptiActivityEnable(uint32_t kind)
{
	return note(set_kind("cuptiActivityEnable", kind, true), "cuptiActivityEnable %u", kind);
}

CALL cuptiActivityDisable(uint32_t kind)
{
	return note(set_kind("cuptiActivityDisable", kind, false), "cuptiActivityDisable %u", kind);
}

static void put_device(uint32_t id)
{
	uint8_t bytes[RECORD_BYTES] __attribute__((aligned(8)));
	struct device_record *record = (struct device_record *)bytes;
	struct slot slot = {.bytes = (uint16_t)record_bytes(KIND_DEVICE)};
	char name[32];

	memset(bytes, POISON, sizeof(bytes));
	snprintf(name, sizeof(name), "Fake GPU %u", id);
	*record = (struct device_record){.kind = KIND_DEVICE,
					 .memory = 80ull << 30,
					 .warp = 32,
					 .sms = 132,
					 .blocks_per_sm = 32,
					 .shared_per_sm = 233472,
					 .registers_per_sm = 65536,
					 .registers_per_block = 65536,
					 .shared_per_block = 49152,
					 .threads_per_block = 1024,
					 .rest = {[6] = 9, [7] = 0},
					 .id = id,
					 .name = strdup(name)};
	for (int i = 0; i < 16; i++)
		record->uuid[i] = (uint8_t)(16 * id + (uint32_t)i);
	put(record, &slot);
}

CALL cuptiActivityEnableAndDump(uint32_t kind)
{
	int result = set_kind("cuptiActivityEnableAndDump", kind, true);

	lock_state();
	for (uint32_t id = 0; result == FAKE_OK && kind == KIND_DEVICE && id < FAKE_DEVICES; id++)
		put_device(id);
	unlock_state();
	return note(result, "cuptiActivityEnableAndDump %u", kind);
}

#if FAKE_CUPTI_MAJOR >= 12
/*
 * CUPTI's documentation says that calls can be enabled one by one without their kind. CUPTI 13.0 U1
 * (driver 580.159, H100) says yes to that, and then records none.
 */
static int set_api(const char *name, uint32_t domain, uint32_t cbid, uint8_t enable)
{
	int result = check_ready(name);

	if (result)
		return result;
	if (cupti.config.version < 23)
		return FAKE_NOT_SUPPORTED;
	if (cbid == 0 || cbid >= CBIDS)
		return FAKE_INVALID_PARAMETER;
	lock_state();
	cupti.apis[domain][cbid] = enable != 0;
	unlock_state();
	return FAKE_OK;
}

CALL cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
	int result = set_api("cuptiActivityEnableRuntimeApi", FAKE_RUNTIME, cbid, enable);

	return note(result, "cuptiActivityEnableRuntimeApi %u %u", cbid, enable);
}

CALL cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
	int result = set_api("cuptiActivityEnableDriverApi", FAKE_DRIVER, cbid, enable);

	return note(result, "cuptiActivityEnableDriverApi %u %u", cbid, enable);
}
#endif

CALL cuptiActivityRegisterCallbacks(request_function request, completed_function completed)
{
	int result = check_ready("cuptiActivityRegisterCallbacks");

	if (result == FAKE_OK && (!request || !completed))
		result = FAKE_INVALID_PARAMETER;
	if (result == FAKE_OK) {
		lock_state();
		cupti.request = request;
		cupti.completed = completed;
		unlock_state();
	}
	return note(result, "cuptiActivityRegisterCallbacks");
}

enum { ATTRIBUTE_POOL = 2, ATTRIBUTE_ZEROED = 5, ATTRIBUTE_PER_THREAD = 9, ATTRIBUTES = 10 };

/* Flags are bytes, all others are sizes. */
static size_t attribute_bytes(uint32_t attribute)
{
	return attribute == ATTRIBUTE_ZEROED || attribute == ATTRIBUTE_PER_THREAD || attribute == 8
		       ? 1
		       : 8;
}

static int set_attribute(uint32_t attribute, const size_t *size, const void *value)
{
	int result = check_ready("cuptiActivitySetAttribute");

	if (result)
		return result;
	if (!size || !value || attribute >= ATTRIBUTES)
		return FAKE_INVALID_PARAMETER;
	if (*size < attribute_bytes(attribute))
		return FAKE_SIZE_TOO_SMALL;
	if (attribute == ATTRIBUTE_POOL)
		memcpy(&cupti.pool_limit, value, sizeof(cupti.pool_limit));
	if (attribute == ATTRIBUTE_ZEROED)
		cupti.zeroed = *(const uint8_t *)value;
	if (attribute == ATTRIBUTE_PER_THREAD) {
		if (cupti.config.version < 21)
			return FAKE_INVALID_PARAMETER;
		if (cupti.request)
			return FAKE_INVALID_OPERATION;
		cupti.per_thread = *(const uint8_t *)value;
	}
	return FAKE_OK;
}

CALL cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
	int result = set_attribute(attribute, size, value);
	uint64_t number = 0;

	if (result == FAKE_OK)
		memcpy(&number, value, attribute_bytes(attribute));
	return note(result, "cuptiActivitySetAttribute %u %llu", attribute,
		    (unsigned long long)number);
}

CALL cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value)
{
	int result = check_ready("cuptiActivityGetAttribute");

	if (result)
		return result;
	if (!size || !value || attribute >= ATTRIBUTES)
		return FAKE_INVALID_PARAMETER;
	if (*size < attribute_bytes(attribute))
		return FAKE_SIZE_TOO_SMALL;
	*size = attribute_bytes(attribute);
	memset(value, 0, *size);
	if (attribute == ATTRIBUTE_POOL)
		memcpy(value, &cupti.pool_limit, sizeof(cupti.pool_limit));
	if (attribute == ATTRIBUTE_ZEROED)
		*(uint8_t *)value = cupti.zeroed;
	if (attribute == ATTRIBUTE_PER_THREAD)
		*(uint8_t *)value = cupti.per_thread;
	return FAKE_OK;
}

CALL cuptiSetThreadIdType(uint32_t type)
{
	int result = check_ready("cuptiSetThreadIdType");

	if (result == FAKE_OK)
		cupti.system_tids = type == 1;
	return note(result, "cuptiSetThreadIdType %u", type);
}

CALL cuptiGetThreadIdType(uint32_t *type)
{
	int result = check_ready("cuptiGetThreadIdType");

	if (result == FAKE_OK)
		*type = cupti.system_tids;
	return result;
}

CALL cuptiActivityFlushAll(uint32_t flags)
{
	int result = check_ready("cuptiActivityFlushAll");
	uint64_t start_ns;

	if (result || !cupti.completed)
		return note(result, "cuptiActivityFlushAll %u", flags);
	thief_turn();
	start_ns = trace_now();
	__atomic_add_fetch(&cupti.flushing, 1, __ATOMIC_ACQ_REL);
	usleep((useconds_t)(1000 * cupti.config.flush_ms));
	flush_all(flags & 1);
	__atomic_sub_fetch(&cupti.flushing, 1, __ATOMIC_ACQ_REL);
	lock_state();
	if (cupti.flushes++ % 16 == 0)
		put_overhead(OVERHEAD_FLUSH, 0, start_ns, trace_now());
	unlock_state();
	return note(result, "cuptiActivityFlushAll %u", flags);
}

CALL cuptiActivityFlush(void *context, uint32_t stream, uint32_t flags)
{
	(void)context, (void)stream;
	return cuptiActivityFlushAll(flags);
}

CALL cuptiActivityFlushPeriod(uint32_t ms)
{
	return note(check_ready("cuptiActivityFlushPeriod"), "cuptiActivityFlushPeriod %u", ms);
}

CALL cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint8_t *next = buffer;

	check_caller("cuptiActivityGetNextRecord");
	if (!buffer || !record)
		return FAKE_INVALID_PARAMETER;
	if (*record) {
		size_t bytes = record_bytes(*(uint32_t *)*record);

		if (!bytes)
			return FAKE_INVALID_KIND;
		next = *record + bytes;
	}
	if (next + 8 > buffer + valid || !*(uint32_t *)next)
		return FAKE_MAX_LIMIT;
	if (!record_bytes(*(uint32_t *)next))
		return FAKE_INVALID_KIND;
	if (next + record_bytes(*(uint32_t *)next) > buffer + valid)
		return FAKE_MAX_LIMIT;
	*record = next;
	return FAKE_OK;
}

CALL cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	check_caller("cuptiActivityGetNumDroppedRecords");
	(void)context, (void)stream;
	if (!dropped)
		return FAKE_INVALID_PARAMETER;
	lock_state();
	*dropped = cupti.dropped;
	cupti.dropped = 0;
	unlock_state();
	return FAKE_OK;
}

CALL cuptiActivityRegisterTimestampCallback(uint64_t (*timestamp)(void))
{
	int result = check_ready("cuptiActivityRegisterTimestampCallback");

	if (result)
		return note(result, "cuptiActivityRegisterTimestampCallback");
	for (int i = 0; i < KIND_COUNT; i++)
		if (cupti.kinds[i])
			die("the clock was changed with kind %d enabled", i);
	lock_state();
	if (cupti.timestamps++ > 0)
		cupti.shifted = 50;
	__atomic_store_n(&cupti.timestamp, timestamp, __ATOMIC_RELEASE);
	unlock_state();
	return note(result, "cuptiActivityRegisterTimestampCallback");
}

CALL cuptiGetTimestamp(uint64_t *time_ns)
{
	check_caller("cuptiGetTimestamp");
	if (!time_ns)
		return FAKE_INVALID_PARAMETER;
	*time_ns = to_client_clock(trace_now());
	if (__atomic_load_n(&cupti.delivered, __ATOMIC_RELAXED) < cupti.config.settles)
		*time_ns -= MANY_NS;
	return FAKE_OK;
}

CALL cuptiGetVersion(uint32_t *version)
{
	check_caller("cuptiGetVersion");
	if (!version)
		return FAKE_INVALID_PARAMETER;
	*version = cupti.config.version;
	return FAKE_OK;
}

CALL cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name)
{
	check_caller("cuptiGetCallbackName");
	if (!name)
		return FAKE_INVALID_PARAMETER;
	*name = find_callback_name(domain, cbid);
	return *name ? FAKE_OK : FAKE_INVALID_PARAMETER;
}

CALL cuptiGetResultString(int result, const char **text)
{
	if (!text)
		return FAKE_INVALID_PARAMETER;
	*text = result == FAKE_TAKEN	 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
		: result == FAKE_UNKNOWN ? "CUPTI_ERROR_UNKNOWN"
		: result == FAKE_OK	 ? "CUPTI_SUCCESS"
					 : "CUPTI_ERROR";
	return FAKE_OK;
}

CALL cuptiFinalize(void)
{
	die("cuptiFinalize called: never on a live server");
}

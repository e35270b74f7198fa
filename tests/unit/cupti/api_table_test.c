/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api_table.h"

static const struct {
	const char *name;
	enum fbt_gpu_api_class class;
	uint16_t flags;
} rows[] = {
	{"cudaLaunchKernel_v7000", FBT_GPU_API_LAUNCH, 0},
	{"cudaLaunchKernel_ptsz_v7000", FBT_GPU_API_LAUNCH, 0},
	{"cudaLaunchKernelExC_ptsz_v11060", FBT_GPU_API_LAUNCH, 0},
	{"__cudaLaunchKernel_ptsz_v13000", FBT_GPU_API_LAUNCH, 0},
	{"cudaLaunchCooperativeKernel_v9000", FBT_GPU_API_LAUNCH, 0},
	{"cudaLaunch_v3020", FBT_GPU_API_LAUNCH, 0},
	{"cuLaunchKernel", FBT_GPU_API_LAUNCH, 0},
	{"cuLaunchKernelEx", FBT_GPU_API_LAUNCH, 0},
	{"cuLaunchGridAsync", FBT_GPU_API_LAUNCH, 0},
	{"cudaLaunchHostFunc_v10000", FBT_GPU_API_OTHER, 0},
	{"cuLaunchHostFunc_ptsz", FBT_GPU_API_OTHER, 0},
	{"cudaGraphLaunch_v10000", FBT_GPU_API_GRAPH, 0},
	{"cuGraphLaunch_ptsz", FBT_GPU_API_GRAPH, 0},
	{"cuGraphUpload", FBT_GPU_API_OTHER, 0},
	{"cudaGraphLaunchable_v1", FBT_GPU_API_OTHER, 0},
	{"cudaGraphAddMemcpyNode_v10000", FBT_GPU_API_OTHER, 0},
	{"cudaMemcpyAsync", FBT_GPU_API_MEMCPY, 0},
	{"cudaMemcpyAsync_ptsz_v7000", FBT_GPU_API_MEMCPY, 0},
	{"cudaMemcpy_ptds_v7000", FBT_GPU_API_MEMCPY, FBT_GPU_API_BLOCKING},
	{"cudaMemcpy2DToArray_v3020", FBT_GPU_API_MEMCPY, FBT_GPU_API_BLOCKING},
	{"cuMemcpyHtoDAsync_v2", FBT_GPU_API_MEMCPY, 0},
	{"cuMemcpyDtoH_v2_ptds", FBT_GPU_API_MEMCPY, FBT_GPU_API_BLOCKING},
	{"cuMemcpyBatchAsync_v2_ptsz", FBT_GPU_API_MEMCPY, 0},
	{"cudaMemcpyPeerAsync_v4000", FBT_GPU_API_MEMCPY, 0},
	{"cudaMemset_v3020", FBT_GPU_API_MEMSET, 0},
	{"cuMemsetD32Async", FBT_GPU_API_MEMSET, 0},
	{"cuMemSetAccess", FBT_GPU_API_OTHER, 0},
	{"cuMemAlloc_v2", FBT_GPU_API_OTHER, 0},
	{"cudaStreamSynchronize", FBT_GPU_API_SYNC, 0},
	{"cudaStreamBeginCapture_v10000", FBT_GPU_API_CAPTURE, 0},
	{"cudaStreamBeginCaptureToGraph_ptsz_v12030", FBT_GPU_API_CAPTURE, 0},
	{"cuStreamBeginCapture_v2", FBT_GPU_API_CAPTURE, 0},
	{"cudaStreamEndCapture_v10000", FBT_GPU_API_CAPTURE_END, 0},
	{"cuStreamEndCapture_ptsz", FBT_GPU_API_CAPTURE_END, 0},
	{"cudaStreamIsCapturing_v10000", FBT_GPU_API_OTHER, 0},
	{"cudaStreamSynchronize_ptsz_v7000", FBT_GPU_API_SYNC, 0},
	{"cuCtxSynchronize", FBT_GPU_API_SYNC, 0},
	{"cuCtxSynchronize_v2", FBT_GPU_API_SYNC, 0},
	{"cudaEventSynchronize_v3020", FBT_GPU_API_SYNC, 0},
	{"cudaDeviceSynchronize_v3020", FBT_GPU_API_SYNC, 0},
	{"cudaStreamWaitEvent_v3020", FBT_GPU_API_OTHER, 0},
	{"cudaEventQuery", FBT_GPU_API_OTHER, 0},
	{"cudaGetDevice", FBT_GPU_API_OTHER, 0},
	{"cuStreamBatchMemOp", FBT_GPU_API_OTHER, 0},
	{"INVALID", FBT_GPU_API_OTHER, 0},
	{"LaunchKernel", FBT_GPU_API_OTHER, 0},
	{"cu", FBT_GPU_API_OTHER, 0},
	{"", FBT_GPU_API_OTHER, 0},
};

static void test_class_by_name(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint16_t flags = 99;

		print_message("# %s\n", rows[i].name);
		assert_int_equal(api_class(rows[i].name, &flags), rows[i].class);
		assert_int_equal(flags, rows[i].flags);
	}
}

/*
 * A double of CUPTI: it has a few names in each domain, one missing name, and remembers what is
 * enabled.
 */
static struct {
	uint32_t enabled[2][API_TABLE_CBIDS];
	uint32_t kinds;
	uint32_t result;
} cupti;

static uint32_t get_name(uint32_t domain, uint32_t cbid, const char **name)
{
	if (domain == CUPTI_DOMAIN_DRIVER && cbid == 1)
		*name = "cuMemcpy";
	else if (domain == CUPTI_DOMAIN_DRIVER && cbid == 2)
		*name = NULL;
	else if (domain == CUPTI_DOMAIN_DRIVER && cbid == 3)
		*name = "cuCtxGetCurrent";
	else if (domain == CUPTI_DOMAIN_DRIVER && cbid == 4)
		*name = "cuDriverGetVersion";
	else if (domain == CUPTI_DOMAIN_DRIVER && (cbid == 307 || cbid == 1900))
		*name = cbid == 307 ? "cuLaunchKernel" : "cuGraphLaunch_v9";
	else if (domain == CUPTI_DOMAIN_RUNTIME && (cbid == 17 || cbid == 31))
		*name = cbid == 17 ? "cudaGetDevice_v3020" : "cudaMemcpy_v3020";
	else
		return 1;
	return CUPTI_OK;
}

static uint32_t enable_driver(uint32_t cbid, uint8_t enable)
{
	cupti.enabled[API_DRIVER][cbid] = enable;
	return cupti.result;
}

static uint32_t enable_runtime(uint32_t cbid, uint8_t enable)
{
	cupti.enabled[API_RUNTIME][cbid] = enable;
	return CUPTI_OK;
}

static uint32_t enable_kind(uint32_t kind)
{
	cupti.kinds |= 1u << kind;
	for (uint32_t cbid = 1; cbid < API_TABLE_CBIDS; cbid++)
		cupti.enabled[kind == CUPTI_KIND_DRIVER ? API_DRIVER : API_RUNTIME][cbid] = 1;
	return kind == CUPTI_KIND_DRIVER ? cupti.result : CUPTI_OK;
}

static uint32_t disable_kind(uint32_t kind)
{
	cupti.kinds &= ~(1u << kind);
	return CUPTI_OK;
}

static struct cupti_calls calls = {
	.get_callback_name = get_name,
	.enable = enable_kind,
	.disable = disable_kind,
};

static void test_table(void **state)
{
	static struct api_table table;
	const struct api_call *call;

	/* The table is refilled, as for another library. */
	table.calls[API_RUNTIME][55].name = "cudaMemcpy_v1";
	table.count = 77;
	api_table__fill(&table, &calls);
	assert_int_equal(table.count, 4);
	assert_null(api_table__find(&table, CUPTI_KIND_RUNTIME, 55));
	assert_string_equal(api_table__find(&table, CUPTI_KIND_DRIVER, 1)->name, "cuMemcpy");
	call = api_table__find(&table, CUPTI_KIND_DRIVER, 307);
	assert_non_null(call);
	assert_string_equal(call->name, "cuLaunchKernel");
	assert_int_equal(call->flags, FBT_GPU_API_DRIVER);
	/* A call number of a future release. */
	assert_int_equal(api_table__find(&table, CUPTI_KIND_DRIVER, 1900)->class,
			 FBT_GPU_API_GRAPH);
	assert_int_equal(api_table__find(&table, CUPTI_KIND_RUNTIME, 31)->flags,
			 FBT_GPU_API_BLOCKING);
	assert_null(api_table__find(&table, CUPTI_KIND_RUNTIME, 307));
	assert_null(api_table__find(&table, CUPTI_KIND_RUNTIME, 17));
	assert_null(api_table__find(&table, CUPTI_KIND_DRIVER, UINT32_MAX));
	assert_null(api_table__find(&table, CUPTI_KIND_DRIVER, API_TABLE_CBIDS));
	assert_null(api_table__find(&table, CUPTI_KIND_RUNTIME, API_TABLE_CBIDS));
}

static void test_enable_each(void **state)
{
	static struct api_table table;

	memset(&cupti, 0, sizeof(cupti));
	calls.enable_driver_api = enable_driver;
	calls.enable_runtime_api = enable_runtime;
	api_table__fill(&table, &calls);
	assert_int_equal(api_table__enable(&table, &calls), CUPTI_OK);
	assert_int_equal(cupti.kinds, 1u << CUPTI_KIND_DRIVER | 1u << CUPTI_KIND_RUNTIME);
	assert_int_equal(cupti.enabled[API_DRIVER][307], 1);
	assert_int_equal(cupti.enabled[API_RUNTIME][31], 1);
	assert_int_equal(cupti.enabled[API_RUNTIME][17], 0);
	assert_int_equal(cupti.enabled[API_DRIVER][3], 0);
	/* The canary of takeover.h is recorded, but it is none of the calls that are told. */
	assert_int_equal(table.canary, 4);
	assert_int_equal(cupti.enabled[API_DRIVER][4], 1);
	assert_null(api_table__find(&table, CUPTI_KIND_DRIVER, 4));
	api_table__disable(&calls);
	assert_int_equal(cupti.kinds, 0);
	/* If one call fails, the others are still switched. */
	cupti.result = 27;
	assert_int_equal(api_table__enable(&table, &calls), 27);
	assert_int_equal(cupti.enabled[API_RUNTIME][31], 1);
	assert_int_equal(cupti.enabled[API_RUNTIME][17], 0);
}

static void test_enable_kinds(void **state)
{
	static struct api_table table;

	memset(&cupti, 0, sizeof(cupti));
	calls.enable_driver_api = NULL;
	calls.enable_runtime_api = NULL;
	api_table__fill(&table, &calls);
	assert_int_equal(api_table__enable(&table, &calls), CUPTI_OK);
	assert_int_equal(cupti.kinds, 1u << CUPTI_KIND_DRIVER | 1u << CUPTI_KIND_RUNTIME);
	api_table__disable(&calls);
	assert_int_equal(cupti.kinds, 0);
	cupti.result = 27;
	assert_int_equal(api_table__enable(&table, &calls), 27);
	assert_int_equal(cupti.kinds, 1u << CUPTI_KIND_DRIVER | 1u << CUPTI_KIND_RUNTIME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_class_by_name),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_enable_each),
		cmocka_unit_test(test_enable_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

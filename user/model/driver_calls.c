/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/driver_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct name {
	uint32_t number;
	const char *text;
};

#define RM_CONTROL 0x2a
#define RM_ALLOC   0x2b

static const struct name escapes[] = {
	{0x27, "RM_ALLOC_MEMORY"},
	{0x28, "RM_ALLOC_OBJECT"},
	{0x29, "RM_FREE"},
	{0x32, "RM_CONFIG_GET"},
	{0x33, "RM_CONFIG_SET"},
	{0x34, "RM_DUP_OBJECT"},
	{0x35, "RM_SHARE"},
	{0x37, "RM_CONFIG_GET_EX"},
	{0x38, "RM_CONFIG_SET_EX"},
	{0x39, "RM_I2C_ACCESS"},
	{0x41, "RM_IDLE_CHANNELS"},
	{0x4a, "RM_VID_HEAP_CONTROL"},
	{0x4d, "RM_ACCESS_REGISTRY"},
	{0x4e, "RM_MAP_MEMORY"},
	{0x4f, "RM_UNMAP_MEMORY"},
	{0x52, "RM_GET_EVENT_DATA"},
	{0x54, "RM_ALLOC_CONTEXT_DMA2"},
	{0x56, "RM_ADD_VBLANK_CALLBACK"},
	{0x57, "RM_MAP_MEMORY_DMA"},
	{0x58, "RM_UNMAP_MEMORY_DMA"},
	{0x59, "RM_BIND_CONTEXT_DMA"},
	{0x5c, "RM_EXPORT_OBJECT_TO_FD"},
	{0x5d, "RM_IMPORT_OBJECT_FROM_FD"},
	{0x5e, "RM_UPDATE_DEVICE_MAPPING_INFO"},
	{200, "CARD_INFO"},
	{201, "REGISTER_FD"},
	{206, "ALLOC_OS_EVENT"},
	{207, "FREE_OS_EVENT"},
	{209, "STATUS_CODE"},
	{210, "CHECK_VERSION_STR"},
	{212, "ATTACH_GPUS_TO_FD"},
	{213, "QUERY_DEVICE_INTR"},
	{214, "SYS_PARAMS"},
	{215, "NUMA_INFO"},
	{216, "SET_NUMA_STATUS"},
	{217, "EXPORT_TO_DMABUF_FD"},
	{218, "WAIT_OPEN_COMPLETE"},
};

/* Of the some 2,500 controls those that CUDA, NCCL and NVML use. */
static const struct name controls[] = {
	{0x0000012b, "SYSTEM_GET_P2P_CAPS_V2"},
	{0x00000136, "SYSTEM_GET_FABRIC_STATUS"},
	{0x0000013a, "SYSTEM_GET_P2P_CAPS_MATRIX"},
	{0x000001f0, "SYSTEM_GET_FEATURES"},
	{0x00000201, "GPU_GET_ATTACHED_IDS"},
	{0x00000205, "GPU_GET_ID_INFO_V2"},
	{0x00000214, "GPU_GET_PROBED_IDS"},
	{0x00000215, "GPU_ATTACH_IDS"},
	{0x00000d01, "CLIENT_GET_ADDR_SPACE_TYPE"},
	{0x00000d04, "CLIENT_SET_INHERITED_SHARE_POLICY"},
	{0x00003d05, "OS_UNIX_EXPORT_OBJECT_TO_FD"},
	{0x00003d06, "OS_UNIX_IMPORT_OBJECT_FROM_FD"},
	{0x00800292, "GPU_GET_CLASSLIST_V2"},
	{0x00801307, "FB_GET_CAPS_V2"},
	{0x00801402, "HOST_GET_CAPS_V2"},
	{0x0080170d, "FIFO_GET_CHANNELLIST"},
	{0x00801806, "DMA_ADV_SCHED_GET_VA_CAPS"},
	{0x00801909, "PERF_CUDA_LIMIT_SET_CONTROL"},
	{0x00f80103, "fabric ATTACH_MEM"},
	{0x00fd0102, "multicast ATTACH_MEM"},
	{0x20800102, "GPU_GET_INFO_V2"},
	{0x2080012b, "GPU_PROMOTE_CTX"},
	{0x2080012c, "GPU_EVICT_CTX"},
	{0x2080012f, "GPU_QUERY_ECC_STATUS"},
	{0x20800131, "GPU_QUERY_COMPUTE_MODE_RULES"},
	{0x2080014a, "GPU_GET_GID_INFO"},
	{0x20800170, "GPU_GET_ENGINES_V2"},
	{0x2080018d, "GPU_GET_PIDS"},
	{0x2080018e, "GPU_GET_PID_INFO"},
	{0x20800301, "EVENT_SET_NOTIFICATION"},
	{0x20800403, "TIMER_GET_TIME"},
	{0x20800406, "TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO"},
	{0x20801201, "GR_GET_INFO"},
	{0x20801210, "GR_SET_CTXSW_PREEMPTION_MODE"},
	{0x20801218, "GR_GET_CTX_BUFFER_SIZE"},
	{0x20801227, "GR_GET_CAPS_V2"},
	{0x20801303, "FB_GET_INFO_V2"},
	{0x20801701, "MC_GET_ARCH_INFO"},
	{0x20801702, "MC_SERVICE_INTERRUPTS"},
	{0x20801823, "BUS_GET_INFO_V2"},
	{0x2080200a, "PERF_BOOST"},
	{0x20802068, "PERF_GET_CURRENT_PSTATE"},
	{0x2080220c, "RC_RELEASE_WATCHDOG_REQUESTS"},
	{0x20802210, "RC_SOFT_DISABLE_WATCHDOG"},
	{0x20802502, "DMA_INVALIDATE_TLB"},
	{0x20802a03, "CE_GET_CAPS_V2"},
	{0x20802a0a, "CE_GET_ALL_CAPS"},
	{0x20803002, "NVLINK_GET_NVLINK_STATUS"},
	{0x20803601, "GSP_GET_FEATURES"},
	{0x503c0102, "REGISTER_VA_SPACE"},
	{0x503c0104, "REGISTER_VIDMEM"},
	{0x503c0105, "UNREGISTER_VIDMEM"},
	{0x83de0309, "DEBUG_SET_EXCEPTION_MASK"},
	{0x83de030c, "DEBUG_READ_ALL_SM_ERROR_STATES"},
	{0x906f0101, "GET_CLASS_ENGINEID"},
	{0x906f0102, "RESET_CHANNEL"},
	{0xa06c0101, "GPFIFO_SCHEDULE"},
	{0xa06c0103, "SET_TIMESLICE"},
	{0xa06c0105, "PREEMPT"},
	{0xa06f0103, "GPFIFO_SCHEDULE"},
	{0xa06f0104, "BIND"},
	{0xc36f0108, "GPFIFO_GET_WORK_SUBMIT_TOKEN"},
	{0xc36f010a, "GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX"},
	{0xc56f010b, "GET_KMB"},
};

/* The class that a control belongs to is its upper half. */
static const struct name control_classes[] = {
	{0x0000, "client"},	   {0x0080, "device"},	  {0x00f8, "fabric memory"},
	{0x00fd, "multicast"},	   {0x2080, "subdevice"}, {0x503c, "third-party P2P"},
	{0x83de, "debugger"},	   {0x906f, "channel"},	  {0x90f1, "address space"},
	{0xa06c, "channel group"}, {0xa06f, "channel"},	  {0xb0cc, "profiler"},
	{0xc36f, "channel"},	   {0xc56f, "channel"},
};

static const struct name classes[] = {
	{0x003e, "pinned host memory"},
	{0x0040, "device memory"},
	{0x0041, "client"},
	{0x0070, "virtual range"},
	{0x0071, "registered host memory"},
	{0x0079, "OS event"},
	{0x0080, "device"},
	{0x00f8, "fabric memory"},
	{0x00fd, "multicast memory"},
	{0x2080, "subdevice"},
	{0x503b, "P2P"},
	{0x503c, "third-party P2P"},
	{0x50a0, "virtual range"},
	{0x9067, "context share"},
	{0x90f1, "address space"},
	{0xa06c, "channel group"},
	{0xc56f, "channel"},
	{0xc6b5, "copy engine"},
	{0xc6c0, "compute engine"},
	{0xc7c0, "compute engine"},
	{0xc86f, "channel"},
	{0xc8b5, "copy engine"},
	{0xc96f, "channel"},
	{0xc9c0, "compute engine"},
	{0xcbc0, "compute engine"},
	{0xcdc0, "compute engine"},
};

/* Their commands are plain numbers, with neither a magic nor a size. */
static const struct name uvm_commands[] = {
	{23, "CREATE_RANGE_GROUP"},
	{24, "DESTROY_RANGE_GROUP"},
	{25, "REGISTER_GPU_VASPACE"},
	{26, "UNREGISTER_GPU_VASPACE"},
	{27, "REGISTER_CHANNEL"},
	{28, "UNREGISTER_CHANNEL"},
	{29, "ENABLE_PEER_ACCESS"},
	{30, "DISABLE_PEER_ACCESS"},
	{31, "SET_RANGE_GROUP"},
	{33, "MAP_EXTERNAL_ALLOCATION"},
	{34, "FREE"},
	{35, "MEM_MAP"},
	{37, "REGISTER_GPU"},
	{38, "UNREGISTER_GPU"},
	{39, "PAGEABLE_MEM_ACCESS"},
	{40, "PREVENT_MIGRATION_RANGE_GROUPS"},
	{41, "ALLOW_MIGRATION_RANGE_GROUPS"},
	{42, "SET_PREFERRED_LOCATION"},
	{43, "UNSET_PREFERRED_LOCATION"},
	{44, "ENABLE_READ_DUPLICATION"},
	{45, "DISABLE_READ_DUPLICATION"},
	{46, "SET_ACCESSED_BY"},
	{47, "UNSET_ACCESSED_BY"},
	{51, "MIGRATE"},
	{53, "MIGRATE_RANGE_GROUP"},
	{56, "TOOLS_INIT_EVENT_TRACKER"},
	{57, "TOOLS_SET_NOTIFICATION_THRESHOLD"},
	{58, "TOOLS_EVENT_QUEUE_ENABLE_EVENTS"},
	{59, "TOOLS_EVENT_QUEUE_DISABLE_EVENTS"},
	{60, "TOOLS_ENABLE_COUNTERS"},
	{61, "TOOLS_DISABLE_COUNTERS"},
	{62, "TOOLS_READ_PROCESS_MEMORY"},
	{63, "TOOLS_WRITE_PROCESS_MEMORY"},
	{64, "TOOLS_GET_PROCESSOR_UUID_TABLE"},
	{65, "MAP_DYNAMIC_PARALLELISM_REGION"},
	{66, "UNMAP_EXTERNAL"},
	{67, "TOOLS_FLUSH_EVENTS"},
	{68, "ALLOC_SEMAPHORE_POOL"},
	{69, "CLEAN_UP_ZOMBIE_RESOURCES"},
	{70, "PAGEABLE_MEM_ACCESS_ON_GPU"},
	{71, "POPULATE_PAGEABLE"},
	{72, "VALIDATE_VA_RANGE"},
	{73, "CREATE_EXTERNAL_RANGE"},
	{74, "MAP_EXTERNAL_SPARSE"},
	{75, "MM_INITIALIZE"},
	{76, "TOOLS_INIT_EVENT_TRACKER_V2"},
	{77, "TOOLS_GET_PROCESSOR_UUID_TABLE_V2"},
	{78, "ALLOC_DEVICE_P2P"},
	{79, "CLEAR_ALL_ACCESS_COUNTERS"},
	{80, "DISCARD"},
	{0x30000001, "INITIALIZE"},
	{0x30000002, "DEINITIALIZE"},
};

#define FIND(names, number) find(names, sizeof(names) / sizeof((names)[0]), number)

static const char *find(const struct name *names, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].number == number)
			return names[i].text;
	return NULL;
}

bool driver_call_has_command(const struct window *window, const struct fbt_call *call)
{
	/* __NR_ioctl. The name would have to be compared for each call. */
	static const uint32_t numbers[] = {[FBT_ARCH_X86_64] = 16, [FBT_ARCH_ARM64] = 29};
	uint32_t arch = window->record.arch;

	return (arch == FBT_ARCH_X86_64 || arch == FBT_ARCH_ARM64) && call->nr == numbers[arch] &&
	       call->header.flags & FBT_CALL_ARGS;
}

static const char *name_control(uint32_t control, char buffer[DRIVER_CALL_NAME])
{
	const char *text = FIND(controls, control);
	const char *class = FIND(control_classes, control >> 16);

	if (text)
		snprintf(buffer, DRIVER_CALL_NAME, "RM_CONTROL %s", text);
	else if (class)
		snprintf(buffer, DRIVER_CALL_NAME, "RM_CONTROL %s 0x%08" PRIx32, class, control);
	else
		snprintf(buffer, DRIVER_CALL_NAME, "RM_CONTROL 0x%08" PRIx32, control);
	return buffer;
}

static const char *name_escape(uint32_t command, uint32_t detail, char buffer[DRIVER_CALL_NAME])
{
	uint32_t number = command & 0xff;
	const char *text = FIND(escapes, number);

	if (number == RM_CONTROL && detail)
		return name_control(detail, buffer);
	if (number == RM_CONTROL || (number == RM_ALLOC && !detail)) {
		/* The argument could not be read. */
		snprintf(buffer, DRIVER_CALL_NAME, "%s",
			 number == RM_CONTROL ? "RM_CONTROL" : "RM_ALLOC");
	} else if (number == RM_ALLOC) {
		text = FIND(classes, detail);
		if (text)
			snprintf(buffer, DRIVER_CALL_NAME, "RM_ALLOC %s", text);
		else
			snprintf(buffer, DRIVER_CALL_NAME, "RM_ALLOC class 0x%04" PRIx32, detail);
	} else if (text) {
		snprintf(buffer, DRIVER_CALL_NAME, "%s", text);
	} else {
		snprintf(buffer, DRIVER_CALL_NAME, "RM 0x%02" PRIx32, number);
	}
	return buffer;
}

static const char *name_uvm(uint32_t command, char buffer[DRIVER_CALL_NAME])
{
	const char *text = FIND(uvm_commands, command);

	if (text)
		snprintf(buffer, DRIVER_CALL_NAME, "UVM_%s", text);
	else
		snprintf(buffer, DRIVER_CALL_NAME, "UVM 0x%" PRIx32, command);
	return buffer;
}

const char *driver_call_name(const struct file *file, uint64_t command,
			     char buffer[DRIVER_CALL_NAME])
{
	static const char prefix[] = "/dev/nvidia";
	const char *rest;

	if (!file || !S_ISCHR(file->record.mode) ||
	    strncmp(file->path, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	rest = file->path + sizeof(prefix) - 1;
	if (!strcmp(rest, "-uvm"))
		return name_uvm((uint32_t)command, buffer);
	/* nvidiactl and nvidia0: not nvidia-uvm-tools, nvidia-caps or nvidia-modeset. */
	if (strcmp(rest, "ctl") != 0 && (!*rest || rest[strspn(rest, "0123456789")]))
		return NULL;
	if ((command >> 8 & 0xff) != 'F')
		return NULL;
	return name_escape((uint32_t)command, (uint32_t)(command >> 32), buffer);
}

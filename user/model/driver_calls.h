/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Names of the ioctls by which CUDA talks to NVIDIA's driver. The numbers are those of NVIDIA's
 * open-gpu-kernel-modules (595.45.04): nv_escape.h, nv-ioctl-numbers.h, uvm_ioctl.h, and ctrl/ and
 * class/ of its SDK. The size in a command differs between drivers, its number does not.
 */
#ifndef FBT_MODEL_DRIVER_CALLS_H
#define FBT_MODEL_DRIVER_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include "model/window.h"

/* Room for any name: the longest is that of an unknown control. */
#define DRIVER_CALL_NAME 64

/* Whether the call is an ioctl whose command is known (fbt_call.args[1]). */
bool driver_call_has_command(const struct window *window, const struct fbt_call *call);

/*
 * The name of an ioctl on that file: "RM_CONTROL GPU_GET_GID_INFO", "RM_ALLOC device memory",
 * "UVM_MIGRATE"; with the number where it has no name: "RM_CONTROL NV2080 0x20801234". command is
 * fbt_call.args[1]. Returns buffer, or NULL if the file is not a device of that driver.
 */
const char *driver_call_name(const struct file *file, uint64_t command,
			     char buffer[DRIVER_CALL_NAME]);

#endif

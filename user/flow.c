/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "flow.h"

#include <errno.h>
#include <string.h>

int flow_decode(enum fbt_arch arch, const uint8_t *code, size_t size, uint64_t address,
		flow_vec *flows, uint64_t *bad)
{
	if (arch == FBT_ARCH_X86_64)
		return flow_decode_x86(code, size, address, flows, bad);
	return flow_decode_arm64(code, size, address, flows, bad);
}

size_t flow_marker_size(enum fbt_arch arch, const uint8_t *code, size_t size)
{
	if (size < 4)
		return 0;
	if (arch == FBT_ARCH_X86_64)
		return memcmp(code, "\xf3\x0f\x1e\xfa", 4) ? 0 : 4;
	/* bti, bti c, bti j, bti jc: hint #32 to #38 */
	return (code[0] & 0x3f) == 0x1f && code[1] == 0x24 && code[2] == 0x03 && code[3] == 0xd5
		       ? 4
		       : 0;
}

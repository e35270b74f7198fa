/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "settings.h"

#include <string.h>

#define DEVICE_BUFFERS 8 /* of 3.2 MB each on the GPU, which is the model's: CUPTI takes 250 */

static const struct {
	uint32_t attribute;
	size_t size;
	uint64_t value;
	uint32_t since; /* version */
	bool for_good;	/* not put back */
} attributes[SHIM_ATTRIBUTES] = {
	/*
	 * Per-thread buffers are on from 13.0 on, and are a buffer for each thread of the engine.
	 * It may be set only before buffer callbacks are registered, so not twice.
	 */
	{CUPTI_ATTRIBUTE_PER_THREAD, sizeof(uint8_t), 0, CUPTI_VERSION_12_3, true},
	/* Or CUPTI clears each buffer, on an application thread. */
	{CUPTI_ATTRIBUTE_ZEROED, sizeof(uint8_t), 1, CUPTI_VERSION_11_8, false},
	{CUPTI_ATTRIBUTE_POOL_LIMIT, sizeof(size_t), DEVICE_BUFFERS, CUPTI_VERSION_11_8, false},
};

/* Changes an attribute, and remembers what it was: other tools of this process rely on it. */
static void set_attribute(struct shim *shim, size_t i)
{
	const struct cupti_calls *calls = &shim->library.calls;
	size_t size = attributes[i].size;
	uint64_t value = attributes[i].value;
	uint64_t old = 0;

	if (shim->library.version < attributes[i].since)
		return;
	/* Little-endian: the low bytes are those of the shorter type. */
	if (calls->get_attribute(attributes[i].attribute, &size, &old) || old == value)
		return;
	size = attributes[i].size;
	if (calls->set_attribute(attributes[i].attribute, &size, &value) || attributes[i].for_good)
		return;
	shim->saved.attributes[i] = old;
	shim->saved.attribute_mask |= 1u << i;
}

void settings__change(struct shim *shim)
{
	const struct cupti_calls *calls = &shim->library.calls;
	uint32_t type = CUPTI_THREAD_ID_SYSTEM;

	memset(&shim->saved, 0, sizeof(shim->saved));
	for (size_t i = 0; i < SHIM_ATTRIBUTES; i++)
		set_attribute(shim, i);
	if (!calls->get_thread_id_type(&type) && type != CUPTI_THREAD_ID_SYSTEM &&
	    !calls->set_thread_id_type(CUPTI_THREAD_ID_SYSTEM)) {
		shim->saved.thread_id_type = type;
		shim->saved.thread_id_changed = true;
	}
}

void settings__put_back(struct shim *shim)
{
	const struct cupti_calls *calls = &shim->library.calls;

	if (shim->saved.thread_id_changed)
		calls->set_thread_id_type(shim->saved.thread_id_type);
	for (size_t i = 0; i < SHIM_ATTRIBUTES; i++) {
		size_t size = attributes[i].size;

		if (shim->saved.attribute_mask & 1u << i)
			calls->set_attribute(attributes[i].attribute, &size,
					     &shim->saved.attributes[i]);
	}
	memset(&shim->saved, 0, sizeof(shim->saved));
}

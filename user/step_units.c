/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "step_probes.h"
#include "step_units.h"

void step_units_add(struct step_units *units, const function_vec *functions, uint32_t last)
{
	const struct step_function *function = functions->items[last - 1];
	uint64_t unit = kind_bit(last);

	for (uint32_t kind = 1; kind < last; kind++) {
		if (step_probes_are_joined(functions->items[kind - 1], function))
			unit |= units->of[kind];
	}
	for (uint32_t kind = 0; (kind = kind_next(unit, kind));)
		units->of[kind] = unit;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/functions.h"

#include <stdlib.h>

#include "base/demangle.h"

#define FUNCTIONS_MAX 16384

void functions_clear(struct functions *functions)
{
	vec_for_each (function, &functions->items)
		free(function->name);
	vec_free(&functions->items);
}

const struct function *functions_find(const struct functions *functions, uint64_t address)
{
	size_t after =
		first_index(i, functions->items.count, functions->items.items[i].start > address);
	const struct function *function = after ? &functions->items.items[after - 1] : NULL;

	return function && address - function->start < function->size ? function : NULL;
}

static void add_function(struct functions *functions, const struct elf_file *symbols,
			 const struct elf_wanted *wanted)
{
	struct function function = {wanted->start, wanted->size, NULL};
	char *name;

	if (functions_find(functions, wanted->address) || functions->items.count == FUNCTIONS_MAX)
		return;
	name = elf_symbols_name(symbols, wanted);
	function.name = name ? demangle_symbol(name) : NULL;
	free(name);
	if (!function.name ||
	    vec_insert(&functions->items,
		       vec_lower_bound(&functions->items, item->start, function.start), function))
		free(function.name);
}

void functions_read(struct functions *functions, const struct elf_file *symbols,
		    struct elf_wanted *wanted, size_t count, bool *complete)
{
	if (elf_symbols_locate(symbols, wanted, count, complete))
		return;
	for (size_t i = 0; i < count; i++)
		if (wanted[i].start)
			add_function(functions, symbols, &wanted[i]);
}

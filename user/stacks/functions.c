/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/functions.h"

#include <stdlib.h>

#include "base/arith.h"
#include "base/demangle.h"

#define FUNCTIONS_MAX 16384

void functions_clear(struct functions *functions)
{
	vec_for_each (function, &functions->items)
		free(function->name);
	vec_free(&functions->items);
}

static size_t find_after(const struct functions *functions, uint64_t address)
{
	return first_index(i, functions->items.count, functions->items.items[i].low > address);
}

const struct function *functions_find(const struct functions *functions, uint64_t address)
{
	size_t after = find_after(functions, address);
	const struct function *function = after ? &functions->items.items[after - 1] : NULL;

	return function && address < function->high ? function : NULL;
}

/* Takes the name. Those next to it may be of another file of symbols, and reach further. */
static void add_function(struct functions *functions, const struct elf_wanted *wanted,
			 uint64_t start, char *name)
{
	struct function function = {wanted->low, wanted->high, start, name};
	size_t after = find_after(functions, wanted->address);

	if (after)
		function.low = max_u64(function.low, functions->items.items[after - 1].high);
	if (after < functions->items.count)
		function.high = min_u64(function.high, functions->items.items[after].low);
	if (functions->items.count == FUNCTIONS_MAX || function.high <= wanted->address ||
	    vec_insert(&functions->items, after, function))
		free(name);
}

static void add_named(struct functions *functions, const struct elf_file *symbols,
		      const struct elf_wanted *wanted)
{
	char *name = elf_symbols_name(symbols, wanted);
	char *demangled = name ? demangle_symbol(name) : NULL;

	free(name);
	if (demangled)
		add_function(functions, wanted, wanted->start, demangled);
}

void functions_read(struct functions *functions, const struct elf_file *symbols,
		    struct elf_wanted *wanted, size_t count, bool *complete)
{
	if (elf_symbols_locate(symbols, wanted, count, complete))
		return;
	for (size_t i = 0; i < count; i++)
		if (wanted[i].start && !functions_find(functions, wanted[i].address))
			add_named(functions, symbols, &wanted[i]);
}

void functions_keep_nameless(struct functions *functions, const struct elf_wanted *wanted,
			     size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!functions_find(functions, wanted[i].address))
			add_function(functions, &wanted[i], 0, NULL);
}

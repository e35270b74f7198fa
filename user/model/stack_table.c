/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/stack_table.h"

#include "model/event.h"

/* 550 KiB. The kernel side sends 50 a second, and a step that lasts longer has few slow calls. */
#define STACKS_MAX 1024

bool stack_table_takes(uint32_t type)
{
	return type == FBT_EVENT_CODE || type == FBT_EVENT_STACK || type == FBT_EVENT_STACKS;
}

static void drop(struct stack_table *table, size_t index)
{
	table->stacks.count--;
	memmove(table->stacks.items + index, table->stacks.items + index + 1,
		(table->stacks.count - index) * sizeof(*table->stacks.items));
}

static int add_stack(struct stack_table *table, const struct fbt_stack *stack)
{
	/* The first place of a sample is 0 if its function has no name. */
	uint32_t first = stack->header.flags & FBT_STACK_SAMPLED ? 1 : 0;

	window__note_codes(table->window, stack->codes + first, stack->count - first);
	/* The oldest is of a step whose record was lost, or which goes on and on. */
	if (table->stacks.count == STACKS_MAX)
		drop(table, 0);
	return vec_push(&table->stacks, *stack);
}

int stack_table_add(struct stack_table *table, const struct fbt_header *event)
{
	if (event->type == FBT_EVENT_STACKS) {
		table->window->stacks = *(const struct fbt_stacks *)event;
		return 0;
	}
	if (event->type == FBT_EVENT_CODE)
		return window__add_code(table->window, (const struct fbt_code *)event,
					(const char *const[CODE_STRINGS]){decode_string(event, 0),
									  decode_string(event, 1),
									  decode_string(event, 2)});
	return add_stack(table, (const struct fbt_stack *)event);
}

void stack_table_join(struct stack_table *table, struct step *step)
{
	const struct fbt_step *record = &step->record;

	for (size_t i = 0; i < table->stacks.count;) {
		const struct fbt_stack *stack = &table->stacks.items[i];

		if (stack->tgid != record->tgid || stack->tid != record->tid ||
		    stack->start_ns > record->end_ns) {
			i++;
			continue;
		}
		/* Without memory the step has no stack. */
		if (stack->start_ns >= record->start_ns)
			(void)vec_push(&step->stacks, *stack);
		drop(table, i);
	}
}

void stack_table_clear(struct stack_table *table)
{
	vec_free(&table->stacks);
}

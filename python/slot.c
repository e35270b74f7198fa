/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "slot.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "callers.h"
#include "find.h"
#include "trampoline.h"

#define LEAVE_TRIES 1000

/* func_version of a function whose version was cleared; 3.14 has 0 for one that never had any. */
static uint32_t cleared_version(const struct python *python)
{
	return python->minor >= 14 ? 1 : 0;
}

/* The version follows the pointer in 3.11 and newer. 3.11 itself is armed in another way. */
static bool has_version(const struct python *python)
{
	return python->minor >= 12;
}

static py_vectorcall *pointer_of(const struct python *python, py_object *function)
{
	return (py_vectorcall *)((char *)function + python->vectorcall);
}

static uint32_t *version_of(const struct python *python, py_object *function)
{
	return (uint32_t *)(pointer_of(python, function) + 1);
}

static void copy_text(const struct python *python, py_object *object, const char *name, char *text,
		      size_t size)
{
	py_object *value = python_attribute(python, object, name);
	const char *utf8 = value ? python->PyUnicode_AsUTF8(value) : NULL;

	snprintf(text, size, "%s", utf8 ? utf8 : "");
	python->PyErr_Clear();
	if (value)
		python->Py_DecRef(value);
}

static void describe(const struct python *python, py_object *function,
		     struct fbt_python_slot *shared)
{
	py_object *code = trampoline_original(python, function);

	copy_text(python, code, "co_filename", shared->file, sizeof(shared->file));
	shared->line = (uint32_t)python_number(python, code, "co_firstlineno");
	python->Py_DecRef(code);
}

static enum fbt_python_found parse_attributes(const struct python *python, struct python_slot *slot,
					      struct python_own *own,
					      struct fbt_python_slot *shared)
{
	slot->attribute_count = 0;
	for (size_t i = 0; i < FBT_PYTHON_ATTRIBUTES; i++) {
		char text[sizeof(shared->attributes[i])];
		int err;

		memcpy(text, shared->attributes[i], sizeof(text));
		text[sizeof(text) - 1] = '\0';
		if (!*text)
			break;
		err = python_attribute_parse(python, &own->attributes[i], text, own->function);
		/* A definition that overrides another may have other arguments. */
		if (err && own == slot->own) {
			snprintf(shared->text, sizeof(shared->text), "%s", text);
			return err == -ENOMEM ? FBT_PYTHON_FAILED : FBT_PYTHON_NO_ARGUMENT;
		}
		slot->attribute_count = i + 1;
	}
	return FBT_PYTHON_FOUND;
}

/*
 * Without a GIL, calls of what was just disarmed may still look at own[], for some nanoseconds of
 * CPU time. false: one of them has no CPU.
 */
static bool is_left_alone(const struct python *python, const struct python_slot *slot)
{
	for (int i = 0; python->threaded && i < LEAVE_TRIES; i++) {
		if (!__atomic_load_n(&slot->inside, __ATOMIC_SEQ_CST))
			return true;
		sched_yield();
	}
	return !python->threaded;
}

static void forget(const struct python *python, struct python_slot *slot)
{
	/* Else what names the attributes stays for ever: some strings of the program's own. */
	bool is_free = !slot->own_count || is_left_alone(python, slot);

	for (size_t i = 0; i < slot->own_count; i++) {
		struct python_own *own = &slot->own[i];

		for (size_t k = 0; k < FBT_PYTHON_ATTRIBUTES && is_free; k++)
			python_attribute_clear(python, &own->attributes[k]);
		python->Py_DecRef(own->function);
		own->function = NULL;
	}
	slot->own_count = 0;
}

/*
 * The definition of a slot that is that function, or NULL. In a slot of which one is held, the
 * others serve nothing any more.
 */
static const struct python_own *find_function(const struct python_slot *slots,
					      const py_object *function)
{
	const struct python_own *held = NULL;

	for (size_t i = 0; i < FBT_PYTHON_SLOTS; i++) {
		for (size_t k = 0; k < slots[i].own_count; k++) {
			const struct python_own *own = &slots[i].own[k];

			if (own->function != function)
				continue;
			if (!slots[i].is_pinned)
				return own;
			if (own->is_held)
				held = own;
		}
	}
	return held;
}

/*
 * Whether a function that is in another slot may be armed once more. On 3.11 one that is held has
 * our code.
 */
static bool is_free(const struct python *python, const struct python_own *known)
{
	return !known || (known->is_held && python->minor != 11);
}

/*
 * Takes the references, but those of functions that are in another slot. FBT_PYTHON_FOUND, or why
 * none is left.
 */
static enum fbt_python_found take_found(const struct python *python, struct python_slot *slot,
					const struct python_found *found,
					const struct python_slot *slots)
{
	enum fbt_python_found reason = FBT_PYTHON_SAME;

	for (size_t i = 0; i < found->count; i++) {
		const struct python_own *own = find_function(slots, found->functions[i]);

		if (own && own->is_held)
			reason = FBT_PYTHON_TAKEN_BY_OTHER;
		if (!is_free(python, own))
			python->Py_DecRef(found->functions[i]);
		else
			slot->own[slot->own_count++] = (struct python_own){
				.function = found->functions[i],
				/* For a call that is still on its way to an earlier caller. */
				.old = python->minor == 11
					       ? NULL
					       : *pointer_of(python, found->functions[i]),
			};
	}
	return slot->own_count ? FBT_PYTHON_FOUND : reason;
}

void python_slot_resolve(const struct python *python, struct python_slot *slot,
			 struct fbt_python_slot *shared, const struct python_slot *slots)
{
	char name[sizeof(shared->function)];
	enum fbt_python_found result, taken;
	struct python_found found;

	memcpy(name, shared->function, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	shared->text[0] = '\0';
	shared->own = 0;
	shared->more = 0;
	if (slot->is_pinned) {
		shared->found = FBT_PYTHON_TAKEN_BY_OTHER;
		return;
	}
	forget(python, slot);
	result = python_find(python, name, shared->suggests, &found, shared->text,
			     sizeof(shared->text));
	taken = take_found(python, slot, &found, slots);
	if (result == FBT_PYTHON_FOUND)
		result = taken;
	for (size_t i = 0; i < slot->own_count && result == FBT_PYTHON_FOUND; i++)
		result = parse_attributes(python, slot, &slot->own[i], shared);
	if (result == FBT_PYTHON_FOUND) {
		describe(python, slot->own[0].function, shared);
		shared->own = (uint32_t)slot->own_count;
		shared->more = found.has_more;
	} else {
		forget(python, slot);
	}
	shared->found = result;
}

/* Holds the parts, so that no other object gets the address of one while the function is armed. */
static void keep_parts(const struct python *python, struct python_own *own)
{
	own->code = python->PyFunction_GetCode(own->function);
	own->defaults = python->PyFunction_GetDefaults(own->function);
	own->keywords = python->PyFunction_GetKwDefaults(own->function);
	python->Py_IncRef(own->code);
	python->Py_IncRef(own->defaults);
	python->Py_IncRef(own->keywords);
}

static void drop_parts(const struct python *python, struct python_own *own)
{
	python->Py_DecRef(own->code);
	python->Py_DecRef(own->defaults);
	python->Py_DecRef(own->keywords);
	own->code = own->defaults = own->keywords = NULL;
}

static bool has_same_parts(const struct python *python, const struct python_own *own)
{
	return python->PyFunction_GetCode(own->function) == own->code &&
	       python->PyFunction_GetDefaults(own->function) == own->defaults &&
	       python->PyFunction_GetKwDefaults(own->function) == own->keywords;
}

/*
 * Gives the version back, so that specialised call sites are valid again. If the program has
 * replaced a part of the function meanwhile, they are not, and a call would crash: then the
 * interpreter invalidates the version itself, in its own tables too, when defaults are set.
 */
static void restore_version(const struct python *python, const struct python_own *own)
{
	uint32_t cleared = cleared_version(python);
	py_object *defaults;

	/* No call site is specialised for a function without a version. */
	if (!__atomic_compare_exchange_n(version_of(python, own->function), &cleared, own->version,
					 false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
	    !own->version || has_same_parts(python, own))
		return;
	defaults = python->PyFunction_GetDefaults(own->function);
	if (python->PyFunction_SetDefaults(own->function,
					   defaults ? defaults : python->_Py_NoneStruct))
		python->PyErr_Clear();
}

static bool arm(const struct python *python, struct python_own *own, unsigned int index)
{
	py_vectorcall *pointer = pointer_of(python, own->function);

	if (python->minor == 11)
		return trampoline_put(python, own, index);
	own->old = __atomic_load_n(pointer, __ATOMIC_SEQ_CST);
	if (!own->old)
		return false;
	keep_parts(python, own);
	/*
	 * Clear the version first: as long as it is valid, a specialised call site bypasses the
	 * pointer.
	 */
	if (has_version(python))
		own->version = __atomic_exchange_n(version_of(python, own->function),
						   cleared_version(python), __ATOMIC_SEQ_CST);
	__atomic_store_n(pointer, python_caller(index), __ATOMIC_SEQ_CST);
	return true;
}

static enum python_disarmed disarm(const struct python *python, struct python_own *own,
				   unsigned int index)
{
	py_vectorcall caller = python_caller(index);

	if (python->minor == 11)
		return trampoline_remove(python, own);
	if (!__atomic_compare_exchange_n(pointer_of(python, own->function), &caller, own->old,
					 false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return PYTHON_HELD;
	if (has_version(python))
		restore_version(python, own);
	drop_parts(python, own);
	return PYTHON_DISARMED;
}

/*
 * Disarms the first count definitions of an armed slot, or what is held of another one. false:
 * something else has changed one of them.
 */
static bool disarm_slot(const struct python *python, struct python_slot *slot, unsigned int index,
			size_t count)
{
	bool clean = true;

	slot->is_pinned = false;
	for (size_t i = 0; i < count; i++) {
		struct python_own *own = &slot->own[i];
		enum python_disarmed result;

		if (!slot->is_armed && !own->is_held)
			continue;
		result = disarm(python, own, index);
		own->is_held = result == PYTHON_HELD;
		slot->is_pinned |= own->is_held;
		clean &= result == PYTHON_DISARMED;
	}
	slot->is_armed = false;
	if (!slot->is_pinned)
		forget(python, slot);
	return clean;
}

void python_slot_arm(const struct python *python, struct python_slot *slot, unsigned int index,
		     struct fbt_python_slot *shared)
{
	size_t count = 0;

	if (!slot->own_count || slot->is_armed || slot->is_pinned)
		return;
	slot->begun_before = __atomic_load_n(&slot->begun, __ATOMIC_RELAXED);
	slot->raised_before = __atomic_load_n(&slot->raised, __ATOMIC_RELAXED);
	slot->is_armed = true;
	while (count < slot->own_count && arm(python, &slot->own[count], index))
		count++;
	if (count == slot->own_count) {
		shared->found = FBT_PYTHON_ARMED;
		return;
	}
	disarm_slot(python, slot, index, count);
	snprintf(shared->text, sizeof(shared->text), "the interpreter refused the change");
	shared->found = FBT_PYTHON_FAILED;
}

void python_slot_release(const struct python *python, struct python_slot *slot, unsigned int index,
			 struct fbt_python_slot *shared)
{
	bool clean = disarm_slot(python, slot, index, slot->own_count);

	shared->found = clean ? FBT_PYTHON_UNKNOWN : FBT_PYTHON_TAKEN_BY_OTHER;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A stack of the target and a file that it has mapped: unwound through the file's table, with
 * frame records where that has nothing, and named by its symbols. The input is the architecture,
 * the registers, how many words of stack follow, these words, and the file.
 */
#include <errno.h>
#include <unistd.h>
#include "fuzz.h"
#include "stacks/unwind.h"
#include "elf/symbols.h"

#define CODE_BASE  0x400000ull
#define CODE_BYTES 0x100000ull
#define STACK_BASE 0x7ffff0000000ull
#define WORDS_MAX  512

struct input {
	const uint8_t *data;
	size_t size;
};

/* A word near the code or the stack, or any: so that values lead somewhere. */
static uint64_t take_word(struct input *input)
{
	uint8_t kind = 0;
	uint64_t word = 0;

	if (input->size) {
		kind = *input->data;
		input->data++;
		input->size--;
	}
	for (int i = 0; i < (kind & 0x40 ? 8 : 3) && input->size; i++, input->size--)
		word = word << 8 | *input->data++;
	if (kind & 0x80)
		return STACK_BASE + word % (WORDS_MAX * 8);
	return kind & 0x40 ? word : CODE_BASE + word % CODE_BYTES;
}

static int find(void *ctx, uint64_t address, struct code_at *code)
{
	if (address < CODE_BASE || address >= CODE_BASE + CODE_BYTES)
		return -ENOENT;
	*code = (struct code_at){ctx, 1, address - CODE_BASE};
	/* The last part is generated code. */
	if (address >= CODE_BASE + CODE_BYTES - CODE_BYTES / 16)
		*code = (struct code_at){.address = address};
	return 0;
}

static void name_frames(const struct unwound *result, const struct elf_file *file)
{
	struct elf_wanted wanted = {.address = result->frames[0].address};
	bool complete;

	if (file && !elf_symbols_locate(file, &wanted, 1, &complete) && wanted.start)
		free(elf_symbols_name(file, &wanted));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint8_t arch = size ? data[0] : 0;
	struct registers registers = {.arch = arch & 1 ? FBT_ARCH_ARM64 : FBT_ARCH_X86_64};
	struct cfi_reader *reader = cfi_reader__new();
	struct elf_file *file = NULL;
	uint64_t words[WORDS_MAX];
	struct unwound *result = malloc(sizeof(*result));
	struct stack_copy copy;
	size_t count;
	int fd;

	fuzz_check(reader && result);
	input.data += size != 0;
	input.size -= size != 0;
	for (unsigned int i = 0; i < FBT_REGISTERS; i++)
		register_set(&registers, i, take_word(&input));
	count = take_word(&input) % WORDS_MAX;
	for (size_t i = 0; i < count; i++)
		words[i] = take_word(&input);
	copy = (struct stack_copy){registers.value[sp_of(registers.arch)],
				   fuzz_copy(words, count * 8), count * 8};
	fd = fuzz_file(input.data, input.size);
	if (elf_file__open(&file, fd))
		file = NULL;
	unwind(reader, &(struct code_finder){find, file}, &registers, &copy,
	       arch & 2 ? STACK_BASE + WORDS_MAX * 4 : 0, result);
	fuzz_check(result->count && result->count <= FBT_STACK_FRAMES);
	name_frames(result, file);
	free((void *)copy.data);
	elf_file__free(file);
	cfi_reader__free(reader);
	free(result);
	close(fd);
	return 0;
}

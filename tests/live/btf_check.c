/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * btf_check OBJECT: checks that each struct, field and named constant in OBJECT's BTF exists in the
 * running kernel's BTF, with the same kind. Only names that CO-RE looks up are compared: offsets,
 * sizes and order may differ. Prints a line "ok - …" or "not ok - …" for each.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <bpf/btf.h>

struct checker {
	const struct btf *ours;
	const struct btf *kernel;
	int failed;
};

static void state(struct checker *checker, bool holds, const char *owner, const char *name)
{
	printf("%sok - the kernel has %s%s%s as declared\n", holds ? "" : "not ", owner,
	       *owner ? "." : "", name);
	checker->failed += !holds;
}

/* CO-RE treats integers and enums as one kind, whatever their size. */
static int kind_of(const struct btf *btf, int id)
{
	int kind = btf_kind(btf__type_by_id(btf, btf__resolve_type(btf, id)));

	return kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64 ? BTF_KIND_INT : kind;
}

/* Type of a field, also within anonymous members; -1 if there is none. */
static int find_field(const struct btf *btf, const struct btf_type *type, const char *name)
{
	const struct btf_member *member = btf_members(type);

	for (int i = 0; i < btf_vlen(type); i++, member++) {
		const char *found = btf__name_by_offset(btf, member->name_off);
		int id = (int)member->type;

		if (!strcmp(found, name))
			return id;
		if (!*found) {
			const struct btf_type *inner =
				btf__type_by_id(btf, btf__resolve_type(btf, id));

			id = btf_is_composite(inner) ? find_field(btf, inner, name) : -1;
			if (id >= 0)
				return id;
		}
	}
	return -1;
}

static void check_struct(struct checker *checker, const struct btf_type *type, const char *name)
{
	int id = btf__find_by_name_kind(checker->kernel, name, btf_kind(type));
	const struct btf_member *member = btf_members(type);

	state(checker, id >= 0, "", name);
	for (int i = 0; id >= 0 && i < btf_vlen(type); i++, member++) {
		const char *field = btf__name_by_offset(checker->ours, member->name_off);
		int theirs =
			find_field(checker->kernel, btf__type_by_id(checker->kernel, id), field);

		state(checker,
		      theirs >= 0 && kind_of(checker->kernel, theirs) ==
					     kind_of(checker->ours, (int)member->type),
		      name, field);
	}
}

static bool has_constant(const struct btf *btf, const char *name, int value)
{
	int count = (int)btf__type_cnt(btf);

	for (int id = 1; id < count; id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);

		if (btf_kind(type) != BTF_KIND_ENUM)
			continue;
		for (int i = 0; i < btf_vlen(type); i++) {
			const struct btf_enum *item = &btf_enum(type)[i];

			if (!strcmp(btf__name_by_offset(btf, item->name_off), name))
				return item->val == value;
		}
	}
	return false;
}

static void check_enum(struct checker *checker, const struct btf_type *type)
{
	for (int i = 0; i < btf_vlen(type); i++) {
		const struct btf_enum *item = &btf_enum(type)[i];
		const char *name = btf__name_by_offset(checker->ours, item->name_off);

		state(checker, has_constant(checker->kernel, name, item->val), "", name);
	}
}

int main(int argc, char **argv)
{
	struct checker checker = {0};
	struct btf *ours = argc == 2 ? btf__parse(argv[1], NULL) : NULL;
	struct btf *kernel = btf__load_vmlinux_btf();
	int count;

	if (!ours || !kernel) {
		fprintf(stderr, "btf_check: no BTF in %s or in the kernel\n",
			argc == 2 ? argv[1] : "(no argument)");
		checker.failed = 1;
		goto out;
	}
	checker.ours = ours;
	checker.kernel = kernel;
	count = (int)btf__type_cnt(ours);
	for (int id = 1; id < count; id++) {
		const struct btf_type *type = btf__type_by_id(ours, id);
		const char *name = btf__name_by_offset(ours, type->name_off);

		if (btf_is_composite(type) && *name)
			check_struct(&checker, type, name);
		else if (btf_kind(type) == BTF_KIND_ENUM)
			check_enum(&checker, type);
	}
out:
	btf__free(ours);
	btf__free(kernel);
	return checker.failed ? 1 : 0;
}

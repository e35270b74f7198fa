/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Why --step found nothing, in words. */
#include "target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "image_scan.h"
#include "log.h"
#include "regular_file.h"

struct found {
	size_t files;	/* mapped ELF files that spec may mean */
	size_t named;	/* of these, with a symbol table of local functions too */
	char path[256]; /* of the last one */
};

static void count_file(struct found *found, uint32_t tgid, const struct target_options *options,
		       const struct mapping *mapping)
{
	struct image image;

	if (!image_open(&image, tgid, mapping)) {
		snprintf(found->path, sizeof(found->path), "%s", mapping->path);
		found->files++;
		if (!image_read(&image, tgid, options->symbol_files, options->symbol_file_count))
			found->named += image.symbols.complete;
	}
	image_close(&image);
}

/* "" or what the file at path is, if it is none that could be mapped as a library. */
static const char *describe_file(uint32_t tgid, const char *path)
{
	struct elf_file *elf = NULL;
	char rooted[PATH_MAX];
	struct stat status;
	int fd, err;

	if (*path != '/')
		snprintf(rooted, sizeof(rooted), "%s", path);
	else if (snprintf(rooted, sizeof(rooted), "/proc/%u/root%s", tgid, path) >=
		 (int)sizeof(rooted))
		return "";
	fd = regular_file_open(rooted, &status);
	if (fd < 0)
		return fd == -ENOENT ? " (there is no such file)" : "";
	err = elf_file__open(&elf, fd);
	elf_file__free(elf);
	close(fd);
	if (err == -ENOEXEC)
		return " (it is not an ELF file)";
	return err == -EAFNOSUPPORT ? " (it is a 32-bit ELF file)" : "";
}

static void explain_spec(uint32_t tgid, const struct target_options *options,
			 const struct step_spec *spec, mapping_vec *maps)
{
	struct found found = {0};

	vec_for_each (mapping, maps)
		if (image_scan_wants(spec, tgid, mapping->path, mapping->inode))
			count_file(&found, tgid, options, mapping);
	if (spec->path && !found.files)
		log_err("--step %s: process %u has no code mapped from %s%s; /proc/%u/maps names "
			"the files",
			spec->text, tgid, spec->path, describe_file(tgid, spec->path), tgid);
	else if (spec->form == STEP_SPEC_USDT)
		log_err("--step %s: no file mapped by process %u has these probes", spec->text,
			tgid);
	else if (found.files == 1 && !found.named)
		log_err("--step %s: %s is stripped and exports no such function; give --symbols "
			"FILE of the same build, or PATH+0xADDR",
			spec->text, found.path);
	else
		log_err("--step %s: no such function in the %zu files that process %u has mapped "
			"(%zu of them stripped); --list-steps shows candidates",
			spec->text, found.files, tgid, found.files - found.named);
}

void target_explain_no_match(uint32_t tgid, const struct target_options *options)
{
	mapping_vec maps = {0};

	if (!options->spec_count) {
		log_err("process %u: no known step function is in it (llama.cpp, ferrum); name one "
			"with --step, --list-steps shows candidates",
			tgid);
		return;
	}
	if (maps_read(tgid, &maps))
		return;
	for (size_t i = 0; i < options->spec_count; i++)
		explain_spec(tgid, options, &options->specs[i], &maps);
	maps_free(&maps);
}

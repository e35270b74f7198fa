# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What is installed and packaged. See docs/install.md.

# --- completion of the shells, from the tables of options and sub-commands ----------------------

completion_tables := $(O)/completion/tables
completions       := $(addprefix $(O)/completion/ferrum-bpftrace.,bash zsh fish)

$(O)/completion:
	$(Q)mkdir -p $@

$(completion_tables): packaging/completion/tables.c $(O)/libfbt.a | $(O)/completion
	$(call msg,CC,$@)
	$(Q)$(cc) $(cflags) $(ldflags) -MMD -MP $< $(O)/libfbt.a $(libs) -o $@

# A build for another architecture cannot run what it has built: it takes TABLES, which
# build/*/completion/tables of a build for this one has printed.
$(O)/completion/tables.tsv: $(or $(TABLES),$(completion_tables))
	$(if $(CROSS_COMPILE),$(if $(TABLES),,$(error completion: what is built for $(ARCH) cannot run here; build for this machine first, and add TABLES=build/.../completion/tables.tsv)))
	$(Q)$(if $(TABLES),cat $(TABLES),$(completion_tables)) >$@

$(completions): $(O)/completion/ferrum-bpftrace.%: $(O)/completion/tables.tsv packaging/completion/generate.sh packaging/completion/ferrum-bpftrace.%
	$(call msg,GEN,$@)
	$(Q)packaging/completion/generate.sh $* <$< >$@

completions: $(completions)
.PHONY: completions

# --- installation --------------------------------------------------------------------------------

# README's links lead to the pages where they are installed, too.
install_root := $(DESTDIR)$(prefix)
share     := $(install_root)/share
share_doc := $(share)/doc/ferrum-bpftrace
man_pages := $(sort $(wildcard docs/*.[1-8]))
# The unit of the daemon. Its configuration is an example: the unit waits for the real one.
service   := $(wildcard packaging/ferrum-bpftrace.service)
examples  := $(wildcard packaging/*.conf packaging/monitor/*)
service_dir  := $(install_root)/lib/systemd/system
installed := $(install_root)/bin/ferrum-bpftrace \
             $(addprefix $(install_root)/lib/ferrum-bpftrace/,libferrum_cupti.so libferrum_python.so) \
             $(foreach page,$(notdir $(man_pages)),$(share)/man/man$(subst .,,$(suffix $(page)))/$(page)) \
             $(share)/bash-completion/completions/ferrum-bpftrace \
             $(share)/zsh/site-functions/_ferrum-bpftrace \
             $(share)/fish/vendor_completions.d/ferrum-bpftrace.fish \
             $(if $(service),$(service_dir)/ferrum-bpftrace.service)
install_program := install -D -m 755

# With the version in its footer.
define install_man
	$(Q)install -d $(share)/man/man$(subst .,,$(suffix $(1)))
	$(Q)sed '/^\.TH /s/"ferrum\\-bpftrace [^"]*"/"ferrum\\-bpftrace $(VERSION)"/' $(1) >$(share)/man/man$(subst .,,$(suffix $(1)))/$(notdir $(1))
	$(Q)chmod 644 $(share)/man/man$(subst .,,$(suffix $(1)))/$(notdir $(1))

endef

install: $(tool) $(shim) $(guest) $(completions) ## install tool, libraries, man pages, completion and documentation under DESTDIR and PREFIX
	$(call msg,INSTALL,$(install_root))
	$(Q)$(install_program) $(tool) $(word 1,$(installed))
	$(Q)$(install_program) $(shim) $(word 2,$(installed))
	$(Q)$(install_program) $(guest) $(word 3,$(installed))
	$(foreach page,$(man_pages),$(call install_man,$(page)))
	$(Q)install -D -m 644 $(O)/completion/ferrum-bpftrace.bash $(share)/bash-completion/completions/ferrum-bpftrace
	$(Q)install -D -m 644 $(O)/completion/ferrum-bpftrace.zsh $(share)/zsh/site-functions/_ferrum-bpftrace
	$(Q)install -D -m 644 -t $(share)/fish/vendor_completions.d $(O)/completion/ferrum-bpftrace.fish
	$(Q)install -D -m 644 -t $(share_doc) LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
	$(Q)install -D -m 644 -t $(share_doc)/docs $(wildcard docs/*.md)
	$(Q)install -D -m 644 -t $(share_doc)/kubernetes packaging/kubernetes/*.yaml
	$(if $(examples),$(Q)install -D -m 644 -t $(share_doc)/examples $(examples))
	$(if $(service),$(Q)install -d $(service_dir) && sed 's|/usr/bin/ferrum-bpftrace|$(prefix)/bin/ferrum-bpftrace|g' $(service) >$(service_dir)/$(notdir $(service)) && chmod 644 $(service_dir)/$(notdir $(service)))

install-strip: install_program := install -D -s --strip-program=$(CROSS_COMPILE)strip -m 755
install-strip: install ## the same, without symbols

uninstall: ## remove what install has put under DESTDIR and PREFIX
	$(call msg,REMOVE,$(install_root))
	$(Q)rm -rf $(installed) $(share_doc)
	$(Q)rmdir $(install_root)/lib/ferrum-bpftrace 2>/dev/null || true

.PHONY: install install-strip uninstall

# --- packages, in build/dist ---------------------------------------------------------------------

dist       := build/dist
static     := build/$(variant)-static
stage      := $(dist)/stage
epoch       = $(shell packaging/version.sh --date)
for_package = VERSION='$(VERSION)' EPOCH=$(epoch) ARCH=$(ARCH) MAP=$(static)/ferrum-bpftrace.map

# What is installed and nothing else.
program: $(tool) $(shim) $(guest) $(completions)

# With the linker's map, from which the bill of materials is made.
stage: deps-package
	$(Q)$(MAKE) $(jobs) STATIC=1 O=$(static) program
	$(Q)rm -rf $(stage)
	$(Q)$(MAKE) STATIC=1 O=$(static) DESTDIR=$(CURDIR)/$(stage) prefix=/usr/local install-strip

define package
	$(call msg,PACKAGE,$(1))
	$(Q)$(for_package) packaging/package.sh $(1) $(stage)/usr/local $(dist)
endef

# Of all packages that are there.
define sum
	$(Q)cd $(dist) && flock .lock sh -c "find . -maxdepth 1 -type f ! -name SHA256SUMS ! -name '.*' -printf '%f\n' | \
		LC_ALL=C sort | xargs sha256sum >.sums && mv .sums SHA256SUMS"
endef

deps-package:
	$(Q)$(deps) package

tarball: stage ## a tar with the static tool, its libraries and pages, and its bill of materials (SPDX)
	$(call package,tarball)
	$(call sum)

wheel: stage ## a wheel for pip, with the static tool and its libraries
	$(call package,wheel)
	$(call sum)

deb: deps-package ## a Debian package
	$(call msg,PACKAGE,deb)
	$(Q)$(for_package) packaging/deb.sh $(dist)
	$(call sum)

# The context of the image, for the tool that builds it: docker, podman or buildah.
image-root: stage
	$(call package,image)

IMAGE     ?= ferrum-bpftrace:$(subst +,-,$(VERSION))
CONTAINER ?= $(firstword $(foreach name,podman docker,$(if $(shell command -v $(name)),$(name))))

image: image-root ## a container image from scratch, by podman or docker; IMAGE=NAME:TAG
	$(if $(CONTAINER),,$(error image: neither podman nor docker is here; build $(dist)/image elsewhere))
	$(Q)$(CONTAINER) build -t $(IMAGE) $(dist)/image

dist: tarball wheel deb ## the tarball, the wheel, the Debian package, and their checksums

.PHONY: program stage deps-package tarball wheel deb image-root image dist

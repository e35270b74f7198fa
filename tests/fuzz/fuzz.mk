# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Fuzzing: libFuzzer with ASan and UBSan, by clang whatever CC is. tests/fuzz/README.md says what
# each target is about.
#
#	make fuzz                              every target for FUZZ_SECONDS (600), one after the other
#	make fuzz TARGETS='elf capture'        these only
#	make fuzz FUZZ_SECONDS=60 FUZZ_JOBS=2  two at a time
#	make fuzz-corpus                       each over its corpus once, then FUZZ_RUNS (500) more
#	make fuzz-merge                        adds to the corpora, as small as can be, what was found

FUZZ_SECONDS ?= 600
FUZZ_RUNS    ?= 500
FUZZ_JOBS    ?= 1

fuzz_src  := $(sort $(wildcard tests/fuzz/*.c))
TARGETS   ?= $(fuzz_src:tests/fuzz/%.c=%)
fuzz_bin   = $(TARGETS:%=$(O)/fuzz/%)
fuzz_lib  := $(O)/fuzz/libfbt.a
fuzz_obj  := $(lib_src:%.c=$(O)/fuzz/%.o) \
             $(patsubst %,$(O)/fuzz/golden/%.o,line records stack_records explain_records gpu_records)

# The sanitizers find what is wrong, -O1 and line tables keep the build short.
fuzz_san    := -fsanitize=address,undefined -fno-sanitize-recover=all
fuzz_cflags := -std=gnu11 -D_GNU_SOURCE -DFBT_VERSION='"fuzz"' $(warnings) -fno-strict-aliasing \
               -Iinclude -Iuser -Itests/golden -Itests/fuzz -I$(O) -O1 -gline-tables-only \
               -fno-omit-frame-pointer -Werror $(fuzz_san)

$(O)/fuzz/golden:
	$(Q)mkdir -p $@

$(O)/fuzz/user/%.o: user/%.c | $(skels) $(stub)
	$(call msg,FUZZ,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(fuzz_cflags) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

# A mistake in a line must not end the fuzzer.
$(O)/fuzz/golden/%.o: tests/golden/%.c | $(O)/fuzz/golden
	$(call msg,FUZZ,$@)
	$(Q)$(CLANG) $(fuzz_cflags) -Dexit=line_exit -Wno-missing-prototypes -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

$(fuzz_lib): $(fuzz_obj)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(ar) qcs $@ $^

# What a target puts in the place of a function is named in its first lines: "fuzz: wrap fopen".
fuzz_wraps = $(shell sed -n 's/^ \* fuzz: wrap //p' $(1))

$(O)/fuzz/%: tests/fuzz/%.c $(fuzz_lib)
	$(call msg,LINK,$@)
	$(Q)$(CLANG) $(fuzz_cflags) -fsanitize=fuzzer $(patsubst %,-Wl$(comma)--wrap=%,$(call fuzz_wraps,$<)) \
		-MMD -MP $< $(fuzz_lib) $(filter-out -static,$(libs)) -lpthread -o $@

fuzz_env = FUZZ_BIN=$(O)/fuzz FUZZ_WORK=build/fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_RUNS=$(FUZZ_RUNS) \
           FUZZ_JOBS=$(FUZZ_JOBS) TARGETS='$(TARGETS)'

build-fuzz: $(fuzz_bin)

fuzz: ## fuzz every parser of untrusted bytes, FUZZ_SECONDS=600 each; TARGETS='elf capture' for some
	$(Q)$(deps) check
	$(Q)$(MAKE) $(jobs) build-fuzz
	$(Q)$(fuzz_env) tests/fuzz/run.sh fuzz

fuzz-corpus: ## run each fuzz target over its corpus, and a little further
	$(Q)$(deps) check
	$(Q)$(MAKE) $(jobs) build-fuzz
	$(Q)$(fuzz_env) $(test_env) tests/run.sh tests/fuzz/corpus.sh

fuzz-merge: ## add to the corpora of the tree what fuzzing found
	$(Q)$(MAKE) $(jobs) build-fuzz
	$(Q)$(fuzz_env) tests/fuzz/run.sh merge

.PHONY: build-fuzz fuzz fuzz-corpus fuzz-merge

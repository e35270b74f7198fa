# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The whole build. `make help` lists the targets.

CC            ?= gcc
CLANG         ?= clang
BPFTOOL       ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
PKG_CONFIG    ?= pkg-config
PREFIX        ?= /usr/local
prefix        ?= $(PREFIX)
DESTDIR       ?=
ARCH          ?= $(shell uname -m | sed 's/aarch64/arm64/')
CROSS_COMPILE ?=
SYSROOT       ?=
V             ?= 0
SAN           ?= 0
STATIC        ?= 0
WERROR        ?= 0
# Of the newest tag. Only one file is compiled with it, as it changes with each commit.
VERSION       := $(shell packaging/version.sh)

ifeq ($(origin CC),default)
CC := gcc
endif
cc := $(CROSS_COMPILE)$(CC)$(SYSROOT:%= --sysroot=%)
ar := $(CROSS_COMPILE)ar

variant := $(ARCH)-$(notdir $(CC))$(if $(filter 1,$(SAN)),-san)$(if $(filter 1,$(WERROR)),-werror)
O ?= build/$(variant)$(if $(filter 1,$(STATIC)),-static)
# A static tool is linked from the objects of the other one.
B := $(if $(filter 1,$(STATIC)),build/$(variant),$(O))

# DEPS=0 is for packagers: nothing is installed, nothing is looked for.
DEPS ?= 1
deps := $(if $(filter 0,$(DEPS)),:,packaging/deps.sh)

ifeq ($(V),1)
Q :=
msg = @true
else
Q := @
# make -s says nothing of what it makes.
silent := $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
msg = @$(if $(silent),true,printf '  %-8s %s\n' "$(1)" "$(patsubst $(O)/%,%,$(2))")
MAKEFLAGS += --no-print-directory
endif

bpf_arch_x86_64 := x86
bpf_arch_arm64  := arm64
bpf_arch        := $(bpf_arch_$(ARCH))

# Engines of the tests begin as those of a distribution do: with a branch-target marker.
marked_x86_64 := -fcf-protection=full
marked_arm64  := -mbranch-protection=standard
marked        := $(marked_$(ARCH))

warnings := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 \
            -Wno-unused-parameter -Wno-missing-field-initializers
CFLAGS   ?= -O2 -g
# The folder of the build is in no file, so that two builds give the same bytes.
same     := -ffile-prefix-map=$(CURDIR)=.
cflags   := -std=gnu11 -D_GNU_SOURCE $(same) $(warnings) -fno-strict-aliasing \
            -fstack-protector-strong -Iinclude -Iuser -I$(B) $(CFLAGS)
ldflags  := $(LDFLAGS)
libs     := -lbpf -lelf -lz -ljson-c -lcapstone -liberty -levent_openssl -levent_extra -levent_core \
            -lssl -lcrypto -lcap-ng -lseccomp -lncursesw -ltinfo -lm

ifeq ($(SAN),1)
san      := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
cflags   += $(san)
ldflags  += $(san)
endif
ifeq ($(WERROR),1)
cflags   += -Werror
bpf_werror := -Werror
endif
ifeq ($(STATIC),1)
ldflags  += -static
else
libs     += -ldl
endif

user_src := $(sort $(wildcard user/*.c user/*/*.c))
lib_src  := $(filter-out user/main.c,$(user_src))
lib_obj  := $(lib_src:%.c=$(B)/%.o)
tool     := $(O)/ferrum-bpftrace
shim_src := $(sort $(wildcard cupti/*.c))
shim     := $(O)/libferrum_cupti.so
shim_lib := $(O)/libferrum_cupti_test.a
guest_src := $(sort $(wildcard python/*.c))
# Of the shim, in both libraries.
guest_shared := cupti/only_one.c cupti/own_memfd.c cupti/own_thread.c
# Of the tool, compiled as a part of the library.
guest_base := similar
guest    := $(O)/libferrum_python.so
stub     := $(B)/inject_code.h
engine   := $(O)/tests/engine

# Doubles of CUDA and CUPTI, three releases of that, and an engine on them.
fake_cuda  := $(O)/tests/libcuda.so.1
fake_cupti := $(O)/tests/libcupti.so.13 $(O)/tests/libcupti.so.12 $(O)/tests/libcupti.so.11.8
gpu_engine := $(O)/tests/gpu_engine
gpu_fakes  := $(fake_cuda) $(fake_cupti) $(gpu_engine)

# A program that watches over itself while it is injected, and what is injected.
inject_fakes := $(O)/tests/inject_target $(O)/tests/inject_probe.so

# A program that exports an interpreter, which never begins; in the assembly of x86-64.
not_begun := $(if $(filter x86_64,$(ARCH)),$(O)/tests/not_begun)

unit_src := $(sort $(wildcard tests/unit/*/*_test.c))
unit_dir := $(sort $(notdir $(patsubst %/,%,$(dir $(unit_src)))))
unit_bin := $(unit_dir:%=$(O)/tests/unit_%)
bpf_src  := $(sort $(wildcard bpf/*.bpf.c))
skels    := $(bpf_src:bpf/%.bpf.c=$(B)/%.skel.h)

.DELETE_ON_ERROR:
.SECONDEXPANSION:
.SUFFIXES:
.SECONDARY:

all: deps $(tool) $(shim) $(guest) $(engine) ## build the tool, the CUPTI shim and the embedded engine

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9_.-]+:.*## / {printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo '  V=1 commands shown   SAN=1 ASan + UBSan   STATIC=1 one static file   WERROR=1   DEPS=0 no packages'
	@echo '  O=DIR  CC=clang  ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- SYSROOT=DIR  DESTDIR= PREFIX='

deps: ## install the Debian packages that are missing (needs root; else names them)
	$(Q)$(deps) build

# --- BPF ---------------------------------------------------------------------------------------

bpf_sys_includes = $(shell $(CLANG) -v -E - </dev/null 2>&1 | sed -n '/<...> search starts here:/,/End of search list./{s| \(/.*\)|-idirafter \1|p}')

$(B)/%.bpf.o: bpf/%.bpf.c | $(B)
	$(call msg,BPF,$@)
	$(Q)$(CLANG) -target bpf -mcpu=v3 -D__TARGET_ARCH_$(bpf_arch) -O2 -g $(same) -Wall -Wextra -Wno-unused-parameter \
		$(bpf_werror) -Iinclude -Ivmlinux $(bpf_sys_includes) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@.tmp
	$(Q)$(BPFTOOL) gen object $@ $@.tmp && rm -f $@.tmp

%.skel.h: %.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf > $@

# --- C -----------------------------------------------------------------------------------------

$(sort $(O) $(B) $(B)/user $(B)/cupti $(B)/cupti/stub $(O)/cupti_test $(O)/tests):
	$(Q)mkdir -p $@

$(B)/user/%.o: user/%.c | $(B)/user $(skels) $(stub)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(cc) $(cflags) -MMD -MP -c $< -o $@

$(B)/version: FORCE | $(B)
	$(Q)echo '$(VERSION)' >$@.tmp
	$(Q)cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@

$(B)/user/base/version.o: private cflags += -DFBT_VERSION='"$(VERSION)"'
$(B)/user/base/version.o: $(B)/version

$(O)/libfbt.a: $(lib_obj) | $(O)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(ar) qcs $@ $^

$(tool): $(B)/user/main.o $(O)/libfbt.a
	$(call msg,LINK,$@)
	$(Q)$(cc) $(cflags) $(ldflags) $^ $(libs) $(if $(filter 1,$(STATIC)),-Wl$(comma)-Map=$@.map) -o $@

# The shim is loaded into processes that are not ours: no sanitizers, nothing bound late, never
# unloaded, and no symbol of theirs or of its own that the other could meet.
shim_cflags := -std=gnu11 -D_GNU_SOURCE $(same) $(warnings) -fno-strict-aliasing -fstack-protector-strong \
               -fPIC -fvisibility=hidden -Iinclude $(if $(filter 1,$(WERROR)),-Werror) $(CFLAGS)
shim_ldflags := -shared -Wl,-soname,libferrum_cupti.so -Wl,-z,nodelete,-z,now,-z,relro,-z,defs \
                $(LDFLAGS)

$(B)/cupti/%.o: cupti/%.c | $(B)/cupti
	$(call msg,CC,$@)
	$(Q)$(cc) $(shim_cflags) -MMD -MP -c $< -o $@

$(shim): $(shim_src:cupti/%.c=$(B)/cupti/%.o)
	$(call msg,LINK,$@)
	$(Q)$(cc) $(shim_cflags) $(shim_ldflags) $^ -lpthread -ldl -o $@

# The library for Python engines is a guest in the same way. A marker lies in the middle of its
# function, where a probe must not find a red zone.
guest_ldflags := $(subst cupti,python,$(shim_ldflags))

guest_cflags := $(shim_cflags) $(if $(filter x86_64,$(ARCH)),-mno-red-zone) -Icupti -Iuser

# Each call of an armed function passes through it, and its arrays are of fixed size.
$(B)/python/callers.o: private guest_cflags += -fno-stack-protector

$(B)/python/%.o: python/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(cc) $(guest_cflags) -MMD -MP -c $< -o $@

$(B)/python/base/%.o: user/base/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(cc) $(guest_cflags) -MMD -MP -c $< -o $@

$(guest): $(patsubst %.c,$(B)/%.o,$(guest_src) $(guest_shared)) $(guest_base:%=$(B)/python/base/%.o)
	$(call msg,LINK,$@)
	$(Q)$(cc) $(shim_cflags) $(guest_ldflags) $^ -lpthread -ldl -o $@

# What --gpu=inject writes into a process: bytes that run at any address. x86-64 only.
stub_cflags := -std=gnu11 $(warnings) -Os -fPIC -ffreestanding -fno-builtin -mgeneral-regs-only \
               -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables -Iinclude \
               $(if $(filter 1,$(WERROR)),-Werror)

ifeq ($(ARCH),x86_64)
stub_obj   := $(B)/cupti/stub/stub.o $(B)/cupti/stub/helper.o
stub_link   = $(cc) -nostdlib -static -Wl,--build-id=none -Wl,-T,cupti/stub/stub.lds \
              $(stub_obj) -o $@.elf && $(CROSS_COMPILE)objcopy -O binary -j .stub $@.elf $@
else
stub_link   = : > $@
endif

$(B)/cupti/stub/%.o: cupti/stub/%.c | $(B)/cupti/stub
	$(call msg,CC,$@)
	$(Q)$(cc) $(stub_cflags) -MMD -MP -c $< -o $@

$(B)/cupti/stub/%.o: cupti/stub/%.S | $(B)/cupti/stub
	$(call msg,AS,$@)
	$(Q)$(cc) $(stub_cflags) -MMD -MP -c $< -o $@

$(B)/cupti/stub.bin: $(stub_obj) cupti/stub/stub.lds | $(B)/cupti/stub
	$(call msg,LINK,$@)
	$(Q)$(stub_link)

$(stub): $(B)/cupti/stub.bin
	$(call msg,GEN,$@)
	$(Q){ echo 'static const unsigned char inject_code[] = {'; \
		od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g'; echo '};'; } > $@

# The scripts and the style of the HTML pages.
define embed
	echo 'static const unsigned char $(1)[] = {'; cat $(2) | od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g'; echo '};';
endef

$(B)/html_page.h: user/html/page.css user/html/common.js user/html/page.js | $(B)
	$(call msg,GEN,$@)
	$(Q){ $(call embed,page_css,$<) $(call embed,page_js,$(filter %.js,$^)) } > $@

$(B)/diff_page.h: user/html/common.js user/diff/page.js | $(B)
	$(call msg,GEN,$@)
	$(Q){ $(call embed,diff_js,$^) } > $@

$(B)/user/diff/page.o: $(B)/diff_page.h
$(B)/user/html/page.o: $(B)/html_page.h

# The same once more for its unit tests, as they are built.
$(O)/cupti_test/%.o: cupti/%.c | $(O)/cupti_test
	$(call msg,CC,$@)
	$(Q)$(cc) $(cflags) -MMD -MP -c $< -o $@

$(shim_lib): $(shim_src:cupti/%.c=$(O)/cupti_test/%.o)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(ar) rcs $@ $^

$(engine): tests/fake/engine.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g $(marked) -MMD -MP $< -lpthread -o $@

$(fake_cuda): tests/fake/libcuda.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -fPIC -shared -fvisibility=hidden \
		-Wl,-soname,$(notdir $@) -MMD -MP -MT $@ -MF $@.d $< -lpthread -ldl -o $@

$(fake_cupti): tests/fake/libcupti.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -fPIC -shared -fvisibility=hidden \
		-DFAKE_CUPTI_MAJOR=$(word 3,$(subst ., ,$(notdir $@))) -Wl,-soname,$(notdir $@) \
		-MMD -MP -MT $@ -MF $@.d $< -lpthread -ldl -o $@

$(gpu_engine): tests/fake/gpu_engine.c $(fake_cuda) | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g $(marked) -MMD -MP $< \
		-L$(O)/tests -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN' -lpthread -o $@

# Unit tests: one binary a folder. Each file is a program whose main has the file's name here.
unit_of = $(patsubst %.c,$(O)/%.o,$(wildcard tests/unit/$(1)/*_test.c))
# Tests with doubles of what their module calls: each is sealed together with that module.
sealed := kernel/step_probes metrics/metrics stream/looks stream/stream proc/memory otlp/otlp \
          targets/steps_found

$(O)/tests/unit/%.o: tests/unit/%.c | $(skels) $(stub)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(cc) $(cflags) -Itests/unit -Icupti -Dmain=$(basename $(@F)) -Wno-missing-prototypes -MMD -MP -c $< -o $@
	$(if $(filter $(sealed:%=$(O)/tests/unit/%_test.o),$@),$(call seal,$@,$(@:$(O)/tests/unit/%_test.o=$(B)/user/%.o)))

$(sealed:%=$(O)/tests/unit/%_test.o): $(O)/tests/unit/%_test.o: $(B)/user/%.o

define seal
	$(Q)$(CROSS_COMPILE)ld -r $(1) $(2) -o $(1).tmp
	$(Q)$(CROSS_COMPILE)objcopy --keep-global-symbol=$(basename $(notdir $(1))) $(1).tmp $(1) && rm -f $(1).tmp
endef

# Also when a test has gone, which leaves no newer file behind.
$(O)/tests/unit/%/groups.h: FORCE | $(O)/tests
	$(Q)mkdir -p $(@D)
	$(Q)printf 'GROUP(%s)\n' $(basename $(notdir $(wildcard tests/unit/$*/*_test.c))) >$@.tmp
	$(Q)cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@

$(O)/tests/unit_%: tests/unit/main.c $(O)/tests/unit/%/groups.h $$(call unit_of,$$*) $$(if $$(filter cupti,$$*),$(shim_lib) $(shim)) $(O)/libfbt.a
	$(call msg,TEST,$@)
	$(Q)$(cc) $(cflags) $(ldflags) -I$(O)/tests/unit/$* $< $(filter %.o %.a,$^) $(libs) -lpthread -lcmocka -o $@

-include $(shell find $(sort $(O) $(B)) -name '*.d' 2>/dev/null)

clean: ## remove what was built
	$(Q)rm -rf build compile_commands.json

# --- tests and checks ----------------------------------------------------------------------------

# make TESTS='unit live' test runs these only; make test alone is the fast tier.
tests_named := $(TESTS)
TESTS  ?= unit golden live e2e
UPDATE ?=

jobs     = $(if $(filter 1,$(V)),,-s) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
test_env := FBT_BUILD=$(O) FBT=$(tool) FBT_ENGINE=$(engine) UPDATE=$(UPDATE) V=$(V) CC='$(cc)' CLANG=$(CLANG)

tier      = env MAKE='$(MAKE)' $(test_env) tests/tier.sh

# These have code in the assembly of x86-64, or what only its compiler knows.
live_x86_64 := $(addprefix tests/live/,async.c callers.c jumps.c)
live_src  := $(filter-out $(if $(filter-out x86_64,$(ARCH)),$(live_x86_64)),$(sort $(wildcard tests/live/*.c)))
live_bin  := $(live_src:tests/live/%.c=$(O)/tests/live_%)
# Where libdw-dev is.
dwfl      := $(if $(filter 1,$(STATIC))$(CROSS_COMPILE),,$(if $(wildcard /usr/include/elfutils/libdwfl.h),$(O)/tests/live_dwfl $(O)/tests/live_rows))
e2e_src   := $(sort $(wildcard tests/e2e/*.c))
e2e_bin   := $(e2e_src:tests/e2e/%.c=$(O)/tests/e2e_%.so)
bench_src := $(sort $(wildcard tests/bench/*.c))
bench_bpf := $(filter %.bpf.c,$(bench_src))
bench_so  := tests/bench/cupti_double.c
bench_bin := $(patsubst tests/bench/%.c,$(O)/tests/bench_%,$(filter-out $(bench_bpf) $(bench_so),$(bench_src)))
bench_gpu := $(O)/tests/live_load $(O)/tests/events $(inject_fakes) $(shim) $(O)/tests/bench_cupti.so $(O)/tests/gpu_fake_engine $(gpu_fakes)

# tests/gpu: what reads a shim there, and what stands for a GPU here.
gpu_bin   := $(O)/tests/gpu_arm $(O)/tests/gpu_results
gpu_trial := $(shim) $(gpu_bin) $(O)/tests/gpu_fake_engine

# What the tests of $(TESTS) run.
test_bin := $(tool) $(engine) $(if $(filter unit,$(TESTS)),$(unit_bin)) \
            $(if $(filter golden,$(TESTS)),$(O)/tests/events) \
            $(if $(filter live,$(TESTS)),$(live_bin) $(dwfl)) $(if $(filter e2e,$(TESTS)),$(e2e_bin)) \
            $(if $(filter unit live,$(TESTS)),$(gpu_fakes)) $(if $(filter live,$(TESTS)),$(gpu_trial)) \
            $(if $(filter unit live,$(TESTS)),$(guest)) $(if $(filter unit live,$(TESTS)),$(not_begun)) \
            $(if $(filter unit live e2e,$(TESTS)),$(inject_fakes)) \
            $(if $(filter live e2e,$(TESTS)),$(O)/tests/live_inject_drive) \
            $(if $(filter live,$(TESTS)),$(O)/tests/bench_worker)

$(O)/tests/live_%: tests/live/%.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -MMD -MP $< -lbpf -lpthread -ldl -o $@

# They do what the tool's child does, or know what it knows.
$(O)/tests/live_inject_drive $(O)/tests/live_inject_seccomp $(O)/tests/live_python_drive $(O)/tests/live_python_frames: $(O)/tests/live_%: tests/live/%.c $(O)/libfbt.a | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) $(cflags) $(ldflags) -MMD -MP $< $(O)/libfbt.a $(libs) -o $@

# The tool, with each of its stacks held against libdwfl.
$(O)/tests/live_dwfl: tests/live/dwfl/check.c $(B)/user/main.o $(O)/libfbt.a | $(O)/tests
	$(call msg,LINK,$@)
	$(Q)$(cc) $(cflags) $(ldflags) -Wno-missing-prototypes -MMD -MP -MT $@ -MF $@.d $< $(B)/user/main.o \
		-Wl,--wrap=stacks__take $(O)/libfbt.a $(libs) -ldw -o $@

$(O)/tests/live_rows: tests/live/dwfl/rows.c $(O)/libfbt.a | $(O)/tests
	$(call msg,LINK,$@)
	$(Q)$(cc) $(cflags) $(ldflags) -MMD -MP -MT $@ -MF $@.d $< $(O)/libfbt.a $(libs) -ldw -o $@

# The records of golden tests, from text to a capture.
$(O)/tests/events: $(sort $(wildcard tests/golden/*.[ch] include/*.h)) $(O)/libfbt.a | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) $(cflags) $(ldflags) $(filter %.c,$^) $(O)/libfbt.a $(libs) -o $@

$(O)/tests/inject_target: tests/fake/inject_target.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -MMD -MP $< -lpthread -lm -o $@

$(not_begun): tests/fake/not_begun.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -rdynamic -Ipython -MMD -MP $< -lpthread -ldl -o $@

$(O)/tests/inject_probe.so: tests/fake/inject_probe.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -fPIC -shared -MMD -MP $< -o $@

$(O)/tests/e2e_%.so: tests/e2e/%.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -fPIC -shared -MMD -MP $< -lpthread -ldl -o $@

$(O)/tests/bench_%.bpf.o: tests/bench/%.bpf.c | $(O)/tests
	$(call msg,BPF,$@)
	$(Q)$(CLANG) -target bpf -mcpu=v3 -D__TARGET_ARCH_$(bpf_arch) -O2 -g -Wall -Wextra -Wno-unused-parameter \
		$(bpf_werror) -Ivmlinux $(bpf_sys_includes) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@

$(O)/tests/bench_%: tests/bench/%.c $(bench_bpf:tests/bench/%.bpf.c=$(O)/tests/bench_%.skel.h) | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -I$(O)/tests -MMD -MP $< -lbpf -lpthread -o $@

$(O)/tests/bench_cupti.so: tests/bench/cupti_double.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 $(warnings) -Wno-missing-prototypes -O2 -g -fPIC -shared -MMD -MP $< -o $@

# They time stages of the tool, so they are linked with them.
$(patsubst %,$(O)/tests/bench_%,diff inject judge merge shim): $(O)/tests/bench_%: tests/bench/%.c $(O)/libfbt.a | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -I$(O)/tests $(cflags) $(ldflags) -MMD -MP $< $(O)/libfbt.a $(libs) -o $@

$(O)/tests/bench_inject: $(O)/tests/bench_away.skel.h

# What tests/gpu/run.sh needs, in one folder for a machine with a GPU: of STATIC=1 it runs anywhere.
# Without a CUDA toolkit, nvcc comes from the Python package index; where that cannot be reached, the
# CUDA engine is left out: run.sh builds it there, or takes PyTorch.
nvcc     = $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc 2>/dev/null) \
           $(wildcard /usr/local/cuda/bin/nvcc) $(addsuffix /bin/nvcc,$(shell tests/cuda/toolkit.sh 13.0)))
gpu_arch ?= all-major
gpu_kit  := $(O)/gpu-kit

$(gpu_bin): $(O)/tests/gpu_%: tests/gpu/%.c $(O)/libfbt.a | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) $(cflags) $(ldflags) -MMD -MP $< $(O)/libfbt.a $(libs) -o $@

$(O)/tests/libgpu_step.so: tests/gpu/step.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 $(warnings) -O2 -g -fPIC -shared -MMD -MP $< -o $@

$(O)/tests/gpu_fake_engine: tests/gpu/fake_engine.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -MMD -MP $< -ldl -o $@

# Empty where there is no nvcc.
$(O)/tests/gpu_engine_cuda: tests/gpu/engine.cu | $(O)/tests
	$(call msg,NVCC,$@)
	$(Q)nvcc='$(nvcc)'; if [ -n "$$nvcc" ]; then "$$nvcc" -O2 -arch=$(gpu_arch) \
		-Xcompiler -static-libgcc,-static-libstdc++ $< -o $@ -ldl; else : >$@; fi

gpu-kit: deps ## what measures the GPU side on a machine with a GPU, see tests/gpu/README.md; with STATIC=1
	$(Q)$(MAKE) $(jobs) $(tool) $(shim) $(gpu_bin) $(O)/tests/libgpu_step.so \
		$(O)/tests/gpu_engine_cuda
	$(Q)rm -rf $(gpu_kit) && mkdir $(gpu_kit)
	$(Q)cp $(tool) $(shim) $(gpu_bin) $(O)/tests/libgpu_step.so tests/gpu/run.sh \
		tests/gpu/decode.py tests/gpu/step.c tests/gpu/engine.cu tests/gpu/README.md $(gpu_kit)
	$(Q)! [ -s $(O)/tests/gpu_engine_cuda ] || cp $(O)/tests/gpu_engine_cuda $(gpu_kit)/engine
	$(Q)tar -C $(O) -czf $(O)/gpu-kit.tar.gz gpu-kit
	@echo $(O)/gpu-kit.tar.gz

build-tests: $(test_bin)

run-tests:
	$(Q)$(MAKE) $(jobs) build-tests
	$(Q)$(test_env) tests/run.sh $(TESTS)

test: ## the fast tests, in minutes; TESTS='unit live' for whole kinds, UPDATE=1 rewrites golden files
	$(Q)$(deps) test
	$(Q)+$(if $(tests_named)$(filter 1,$(SAN) $(STATIC)),$(MAKE) run-tests,$(tier) fast)

test-all: ## every test and check, kernels too (root): an hour on two CPUs
	$(Q)$(deps) check
	$(Q)$(deps) kernels
	$(Q)$(deps) browser
	$(Q)$(deps) monitor
	$(Q)$(deps) package
	$(Q)$(deps) install
	$(Q)+$(tier) all

test-engines: ## the tests that need a whole engine or its code, by npm, cargo and pip (root)
	$(Q)$(deps) test
	$(Q)$(MAKE) $(jobs) TESTS=e2e WERROR=1 O=$(O) build-tests
	$(Q)tests/e2e/ferrum/install.sh >/dev/null
	$(Q)tests/e2e/vllm/install.sh >/dev/null
	$(Q)tests/e2e/transformers/install.sh >/dev/null
	$(Q)$(test_env) tests/run.sh $$(tests/choose.sh engines)

check: ## lint and SAN=1: no root is needed; TIDY=all for clang-tidy on all files
	$(Q)$(deps) check
	$(Q)+tests/sum.sh '$(MAKE) lint' "$(MAKE) SAN=1 TESTS='unit golden' run-tests"

lint: ## formatting, clang-tidy, shellcheck, layers, sizes, headers, man page
	$(Q)$(deps) check
	$(Q)$(MAKE) $(jobs) $(tool) $(skels)
	$(Q)$(test_env) tests/run.sh lint

fmt: ## rewrite the C files with clang-format 14
	$(Q)find include bpf cupti python user vmlinux tests packaging -name '*.[ch]' | xargs clang-format-14 -i

bench: ## what tracing costs here, one JSON line a figure (root); BENCH=loss for a part
	$(Q)$(deps) test
	$(Q)$(MAKE) $(jobs) $(tool) $(engine) $(bench_bin) $(bench_gpu) >&2
	$(Q)$(test_env) tests/bench/run.py $(BENCH)

test-faults: ## faults at length (root): 200 kills, each allocation, a tool that is stopped, CPUs that go
	$(Q)$(deps) test
	$(Q)$(MAKE) $(jobs) build-tests
	$(Q)TEST_LONG=1 $(test_env) tests/faults.sh

soak: ## what comes in 8 hours, without the pauses: memory, files and maps stay flat (root); SOAK_HOURS=2; then watch for WATCH_HOURS=2
	$(Q)$(deps) test
	$(Q)$(MAKE) $(jobs) $(tool) $(engine) $(shim) $(gpu_fakes) $(O)/tests/live_soak_target $(O)/tests/bench_worker
	$(Q)TEST_LONG=1 SOAK_HOURS=$(or $(SOAK_HOURS),8) TEST_SECONDS=7200 $(test_env) tests/run.sh tests/live/soak.sh
	$(Q)TEST_LONG=1 SOAK_HOURS=$(or $(WATCH_HOURS),2) TEST_SECONDS=$$(($(or $(WATCH_HOURS),2) * 3600 + 1800)) $(test_env) tests/run.sh tests/live/watch_soak.sh

demo: ## trace the embedded engine for 5 s: a report, demo_trace.json and demo_profile.jsonl
	$(Q)$(deps) build
	$(Q)$(MAKE) $(jobs) $(tool) $(engine)
	$(Q)$(test_env) tests/demo.sh

demo-gpu: ## the same on a double of CUDA, with GPU records and a Kineto trace
	$(Q)$(deps) build
	$(Q)$(MAKE) $(jobs) $(tool) $(shim) $(gpu_fakes) >&2
	$(Q)$(test_env) tests/demo_gpu.sh

demo-llama: ## the same with llama.cpp, which npm installs (root): llama_trace.json, llama_profile.jsonl
	$(Q)$(deps) test
	$(Q)$(MAKE) $(jobs) $(tool) $(e2e_bin) >&2
	$(Q)$(test_env) tests/show_llama.sh

demo-vllm: ## the same with vLLM on the CPU, which pip installs (root): vllm_trace.json, vllm_profile.jsonl
	$(Q)$(deps) test
	$(Q)$(MAKE) $(jobs) $(tool) $(guest) >&2
	$(Q)tests/e2e/vllm/install.sh >&2
	$(Q)$(test_env) tests/show_vllm.sh

include tests/fuzz/fuzz.mk tests/kernels/kernels.mk packaging/packaging.mk

# One entry of compile_commands.json: file, command.
define compile_command
  {"directory": "$(CURDIR)", "file": "$(1)", "command": "$(subst ",\",$(2)) -c $(1)"}
endef
comma := ,

define compile_commands
[
$(foreach file,$(user_src) $(unit_src),$(call compile_command,$(file),$(cc) $(cflags) -Icupti $(if $(filter %/version.c,$(file)),-DFBT_VERSION=0))$(comma)
)$(foreach file,$(shim_src),$(call compile_command,$(file),$(cc) $(shim_cflags))$(comma)
)$(foreach file,$(live_src) $(e2e_src) $(filter-out $(bench_bpf),$(bench_src)) $(wildcard tests/fake/*.c),$(call \
	compile_command,$(file),$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -I$(O)/tests)$(comma)
)$(foreach file,$(bpf_src) $(bench_bpf),$(call compile_command,$(file),$(CLANG) -target bpf -mcpu=v3 \
	-D__TARGET_ARCH_$(bpf_arch) -O2 -g -Iinclude -Ivmlinux)$(comma)
)  {"directory": "$(CURDIR)", "file": "include/fbt_event.h", "command": "$(cc) -Iinclude -c include/fbt_event.h"}
]
endef

compile_commands.json: FORCE ## for clangd and clang-tidy
	$(call msg,GEN,$@)
	$(file >$@,$(compile_commands))

FORCE:
.PHONY: all help deps clean build-tests run-tests test test-all test-engines check lint fmt bench demo demo-gpu demo-llama demo-vllm gpu-kit soak test-faults FORCE

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The whole build. `make help` lists the targets.

CC            ?= gcc
CLANG         ?= clang
BPFTOOL       ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
PKG_CONFIG    ?= pkg-config
prefix        ?= /usr/local
DESTDIR       ?=
ARCH          ?= $(shell uname -m | sed 's/aarch64/arm64/')
CROSS_COMPILE ?=
SYSROOT       ?=
V             ?= 0
SAN           ?= 0
STATIC        ?= 0
WERROR        ?= 0
VERSION       := 0.1.0

ifeq ($(origin CC),default)
CC := gcc
endif
cc := $(CROSS_COMPILE)$(CC)$(SYSROOT:%= --sysroot=%)
ar := $(CROSS_COMPILE)ar

variant := $(ARCH)-$(notdir $(CC))$(if $(filter 1,$(SAN)),-san)$(if $(filter 1,$(STATIC)),-static)$(if $(filter 1,$(WERROR)),-werror)
O ?= build/$(variant)

ifeq ($(V),1)
Q :=
msg = @true
else
Q := @
msg = @printf '  %-8s %s\n' "$(1)" "$(patsubst $(O)/%,%,$(2))"
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
            -Wno-unused-parameter
CFLAGS   ?= -O2 -g
cflags   := -std=gnu11 -D_GNU_SOURCE -DFBT_VERSION='"$(VERSION)"' $(warnings) -fno-strict-aliasing \
            -fstack-protector-strong -Iinclude -Iuser -I$(O) $(CFLAGS)
ldflags  := $(LDFLAGS)
libs     := -lbpf -lelf -lz -ljson-c -lcapstone -liberty -lcrypto -lcap-ng -lseccomp

ifeq ($(SAN),1)
san      := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
cflags   += $(san)
ldflags  += $(san)
endif
ifeq ($(WERROR),1)
cflags   += -Werror
bpf_werror := -Werror
endif
# libcurl is loaded when --otlp asks for it: only its header is needed here.
ifeq ($(STATIC),1)
cflags   += -DFBT_WITHOUT_CURL
ldflags  += -static
libs     := -lbpf -lelf -lz -ljson-c -lcapstone -liberty -lcrypto -lcap-ng -lseccomp -lm
else
libs     += -lm -ldl
endif

user_src := $(sort $(wildcard user/*.c))
lib_src  := $(filter-out user/main.c,$(user_src))
lib_obj  := $(lib_src:%.c=$(O)/%.o)
tool     := $(O)/ferrum-bpftrace
shim_src := $(sort $(wildcard cupti/*.c))
shim     := $(O)/libferrum_cupti.so
shim_lib := $(O)/libferrum_cupti_test.a
stub     := $(O)/inject_code.h
engine   := $(O)/tests/engine

# Doubles of CUDA and CUPTI, three releases of that, and an engine on them.
fake_cuda  := $(O)/tests/libcuda.so.1
fake_cupti := $(O)/tests/libcupti.so.13 $(O)/tests/libcupti.so.12 $(O)/tests/libcupti.so.11.8
gpu_engine := $(O)/tests/gpu_engine
gpu_fakes  := $(fake_cuda) $(fake_cupti) $(gpu_engine)

# A program that watches over itself while it is injected, and what is injected.
inject_fakes := $(O)/tests/inject_target $(O)/tests/inject_probe.so

unit_src := $(sort $(wildcard tests/unit/*_test.c))
unit_bin := $(unit_src:tests/unit/%.c=$(O)/tests/%)
bpf_src  := $(sort $(wildcard bpf/*.bpf.c))
skels    := $(bpf_src:bpf/%.bpf.c=$(O)/%.skel.h)

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

all: deps $(tool) $(shim) $(engine) ## build the tool, the CUPTI shim and the embedded engine

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9_.-]+:.*## / {printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo '  V=1 commands shown   SAN=1 ASan + UBSan   STATIC=1 one static file   WERROR=1'
	@echo '  O=DIR  CC=clang  ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- SYSROOT=DIR  DESTDIR= prefix='

deps: ## install the Debian packages that are missing (needs root; else names them)
	$(Q)packaging/deps.sh build

# --- BPF ---------------------------------------------------------------------------------------

bpf_sys_includes = $(shell $(CLANG) -v -E - </dev/null 2>&1 | sed -n '/<...> search starts here:/,/End of search list./{s| \(/.*\)|-idirafter \1|p}')

$(O)/%.bpf.o: bpf/%.bpf.c | $(O)
	$(call msg,BPF,$@)
	$(Q)$(CLANG) -target bpf -mcpu=v3 -D__TARGET_ARCH_$(bpf_arch) -O2 -g -Wall -Wextra -Wno-unused-parameter \
		$(bpf_werror) -Iinclude -Ivmlinux $(bpf_sys_includes) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@.tmp
	$(Q)$(BPFTOOL) gen object $@ $@.tmp && rm -f $@.tmp

$(O)/%.skel.h: $(O)/%.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf > $@

# --- C -----------------------------------------------------------------------------------------

$(O) $(O)/user $(O)/cupti $(O)/cupti/stub $(O)/cupti_test $(O)/tests:
	$(Q)mkdir -p $@

$(O)/user/%.o: user/%.c | $(O)/user $(skels) $(stub)
	$(call msg,CC,$@)
	$(Q)$(cc) $(cflags) -MMD -MP -c $< -o $@

$(O)/libfbt.a: $(lib_obj)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(ar) rcs $@ $^

$(tool): $(O)/user/main.o $(O)/libfbt.a
	$(call msg,LINK,$@)
	$(Q)$(cc) $(cflags) $(ldflags) $^ $(libs) -o $@

# The shim is loaded into processes that are not ours: no sanitizers, nothing bound late, never
# unloaded, and no symbol of theirs or of its own that the other could meet.
shim_cflags := -std=gnu11 -D_GNU_SOURCE $(warnings) -fno-strict-aliasing -fstack-protector-strong \
               -fPIC -fvisibility=hidden -Iinclude $(if $(filter 1,$(WERROR)),-Werror) $(CFLAGS)
shim_ldflags := -shared -Wl,-soname,libferrum_cupti.so -Wl,-z,nodelete,-z,now,-z,relro,-z,defs \
                $(LDFLAGS)

$(O)/cupti/%.o: cupti/%.c | $(O)/cupti
	$(call msg,CC,$@)
	$(Q)$(cc) $(shim_cflags) -MMD -MP -c $< -o $@

$(shim): $(shim_src:cupti/%.c=$(O)/cupti/%.o)
	$(call msg,LINK,$@)
	$(Q)$(cc) $(shim_cflags) $(shim_ldflags) $^ -lpthread -ldl -o $@

# What --gpu=inject writes into a process: bytes that run at any address. x86-64 only.
stub_cflags := -std=gnu11 $(warnings) -Os -fPIC -ffreestanding -fno-builtin -mgeneral-regs-only \
               -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables -Iinclude \
               $(if $(filter 1,$(WERROR)),-Werror)

ifeq ($(ARCH),x86_64)
stub_obj   := $(O)/cupti/stub/stub.o $(O)/cupti/stub/helper.o
stub_link   = $(cc) -nostdlib -static -Wl,--build-id=none -Wl,-T,cupti/stub/stub.lds \
              $(stub_obj) -o $@.elf && $(CROSS_COMPILE)objcopy -O binary -j .stub $@.elf $@
else
stub_link   = : > $@
endif

$(O)/cupti/stub/%.o: cupti/stub/%.c | $(O)/cupti/stub
	$(call msg,CC,$@)
	$(Q)$(cc) $(stub_cflags) -MMD -MP -c $< -o $@

$(O)/cupti/stub/%.o: cupti/stub/%.S | $(O)/cupti/stub
	$(call msg,AS,$@)
	$(Q)$(cc) $(stub_cflags) -MMD -MP -c $< -o $@

$(O)/cupti/stub.bin: $(stub_obj) cupti/stub/stub.lds | $(O)/cupti/stub
	$(call msg,LINK,$@)
	$(Q)$(stub_link)

$(stub): $(O)/cupti/stub.bin
	$(call msg,GEN,$@)
	$(Q){ echo 'static const unsigned char inject_code[] = {'; \
		od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g'; echo '};'; } > $@

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

$(O)/tests/%_test: tests/unit/%_test.c $(O)/libfbt.a | $(O)/tests
	$(call msg,TEST,$@)
	$(Q)$(cc) $(cflags) $(ldflags) -MMD -MP $< $(O)/libfbt.a $(libs) -lcmocka -o $@

# Those of the shim: of its objects, and of the library as it is loaded.
$(O)/tests/cupti_%_test: tests/unit/cupti_%_test.c $(O)/libfbt.a $(shim_lib) $(shim) | $(O)/tests
	$(call msg,TEST,$@)
	$(Q)$(cc) $(cflags) -Icupti $(ldflags) -MMD -MP $< $(shim_lib) $(O)/libfbt.a $(libs) -lpthread -lcmocka -o $@

-include $(shell find $(O) -name '*.d' 2>/dev/null)

clean: ## remove what was built
	$(Q)rm -rf build compile_commands.json

# --- tests and checks ----------------------------------------------------------------------------

TESTS  ?= unit golden live e2e
UPDATE ?=

jobs     = $(if $(filter 1,$(V)),,-s) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
test_env := FBT_BUILD=$(O) FBT=$(tool) FBT_ENGINE=$(engine) UPDATE=$(UPDATE) V=$(V) CC='$(cc)' CLANG=$(CLANG)

live_src  := $(sort $(wildcard tests/live/*.c))
live_bin  := $(live_src:tests/live/%.c=$(O)/tests/live_%)
e2e_src   := $(sort $(wildcard tests/e2e/*.c))
e2e_bin   := $(e2e_src:tests/e2e/%.c=$(O)/tests/e2e_%.so)
bench_src := $(sort $(wildcard tests/bench/*.c))
bench_bpf := $(filter %.bpf.c,$(bench_src))
bench_so  := tests/bench/cupti_double.c
bench_bin := $(patsubst tests/bench/%.c,$(O)/tests/bench_%,$(filter-out $(bench_bpf) $(bench_so),$(bench_src)))
bench_gpu := $(O)/tests/live_load $(inject_fakes) $(shim) $(O)/tests/bench_cupti.so $(O)/tests/gpu_fake_engine $(gpu_fakes)

# tests/gpu: what reads a shim there, and what stands for a GPU here.
gpu_bin   := $(O)/tests/gpu_arm $(O)/tests/gpu_results
gpu_trial := $(shim) $(gpu_bin) $(O)/tests/gpu_fake_engine

# What the tests of $(TESTS) run.
test_bin := $(tool) $(engine) $(if $(filter unit,$(TESTS)),$(unit_bin)) \
            $(if $(filter live,$(TESTS)),$(live_bin)) $(if $(filter e2e,$(TESTS)),$(e2e_bin)) \
            $(if $(filter unit live,$(TESTS)),$(gpu_fakes)) $(if $(filter live,$(TESTS)),$(gpu_trial)) \
            $(if $(filter unit live e2e,$(TESTS)),$(inject_fakes)) \
            $(if $(filter live e2e,$(TESTS)),$(O)/tests/live_inject_drive)

$(O)/tests/live_%: tests/live/%.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -MMD -MP $< -lbpf -lpthread -ldl -o $@

# It does what the tool's child does.
$(O)/tests/live_inject_drive: tests/live/inject_drive.c $(O)/libfbt.a | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) $(cflags) $(ldflags) -MMD -MP $< $(O)/libfbt.a $(libs) -o $@

$(O)/tests/inject_target: tests/fake/inject_target.c | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -std=gnu11 -D_GNU_SOURCE $(warnings) -O2 -g -MMD -MP $< -lpthread -lm -o $@

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
$(patsubst %,$(O)/tests/bench_%,inject judge merge shim): $(O)/tests/bench_%: tests/bench/%.c $(O)/libfbt.a | $(O)/tests
	$(call msg,CC,$@)
	$(Q)$(cc) -I$(O)/tests $(cflags) $(ldflags) -MMD -MP $< $(O)/libfbt.a $(libs) -o $@

$(O)/tests/bench_inject: $(O)/tests/bench_away.skel.h

# What tests/gpu/run.sh needs, in one folder for a machine with a GPU: of STATIC=1 it runs anywhere.
# Where there is no nvcc the CUDA engine is left out: run.sh builds it there, or takes PyTorch.
nvcc     := $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc 2>/dev/null) \
            $(wildcard /usr/local/cuda/bin/nvcc))
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

$(O)/tests/gpu_engine_cuda: tests/gpu/engine.cu | $(O)/tests
	$(call msg,NVCC,$@)
	$(Q)$(nvcc) -O2 -arch=$(gpu_arch) -Xcompiler -static-libgcc,-static-libstdc++ $< -o $@ -ldl

gpu-kit: deps ## what measures the GPU side on a machine with a GPU, see tests/gpu/README.md; with STATIC=1
	$(Q)$(MAKE) $(jobs) $(tool) $(shim) $(gpu_bin) $(O)/tests/libgpu_step.so \
		$(if $(nvcc),$(O)/tests/gpu_engine_cuda)
	$(Q)rm -rf $(gpu_kit) && mkdir $(gpu_kit)
	$(Q)cp $(tool) $(shim) $(gpu_bin) $(O)/tests/libgpu_step.so tests/gpu/run.sh \
		tests/gpu/decode.py tests/gpu/step.c tests/gpu/engine.cu tests/gpu/README.md $(gpu_kit)
	$(Q)$(if $(nvcc),cp $(O)/tests/gpu_engine_cuda $(gpu_kit)/engine,true)
	$(Q)tar -C $(O) -czf $(O)/gpu-kit.tar.gz gpu-kit
	@echo $(O)/gpu-kit.tar.gz

build-tests: $(test_bin)

run-tests:
	$(Q)$(MAKE) $(jobs) build-tests
	$(Q)$(test_env) tests/run.sh $(TESTS)

test: ## every test this machine can run; TESTS='unit live' for some, UPDATE=1 rewrites golden files
	$(Q)packaging/deps.sh test
	$(Q)$(MAKE) run-tests

check: ## lint, then gcc and clang with -Werror and SAN=1: build, unit and golden tests
	$(Q)packaging/deps.sh check
	$(Q)+tests/sum.sh '$(MAKE) lint' \
		"$(MAKE) CC=gcc WERROR=1 TESTS='unit golden' run-tests" \
		"$(MAKE) CC=clang WERROR=1 TESTS='unit golden' run-tests" \
		"$(MAKE) CC=gcc SAN=1 TESTS='unit golden' run-tests" \
		'$(MAKE) fuzz-corpus'

lint: ## formatting, clang-tidy, shellcheck, layers, sizes, headers, man page
	$(Q)packaging/deps.sh check
	$(Q)$(MAKE) $(jobs) $(tool) $(skels)
	$(Q)$(test_env) tests/run.sh lint

fmt: ## rewrite the C files with clang-format 14
	$(Q)find include bpf cupti user vmlinux tests -name '*.[ch]' | xargs clang-format-14 -i

bench: ## what tracing costs here, one JSON line a figure (root); BENCH=loss for a part
	$(Q)packaging/deps.sh test
	$(Q)$(MAKE) $(jobs) $(tool) $(engine) $(bench_bin) $(bench_gpu) >&2
	$(Q)$(test_env) tests/bench/run.py $(BENCH)

test-faults: ## faults at length (root): 200 kills, each allocation, a tool that is stopped, CPUs that go
	$(Q)packaging/deps.sh test
	$(Q)$(MAKE) $(jobs) build-tests
	$(Q)$(test_env) tests/faults.sh

soak: ## what comes in 8 hours, without the pauses: memory, files and maps stay flat (root); SOAK_HOURS=2
	$(Q)packaging/deps.sh test
	$(Q)$(MAKE) $(jobs) $(tool) $(engine) $(shim) $(gpu_fakes) $(O)/tests/live_soak_target
	$(Q)SOAK_HOURS=$(or $(SOAK_HOURS),8) TEST_SECONDS=7200 $(test_env) tests/run.sh tests/live/soak.sh

demo: ## trace the embedded engine for 5 s: a report, demo_trace.json and demo_profile.jsonl
	$(Q)packaging/deps.sh build
	$(Q)$(MAKE) $(jobs) $(tool) $(engine)
	$(Q)$(test_env) tests/demo.sh

demo-gpu: ## the same on a double of CUDA, with GPU records and a Kineto trace
	$(Q)packaging/deps.sh build
	$(Q)$(MAKE) $(jobs) $(tool) $(shim) $(gpu_fakes) >&2
	$(Q)$(test_env) tests/demo_gpu.sh

demo-llama: ## the same with llama.cpp, which npm installs (root): llama_trace.json, llama_profile.jsonl
	$(Q)packaging/deps.sh test
	$(Q)$(MAKE) $(jobs) $(tool) $(e2e_bin) >&2
	$(Q)$(test_env) tests/show_llama.sh

install: $(tool) $(shim) ## install the tool, the shim and the man page under DESTDIR and prefix
	$(call msg,INSTALL,$(DESTDIR)$(prefix))
	$(Q)install -D -m 755 $(tool) $(DESTDIR)$(prefix)/bin/ferrum-bpftrace
	$(Q)install -D -m 755 $(shim) $(DESTDIR)$(prefix)/lib/ferrum-bpftrace/libferrum_cupti.so
	$(Q)install -D -m 644 user/ferrum-bpftrace.8 $(DESTDIR)$(prefix)/share/man/man8/ferrum-bpftrace.8

include tests/fuzz/fuzz.mk tests/kernels/kernels.mk

# One entry of compile_commands.json: file, command.
define compile_command
  {"directory": "$(CURDIR)", "file": "$(1)", "command": "$(subst ",\",$(2)) -c $(1)"}
endef
comma := ,

define compile_commands
[
$(foreach file,$(user_src) $(unit_src),$(call compile_command,$(file),$(cc) $(cflags) -Icupti)$(comma)
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
.PHONY: all help deps clean build-tests run-tests test check lint fmt bench demo demo-gpu demo-llama gpu-kit soak test-faults install FORCE

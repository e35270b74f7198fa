# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The live tests on kernels of Debian releases, under qemu.

# Packages are kept between runs, also of other trees; here if there is no such place.
kernels_cache ?= $(shell dir=$${XDG_CACHE_HOME:-$$HOME/.cache}/ferrum-bpftrace/kernels; \
                   mkdir -p "$$dir" 2>/dev/null && [ -w "$$dir" ] && echo "$$dir" || echo build/kernels)
kernels_build ?= build/$(ARCH)-gcc-static

test-kernels: ## boot Debian's kernels under qemu, with the live tests; KERNELS='6.1 6.12' for some
	$(Q)$(deps) kernels $(ARCH)
	$(Q)$(MAKE) $(jobs) STATIC=1 TESTS=live O=$(kernels_build) build-tests
	$(Q)CC='$(cc)' tests/kernels/run.sh $(ARCH) $(kernels_build) $(kernels_cache)

# Debian's libraries of arm64 as data: nothing is installed for another architecture.
test-kernels-arm64: ## the same on kernels of arm64, emulated, with the tool cross-built for them
	$(Q)$(deps) kernels arm64
	$(Q)+sysroot=$$(tests/kernels/fetch.sh root arm64 bookworm tests/kernels/arm64_sysroot.txt \
		$(kernels_cache)/sysroot) && \
		KERNEL_SECONDS=$${KERNEL_SECONDS:-1800} \
		$(MAKE) ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- SYSROOT=$$sysroot test-kernels

.PHONY: test-kernels test-kernels-arm64

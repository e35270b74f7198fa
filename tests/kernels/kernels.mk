# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The live tests on kernels of Debian releases, under qemu.

# Kept between runs: packages, and the guest's files.
kernels_cache ?= build/kernels
kernels_build ?= build/$(ARCH)-gcc-static

test-kernels: ## boot Debian's kernels under qemu, with the live tests; KERNELS='6.1 6.12' for some
	$(Q)packaging/deps.sh kernels
	$(Q)$(MAKE) $(jobs) STATIC=1 TESTS=live O=$(kernels_build) build-tests
	$(Q)CC=$(cc) tests/kernels/run.sh $(ARCH) $(kernels_build) $(kernels_cache)

.PHONY: test-kernels

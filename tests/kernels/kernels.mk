# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The live tests on kernels of Debian releases, under qemu.

"""Passes that decide which ops share a kernel: segments, and pairs of kernels that become one."""

"""Measures layouts of disk-io on real kernels of this machine: User-Mode Linux, with real md and dm devices."""

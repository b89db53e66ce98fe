#!/bin/sh
# The first process of the kernel. The root is the machine's own, so memory covers every folder that is written to.
. "$STORAGE_ENVIRONMENT"
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t tmpfs tmp /mnt && mount -t tmpfs run /run
mount -t devtmpfs dev /dev 2>/dev/null
mkdir /mnt/cgroup && mount -t cgroup2 none /mnt/cgroup && echo "+io +memory" > /mnt/cgroup/cgroup.subtree_control
modprobe xfs
modprobe md-mod # raid0 does not load it here
cd "$STORAGE_HOME" && "$STORAGE_PYTHON" -m local.storage.node "$STORAGE_HOME"
halt -f

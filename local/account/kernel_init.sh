#!/bin/sh
# The first process of an instance's kernel. The root is the machine's own, so memory covers /run.
. "$NODE_HOME/kernel/environment"
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t tmpfs run /run && mount -t devtmpfs dev /dev
ln -s /proc/self/fd /dev/fd
for interface in all vec1; do # addresses of 127.0.0.0/8 are elsewhere, too
    echo 1 > "/proc/sys/net/ipv4/conf/$interface/route_localnet"
    echo 1 > "/proc/sys/net/ipv4/conf/$interface/accept_local"
    echo 0 > "/proc/sys/net/ipv4/conf/$interface/rp_filter"
done
ip -batch "$NODE_HOME/kernel/network" || halt -f
# A write has reached the disk when it ends, as on EBS.
echo "write through" > /sys/block/ubda/queue/write_cache
modprobe -d "$NODE_HOME/kernel" xfs && mkfs.xfs -q -f /dev/ubda && mount /dev/ubda "$NODE_HOME/shared" || halt -f
[ -z "$ROOM" ] || exec "$ROOM" -IS "${0%/*}/inside/room.py"
export MODPROBE_OPTIONS="-d $NODE_HOME/kernel" # the machine's own folder has no modules of this kernel
cd "$NODE_HOME" && ./user-data < /dev/null || halt -f
exec sleep infinity

# The guest's first script, run by its /bin/sh as process 1 with the run directory
# already mounted at /run/linklab/run: mounts what a Linux system expects, then
# does what the run directory's `guest-command` says. That powers the guest off;
# coming back from it means that it failed to start, and the kernel panics.
set -eu
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd
ln -s pts/ptmx /dev/ptmx 2>/dev/null || true
mkdir -p /run/linklab/host /run/netns /run/lock
mount -t hostfs -o ro none /run/linklab/host -o /
mount -t tmpfs -o mode=1777,size=95% tmpfs /tmp
. /run/linklab/run/guest-command

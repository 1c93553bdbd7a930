# The guest's first script, run by the image's /bin/sh as process 1 with memory at /run and the
# run directory already mounted at /run/linklab/run: mounts what a Linux system expects, and the
# host's files at /host, then does what the run directory's `guest-command` says. That powers the
# guest off; coming back from it means that it failed to start, and the kernel panics.
set -eu
mount -t proc proc /proc
mount -o remount,size=95% /run

# /tmp, /dev/shm and /run show the host's files and can be written: memory lies over them.
cd /run/linklab
mkdir -p new over/tmp/work over/dev/shm/work over/run/work over/none \
  over/run/upper/linklab/run over/run/upper/linklab/home over/run/upper/lock over/run/upper/netns
mkdir -m 1777 over/tmp/upper over/dev/shm/upper
mount -n -t hostfs -o ro none /host -o /
over() { # DIRECTORY PLACE: a line of fstab(5)
  lower=/host/$1
  [ -d "$lower" ] || lower=$PWD/over/none
  echo "$1 $2 overlay X-mount.mkdir,lowerdir=$lower,upperdir=$PWD/over/$1/upper,workdir=$PWD/over/$1/work"
}
{
  echo sysfs /sys sysfs
  echo devtmpfs /dev devtmpfs
  echo devpts /dev/pts devpts X-mount.mkdir,gid=5,mode=620,ptmxmode=666
  over tmp /tmp
  over dev/shm /dev/shm
  over run "$PWD/new"
} > fstab
mount --all --fstab fstab
ln -s /proc/self/fd /dev/fd
ln -s pts/ptmx /dev/ptmx 2>/dev/null || true
mount -n --move run new/linklab/run
mount -n --move new /run

# For the user's own programs, whose root is /host, these are the same.
for place in proc sys dev tmp run; do
  mount -n --rbind /$place /host/$place
done
. /run/linklab/run/guest-command

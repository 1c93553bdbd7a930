# Is the emulated machine's first program: holds guests, one after the other. The image's dash reads it.
#
# /run/desk is a directory of the host with this file (as `machine`), `job.sh` for the next guest, and the guest's
# run directory `run`. A line on the channel starts the next job. The answer is a line at its end.
# The root is the image.

mount -t devtmpfs dev /dev
mount -t proc proc /proc
exec 3<>/dev/vport0p1
mkdir /run/host
share() { # TAG PLACE OPTIONS
  mount -t 9p -o "trans=virtio,version=9p2000.L,msize=512000,access=any,$3" "$1" "$2"
}

# job DESK IMAGE MEMORY-DIRECTORY COMMAND...: the paths are the host's.
job() {
  desk=/run/host$1 memory=/run/host$3
  share host /run/host ro,cache=loose # Anew for each guest: the host's files may have changed.
  mount --bind / "/run/host$2"        # Without the mounts below the image.
  mount --bind /run/desk "$desk"
  mount -t proc proc /run/host/proc
  mount -t tmpfs -o mode=1777,size=100% tmpfs "$memory"
  (
    work=$1/run root=/run/host$2 scratch=$3
    shift 3
    exec env -i "HOME=$scratch" "TMPDIR=$scratch" PATH=/usr/bin unshare --root=/run/host \
      --wd="$work" "$@" 9<"$root" </dev/null >>/run/desk/run/console.log 2>&1 3>&-
  ) || true
  kill -KILL -1 || true # What the guest has left, but neither this process nor the first program.
  umount "$memory" /run/host/proc "$desk" "/run/host$2" /run/host
}

# When linklab ends, so does the channel. Then this program ends, and with it the machine.
while read -r _ <&3; do
  (
    trap 'echo failed >&3' EXIT
    . /run/desk/job.sh
    trap - EXIT
    echo ended >&3
  ) &
done

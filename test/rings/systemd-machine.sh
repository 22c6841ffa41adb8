#!/usr/bin/env bash
# usage: systemd-machine.sh FOLDER CHECKOUT NODE
#
# A machine of its own that systemd starts as its first process: everything of this one read-only, with what is written
# kept in memory below FOLDER, processes, network, names and control groups of its own. In it the checkout is /opt/svc and
# Node /opt/node, where every user can read them. Nothing that is configured on this machine is started there. It goes on
# until it is killed. Root only.
set -eu
folder=$1 checkout=$2 node=$3
group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/svc-machine-$$
mkdir "$group"
echo $$ >"$group/cgroup.procs"
echo "$group" >"$folder/group"
export folder checkout node
exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child bash -euc '
mount --make-rprivate /
mount -t tmpfs -o size=512m none "$folder"
mkdir "$folder"/{upper,work,root,upper2,work2}
mount -t overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" none "$folder/root"
cd "$folder/root"
mount -t proc none proc
mount -t sysfs none sys
mount -t cgroup2 none sys/fs/cgroup
for path in run tmp root etc/systemd/system; do mount -t tmpfs -o mode=755 none $path; done
chmod 1777 tmp
mount -t tmpfs -o mode=755 none dev
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 none dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mkdir -p opt/svc old var/log etc/polkit-1/rules.d
mount -t overlay -o "lowerdir=$checkout,upperdir=$folder/upper2,workdir=$folder/work2" none opt/svc
chmod 755 opt/svc
touch opt/node
mount --bind "$node" opt/node
rm -rf var/log/journal etc/svc var/lib/svc etc/polkit-1/rules.d/* etc/sysusers.d/svc.conf
sed -i "/^svc:/d" etc/passwd etc/group etc/shadow etc/gshadow
hostname machine
pivot_root . old
cd /
umount -l old
ip link set lo up
exec env -i container=svc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=basic.target --show-status=no --log-target=journal
'

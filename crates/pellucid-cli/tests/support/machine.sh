#!/bin/bash
# A machine for the steps of the guide: machine.sh NAME NETWORK SOURCE PACKAGE BUILT, as root in new namespaces
# (mount, uts, ipc, net, pid). Its shell reads commands from standard input.
#
# The root is this system under an overlay in memory, so nothing of it is changed. Homes, /srv, /var, /usr/local and
# /dev are its own; what a system has of Pellucid already is taken out. NETWORK is a directory that all machines of a
# page share: their homes lie there, which is all that `scp` needs.
set -eu
name=$1 network=$2 source=$3 package=$4 built=$5

mount --make-rprivate /
base=$(mktemp -d "$network/.$name.XXXX")
mount -t tmpfs tmpfs "$base"
mkdir "$base/upper" "$base/work" "$base/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$base/root"
root=$base/root

mkdir -p "$network/$name/root" "$network/$name/home"
chmod 700 "$network/$name/root"
# A name more, not a copy: four pages at once have a dozen machines, and built for tests it has some 200 MB.
ln "$package" "$network/$name/root/"
for directory in usr/local srv run mnt dev tmp; do mount -t tmpfs -o mode=755 tmpfs "$root/$directory"; done
chmod 1777 "$root/tmp"
for directory in root home; do mount --bind "$network/$name/$directory" "$root/$directory"; done
mkdir "$root/run/network" "$root/run/lock" "$root/mnt/host" "$root/usr/local/bin" "$root/usr/local/src"
mount --bind "$network" "$root/run/network"

# What `make build` leaves, for `make install`.
tree=$root/usr/local/src/pellucid
mkdir -p "$tree/target/release"
mkdir -p "$tree/packaging"
cp -r "$source"/{Makefile,README.md,SECURITY.md,CHANGELOG.md,docs} "$tree/"
cp "$source/packaging/documents" "$tree/packaging/"
for file in pellucid libpellucid.so lab pellucid-plugin-{pkcs11,tpm}; do
  touch "$tree/target/release/$file"
  mount --bind -o ro "$built/$file" "$tree/target/release/$file"
done

mount -t proc proc "$root/proc"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm"
chmod 1777 "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"

# FILE... MACHINE:[PATH BELOW THE HOME DIRECTORY]
cat >"$root/usr/local/bin/scp" <<'SCP'
#!/bin/sh
for last; do :; done
machine=${last%%:*} home=/run/network/${last%%:*}${HOME}
[ "$machine" != "$last" ] && [ -d "$home" ] || { echo "scp: no machine for $last" >&2; exit 1; }
while [ $# -gt 1 ]; do
  cp -p -- "$1" "$home/${last#*:}" || exit 1
  shift
done
SCP
chmod 755 "$root/usr/local/bin/scp"

cd "$root"
pivot_root . mnt/host
cd /
umount -l /mnt/host
hostname "$name"
rm -rf /usr/bin/pellucid /usr/lib/pellucid /etc/pellucid /etc/pellucid.conf /var/lib/pellucid
for user in ada notes; do userdel "$user" 2>/dev/null || true; done
groupdel pellucid 2>/dev/null || true
useradd --create-home --shell /bin/bash ada
chmod 700 /home/ada
# Not worth the time here: the index of all manual pages anew, and files brought to a disk that is memory.
rm -f /var/lib/man-db/auto-update
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/machine
cd /root
exec env -i HOME=/root USER=root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM=dumb \
  bash --noprofile --norc

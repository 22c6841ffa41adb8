#!/usr/bin/env bash
# usage: install-packages.sh [docker|podman|registry|speech|bench|browser|mdns|systemd|clock|kubernetes|all ...]     (default: all)
#
# Installs from Debian's packages what a group needs and this machine lacks, starting no service.
#   docker    docker.io iptables debootstrap
#   podman    podman runc conmon slirp4netns catatonit
#   registry  docker-registry
#   speech    espeak-ng lame sox
#   bench     nginx wrk
#   browser   chromium
#   mdns      avahi-daemon avahi-utils iproute2
#   systemd   systemd dbus polkitd
#   clock     libfaketime
#   kubernetes
#             containerd runc containernetworking-plugins iptables busybox-static openssl curl bc zstd
# With everything there already it does not touch apt.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

declare -A packages=(
  [docker]='docker.io iptables debootstrap'
  [podman]='podman runc conmon slirp4netns catatonit'
  [registry]=docker-registry
  [speech]='espeak-ng lame sox'
  [bench]='nginx wrk'
  [browser]=chromium
  [mdns]='avahi-daemon avahi-utils iproute2'
  [systemd]='systemd dbus polkitd'
  [clock]=libfaketime
  [kubernetes]='containerd runc containernetworking-plugins iptables busybox-static openssl curl bc zstd'
)

[ $# -gt 0 ] || set -- all
wanted=''
for group in "$@"; do
  case $group in
    -h | --help) usage; exit 0 ;;
    all) wanted+=" ${packages[*]}" ;;
    *) wanted+=" ${packages[$group]-}"; [ -n "${packages[$group]-}" ] || wrong_usage "no group '$group'" ;;
  esac
done

missing=()
for package in $wanted; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

need_root
need_command apt-get docker

# policy-rc.d is Debian's switch for "do not start services on install". One that already says so stays;
# any other is put back afterwards.
policy=/usr/sbin/policy-rc.d saved=/usr/sbin/policy-rc.d.svc-test-saved
restore_policy() {
  rm -f "$policy"
  [ ! -e "$saved" ] || mv "$saved" "$policy"
}
code=0
"$policy" docker start 2>/dev/null || code=$?
if [ "$code" != 101 ]; then
  [ ! -e "$policy" ] || mv "$policy" "$saved"
  trap restore_policy EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

log "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
install() { apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >&2; }
install || {
  log "trying once more with fresh package lists"
  apt-get update -q >&2
  install || die "apt-get could not install ${missing[*]}; its own words are above"
}

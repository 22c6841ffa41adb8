#!/usr/bin/env bash
# Shared by the image scripts: sourced, never run.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

images=$engines_dir/images

# image_args DEFAULT_TAG "$@": reads [--host DOCKER_HOST] [--tag TAG] into $tag and the docker client's environment;
# ends the script when that engine has the image.
image_args() {
  tag=$1
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) usage; exit 0 ;;
      --host) DOCKER_HOST=${2:?--host needs an address such as unix:///path}; shift ;;
      --tag) tag=${2:?--tag needs a name}; shift ;;
      *) wrong_usage "what is '$1'?" ;;
    esac
    shift
  done
  [ -n "${DOCKER_HOST:-}" ] || eval "$("$here/docker.sh" env)"
  export DOCKER_HOST
  need_command docker docker
  timeout 20 docker version >/dev/null 2>&1 || die "no engine answers at $DOCKER_HOST; run $here/docker.sh start"
  ! present || exit 0
  lock "$images"
  ! present || exit 0 # made by another run while this one waited
}

# pull_upstream IMAGE: tags it as $tag; fails where it cannot be had.
pull_upstream() {
  timeout 5 docker manifest inspect "$1" >/dev/null 2>&1 || return 1
  log "pulling $1"
  timeout 300 docker pull --quiet "$1" >&2 && docker tag "$1" "$tag"
}

present() { docker image inspect "$tag" >/dev/null 2>&1; }

# The mirror that this machine's own apt sources name, the one of whole suites rather than of security updates.
debian_mirror() {
  # shellcheck disable=SC2016 # apt fills these in
  apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
    awk -F'|' '$1 == "Debian" && $2 == "Debian" && !found++ { print $3 }'
}

# debian_root FILE SUITE PACKAGE,PACKAGE: a small Debian with these packages as a tarball, made once (with the lock held).
debian_root() {
  local mirror root=$images/root log_file=$1.log
  [ ! -s "$1" ] || return 0
  need_root
  need_command debootstrap docker
  mirror=${SVC_TEST_DEBIAN_MIRROR:-$(debian_mirror)}
  [ -n "$mirror" ] || die "apt's sources name no Debian mirror; run apt-get update, or export SVC_TEST_DEBIAN_MIRROR=http://..."
  log "making $1 ($2 with ${3//,/, })"
  trap 'rm -rf --one-file-system "$images/root"' EXIT
  rm -rf --one-file-system "$images/root"
  # In a mount namespace of its own what it mounts is gone with it, however it ends.
  unshare --mount debootstrap --variant=minbase --include="$3" "$2" "$root" "$mirror" >"$log_file" 2>&1 ||
    die_with_log "debootstrap failed"
  tar -C "$root" --numeric-owner --exclude='./dev/*' --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
    --exclude='./var/log/*' --exclude='./usr/share/doc/*' --exclude='./usr/share/info/*' \
    --exclude='./usr/share/locale/*' --exclude='./usr/share/man/*' -cf "$1.part" .
  mv "$1.part" "$1"
}

load() { # FILE [IMPORT_OPTION...]
  local file=$1
  shift
  log "loading $tag into $DOCKER_HOST"
  docker import "$@" - "$tag" <"$file" >/dev/null
}

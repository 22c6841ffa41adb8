#!/usr/bin/env bash
# usage: podman.sh start|stop|status|env [--dir DIR]
#
# A Podman service (the Docker-compatible API on a unix socket) of our own under DIR (default:
# $SVC_TEST_ENGINES_DIR/podman, else in the user's cache), with its own images, containers and settings.
#   start   starts it, or leaves it running; after a crash it first removes the containers that were left
#   stop    removes its containers and stops it; its images stay
#   status  exit code 0 when it runs, 3 when not
#   env     prints `export SVC_TEST_PODMAN_HOST=...` for eval; the docker client speaks to it too
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
service_args podman "$@"

variable=SVC_TEST_PODMAN_HOST address=unix://$run/podman.sock
pidfile=$run/podman.pid log_file=$dir/podman.log
export CONTAINERS_CONF=$dir/containers.conf CONTAINERS_REGISTRIES_CONF=$dir/registries.conf

# Overlays, where the machine has them: vfs copies the image for every container. Each has a store of its own.
use_storage() { # STORAGE_DRIVER
  driver=$1
  podman=(podman --root "$dir/$driver" --runroot "$run/$driver" --tmpdir "$run/tmp" --storage-driver "$driver")
}
use_storage "$(cat "$dir/driver" 2>/dev/null || echo vfs)"

answers() { timeout 5 podman --remote --url "$address" version >/dev/null 2>&1; }
service_pid() { live_pid "$pidfile" "$run"; }

# runc and cgroupfs: crun refuses machines that mix cgroups v1 and v2, and there may be no systemd.
# The limits: Podman's own defaults ask for more open files than some machines allow.
write_settings() {
  mkdir -p "$dir" "$run"
  cat >"$CONTAINERS_CONF" <<END
[containers]
default_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
runtime = "runc"
[network]
network_config_dir = "$dir/networks"
END
  cat >"$CONTAINERS_REGISTRIES_CONF" <<END
[[registry]]
location = "127.0.0.1"
insecure = true
END
}

# For each `/info` Podman asks the machine's package manager of which packages its helpers are, a quarter of a second of the
# processor, and clients ask for it whenever they connect. Here it is told at once that nobody knows.
# shellcheck disable=SC2016 # for the shell in the namespace
unpackaged='[ ! -e /usr/bin/dpkg-query ] || mount --bind /bin/false /usr/bin/dpkg-query; exec "$@"'

# Not through the service: after a crash as well, addresses and runc's state are to be freed. Podman refuses to
# remove a container that ends at that moment; a second try works.
remove_containers() { timeout 60 "${podman[@]}" rm --all --force --time 0 >>"$log_file" 2>&1; }

start() {
  need_root
  if service_pid >/dev/null && wait_for 30 answers; then return; fi
  need_command podman podman
  need_command runc podman
  stop
  write_settings
  use_storage overlay
  timeout 60 "${podman[@]}" info >/dev/null 2>>"$log_file" || use_storage vfs
  echo "$driver" >"$dir/driver"
  launch 30 unshare --mount --propagation slave bash -c "$unpackaged" bash "${podman[@]}" system service --time 0 "$address" ||
    die_with_log "podman does not start"
  echo "$pid" >"$pidfile"
  log "started with $driver at $address"
}

stop() {
  need_root
  if pid=$(service_pid); then
    stop_pid "$pid" 15
    log "stopped"
  fi
  [ ! -d "$dir/$driver" ] || wait_for 10 remove_containers || log "containers stayed; see $log_file"
  sweep "$dir/$driver" "$run" "$dir"
  rm -rf --one-file-system "$run"
}

service_action

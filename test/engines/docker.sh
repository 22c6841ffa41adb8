#!/usr/bin/env bash
# usage: docker.sh start|stop|status|env [--dir DIR]
#
# A Docker engine of our own under DIR (default: $SVC_TEST_ENGINES_DIR/docker, else in the user's cache),
# apart from any other on the machine: data, socket, pid file and settings are its own.
#   start   starts it, or leaves it running; after a crash it first clears away what was left
#   stop    removes its containers and stops it; its images stay
#   status  exit code 0 when it runs, 3 when not
#   env     prints `export DOCKER_HOST=...` for eval
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
service_args docker "$@"

variable=DOCKER_HOST address=unix://$run/docker.sock
pidfile=$run/docker.pid log_file=$dir/dockerd.log

docker_answers() { timeout 5 docker --host "$1" version >/dev/null 2>&1; }
answers() { docker_answers "$address"; }
service_pid() { live_pid "$pidfile" "$run"; }

clear_leftovers() {
  sweep "$run" "$run" "$dir"
  rm -rf --one-file-system "$run"
}

start_with() { # STORAGE_DRIVER
  mkdir -p "$run" "$dir/data"
  echo '{}' >"$dir/daemon.json" # without one of its own it reads the machine's
  launch 60 dockerd --config-file "$dir/daemon.json" --log-level warn --host "$address" \
    --data-root "$dir/data" --exec-root "$run/exec" --pidfile "$pidfile" --storage-driver "$1"
}

start() {
  need_root
  if service_pid >/dev/null && wait_for 30 answers; then return; fi
  need_command dockerd docker
  ! docker_answers unix:///var/run/docker.sock ||
    die "this machine's own Docker engine runs, and two fight over bridge and firewall; use that one: export SVC_TEST_DOCKER_HOST=unix:///var/run/docker.sock"
  stop
  local driver
  for driver in overlay2 vfs; do
    if start_with "$driver"; then
      log "started with $driver at $address"
      return
    fi
    clear_leftovers
  done
  die_with_log "dockerd does not start"
}

stop() {
  need_root
  local containers
  if pid=$(service_pid); then
    containers=$(timeout 10 docker --host "$address" ps --all --quiet --no-trunc) || true
    # shellcheck disable=SC2086 # one word per container
    [ -z "$containers" ] || timeout 60 docker --host "$address" rm --force --volumes $containers >/dev/null || true
    stop_pid "$pid" 30
    log "stopped"
  fi
  clear_leftovers
}

service_action

#!/usr/bin/env bash
# usage: registry.sh start|stop|status|env [--dir DIR] [--port PORT]
#
# An image registry of our own on 127.0.0.1 (port 5055 unless told), images under DIR (default:
# $SVC_TEST_ENGINES_DIR/registry, else in the user's cache). Plain http: engines accept that on loopback.
#   start   starts it, or leaves it running
#   stop    stops it; its images stay
#   status  exit code 0 when it runs, 3 when not
#   env     prints `export SVC_TEST_REGISTRY=127.0.0.1:PORT` for eval
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
service_args registry "$@"

variable=SVC_TEST_REGISTRY
pidfile=$dir/registry.pid config=$dir/config.yml log_file=$dir/registry.log
last_address=$(sed -n 's/.*addr: //p' "$config" 2>/dev/null || true)
address=127.0.0.1:${port:-5055}
[ -n "$port" ] || address=${last_address:-$address}

answers() { (exec 3<>"/dev/tcp/${address/://}") 2>/dev/null; }
service_pid() { live_pid "$pidfile" "$config"; }

start() {
  if service_pid >/dev/null; then
    [ "$address" = "$last_address" ] || die "it runs on $last_address already; stop it first"
    return
  fi
  need_command docker-registry registry
  ! answers || die "something else listens on $address; choose another with --port"
  cat >"$config" <<END
version: 0.1
log: { level: warn }
storage:
  filesystem: { rootdirectory: "$dir/data" }
  delete: { enabled: true }
http:
  addr: $address
END
  launch 15 docker-registry serve "$config" || die_with_log "docker-registry does not start"
  echo "$pid" >"$pidfile"
  log "started on $address"
}

stop() {
  if pid=$(service_pid); then
    stop_pid "$pid" 15
    log "stopped"
  fi
  rm -f "$pidfile"
}

service_action

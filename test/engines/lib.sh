#!/usr/bin/env bash
# shellcheck disable=SC2034,SC2154 # variables that go between this file and the scripts
# Shared by the scripts of this folder: sourced, never run.
#
# Exit codes of every script: 0 done, 1 failed, 2 wrong usage, 3 not running (from `status`).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$PATH:/usr/sbin:/sbin # dockerd, iptables and debootstrap live there
engines_dir=${SVC_TEST_ENGINES_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/svc-test/engines}
clients_dir=${SVC_TEST_CLIENTS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/svc-test/clients}

log() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() { log "$1"; exit "${2:-1}"; }

# The comment at the top of the script is its help text.
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }
wrong_usage() { log "$1"; usage >&2; exit 2; }

need_root() { [ "$(id -u)" = 0 ] || die "needs root; run it with sudo -E, or as root in a container or virtual machine"; }
need_command() { # COMMAND [PACKAGE_GROUP]
  command -v "$1" >/dev/null || die "no $1 here${2:+; run $here/install-packages.sh $2}"
}

# service_args NAME "$@": reads ACTION [--dir DIR] [--port PORT] into $action, $dir, $port and $run.
# $run is a short path derived from $dir, because a unix socket's path is limited to 108 bytes.
service_args() {
  dir=$engines_dir/$1 action='' port=''
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) usage; exit 0 ;;
      --dir) dir=${2:?--dir needs a folder}; shift ;;
      --port) port=${2:?--port needs a number}; shift ;;
      start | stop | status | env) [ -z "$action" ] || wrong_usage "one action at a time"; action=$1 ;;
      *) wrong_usage "what is '$1'?" ;;
    esac
    shift
  done
  [ -n "$action" ] || wrong_usage "say what to do: start, stop, status or env"
  dir=$(realpath -m "$dir")
  run=/run/svc-test/$(printf %s "$dir" | sha256sum | cut -c 1-12)
}

# One start, stop or build at a time per folder; held until this script ends (launch closes it for daemons).
lock() { # DIR
  mkdir -p "$1"
  exec 9>"$1/lock"
  flock -w 600 9 || die "another run has held $1/lock for ten minutes; see: fuser $1/lock"
}

# service_action: does $action with what the script defined: $variable and $address (what `env` exports), start,
# stop, service_pid (prints it when ours lives) and answers.
service_action() {
  local pid
  case $action in
    start | stop) lock "$dir"; "$action" ;;
    env) echo "export $variable=$address" ;;
    status)
      if pid=$(service_pid) && answers; then echo "running, pid $pid, $address"; else echo "not running"; exit 3; fi ;;
  esac
}

wait_for() { # SECONDS COMMAND...: polls until COMMAND succeeds
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

# launch SECONDS COMMAND...: starts a daemon in a session of its own, in $dir, keeping no file of ours open and writing
# to $log_file; sets $pid. Fails when it ends, or does not answer in time (then it is stopped).
launch() {
  local seconds=$1
  shift
  (
    for fd in /proc/self/fd/*; do
      fd=${fd##*/}
      [ "$fd" -le 2 ] || eval "exec $fd>&-"
    done
    cd "$dir" # conmon drops a file named oom wherever Podman was started
    exec setsid "$@"
  ) </dev/null >>"$log_file" 2>&1 &
  pid=$!
  wait_for "$seconds" answers_or_gone || stop_pid "$pid" 15
  ! gone "$pid"
}
answers_or_gone() { gone "$pid" || answers; }

die_with_log() {
  tail -n 20 "$log_file" >&2
  die "$1; its last words are above, its log is $log_file"
}

# live_pid PIDFILE MARK: the pid, when it lives and is ours (MARK, a path of ours, is in its command line).
live_pid() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && grep -qaF -- "$2" "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
}

gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }

stop_pid() { # PID SECONDS: TERM, then KILL when it outlives SECONDS
  kill "$1" 2>/dev/null || return 0
  wait_for "$2" gone "$1" && return 0
  log "pid $1 outlived $2 s; killing it"
  kill -KILL "$1" 2>/dev/null || true
  wait_for 5 gone "$1" || die "pid $1 cannot be killed; see: cat /proc/$1/stack"
}

family() { # PID: it and all its descendants
  local child
  echo "$1"
  for child in $(pgrep -P "$1"); do family "$child"; done
}

# What a killed engine leaves behind: shims and monitors that name MARK (a path of ours), the containers
# below them, and mounts under the given folders.
sweep() { # MARK FOLDER...
  local proc pid target
  for proc in /proc/[0-9]*; do
    case $(readlink "$proc/exe" || true) in
      */containerd* | */conmon) grep -qaF -- "$1" "$proc/cmdline" 2>/dev/null || continue ;;
      *) continue ;;
    esac
    for pid in $(family "${proc#/proc/}"); do
      kill -KILL "$pid" 2>/dev/null || true
      wait_for 5 gone "$pid" || log "pid $pid does not go away"
    done
  done
  shift
  findmnt -rno TARGET | tac | while read -r target; do
    target=$(printf %b "$target") # a blank is written as \x20
    for folder in "$@"; do
      case $target in "$folder"/*) umount -l "$target" ;; esac
    done
  done
}

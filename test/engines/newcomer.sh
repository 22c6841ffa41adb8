#!/usr/bin/env bash
# usage: newcomer.sh TARBALL
#
# Gathers what npm takes from its registry to install the gateway's TARBALL (of `npm pack`) globally and to bring it the
# embedded engine, and prints the folder: `cache` is a cache of npm from which a machine without a network does the same,
# `npm` is npm itself, as files to copy. Versions are looked up anew each time, as a newcomer's are.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  -h | --help) usage; exit 0 ;;
  *.tgz) tarball=$(realpath "$1") ;;
  *) wrong_usage "which tarball?" ;;
esac

folder=$clients_dir/newcomer
lock "$folder"
need_command npm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export npm_config_cache=$folder/cache npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false
npm install --global --prefix "$work/prefix" "$tarball" >&2 || die "npm could not install $tarball"
mkdir -p "$work/home/etc/svc"
"$work/prefix/bin/svc" engine install embedded --home "$work/home" >&2 || die "the embedded engine could not be brought"
rm -rf "$folder/npm" "$folder/cache/_logs"
cp -R "$(dirname "$(dirname "$(realpath "$(command -v npm)")")")" "$folder/npm"
echo "$folder"

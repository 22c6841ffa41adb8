#!/usr/bin/env bash
# usage: down.sh
#
# Stops what up.sh started. Images and tarballs stay, so that the next up.sh takes seconds.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
case ${1:-} in
  '') ;;
  -h | --help) usage; exit 0 ;;
  *) wrong_usage "what is '$1'?" ;;
esac

code=0
for service in registry podman docker; do
  "$here/$service.sh" stop || code=1
done
# its ring stops it by itself, unless that was killed
[ -z "${SVC_TEST_KUBERNETES_TOOLS:-}" ] || "$here/kubernetes.sh" stop || code=1
exit "$code"

#!/usr/bin/env bash
# usage: eval "$(test/engines/up.sh)"
#
# Gives this machine all that the container tests need: packages, a Docker engine, a Podman service, an image
# registry, and the test images in both engines. Prints on stdout only lines to eval; down.sh stops it all.
# A Docker engine that SVC_TEST_DOCKER_HOST names and that answers is used as it is.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
case ${1:-} in
  '') ;;
  -h | --help) usage; exit 0 ;;
  *) wrong_usage "what is '$1'?" ;;
esac

given_engine_answers() {
  [ -n "${SVC_TEST_DOCKER_HOST:-}" ] && timeout 5 docker --host "$SVC_TEST_DOCKER_HOST" version >/dev/null 2>&1
}

{
  "$here/install-packages.sh" docker podman registry
  if given_engine_answers; then
    DOCKER_HOST=$SVC_TEST_DOCKER_HOST
  else
    "$here/docker.sh" start
    eval "$("$here/docker.sh" env)"
  fi
  "$here/podman.sh" start
  eval "$("$here/podman.sh" env)"
  "$here/registry.sh" start
  for host in "$DOCKER_HOST" "$SVC_TEST_PODMAN_HOST"; do
    "$here/llama-image.sh" --host "$host"
    "$here/speech-image.sh" --host "$host"
  done
  "$here/whisper-image.sh" --host "$DOCKER_HOST"
} >&2

cat <<END
export DOCKER_HOST=$DOCKER_HOST
export SVC_TEST_DOCKER_HOST=$DOCKER_HOST
export SVC_TEST_PODMAN_HOST=$SVC_TEST_PODMAN_HOST
$("$here/registry.sh" env)
export SVC_TEST_LLAMA_IMAGE=svc-test/llama:latest
export SVC_TEST_SPEECH_IMAGE=svc-test/node-espeak:latest
export SVC_TEST_WHISPER_IMAGE=svc-test/whisper:latest
END

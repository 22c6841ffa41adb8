#!/usr/bin/env bash
# llama-server, with $SUITE_MODEL in place of what the tests would download.
args=() model=''
while [ $# -gt 0 ]; do
  case $1 in
    --hf-repo | --hf-file | --model-url) shift ;;
    --model) model=1; args+=("$1") ;;
    *) args+=("$1") ;;
  esac
  shift
done
[ -n "$model" ] || args+=(--model "$SUITE_MODEL")
cd "$SUITE_FOLDER"
! command -v llama-server >/dev/null || exec llama-server "${args[@]}"
mounts=(-v "$SUITE_WORK:$SUITE_WORK" -v "$SUITE_MODEL:$SUITE_MODEL:ro" -v "$SUITE_FOLDER:$SUITE_FOLDER")
# the templates that the tests name stand beside tools/ in llama.cpp's sources
templates=$(realpath -m "$SUITE_FOLDER/../../../models/templates")
[ ! -d "$templates" ] || mounts+=(-v "$templates:$templates:ro")
name=llama-suite-$$
# a client that is killed leaves its container behind, and that the next test's port
setsid bash -c 'while kill -0 "$1" 2>/dev/null; do sleep 0.2; done; docker --host "$2" kill "$3"' _ $$ "$SVC_TEST_DOCKER_HOST" "$name" >/dev/null 2>&1 &
exec docker --host "$SVC_TEST_DOCKER_HOST" run --rm --name "$name" --network host \
  -e LLAMA_SERVER_DEBUG_FAKE_TIMING -e AIP_MODE -e AIP_HTTP_PORT "${mounts[@]}" -w "$SUITE_FOLDER" svc-test/llama:latest "${args[@]}"

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
! command -v llama-server >/dev/null || exec llama-server "${args[@]}"
tmp=$(dirname "$SUITE_MODEL")
name=llama-suite-$$
# a client that is killed leaves its container behind, and that the next test's port
setsid bash -c 'while kill -0 "$1" 2>/dev/null; do sleep 0.2; done; docker --host "$2" kill "$3"' _ $$ "$SVC_TEST_DOCKER_HOST" "$name" >/dev/null 2>&1 &
exec docker --host "$SVC_TEST_DOCKER_HOST" run --rm --name "$name" --network host -e LLAMA_SERVER_DEBUG_FAKE_TIMING \
  -v "$tmp:$tmp:ro" -v "$SUITE_FOLDER:$SUITE_FOLDER" -w "$SUITE_FOLDER" svc-test/llama:latest "${args[@]}"

#!/usr/bin/env bash
# usage: llama-suite.sh FOLDER [pytest argument ...]
#
# Runs llama.cpp's own server tests (FOLDER is tools/server/tests of its sources, which are not ours to ship) twice:
# against llama-server itself, and through the gateway, which starts that llama-server as the engine of a slot. Prints
# the tests that end differently or fail for different reasons; exit code 1 when there are any. The arguments choose
# tests: unit/test_completion.py -k stream. Leave out what wants large models: -m 'not slow'.
#
# Their models come from the internet; here one model that says one sentence stands in for all of them, so that many
# tests fail either way. $LLAMA_SUITE_MODEL names another GGUF file: with one that never ends and has no chat template,
# as theirs has none, more of them pass. llama-server is the one on PATH, else that of the test image. Through the
# gateway, names of models that the tests make up lead to the slot, and paths that are not the gateway's own go to
# /upstream/suite. Where llama-server ends at once, the gateway lives on, and the test waits a minute for it. Needs a
# built gateway (npm run build).
#
# What ends differently is meant to: CORS and API keys are the gateway's (test_security), and so is its one address
# (test_basic, several addresses); an image without a projector is the client's mistake, 400 and not 500
# (test_compat_anthropic); /chat/completions is the gateway's and has nothing below it, such as input_tokens
# (test_sleep); the engine's own log is not in the gateway's (test_kv_keep_only_active).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  -h | --help) usage; exit 0 ;;
  '') wrong_usage "which folder?" ;;
esac
folder=$(realpath "$1")
shift
[ -f "$folder/utils.py" ] && [ -d "$folder/unit" ] || die "$folder has no utils.py and no unit/; give tools/server/tests of llama.cpp"
suite=$here/llama-suite
export SUITE_GATEWAY=$here/../../dist/lib/svc.cjs
[ -f "$SUITE_GATEWAY" ] || die "the gateway is not built; run npm run build"
! (exec 3<>/dev/tcp/127.0.0.1/8080) 2>/dev/null || die "something listens on port 8080, which the tests take"
command -v llama-server >/dev/null || [ -n "${SVC_TEST_DOCKER_HOST:-}" ] || die "no llama-server here; run eval \"\$($here/up.sh)\""

venv=$clients_dir/llama-suite
if [ ! -e "$venv/installed" ]; then
  need_command python3
  log "installing what the tests import"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet uv==0.13.9 >&2
  "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" \
    pytest==9.2.0 requests aiohttp openai==2.54.0 anthropic==2.12.0 wget numpy prometheus-client huggingface-hub jsonschema >&2 ||
    die "uv could not install what the tests import"
  touch "$venv/installed"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SUITE_WORK=$work SUITE_MODEL=${LLAMA_SUITE_MODEL:-$work/model.gguf} SUITE_FOLDER=$folder SUITE_ENGINE=$suite/engine.sh
[ -n "${LLAMA_SUITE_MODEL:-}" ] || node "$suite/model.mjs" "$SUITE_MODEL"

run() { # NAME BINARY [pytest argument ...]
  local name=$1 binary=$2
  shift 2
  log "$name"
  (cd "$folder" && LLAMA_SERVER_BIN_PATH=$binary PYTHONPATH=$suite PYTHONDONTWRITEBYTECODE=1 \
    "$venv/bin/python" -m pytest -q -p no:cacheprovider -p same_dice --basetemp="$work/pytest-$name" \
    --junitxml="$work/$name.xml" "$@" >"$work/$name.log" 2>&1) || true
  [ -s "$work/$name.xml" ] || { tail -n 30 "$work/$name.log" >&2; die "pytest did not run"; }
  tail -n 1 "$work/$name.log" >&2
}
run direct "$suite/engine.sh" "$@"
run gateway "$suite/gateway.mjs" -p gateway_paths "$@"
"$venv/bin/python" "$suite/differences.py" "$work/direct.xml" "$work/gateway.xml"

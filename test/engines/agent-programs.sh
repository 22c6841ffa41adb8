#!/usr/bin/env bash
# usage: agent-programs.sh claude-code|codex|opencode|qwen-code|gemini-cli|cline|continue|pi|hermes|aider
#
# Installs one program that people run agents with, from the npm or the Python registry, in the version written here,
# into a folder of its own and prints the path of its executable. With it there already it does nothing else. The
# versions are the newest that run on Node.js 20; each brings 80 to 690 MB.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  claude-code) wanted=@anthropic-ai/claude-code@2.1.197 program=claude ;;
  codex) wanted=@openai/codex@0.169.0 program=codex ;;
  opencode) wanted=opencode-ai@1.18.33 program=opencode ;;
  qwen-code) wanted=@qwen-code/qwen-code@0.15.10 program=qwen ;;
  gemini-cli) wanted=@google/gemini-cli@0.61.0 program=gemini ;;
  cline) wanted=cline@3.0.65 program=cline ;;
  continue) wanted=@continuedev/cli@1.5.47 program=cn ;;
  pi) wanted=@mariozechner/pi-coding-agent@0.73.1 program=pi ;;
  hermes) wanted='hermes-agent[mcp]==0.19.0' program=hermes ;;
  aider) wanted='aider-chat==0.86.2' program=aider ;;
  -h | --help) usage; exit 0 ;;
  *) wrong_usage "which program?" ;;
esac

folder=$clients_dir/agent-$1
case $1 in
  hermes | aider) registry=python ;;
  *) registry=npm ;;
esac
lock "$folder"
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$wanted" ]; then
  log "installing $wanted"
  rm -rf "$folder/node_modules" "$folder/package.json" "$folder/package-lock.json" "$folder/venv" "$folder/installed"
  if [ "$registry" = python ]; then
    need_command python3
    python3 -m venv "$folder/venv" || die "python3 could not make a virtual environment; on Debian: apt-get install python3-venv"
    "$folder/venv/bin/pip" install --quiet "uv==0.13.9" >&2 || die "pip could not install uv"
    "$folder/venv/bin/uv" pip install --quiet --compile-bytecode --python "$folder/venv/bin/python" "$wanted" >&2 || die "uv could not install $wanted"
  else
    need_command npm
    echo '{ "private": true }' >"$folder/package.json"
    npm install --prefix "$folder" --no-audit --no-fund --save-exact "$wanted" >&2 || die "npm could not install $wanted"
  fi
  echo "$wanted" >"$folder/installed"
fi
if [ "$registry" = python ]; then echo "$folder/venv/bin/$program"; else echo "$folder/node_modules/.bin/$program"; fi

#!/usr/bin/env bash
# usage: python-clients.sh openai-2|openai-3|pydantic-ai|dialects|openapi|memory
#
# Installs client libraries from the Python registry, in the versions written here, into a virtual environment and
# prints its folder. There are several, because libraries still ask for different versions of the one below them. Needs
# Python 3.10 or newer; uv is fetched when it is missing. With all there already it does nothing else.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  openai-2) wanted=(openai==2.54.0 litellm==1.106.2 mcp==2.3.0 llama-index-llms-openai-like==0.8.1 instructor==1.17.0) ;;
  openai-3) wanted=(openai==3.54.0 anthropic==2.12.0 langchain-openai==1.7.3 llm==0.36 openai-agents==0.24.0) ;;
  pydantic-ai) wanted=('pydantic-ai-slim[openai]==2.62.0') ;;
  dialects) wanted=(ollama==0.6.3 llama-index-llms-ollama==0.11.0) ;;
  openapi) wanted=(schemathesis==4.32.5 openapi-python-client==0.29.1) ;;
  memory) wanted=(hindsight-client==1.1.0) ;;
  -h | --help) usage; exit 0 ;;
  *) wrong_usage "which: openai-2, openai-3, pydantic-ai, dialects, openapi or memory?" ;;
esac

folder=$clients_dir/python-$1
lock "$folder"
if [ "$(cat "$folder/installed" 2>/dev/null)" != "${wanted[*]}" ]; then
  need_command python3
  log "installing ${wanted[*]}"
  rm -rf "$folder/venv" "$folder/installed"
  python3 -m venv "$folder/venv" || die "python3 could not make a virtual environment; on Debian: apt-get install python3-venv"
  # pip alone takes minutes to choose the versions of so many packages
  "$folder/venv/bin/pip" install --quiet "uv==0.13.9" >&2 || die "pip could not install uv"
  "$folder/venv/bin/uv" pip install --quiet --compile-bytecode --python "$folder/venv/bin/python" "${wanted[@]}" >&2 || die "uv could not install the clients"
  echo "${wanted[*]}" >"$folder/installed"
fi
echo "$folder/venv"

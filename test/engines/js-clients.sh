#!/usr/bin/env bash
# usage: js-clients.sh sdks|dialects|promptfoo|openapi|mcp|memory
#
# Installs client libraries from the npm registry, in the versions written here, into a folder of their own and prints
# its name. With all there already it does nothing else.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options=()
case ${1:-} in
  sdks)
    wanted=(
      openai@6.49.0 openai-newest@npm:openai@7.59.0 ws@8.23.0 @anthropic-ai/sdk@1.12.0
      ai@6.0.326 @ai-sdk/openai@3.0.141 @ai-sdk/openai-compatible@2.0.91 @ai-sdk/anthropic@3.0.139
      @langchain/core@1.4.0 @langchain/openai@1.5.8
      @llamaindex/core@0.6.22 @llamaindex/openai@0.4.22
      @continuedev/openai-adapters@1.37.0 zod@4.6.7
    ) ;;
  dialects)
    wanted=(
      ollama@0.6.4 @langchain/core@1.4.0 @langchain/ollama@1.3.0 @llamaindex/core@0.6.22 @llamaindex/ollama@0.1.23
      @continuedev/openai-adapters@1.37.0 @google/genai@2.32.0
    ) ;;
  promptfoo)
    # of its optional packages, which are a gigabyte, only the database driver for this machine
    machine=$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
    wanted=(promptfoo@0.121.20 "@libsql/linux-$machine-gnu@0.5.29")
    options=(--omit=optional --omit=peer --ignore-scripts) ;;
  openapi) wanted=(openapi-typescript@7.13.0 openapi-fetch@0.17.0 typescript@5.9.3) ;;
  mcp)
    # the inspector asks for a newer Node.js than its command line needs, and its page is not wanted
    wanted=(
      @ai-sdk/mcp@1.0.101 @langchain/core@1.4.0 @langchain/mcp-adapters@1.1.4
      @modelcontextprotocol/sdk@1.32.2 mcp-remote@0.15.1 @modelcontextprotocol/inspector@2.12.0
    )
    options=(--engine-strict=false --ignore-scripts) ;;
  memory) wanted=(@vectorize-io/hindsight-client@0.9.1) ;;
  -h | --help) usage; exit 0 ;;
  *) wrong_usage "which: sdks, dialects, promptfoo, openapi, mcp or memory?" ;;
esac

folder=$clients_dir/js-$1
lock "$folder"
if [ "$(cat "$folder/installed" 2>/dev/null)" != "${wanted[*]}" ]; then
  need_command npm
  log "installing ${wanted[*]}"
  rm -rf "$folder/node_modules" "$folder/package.json" "$folder/package-lock.json" "$folder/installed"
  echo '{ "private": true, "type": "module" }' >"$folder/package.json"
  npm install --prefix "$folder" --no-audit --no-fund --save-exact "${options[@]}" "${wanted[@]}" >&2 || die "npm could not install the clients"
  echo "${wanted[*]}" >"$folder/installed"
fi
echo "$folder"

#!/usr/bin/env bash
# usage: llama-image.sh [--host DOCKER_HOST] [--tag svc-test/llama:latest]
#
# Makes a llama.cpp image whose entry point is llama-server present in an engine (default: $DOCKER_HOST, else
# docker.sh's). First found wins: the image in the engine, a tarball in the cache, the upstream image from the
# internet, or Debian's own llama.cpp, made into a tarball with debootstrap (needs root).
. "$(dirname "${BASH_SOURCE[0]}")/image.sh"
image_args svc-test/llama:latest "$@"

tarball=$images/llama-sid.tar # unstable is the one suite that has it

[ -s "$tarball" ] || ! pull_upstream ghcr.io/ggml-org/llama.cpp:server || exit 0
debian_root "$tarball" sid llama.cpp-tools,curl
load "$tarball" --change 'ENTRYPOINT ["/usr/bin/llama-server"]'

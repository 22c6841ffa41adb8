#!/usr/bin/env bash
# usage: llama-image.sh [--host DOCKER_HOST] [--tag svc-test/llama:latest]
#
# Makes a llama.cpp image whose entry point is llama-server present in an engine (default: $DOCKER_HOST, else
# docker.sh's). First found wins: the image in the engine, a tarball in the cache, the upstream image from the
# internet, or Debian's own llama.cpp, made into a tarball with debootstrap (needs root). That one computes with one
# thread, whatever a slot's flags say: where tests share few cores, more of them only spin while they wait for each other.
. "$(dirname "${BASH_SOURCE[0]}")/image.sh"

one_thread=OMP_THREAD_LIMIT=1

present() {
  local found
  found=$(docker image inspect --format '{{.Config.Entrypoint}} {{.Config.Env}}' "$tag" 2>/dev/null) || return 1
  case $found in
    */usr/bin/llama-server*) [[ $found == *$one_thread* ]] ;; # one that was made without
  esac
}

image_args svc-test/llama:latest "$@"

tarball=$images/llama-sid.tar # unstable is the one suite that has it

[ -s "$tarball" ] || ! pull_upstream ghcr.io/ggml-org/llama.cpp:server || exit 0
debian_root "$tarball" sid llama.cpp-tools,curl
load "$tarball" --change 'ENTRYPOINT ["/usr/bin/llama-server"]' --change "ENV $one_thread"

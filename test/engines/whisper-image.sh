#!/usr/bin/env bash
# usage: whisper-image.sh [--host DOCKER_HOST] [--tag svc-test/whisper:latest]
#
# Makes an image with whisper.cpp's whisper-server present in an engine (default: $DOCKER_HOST, else docker.sh's).
# First found wins: the image in the engine, a tarball in the cache, the upstream image from the internet, or
# Debian's own whisper.cpp, made into a tarball with debootstrap (needs root).
. "$(dirname "${BASH_SOURCE[0]}")/image.sh"
image_args svc-test/whisper:latest "$@"

tarball=$images/whisper-sid.tar # unstable is the one suite that has it

[ -s "$tarball" ] || ! pull_upstream ghcr.io/ggml-org/whisper.cpp:main || exit 0
debian_root "$tarball" sid whisper.cpp-tools,ffmpeg
load "$tarball" --change 'ENTRYPOINT ["/usr/bin/whisper-server"]'

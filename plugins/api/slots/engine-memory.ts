import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RuntimeDriver } from 'svc-gateway/plugin'

const MIB = 1024 * 1024
const CONTAINER_ID = /^[0-9a-f]{64}$/

/** Where the control group of a container lies, by driver and by who manages the groups. */
const cgroupsOf: Readonly<Record<RuntimeDriver, (id: string, uid: number) => readonly string[]>> = {
  docker: id => [`system.slice/docker-${id}.scope`, `docker/${id}`],
  podman: (id, uid) => [
    `machine.slice/libpod-${id}.scope`,
    `user.slice/user-${uid}.slice/user@${uid}.service/user.slice/libpod-${id}.scope`,
    `libpod_parent/libpod-${id}`
  ],
  process: () => []
}

/**
 * Memory that the kernel accounts to an engine's container, in MiB: one small file read. Null where there is none:
 * engines on another host, engines that are child processes, hosts without unified control groups.
 */
export async function engineMemoryMb (
  driver: RuntimeDriver, engineId: string | null, root = '/sys/fs/cgroup', uid = process.getuid?.() ?? 0
): Promise<number | null> {
  // the id becomes part of a path
  if (engineId === null || !CONTAINER_ID.test(engineId)) return null
  for (const group of cgroupsOf[driver](engineId, uid)) {
    const bytes = Number(await readFile(join(root, group, 'memory.current'), 'utf8').catch(() => 'NaN'))
    if (Number.isFinite(bytes)) return Math.round(bytes / MIB)
  }
  return null
}

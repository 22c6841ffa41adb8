import type Docker from 'dockerode'

/** What `/containers/{id}/stats` tells of memory, as far as it is used. */
export interface StatsAnswer {
  readonly memory_stats?: {
    readonly usage?: number
    readonly stats?: Readonly<Record<string, number>> | null
  }
}

/** Bytes in use without what the kernel can take back at once, as `docker stats` shows them; null when nothing is told. Pure. */
export function memoryOfStats ({ memory_stats: memory }: StatsAnswer): number | null {
  const usage = memory?.usage
  if (usage === undefined || !Number.isFinite(usage) || usage <= 0) return null
  // version 1 of control groups has both, and the total is that of the groups below, which `usage` counts too; podman has none
  const cache = memory?.stats?.total_inactive_file ?? memory?.stats?.inactive_file ?? 0
  return cache < usage ? usage - cache : usage
}

/** One sample. `one-shot`: Docker would wait a second for a second one, of which the processor time needs the difference. */
export async function containerMemory (docker: Docker, id: string, signal: AbortSignal): Promise<number | null> {
  const container = docker.getContainer(id) as unknown as { stats: (options: object) => Promise<StatsAnswer> }
  return memoryOfStats(await container.stats({ 'stream': false, 'one-shot': true, 'abortSignal': signal }))
}

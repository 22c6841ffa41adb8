import { dirname, join } from 'node:path'
import type { ProbeFiles } from './probe-files.js'
import { bytesToMib } from './proc-text.js'

/** Version 1 says "no limit" with a number near 2^63. */
const NO_LIMIT_MB = 1024 ** 4

/** The tightest memory limit above this process in MiB, or null. Version 2 first, then version 1. */
export async function probeCgroupMax (files: ProbeFiles): Promise<number | null> {
  const lines = (await files.text('/proc/self/cgroup') ?? '').split('\n').map(line => line.split(':'))
  const unified = lines.find(([id]) => id === '0')?.[2] ?? '/'
  const memory = lines.find(([, controllers]) => controllers?.split(',').includes('memory'))?.[2] ?? '/'
  const limits = [
    ...await limitsAbove(files, '/sys/fs/cgroup', unified, 'memory.max'),
    ...await limitsAbove(files, '/sys/fs/cgroup/memory', memory, 'memory.limit_in_bytes')
  ]
  return limits.length === 0 ? null : Math.min(...limits)
}

async function limitsAbove (files: ProbeFiles, mount: string, path: string, file: string): Promise<readonly number[]> {
  const limits: number[] = []
  for (let at = path; ; at = dirname(at)) {
    const limit = bytesToMib(await files.text(join(mount, at, file)))
    if (limit > 0 && limit < NO_LIMIT_MB) limits.push(limit)
    if (at === '/' || at === '.') return limits
  }
}

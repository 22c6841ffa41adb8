import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'

export interface Listener {
  readonly port: number
  readonly inode: string
}

export interface Holder {
  /** Null where this user may not see whose it is. */
  readonly pid: number | null
  readonly command: string
}

/** Sockets that listen, from the text of /proc/net/tcp or tcp6. Pure. */
export function parseListeners (text: string): readonly Listener[] {
  return text.split('\n').slice(1).flatMap(line => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
    const port = Number.parseInt(local.split(':').at(-1) ?? '', 16)
    return state === '0A' && port > 0 ? [{ port, inode }] : []
  })
}

/** Who listens on these ports; free ones are not in it. Null where the system does not tell. */
export async function holdersOf (ports: readonly number[], proc = '/proc'): Promise<ReadonlyMap<number, Holder> | null> {
  const tables = await Promise.all(['tcp', 'tcp6'].map(name => readFile(join(proc, 'net', name), 'utf8').catch(() => null)))
  if (tables.every(table => table === null)) return null
  const wanted = tables.flatMap(table => parseListeners(table ?? '')).filter(({ port }) => ports.includes(port))
  if (wanted.length === 0) return new Map()
  const owners = await socketOwners(new Set(wanted.map(({ inode }) => inode)), proc)
  return new Map(wanted.map(({ port, inode }) => [port, owners.get(inode) ?? { pid: null, command: '' }]))
}

/** Processes of other users are not seen without being root. */
async function socketOwners (inodes: ReadonlySet<string>, proc: string): Promise<ReadonlyMap<string, Holder>> {
  const owners = new Map<string, Holder>()
  const pids = (await readdir(proc).catch(() => [])).filter(name => /^\d+$/.test(name))
  for (const pid of pids) {
    const folder = join(proc, pid, 'fd')
    for (const fd of await readdir(folder).catch(() => [])) {
      const inode = /^socket:\[(\d+)\]$/.exec(await readlink(join(folder, fd)).catch(() => ''))?.[1]
      if (inode === undefined || !inodes.has(inode)) continue
      const command = await readFile(join(proc, pid, 'comm'), 'utf8').catch(() => '')
      owners.set(inode, { pid: Number(pid), command: command.trim() || 'unknown' })
    }
  }
  return owners
}

const MIB = 1024 * 1024

export interface CpuFacts {
  readonly model: string
  readonly cores: number
  readonly threads: number
  /** The kernel runs under a hypervisor. */
  readonly virtual: boolean
}

/** /proc/cpuinfo. ARM names no model there; `fallback` is the board's. Pure. */
export function parseCpuInfo (text: string, fallback: string): CpuFacts {
  const blocks = text.split(/\n\s*\n/).map(fields).filter(block => block.has('processor'))
  const cores = new Set(blocks.map(block => `${block.get('physical id') ?? '0'}:${block.get('core id') ?? block.get('processor')}`))
  const first = blocks[0]
  return {
    model: (first?.get('model name') ?? fallback).replace(/\s+/g, ' ').trim(),
    cores: cores.size,
    threads: blocks.length,
    virtual: /\bhypervisor\b/.test(first?.get('flags') ?? '')
  }
}

/** /proc/meminfo in MiB; 0 for what it does not say. Pure. */
export function parseMemInfo (text: string): { readonly total: number, readonly available: number, readonly swap: number } {
  const values = fields(text)
  const mib = (key: string): number => Math.floor(Number.parseInt(values.get(key) ?? '0', 10) / 1024) || 0
  return { total: mib('MemTotal'), available: mib('MemAvailable'), swap: mib('SwapTotal') }
}

/** /etc/os-release: the name for people. Pure. */
export function parseDistro (text: string): string {
  const values = new Map(text.split('\n').map(line => {
    const [key = '', ...rest] = line.split('=')
    return [key.trim(), rest.join('=').trim().replace(/^(["'])(.*)\1$/, '$2')] as const
  }))
  return values.get('PRETTY_NAME') ?? values.get('NAME') ?? ''
}

/** /etc/group: numeric ids of the named groups. Pure. */
export function parseGroups (text: string, wanted: readonly string[]): Readonly<Record<string, number>> {
  const found = text.split('\n').map(line => line.split(':')).filter(([name, , gid]) => wanted.includes(name!) && /^\d+$/.test(gid ?? ''))
  return Object.fromEntries(found.map(([name, , gid]) => [name!, Number(gid)]))
}

/** `KEY=value` lines of a uevent file. Pure. */
export function parseUevent (text: string): ReadonlyMap<string, string> {
  return new Map(text.split('\n').flatMap(line => {
    const at = line.indexOf('=')
    return at === -1 ? [] : [[line.slice(0, at).trim(), line.slice(at + 1).trim()] as const]
  }))
}

/** Bytes as text to whole MiB; 0 for anything else. Pure. */
export function bytesToMib (text: string | null): number {
  return text !== null && /^\d+$/.test(text) ? Math.floor(Number(text) / MIB) : 0
}

/** `key : value` lines; the first of a key counts. */
function fields (text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (const line of text.split('\n')) {
    const at = line.indexOf(':')
    const key = line.slice(0, at).trim()
    if (at !== -1 && !values.has(key)) values.set(key, line.slice(at + 1).trim())
  }
  return values
}

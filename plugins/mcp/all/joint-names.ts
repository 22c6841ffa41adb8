import { createHash } from 'node:crypto'

/** Clients put a prefix of their own before a name, and models take 64 characters in all. */
const MOST_CHARACTERS = 48

export interface NamedTool {
  readonly server: string
  readonly name: string
}

/**
 * One name for each tool: `<server>_<tool>`. Where that is too long or means several tools, none of them gets it, and each
 * has a hash of its server and name at its end: so a name that a client knows never comes to mean another tool. Pure.
 * @param taken names that no tool may have
 */
export function jointNames<T extends NamedTool> (tools: readonly T[], taken: readonly string[]): ReadonlyMap<string, T> {
  const count = new Map<string, number>()
  for (const tool of tools) count.set(plainName(tool), (count.get(plainName(tool)) ?? 0) + 1)
  const named = new Map<string, T>()
  const isFree = (name: string): boolean => !named.has(name) && !taken.includes(name)
  const ordered = tools.toSorted((a, b) => keyOf(a) < keyOf(b) ? -1 : 1)
  const isPlain = (tool: T): boolean => {
    const name = plainName(tool)
    return name.length <= MOST_CHARACTERS && count.get(name) === 1 && !taken.includes(name)
  }
  const hash = (tool: T): void => {
    for (let digits = 8; ; digits++) {
      const name = hashedName(tool, digits)
      if (isFree(name)) return void named.set(name, tool)
    }
  }
  for (const tool of ordered) if (!isPlain(tool)) hash(tool)
  for (const tool of ordered.filter(isPlain)) {
    // one that looks like another's hash
    if (isFree(plainName(tool))) named.set(plainName(tool), tool)
    else hash(tool)
  }
  return named
}

function keyOf ({ server, name }: NamedTool): string {
  return `${server}/${name}`
}

function plainName ({ server, name }: NamedTool): string {
  return `${server}_${name}`.replaceAll(/[^a-zA-Z0-9_-]/g, '_')
}

function hashedName (tool: NamedTool, digits: number): string {
  const hash = createHash('sha256').update(keyOf(tool)).digest('hex').slice(0, digits)
  return `${plainName(tool).slice(0, MOST_CHARACTERS - 1 - digits)}_${hash}`
}

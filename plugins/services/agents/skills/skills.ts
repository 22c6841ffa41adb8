import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { skillText } from './skill-text.js'

/** Instructions that an agent looks up when it needs them. */
export interface AgentSkill {
  readonly agent: string
  readonly name: string
  /** May be empty. */
  readonly description: string
  /** Absolute path of its file. */
  readonly path: string
}

const FILE = 'SKILL.md'
/** Of one agent. It writes its skills itself. */
const MOST_SKILLS = 500
/** Folders that are looked into, and how far down: groups of skills may stand in groups. */
const MOST_FOLDERS = 2_000
const DEPTH = 4
/** What a skill says of itself stands at its beginning. */
const HEAD_BYTES = 16 * 1024
const LONGEST_NAME = 200
const LONGEST_DESCRIPTION = 1_024

/** The skills below a folder of an agent, by their paths. A folder or file that cannot be read has none. Never rejects. */
export async function skillsIn (agent: string, root: string): Promise<readonly AgentSkill[]> {
  const found: AgentSkill[] = []
  const folders = [{ path: root, name: '', depth: 0 }]
  for (let at = 0; at < folders.length && found.length < MOST_SKILLS; at++) {
    const { path, name: folder, depth } = folders[at]!
    const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
    const file = entries.find(({ name }) => name === FILE)
    const head = file?.isFile() === true && depth > 0 ? await headOf(join(path, FILE)) : null
    if (head !== null) {
      const { name = folder, description = '' } = skillText(head)
      found.push({
        agent, name: name.slice(0, LONGEST_NAME), description: description.slice(0, LONGEST_DESCRIPTION), path: join(path, FILE)
      })
    }
    // what is below a skill belongs to it
    if (head !== null || depth === DEPTH) continue
    const inner = entries.filter(entry => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
    for (const { name } of inner.slice(0, MOST_FOLDERS - folders.length)) {
      folders.push({ path: join(path, name), name, depth: depth + 1 })
    }
  }
  return found.toSorted((a, b) => a.path < b.path ? -1 : 1)
}

async function headOf (path: string): Promise<string | null> {
  const file = await open(path, 'r').catch(() => null)
  try {
    const { buffer, bytesRead } = await file?.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0) ?? {}
    return buffer === undefined ? null : buffer.toString('utf8', 0, bytesRead)
  } catch {
    return null
  } finally {
    await file?.close()
  }
}

import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '../config/files/atomic-file.js'

/** The id of this home: made once, kept with the state, carried by every engine it starts. */
export async function instanceId (stateDir: string): Promise<string> {
  const path = join(stateDir, 'instance-id')
  const known = (await readFile(path, 'utf8').catch(() => '')).trim()
  if (/^[0-9a-f-]{36}$/.test(known)) return known
  const id = randomUUID()
  await writeFileAtomic(path, `${id}\n`)
  return id
}

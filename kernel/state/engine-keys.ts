import { createHmac, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '../config/files/atomic-file.js'

/**
 * Keys that engines may ask for, one for each slot. They are derived and not stored, so that a gateway which takes an
 * engine over knows its key. The prefix makes them recognisable as secrets in logs.
 */
export async function engineKeys (stateDir: string): Promise<(slot: string) => string> {
  const path = join(stateDir, 'engine-key-seed')
  const known = (await readFile(path, 'utf8').catch(() => '')).trim()
  const seed = /^[\w-]{43}$/.test(known) ? known : randomBytes(32).toString('base64url')
  if (seed !== known) await writeFileAtomic(path, `${seed}\n`, { mode: 0o600 })
  return slot => `sk-svc-${createHmac('sha256', seed).update(slot).digest('base64url')}`
}

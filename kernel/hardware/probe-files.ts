import { open, readdir, readFile, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../contract/index.js'

/** Reads below one root: `/`, or a recorded tree. Nothing throws, and nothing waits beyond the deadline; null is unknown. */
export interface ProbeFiles {
  /** Trimmed. */
  text (path: string): Promise<string | null>
  /** The first bytes. */
  bytes (path: string, length: number): Promise<Buffer | null>
  /** Sorted by name, numbers in order; empty when there is no such folder. */
  list (path: string): Promise<readonly string[]>
  exists (path: string): Promise<boolean>
  /** Bytes that an ordinary user may still write to the file system of the path or its nearest existing parent. */
  diskFree (path: string): Promise<number | null>
}

const MAX_TEXT_BYTES = 4 * 1024 * 1024

/** A driver in trouble can hold a read of /sys for ever, so every read races one deadline for the whole probe. */
export function createProbeFiles (root: string, clock: Clock, timeoutMs: number): ProbeFiles & { close (): void } {
  let expire: (value: null) => void = () => undefined
  const expired = new Promise<null>(resolve => { expire = resolve })
  const timer = clock.setTimer(timeoutMs, () => { expire(null) })
  const bounded = <T>(read: Promise<T>): Promise<T | null> => Promise.race([read.catch(() => null), expired])
  const at = (path: string): string => join(root, path)
  return {
    text: async path => await bounded(readText(at(path))),
    bytes: async (path, length) => await bounded(readBytes(at(path), length)),
    list: async path => await bounded(readNames(at(path))) ?? [],
    exists: async path => await bounded(stat(at(path)).then(() => true)) ?? false,
    diskFree: async path => await bounded(freeBytes(at(path))),
    close: () => { timer.cancel() }
  }
}

async function readText (path: string): Promise<string> {
  const text = await readFile(path, 'utf8')
  return text.slice(0, MAX_TEXT_BYTES).trim()
}

async function readBytes (path: string, length: number): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

async function readNames (path: string): Promise<readonly string[]> {
  return (await readdir(path)).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
}

async function freeBytes (path: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  } catch (error) {
    if (dirname(path) === path) throw error
    return await freeBytes(dirname(path))
  }
}

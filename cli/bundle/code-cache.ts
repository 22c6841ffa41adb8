import { closeSync, existsSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync, writevSync } from 'node:fs'
import { join } from 'node:path'
import type { Script } from 'node:vm'
import { crc32 } from 'node:zlib'
import type { LargeFiles } from './large-files.js'

/** Eight, of which the check takes four: V8 makes a copy of code that does not lie at a multiple of it. */
const HEAD_BYTES = 8
/** Those of other builds are removed when nothing was written to them for that long. */
const KEPT_MS = 30 * 86_400_000

export interface CachedCode {
  /** Names its content. */
  readonly build: string
  /** Where it lies: V8 keeps that for stack traces. */
  readonly folder: string
  /** What it is run for: V8 keeps the functions that were called. */
  readonly use: string
}

/**
 * What V8 made of the bundle's code, in the user's cache folder: a start that finds it compiles nothing. Nothing depends
 * on it: what is missing, damaged, or from another release of Node is made anew, and a machine without a home for its user
 * does without.
 */
export class CodeCache {
  /** Null where there is no place that only this user can write to. */
  readonly #folder: string | null
  readonly #files: LargeFiles
  /** What was loaded without it, and is written by `save`. */
  readonly #fresh = new Map<string, Script>()

  constructor (code: CachedCode, files: LargeFiles, env: Readonly<Record<string, string | undefined>> = process.env) {
    this.#files = files
    const root = cacheRoot(env)
    this.#folder = root === null ? null : join(root, 'svc', 'code', nameOf(code))
    if (this.#folder !== null && isOpenToOthers(this.#folder)) this.#folder = null
  }

  /** What V8 made of a script, which stands there until the next file is read. */
  read (name: string): Buffer | undefined {
    if (this.#folder === null) return undefined
    try {
      const file = this.#files.read(join(this.#folder, name))
      const data = file.subarray(HEAD_BYTES)
      return crc32(data) === file.readUInt32LE(0) ? data : undefined
    } catch {
      return undefined
    }
  }

  /** A script that was loaded without what `read` gives. */
  missed (name: string, script: Script): void {
    if (this.#folder !== null) this.#fresh.set(name, script)
  }

  /** Writes what was missed. */
  save (): void {
    while (this.saveOne());
  }

  /**
   * Writes one of those that were missed, and returns whether there are more. Never throws: a full disk or a read-only home
   * leaves things as they are.
   */
  saveOne (): boolean {
    const [next] = this.#fresh
    if (this.#folder === null || next === undefined) return false
    const [name, script] = next
    this.#fresh.delete(name)
    try {
      if (mkdirSync(this.#folder, { recursive: true, mode: 0o700 }) !== undefined) this.#removeOld()
      write(join(this.#folder, name), script.createCachedData())
    } catch {
      // the next start tries again
      this.#fresh.clear()
    }
    return this.#fresh.size > 0
  }

  #removeOld (): void {
    const parent = join(this.#folder!, '..')
    for (const name of readdirSync(parent)) {
      const path = join(parent, name)
      if (Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true })
    }
  }
}

function write (path: string, data: Buffer): void {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(crc32(data))
  const draft = `${path}.${process.pid}`
  const file = openSync(draft, 'w', 0o600)
  try {
    writevSync(file, [head, data])
  } finally {
    closeSync(file)
  }
  renameSync(draft, path)
}

function nameOf ({ build, folder, use }: CachedCode): string {
  return `${build}-${crc32(folder).toString(16)}-${process.version}-${process.arch}-${use}`
}

function cacheRoot (env: Readonly<Record<string, string | undefined>>): string | null {
  const { XDG_CACHE_HOME: named = '', HOME: home = '' } = env
  if (named.startsWith('/')) return named
  // an account of the system may name a home that does not exist
  return home.startsWith('/') && existsSync(home) ? join(home, '.cache') : null
}

/** V8 runs what it finds there. What cannot be looked at, as in the home of another user, is no place of this one. */
function isOpenToOthers (folder: string): boolean {
  try {
    const { uid, mode } = statSync(folder)
    return uid !== process.getuid?.() || (mode & 0o022) !== 0
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

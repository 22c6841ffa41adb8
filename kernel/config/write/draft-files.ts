import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger, Paths } from '../../contract/index.js'
import { readText } from '../files/read-file.js'
import { parseToml, readToml, type Table } from '../toml/toml-file.js'
import type { FileChange } from '../files/transaction.js'
import { parseFailed, writeFailed } from '../files/write-errors.js'

interface DraftFile {
  readonly root: FileChange['root']
  readonly file: string
  /** As it is on disk; null when it is not there. */
  readonly before: string | null
  after: string | null
  mode?: number
}

/** Texts of the files that a draft looked at or changed. Each is read once, when it is first asked for. */
export class DraftFiles {
  readonly #paths: Paths
  readonly #log: Logger
  readonly #files = new Map<string, DraftFile>()

  constructor (paths: Paths, log: Logger) {
    this.#paths = paths
    this.#log = log
  }

  /** What differs from the disk. */
  changes (): readonly FileChange[] {
    return [...this.#files.values()].filter(({ before, after }) => before !== after)
      .map(({ root, file, before, after, mode }) => ({
        root, file, content: after, fresh: before === null, ...(mode === undefined ? {} : { mode })
      }))
  }

  /** Files below the configuration root that were read or changed. */
  touched (): readonly string[] {
    return [...this.#files.values()].filter(({ root }) => root === 'etc').map(({ file }) => file)
  }

  /** A TOML file below the configuration root, or null. Throws `config.parse_error`. */
  async toml (file: string): Promise<{ readonly text: string, readonly data: Table } | null> {
    const known = this.#files.get(keyOf('etc', file))
    if (known !== undefined) return known.after === null ? null : { text: known.after, data: parseToml(known.after) }
    const read = await readToml(join(this.#paths.etc, file), file)
    if (read.status === 'bad') throw parseFailed([read.diagnostic])
    const found = read.status === 'missing' ? null : { text: read.text, data: read.data }
    this.#files.set(keyOf('etc', file), { root: 'etc', file, before: found?.text ?? null, after: found?.text ?? null })
    return found
  }

  /** Sets the text of a file that was read before. */
  put (file: string, text: string | null, mode?: number): void {
    const known = this.#files.get(keyOf('etc', file))!
    known.after = text
    if (mode !== undefined) known.mode = mode
  }

  /** Changes the values of a TOML file; comments and placements stay. A file that is not there is made. */
  async editToml (file: string, edit: (data: Table) => Table): Promise<void> {
    const found = await this.toml(file)
    const { patchToml } = await import('../toml/toml-patch.js')
    const text = found?.text ?? ''
    const next = patchToml(text, edit(found?.data ?? {}), reason => {
      this.#log.warn({ file, reason }, 'the file was rewritten; its comments are lost')
    })
    if (next !== text) this.put(file, next)
  }

  /** A new TOML file. False when there is one, readable or not. Throws `config.write_failed` where there can be none. */
  async create (file: string, text: string, mode?: number): Promise<boolean> {
    const known = this.#files.get(keyOf('etc', file))
    if (known !== undefined) {
      if (known.after !== null) return false
      known.after = text
      return true
    }
    if (await this.#exists(file)) return false
    this.#files.set(keyOf('etc', file), { root: 'etc', file, before: null, after: text, ...(mode === undefined ? {} : { mode }) })
    return true
  }

  /** Whether there was such a file, readable or not. */
  async remove (file: string): Promise<boolean> {
    const key = keyOf('etc', file)
    const known = this.#files.get(key)
    if (known !== undefined) {
      const was = known.after
      known.after = null
      return was !== null
    }
    const found = await lstat(join(this.#paths.etc, file)).then(() => true, () => false)
    if (found) this.#files.set(key, { root: 'etc', file, before: UNREAD, after: null })
    return found
  }

  /** Sets a file that only its owner may read, without reading it; null removes it. Whether there was one on this draft. */
  async putPrivate (file: string, content: string | null): Promise<boolean> {
    const key = keyOf('etc', file)
    const known = this.#files.get(key)
    const before = known === undefined ? await this.#exists(file) ? UNREAD : null : known.before
    this.#files.set(key, { root: 'etc', file, before, after: content, mode: 0o600 })
    return (known === undefined ? before : known.after) !== null
  }

  /** Sets a file of either root as a whole; null removes it. Throws `config.parse_error` for one that cannot be read. */
  async replace (root: FileChange['root'], file: string, content: string | null): Promise<void> {
    const key = keyOf(root, file)
    const known = this.#files.get(key)
    if (known !== undefined) {
      known.after = content
      return
    }
    const read = await readText(join(root === 'etc' ? this.#paths.etc : this.#paths.state, file), file)
    if (read.status === 'bad') throw parseFailed([read.diagnostic])
    this.#files.set(key, { root, file, before: read.status === 'missing' ? null : read.text, after: content })
  }

  /** Whether there is anything of this name below the configuration root. Throws `config.write_failed` where nothing can be. */
  async #exists (file: string): Promise<boolean> {
    const path = join(this.#paths.etc, file)
    return await lstat(path).then(() => true, (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw writeFailed(this.#paths.etc, path, error)
    })
  }
}

/** Stands for content that is not needed; no text can be equal to it. */
const UNREAD = '\0'

function keyOf (root: FileChange['root'], file: string): string {
  return `${root}:${file}`
}

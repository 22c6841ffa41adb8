import { readdir } from 'node:fs/promises'
import type { Diagnostic } from '../../contract/index.js'
import type { Part } from '../parts/config-parts.js'

/** Open files at a time; a folder with thousands of files must not use up the descriptors of the process. */
const PARALLEL_READS = 32

/** A folder below the configuration root with one TOML file for each thing. */
export interface FileFolder<T> {
  readonly path: string
  /** Its name in diagnostics. */
  readonly shown: string
  /** What the stem of a file must look like, and how that is put into words. */
  readonly pattern: RegExp
  readonly misnamed: string
  /** Null when there is no such file any more. */
  readonly load: (name: string) => Promise<Part<T | null> | null>
}

export interface LoadedFolder<T> {
  readonly files: ReadonlyMap<string, Part<T | null>>
  /** Of the folder, and of files in it that are none of its kind. */
  readonly diagnostics: readonly Diagnostic[]
}

/** Null when the folder is there and cannot be listed. */
export async function loadFolder<T> ({ path, shown, pattern, misnamed, load }: FileFolder<T>): Promise<LoadedFolder<T> | null> {
  const stems = await stemsIn(path)
  if (stems === null) return null
  const names = stems.filter(stem => pattern.test(stem))
  const files = new Map<string, Part<T | null>>()
  for (let i = 0; i < names.length; i += PARALLEL_READS) {
    const some = names.slice(i, i + PARALLEL_READS)
    const loaded = await Promise.all(some.map(load))
    loaded.forEach((part, k) => { if (part !== null) files.set(some[k]!, part) })
  }
  return {
    files,
    diagnostics: stems.filter(stem => !pattern.test(stem)).map(stem => ({ file: `${shown}/${stem}.toml`, path: '', message: misnamed }))
  }
}

export function unlistable (shown: string): readonly Diagnostic[] {
  return [{ file: shown, path: '', message: 'cannot be listed; it must be a folder that the gateway may read' }]
}

/** Hidden files are editors' and our own temporary ones. */
async function stemsIn (folder: string): Promise<readonly string[] | null> {
  try {
    const entries = await readdir(folder)
    return entries.filter(entry => entry.endsWith('.toml') && !entry.startsWith('.')).map(entry => entry.slice(0, -'.toml'.length)).sort()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : null
  }
}

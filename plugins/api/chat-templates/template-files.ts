import { constants } from 'node:fs'
import { lstat, open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { ModelRegistry } from 'svc-gateway/plugin'

/** Ids become file names: lowercase letters, digits, `_` and `-`, at most 41. */
export const TEMPLATE_ID = /^[a-z0-9][a-z0-9_-]{0,40}$/
/** Far above any template; a stray file must not be read into memory. */
export const MAX_TEMPLATE_BYTES = 512 * 1024
const MAX_TEMPLATES = 500

export interface TemplateFile {
  readonly id: string
  /** Changes with the content. */
  readonly stamp: string
  readonly sizeBytes: number
}

/** Templates in the folder, by id in order; none where there is no folder. A link is none: it may lead to any file. */
export async function listTemplates (folder: string): Promise<readonly TemplateFile[]> {
  const names = await readdir(folder).catch(ifMissing([]))
  const ids = names.filter(name => name.endsWith('.jinja')).map(name => name.slice(0, -'.jinja'.length)).filter(id => TEMPLATE_ID.test(id))
  const files = await Promise.all(ids.sort().slice(0, MAX_TEMPLATES).map(async id => {
    const stats = await lstat(pathOf(folder, id)).catch(ifMissing(null))
    return stats?.isFile() === true ? { id, stamp: `${stats.mtimeMs}:${stats.size}`, sizeBytes: stats.size } : null
  }))
  return files.filter(file => file !== null)
}

/** Null when there is none. Never follows a link, never reads more than a template may have. */
export async function readTemplate (folder: string, id: string): Promise<string | null> {
  if (!TEMPLATE_ID.test(id)) return null
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const file = await open(pathOf(folder, id), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(ifMissing(null))
  if (file === null) return null
  try {
    if (!(await file.stat()).isFile()) return null
    const bytes = Buffer.alloc(MAX_TEMPLATE_BYTES)
    let length = 0
    for (let read = 1; read > 0; length += read) ({ bytesRead: read } = await file.read(bytes, length, bytes.length - length))
    return bytes.toString('utf8', 0, length)
  } finally {
    await file.close()
  }
}

/** Writes a template whole or not at all. With `fresh`, one that is there stays; false is told then. */
export async function writeTemplate (
  { store, writeFile }: Pick<ModelRegistry, 'store' | 'writeFile'>, id: string, content: string, fresh: boolean
): Promise<boolean> {
  try {
    await writeFile(pathOf(templateFolder(store), id), content, fresh)
    return true
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    // a file in the place of the folder is told in the same way
    if (fresh && code === 'EEXIST' && syscall !== 'mkdir') return false
    throw error
  }
}

export function templateFolder (store: string): string {
  return join(store, 'chat-templates')
}

/** Whether there was one. */
export async function removeTemplate (folder: string, id: string): Promise<boolean> {
  return await unlink(pathOf(folder, id)).then(() => true, ifMissing(false))
}

function pathOf (folder: string, id: string): string {
  return join(folder, `${id}.jinja`)
}

function ifMissing<T> (value: T): (error: NodeJS.ErrnoException) => T {
  return error => {
    // a store that is a file, as a hand-written svc.toml may say, has none either
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'ELOOP') return value
    throw error
  }
}

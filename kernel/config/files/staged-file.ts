import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { makeFolder, realTarget, statOrNull, writeTemp, type FileOps } from './atomic-file.js'
import { uniqueToken } from './process-identity.js'

/** One file that is ready to change: its new content and its old one lie beside it, under names that are swept one day. */
export interface StagedFile {
  /** With symbolic links followed. */
  readonly target: string
  /** Names in the folder of the target; null where there is no such content. */
  readonly next: string | null
  readonly old: string | null
  /** Hashes of the contents, null for no file. */
  readonly before: string | null
  readonly after: string | null
}

/** Puts the new content of a file, null for none, beside it, and keeps its old one. Everything that needs space happens here. */
export async function stageFile (ops: FileOps, path: string, after: string | null, mode?: number): Promise<StagedFile> {
  const target = await realTarget(ops, path)
  await makeFolder(ops, dirname(target))
  const stats = await statOrNull(ops, target)
  const before = stats === null ? null : await readContent(ops, target)
  const next = after === null ? null : tempName(target)
  const old = before === null ? null : tempName(target)
  const folder = dirname(target)
  if (next !== null) await writeTemp(ops, join(folder, next), after!, stats, mode === undefined ? {} : { mode, forceMode: true })
  if (old !== null) await keepOld(ops, target, join(folder, old), before!)
  return { target, next, old, before: hashOf(before), after: hashOf(after) }
}

export function stagedPath ({ target }: StagedFile, name: string): string {
  return join(dirname(target), name)
}

/** Hash of what the file holds now, null when it is not there. */
export async function presentHash (ops: FileOps, target: string): Promise<string | null> {
  return await statOrNull(ops, target) === null ? null : hashOf(await readContent(ops, target))
}

/** Removes what staging left beside the files. Never rejects: what stays is swept at a later start. */
export async function unstage (ops: FileOps, files: readonly StagedFile[]): Promise<void> {
  for (const file of files) {
    for (const name of [file.next, file.old]) {
      if (name !== null) await ops.unlink(stagedPath(file, name)).catch(() => undefined)
    }
  }
}

/** A second name costs no space, and so neither does going back to it; a copy where the file system has no such names. */
async function keepOld (ops: FileOps, target: string, path: string, content: string): Promise<void> {
  try {
    await ops.link(target, path)
  } catch {
    await writeTemp(ops, path, content, await statOrNull(ops, target), {})
  }
}

async function readContent (ops: FileOps, path: string): Promise<string> {
  const file = await ops.open(path, constants.O_RDONLY)
  try {
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

function hashOf (content: string | null): string | null {
  return content === null ? null : createHash('sha256').update(content).digest('hex')
}

function tempName (target: string): string {
  return `.${basename(target)}.${uniqueToken()}.tmp`
}

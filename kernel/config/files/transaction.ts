import * as fsPromises from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { messageOf, type Paths } from '../../contract/index.js'
import { removeFile, statOrNull, syncFolder, writeFileAtomic, type FileOps } from './atomic-file.js'
import { readJournal, removeJournal, turnJournal, writeJournal, type Journal, type JournalEntry } from './journal.js'
import type { WriterContext } from './writer-context.js'
import { presentHash, stagedPath, stageFile, unstage } from './staged-file.js'
import { writeFailed } from './write-errors.js'

/** One file to be. `file` is below its root; null content removes it. */
export interface FileChange {
  readonly root: 'etc' | 'state'
  readonly file: string
  readonly content: string | null
  /** There must be no such file yet; one that appears anyway rejects with EEXIST as its cause. */
  readonly fresh: boolean
  /** The file has it afterwards; without it, a new one gets the usual mode and an old one keeps its own. */
  readonly mode?: number
}

type Place = Pick<FileChange, 'root' | 'file'>
const JOURNAL: Place = { root: 'etc', file: '.config.journal' }

/**
 * Changes several files, all of them or none, also when the process dies in between (README, "Several files at once").
 * Called with the configuration lock held and no journal there. Throws `config.write_failed`; everything is as it was then,
 * or will be after the next `recoverFiles`.
 */
export async function commitFiles (context: WriterContext, changes: readonly FileChange[]): Promise<void> {
  const [only] = changes
  if (only === undefined) return
  if (changes.length === 1) return await commitOne(context, only)
  const ops = opsOf(context)
  const staged: JournalEntry[] = []
  try {
    for (const { root, file, content, mode } of changes) {
      const path = pathOf(context.paths, { root, file })
      staged.push({ root, file, ...await attempt(context, { root, file }, stageFile(ops, path, content, mode)) })
    }
    await syncFolders(context, staged)
    await attempt(context, JOURNAL, writeJournal(context.paths, staged, ops))
  } catch (error) {
    await removeJournal(context.paths, 'finish', ops).catch(() => undefined)
    await unstage(ops, staged)
    throw error
  }
  await carryOut(context, staged)
}

/**
 * Finishes what a process that died had begun, or takes back what one could not finish. Called with the lock held. True
 * when there was something. Throws `config.write_failed`, and `config.parse_error` for an invalid journal.
 */
export async function recoverFiles (context: WriterContext): Promise<boolean> {
  const journal = await readJournal(context.paths)
  if (journal === null) return false
  const { log } = context
  const files = await Promise.all(journal.entries.map(entry => look(opsOf(context), entry)))
  const direction = journal.direction === 'finish' && files.every(canFinish) ? 'finish' : 'undo'
  for (const file of files) {
    if (isForeign(file)) {
      log.warn({ file: file.file }, `${file.file}: was edited while a change of several files was unfinished; your edit is kept`)
    } else {
      await attempt(context, file, direction === 'finish' ? finish(opsOf(context), file) : undo(opsOf(context), file))
    }
  }
  await close(context, files, journal.direction)
  log.warn({ files: files.map(({ file }) => file) }, direction === 'finish'
    ? 'finished a change of several files that had been interrupted'
    : 'rolled back a change of several files that had failed')
  return true
}

/** The journal is there: what fails now is taken back, and what cannot be taken back is left to `recoverFiles`. */
async function carryOut (context: WriterContext, entries: readonly JournalEntry[]): Promise<void> {
  const ops = opsOf(context)
  try {
    for (const entry of entries) await attempt(context, entry, finish(ops, { ...entry, present: entry.before }))
    await close(context, entries, 'finish')
  } catch (error) {
    await takeBack(context, entries)
    throw error
  }
}

async function takeBack (context: WriterContext, entries: readonly JournalEntry[]): Promise<void> {
  const ops = opsOf(context)
  try {
    await turnJournal(context.paths, ops)
    for (const entry of entries) await undo(ops, await look(ops, entry))
    await close(context, entries, 'undo')
  } catch (error) {
    context.log.error({ files: entries.map(({ file }) => file), error: messageOf(error) },
      'a change of several files failed and could not be rolled back yet; the next change or start of the gateway retries')
  }
}

/** One file needs no journal: its rename is the moment. */
async function commitOne (context: WriterContext, change: FileChange): Promise<void> {
  const ops = opsOf(context)
  const path = pathOf(context.paths, change)
  await attempt(context, change, change.content === null
    ? removeFile(path, ops)
    : writeFileAtomic(path, change.content, {
        ops, exclusive: change.fresh, ...(change.mode === undefined ? {} : { mode: change.mode, forceMode: true })
      }))
}

/** A file of the journal as it is found. */
interface FoundFile extends JournalEntry {
  readonly present: string | null
  readonly hasNext: boolean
}

async function look (ops: FileOps, entry: JournalEntry): Promise<FoundFile> {
  const hasNext = entry.next !== null && await statOrNull(ops, stagedPath(entry, entry.next)) !== null
  return { ...entry, present: await presentHash(ops, entry.target), hasNext }
}

function isForeign ({ present, before, after }: FoundFile): boolean {
  return present !== before && present !== after
}

/** False only when the staged files were removed. */
function canFinish (file: FoundFile): boolean {
  return file.after === null || file.present !== file.before || file.hasNext
}

async function finish (ops: FileOps, entry: JournalEntry & { readonly present: string | null }): Promise<void> {
  if (entry.present === entry.after) return
  if (entry.next === null) await ops.unlink(entry.target)
  else await ops.rename(stagedPath(entry, entry.next), entry.target)
}

async function undo (ops: FileOps, entry: FoundFile): Promise<void> {
  if (entry.present === entry.before || isForeign(entry)) return
  if (entry.old === null) await ops.unlink(entry.target)
  else await ops.rename(stagedPath(entry, entry.old), entry.target)
}

/** Only when the files are on disk as they should be, the journal goes. */
async function close (context: WriterContext, entries: readonly JournalEntry[], journal: Journal['direction']): Promise<void> {
  const ops = opsOf(context)
  await syncFolders(context, entries)
  await attempt(context, JOURNAL, removeJournal(context.paths, journal, ops))
  await unstage(ops, entries)
}

async function syncFolders (context: WriterContext, entries: readonly JournalEntry[]): Promise<void> {
  const folders = new Map(entries.map(entry => [dirname(entry.target), entry]))
  for (const [folder, entry] of folders) await attempt(context, entry, syncFolder(opsOf(context), folder))
}

function pathOf (paths: Paths, { root, file }: Place): string {
  return join(root === 'etc' ? paths.etc : paths.state, file)
}

async function attempt<T> (context: WriterContext, place: Place, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    const { paths } = context
    throw writeFailed(place.root === 'etc' ? paths.etc : paths.state, pathOf(paths, place), error)
  }
}

function opsOf ({ ops }: WriterContext): FileOps {
  return ops ?? fsPromises
}

import { leftBehind, sweepTempFiles } from './atomic-file.js'
import { isUnfinished } from './journal.js'
import type { WriterContext } from './writer-context.js'
import { recoverFiles } from './transaction.js'
import { writtenFolders } from './written-folders.js'

/**
 * What a start does before it reads: finishes or takes back an interrupted change of several files, and only then sweeps
 * what dead writers left, because the new and the old contents of that change lie among it. Both with the lock held, so
 * that no change begins in between; without anything to do it takes no lock. Throws as `recoverFiles` does.
 */
export async function recoverHome (
  context: WriterContext, locked: (work: () => Promise<void>) => Promise<void>, nowMs: number
): Promise<void> {
  const { paths } = context
  const folders = await writtenFolders(paths)
  const hasLeftovers = async (): Promise<boolean> =>
    (await Promise.all(folders.map(folder => leftBehind(folder, nowMs)))).some(names => names.length > 0)
  if (!await isUnfinished(paths) && !await hasLeftovers()) return
  try {
    await locked(async () => {
      await recoverFiles(context)
      await Promise.all(folders.map(folder => sweepTempFiles(folder, nowMs)))
    })
  } catch (error) {
    // on a home that cannot be written to, leftovers may stay; half a change may not
    if (await isUnfinished(paths)) throw error
  }
}

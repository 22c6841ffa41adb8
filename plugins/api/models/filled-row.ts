import { stat } from 'node:fs/promises'
import { isSvcError, type NewModelRow } from 'svc-gateway/plugin'
import type { ModelLibrary } from '../../services/library/ref.js'

/**
 * A row with what it leaves open taken from the header of its file. One that is not readable here changes nothing: the caller
 * may know better. Rejects with `model.path_missing`, with `model.unsupported_format` for a file that is no model at all, and
 * with the signal's reason.
 */
export async function filledRow (library: ModelLibrary, row: NewModelRow, signal: AbortSignal): Promise<NewModelRow> {
  const seen = await library.describe(row.path, signal).catch(async (error: unknown) => {
    if (isSvcError(error) && error.code === 'model.path_missing') throw error
    // any other file of this machine is none of the registry's; what is a folder its engine judges
    const isFile = await stat(row.path).then(stats => !stats.isDirectory(), () => false)
    if (isFile && isSvcError(error) && error.code === 'model.unsupported_format') throw error
    return null
  })
  signal.throwIfAborted()
  if (seen === null || seen.kind !== 'model') return row
  const given = Object.fromEntries(Object.entries(row).filter(([key, value]) => !isOpen(key, value)))
  return { ...seen.row, ...given, path: row.path, metadata: { ...seen.row.metadata, ...row.metadata } }
}

function isOpen (key: string, value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === 0) return true
  if (Array.isArray(value)) return value.length === 0
  return key === 'license' && value === 'unknown'
}

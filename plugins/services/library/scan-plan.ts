import { basename, dirname } from 'node:path'
import type { Model, NewModelRow } from 'svc-gateway/plugin'
import type { ModelSuggestion } from './ref.js'

export interface ScanPlan {
  readonly rows: ReadonlyMap<string, NewModelRow>
  readonly skipped: ReadonlyArray<{ readonly path: string, readonly reason: string }>
}

/** Which of the files found get a row, and under which id; two files of one name are told apart by their folder. Pure. */
export function newRows (found: readonly ModelSuggestion[], known: ReadonlyMap<string, Model>): ScanPlan {
  const rows = new Map<string, NewModelRow>()
  const skipped: Array<{ path: string, reason: string }> = []
  const paths = new Set([...known.values()].map(model => model.path))
  for (const { id, path, row, problem } of found) {
    if (paths.has(path)) skipped.push({ path, reason: 'already_registered' })
    else if (problem !== null) skipped.push({ path, reason: `invalid_model: ${problem}` })
    else {
      rows.set(freeId(id, path, candidate => known.has(candidate) || rows.has(candidate)), row)
      paths.add(path)
    }
  }
  return { rows, skipped }
}

function freeId (id: string, path: string, taken: (id: string) => boolean): string {
  if (!taken(id)) return id
  const longer = `${basename(dirname(path)).replace(/\s+/g, '-')}-${id}`
  if (!taken(longer)) return longer
  for (let n = 2; ; n++) if (!taken(`${longer}-${n}`)) return `${longer}-${n}`
}

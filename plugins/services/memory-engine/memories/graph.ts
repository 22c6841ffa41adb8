import type { Core } from '../core.js'
import { differences } from '../recall/hamming.js'
import { embedIdentity } from '../recall/model-calls.js'
import { codeOf, dot, knownModel, vectorsOf } from '../recall/vector-table.js'
import { Turns } from '../store/turn.js'
import { namesOf, type ShownMemory } from './view.js'

export interface Edge {
  readonly source: string
  readonly target: string
  readonly kind: 'entity' | 'document' | 'tag' | 'temporal' | 'semantic'
  readonly weight: number
  /** Of `entity`. */
  readonly name: string
}

const DAY_MS = 86_400_000
/** The first of them are: each is compared with each. */
const MOST_COMPARED = 2000
const NEAREST = 3
const COMPARED_EXACTLY = 12
const LEAST_COSINE = 0.5

/**
 * How these memories hang together. Those that share a name, a document, a tag or a day are tied as a chain and not each with
 * each, so that a graph grows with its nodes; nearest neighbours come from vectors, where there are some, of the first 2,000.
 * Requests are served while vectors are compared.
 */
export async function edgesOf (core: Core, rows: readonly ShownMemory[], signal: AbortSignal): Promise<readonly Edge[]> {
  const chain = (kind: Edge['kind'], keysOf: (row: ShownMemory) => readonly string[]): Edge[] => {
    const groups = new Map<string, ShownMemory[]>()
    for (const row of rows) {
      for (const key of keysOf(row)) {
        const members = groups.get(key)
        if (members === undefined) groups.set(key, [row])
        else members.push(row)
      }
    }
    return [...groups].flatMap(([key, members]) => members.slice(1).map((row, i) => (
      { source: members[i]!.id, target: row.id, kind, weight: 1, name: kind === 'entity' ? key : '' })))
  }
  const dated = rows.filter(row => row.mentioned_at !== null).sort((a, b) => a.mentioned_at! - b.mentioned_at!)
  const temporal = dated.slice(1).flatMap((row, i) => {
    const gap = row.mentioned_at! - dated[i]!.mentioned_at!
    return gap > DAY_MS ? [] : [{ source: dated[i]!.id, target: row.id, kind: 'temporal' as const, weight: 1 - gap / DAY_MS, name: '' }]
  })
  return [
    ...chain('entity', namesOf), ...chain('document', row => row.document_id === null ? [] : [row.document_id]),
    ...chain('tag', row => JSON.parse(row.tags) as string[]), ...temporal, ...await semanticEdges(core, rows.slice(0, MOST_COMPARED), signal)
  ]
}

async function semanticEdges (core: Core, rows: readonly ShownMemory[], signal: AbortSignal): Promise<readonly Edge[]> {
  const identity = embedIdentity(core)
  if (identity === null) return []
  const ids = new Map(rows.map(row => [row.seq, row.id]))
  const all = vectorsOf(core.store, knownModel(core.store, identity), [...ids.keys()])
    .map(({ seq, vector }) => ({ id: ids.get(seq)!, vector, code: codeOf(vector) }))
  const words = all[0]?.code.length ?? 0
  const codes = new Uint32Array(all.length * words)
  for (const [i, { code }] of all.entries()) codes.set(code, i * words)
  const edges = new Map<string, Edge>()
  const turns = new Turns(signal)
  for (const [i, one] of all.entries()) {
    const near = nearestTo(i, differences(one.code, codes, all.length))
      .map(at => ({ at, cosine: dot(one.vector, all[at]!.vector) }))
      .filter(({ cosine }) => cosine >= LEAST_COSINE).sort((a, b) => b.cosine - a.cosine).slice(0, NEAREST)
    for (const { at, cosine } of near) {
      const [source, target] = [one.id, all[at]!.id].sort() as [string, string]
      edges.set(`${source} ${target}`, { source, target, kind: 'semantic', weight: cosine, name: '' })
    }
    await turns.next()
  }
  return [...edges.values()]
}

/** Those whose signs differ least from those of `i`, in their order. Pure. */
function nearestTo (i: number, distances: Uint16Array): readonly number[] {
  const near: number[] = []
  for (let at = 0; at < distances.length; at++) {
    const distance = distances[at]!
    if (at === i || (near.length === COMPARED_EXACTLY && distance >= distances[near.at(-1)!]!)) continue
    let place = near.length
    while (place > 0 && distances[near[place - 1]!]! > distance) place--
    near.splice(place, 0, at)
    if (near.length > COMPARED_EXACTLY) near.pop()
  }
  return near
}

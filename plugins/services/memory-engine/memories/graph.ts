import type { Core } from '../core.js'
import { embedIdentity } from '../recall/model-calls.js'
import { codeOf, dot, knownModel, vectorsOf } from '../recall/vector-table.js'
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
/** Above that, neighbours by vectors are left out: each is compared with each. */
const MOST_COMPARED = 2000
const NEAREST = 3
const COMPARED_EXACTLY = 12
const LEAST_COSINE = 0.5

/**
 * How these memories hang together. Those that share a name, a document, a tag or a day are tied as a chain and not each with
 * each, so that a graph grows with its nodes; nearest neighbours come from vectors, where there are some.
 */
export function edgesOf (core: Core, rows: readonly ShownMemory[]): readonly Edge[] {
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
    ...chain('tag', row => JSON.parse(row.tags) as string[]), ...temporal, ...semanticEdges(core, rows)
  ]
}

function semanticEdges (core: Core, rows: readonly ShownMemory[]): readonly Edge[] {
  const identity = embedIdentity(core)
  if (identity === null || rows.length > MOST_COMPARED) return []
  const ids = new Map(rows.map(row => [row.seq, row.id]))
  const all = vectorsOf(core.store, knownModel(core.store, identity), [...ids.keys()])
    .map(({ seq, vector }) => ({ id: ids.get(seq)!, vector, code: codeOf(vector) }))
  const edges = new Map<string, Edge>()
  for (const [i, one] of all.entries()) {
    const rough = all.map((other, at) => ({ at, distance: distanceOf(one.code, other.code) })).filter(({ at }) => at !== i)
      .sort((a, b) => a.distance - b.distance).slice(0, COMPARED_EXACTLY)
    const near = rough.map(({ at }) => ({ at, cosine: dot(one.vector, all[at]!.vector) }))
      .filter(({ cosine }) => cosine >= LEAST_COSINE).sort((a, b) => b.cosine - a.cosine).slice(0, NEAREST)
    for (const { at, cosine } of near) {
      const [source, target] = [one.id, all[at]!.id].sort() as [string, string]
      edges.set(`${source} ${target}`, { source, target, kind: 'semantic', weight: cosine, name: '' })
    }
  }
  return [...edges.values()]
}

function distanceOf (a: Uint32Array, b: Uint32Array): number {
  let distance = 0
  for (let i = 0; i < a.length; i++) {
    let x = a[i]! ^ b[i]!
    x -= (x >>> 1) & 0x55555555
    x = (x & 0x33333333) + ((x >>> 2) & 0x33333333)
    distance += Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
  }
  return distance
}

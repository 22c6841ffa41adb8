/** An id as a part of a chunk's id: what parts are divided by is written otherwise. */
function escaped (id: string): string {
  return id.replaceAll('~', '~7E').replaceAll('_', '~5F')
}

/** `{bank}_{document}_{index}` Pure. */
export function chunkIdOf (bankId: string, documentId: string, index: number): string {
  return `${bankId}_${escaped(documentId)}_${index}`
}

export interface ChunkPlace {
  readonly bankId: string
  readonly documentId: string
  readonly index: number
}

/** The place that a chunk's id names: an escaped document id has no `_`, so the last two mark it. Null if it is none. Pure. */
export function readChunkId (id: string): ChunkPlace | null {
  const parts = /^(?<bank>.+)_(?<document>[^_]+)_(?<index>\d{1,9})$/s.exec(id)?.groups
  if (parts === undefined) return null
  const documentId = parts.document!.replaceAll(/~(5F|7E)/g, (_, code: string) => code === '5F' ? '_' : '~')
  return { bankId: parts.bank!, documentId, index: Number(parts.index) }
}

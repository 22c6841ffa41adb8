import { datasetName } from '../namespaces.js'

/** A memory as the provider routes and tools show it. */
export interface Note {
  /** Of the document that it belongs to: what `delete` takes. */
  readonly id: string
  /** Of the single memory in its bank. */
  readonly memory_id: string
  readonly text: string
  /** ISO 8601; empty if unknown. */
  readonly timestamp: string
  readonly dataset: string
  readonly tags: readonly string[]
  /** The agent that wrote it; null if unknown. */
  readonly source: string | null
  readonly metadata: Readonly<Record<string, string>>
  /** Null in lists, where nothing was searched for. */
  readonly score: number | null
  /** `world`, `experience` or `observation`; null if unknown. */
  readonly type: string | null
}

/** A memory that was searched for, with what found it. */
export interface FoundNote {
  readonly note: Note
  /** 0 to 1; null if no word was found, or the engine does not say. */
  readonly keyword: number | null
  /** Cosine; null without a vector, or where the engine does not say. */
  readonly semantic: number | null
}

export const AGENT_TAG = 'agent:'
export const PRIVATE_TAG = 'visibility:private'
/** How tags begin that are the gateway's to set: they say who wrote and who may read. */
export const STAMPS = [AGENT_TAG, 'visibility:'] as const

/** A row of recall, of a list or of one memory, which the wire spells differently. Pure. */
export function noteOf (row: Readonly<Record<string, unknown>>, bank: string): Note {
  const tags = Array.isArray(row.tags) ? row.tags.filter(tag => typeof tag === 'string') : []
  const id = textIn(row.id) ?? ''
  const { final } = (row.scores ?? {}) as { readonly final?: unknown }
  return {
    id: textIn(row.document_id) ?? id,
    memory_id: id,
    text: textIn(row.text) ?? '',
    timestamp: textIn(row.mentioned_at) ?? textIn(row.occurred_start) ?? textIn(row.date) ?? textIn(row.created_at) ?? '',
    dataset: datasetName(bank),
    tags,
    source: tags.find(tag => tag.startsWith(AGENT_TAG))?.slice(AGENT_TAG.length) ?? null,
    metadata: metadataIn(row.metadata),
    score: typeof final === 'number' ? final : null,
    type: textIn(row.type) ?? textIn(row.fact_type)
  }
}

/** Of a row of recall. Pure. */
export function foundOf (row: Readonly<Record<string, unknown>>, bank: string): FoundNote {
  const { keyword, semantic } = (row.scores ?? {}) as { readonly keyword?: unknown, readonly semantic?: unknown }
  return {
    note: noteOf(row, bank),
    keyword: typeof keyword === 'number' ? keyword : null,
    semantic: typeof semantic === 'number' ? semantic : null
  }
}

/** Those that are no stamps, each once. Pure. */
export function ownTags (tags: readonly string[]): string[] {
  return [...new Set(tags)].filter(tag => !STAMPS.some(stamp => tag.startsWith(stamp)))
}

function metadataIn (value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, typeof one === 'string' ? one : JSON.stringify(one)]))
}

function textIn (value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

import {
  ALIASES, bankTables, HIDDEN, HIDDEN_OBSERVATIONS, SCHEMA_VERSION, type Archive, type TransferDocument, type TransferFact,
  type TransferObservation
} from './archive.js'
import { aliasesIn } from '../aliases/archived.js'
import { factTypes } from '../store/memory-table.js'
import { turn } from '../store/turn.js'
import { array, moment, object, oneOf, optional, strings, text, time, whole, type JsonRow } from './checked.js'
import { withHidden } from './hidden.js'
import { changesOf, eventsOf } from './histories.js'
import { recordOf } from './import-records.js'
import { DEEPEST, jsonSize } from './json-size.js'
import { TooLarge, unzipped } from './zip.js'

/** What an archive may hold unpacked. */
export const MAX_UNPACKED_BYTES = 512 * 1024 ** 2

const AUDIT_LOG = 'history/audit_log.json'

/** How a bank comes in that is larger. */
export const IN_PARTS = 'export its documents in parts, by document_id, and import one part after the other'

/** Values take many times their bytes, and packed next to none: those of all files are counted before they are read. */
const MOST_VALUES = 16_000_000

/** Requests are served after so many bytes of an archive's files. */
const BYTES_AT_ONCE = 256 * 1024

/** An archive, checked whole; requests are served meanwhile. Rejects with an Error that says what is wrong with it and where. */
export async function readArchive (bytes: Buffer): Promise<Archive> {
  const files = await filesOf(bytes)
  if (!files.has('manifest.json')) throw new Error('Invalid transfer archive: manifest.json is missing')
  const manifest = object(parsed(files, 'manifest.json'), 'manifest.json')
  if (manifest.schema_version !== SCHEMA_VERSION) {
    throw new Error(`Unsupported transfer archive schema version ${String(manifest.schema_version)} (this build supports ${SCHEMA_VERSION})`)
  }
  const type = manifest.archive_type === 'bank' ? 'bank' : 'documents'
  const names = [...files.keys()].filter(name => name.startsWith('documents/') && name.endsWith('.json')).toSorted()
  const documents: TransferDocument[] = []
  await eachInTurns(names, name => files.get(name)!.length, name => { documents.push(documentOf(parsed(files, name), name)) })
  const observations = list(files, 'observations.json').map((each, n) => observationOf(each, `observations.json[${n}]`))
  mustBeWhole(manifest, documents, observations)
  const hidden = list(files, HIDDEN_OBSERVATIONS).map((each, n) => hiddenObservationOf(each, `${HIDDEN_OBSERVATIONS}[${n}]`))
  const rowsOf = (name: string): JsonRow[] => list(files, name).map((row, n) => object(row, `${name}[${n}]`))
  return {
    type,
    sourceBankId: text(manifest.source_bank_id, 'manifest.json: source_bank_id'),
    documents: withHidden(documents, rowsOf(HIDDEN), factOf),
    observations: [...observations, ...hidden],
    rows: Object.fromEntries(bankTables.filter(table => files.has(`${table}.json`)).map(table => [table, rowsOf(`${table}.json`)])),
    knowledgePages: rowsOf('knowledge_pages.json'),
    records: rowsOf(AUDIT_LOG).map((row, n) => recordOf(row, `${AUDIT_LOG}[${n}]`)),
    aliases: aliasesIn(rowsOf(ALIASES), ALIASES)
  }
}

async function filesOf (bytes: Buffer): Promise<ReadonlyMap<string, Buffer>> {
  const files = new Map<string, Buffer>()
  try {
    await eachInTurns(unzipped(bytes, MAX_UNPACKED_BYTES), ([, file]) => file.length, ([name, file]) => { files.set(name, file) })
  } catch (error) {
    throw new Error(`Invalid transfer archive: ${(error as Error).message}${error instanceof TooLarge ? `; ${IN_PARTS}` : ''}`)
  }
  let values = 0
  await eachInTurns(files, ([, file]) => file.length, ([name, file]) => {
    const size = jsonSize(file)
    if (size.depth > DEEPEST && name.endsWith('.json')) throw new Error(`Invalid transfer archive: ${name} nests more than ${DEEPEST} deep`)
    values += size.values
    if (values > MOST_VALUES) throw new Error(`Invalid transfer archive: it holds more than ${MOST_VALUES} values; ${IN_PARTS}`)
  })
  return files
}

async function eachInTurns<T> (all: Iterable<T>, bytesOf: (each: T) => number, work: (each: T) => void): Promise<void> {
  let left = BYTES_AT_ONCE
  for (const each of all) {
    work(each)
    left -= bytesOf(each)
    if (left > 0) continue
    left = BYTES_AT_ONCE
    await turn()
  }
}

function mustBeWhole (
  manifest: JsonRow, documents: readonly TransferDocument[], observations: readonly TransferObservation[]
): void {
  const counts = { document_count: documents.length, observation_count: observations.length }
  for (const [name, count] of Object.entries(counts)) {
    const said = manifest[name] ?? 0
    if (said !== count) throw new Error(`Invalid transfer archive: its manifest says ${name} ${String(said)}, and it holds ${count}`)
  }
  const ids = new Set<string>()
  for (const { id } of documents) {
    if (ids.has(id)) throw new Error(`Invalid transfer archive: it holds document '${id}' twice`)
    ids.add(id)
  }
}

function parsed (files: ReadonlyMap<string, Buffer>, name: string): unknown {
  try {
    return JSON.parse(files.get(name)!.toString())
  } catch {
    throw new Error(`Invalid transfer archive: ${name} is not JSON`)
  }
}

function list (files: ReadonlyMap<string, Buffer>, name: string): unknown[] {
  return files.has(name) ? array(parsed(files, name), name) : []
}

function documentOf (value: unknown, at: string): TransferDocument {
  const row = object(value, at)
  return {
    id: text(row.id, `${at}: id`),
    original_text: optional(row.original_text, `${at}: original_text`),
    retain_params: row.retain_params === null || row.retain_params === undefined ? null : object(row.retain_params, `${at}: retain_params`),
    tags: strings(row.tags, `${at}: tags`),
    observation_scopes: row.observation_scopes ?? null,
    created_at: time(row.created_at, `${at}: created_at`),
    chunks: array(row.chunks ?? [], `${at}: chunks`).map((chunk, n) => {
      const place = `${at}: chunks[${n}]`
      const { chunk_index: index, chunk_text: chunkText } = object(chunk, place)
      return { chunk_index: whole(index, `${place}.chunk_index`), chunk_text: text(chunkText, `${place}.chunk_text`) }
    }),
    facts: array(row.facts ?? [], `${at}: facts`).map((fact, n) => factOf(fact, `${at}: facts[${n}]`)),
    invalidated: array(row.invalidated ?? [], `${at}: invalidated`).map((fact, n) => factOf(fact, `${at}: invalidated[${n}]`)),
    events: eventsOf(row.events, `${at}: events`)
  }
}

function factOf (value: unknown, at: string): TransferFact {
  const row = object(value, at)
  const metadata = object(row.metadata ?? {}, `${at}.metadata`)
  for (const [key, each] of Object.entries(metadata)) text(each, `${at}.metadata.${key}`)
  return {
    text: text(row.text, `${at}.text`),
    source_id: optional(row.source_id, `${at}.source_id`),
    fact_type: oneOf(row.fact_type, factTypes, `${at}.fact_type`),
    context: optional(row.context, `${at}.context`),
    event_date: time(row.event_date, `${at}.event_date`),
    ...times(row, at),
    metadata: metadata as Record<string, string>,
    tags: strings(row.tags, `${at}.tags`),
    observation_scopes: row.observation_scopes ?? null,
    chunk_index: row.chunk_index === null || row.chunk_index === undefined ? null : whole(row.chunk_index, `${at}.chunk_index`),
    entities: strings(row.entities, `${at}.entities`),
    causal_relations: array(row.causal_relations ?? [], `${at}.causal_relations`).map((relation, n) => {
      const { relation_type: kind, target_fact_index: target } = object(relation, `${at}.causal_relations[${n}]`)
      return { relation_type: text(kind, `${at}.causal_relations[${n}].relation_type`), target_fact_index: whole(target, `${at}.causal_relations[${n}].target_fact_index`) }
    }),
    created_at: time(row.created_at, `${at}.created_at`),
    consolidated_at: time(row.consolidated_at, `${at}.consolidated_at`),
    consolidation_failed_at: time(row.consolidation_failed_at, `${at}.consolidation_failed_at`),
    invalidation_reason: optional(row.invalidation_reason, `${at}.invalidation_reason`),
    invalidated_at: time(row.invalidated_at, `${at}.invalidated_at`),
    edited_at: time(row.edited_at, `${at}.edited_at`),
    changes: changesOf(row.changes, `${at}.changes`)
  }
}

function observationOf (value: unknown, at: string): TransferObservation {
  const row = object(value, at)
  return {
    source_id: optional(row.source_id, `${at}.source_id`),
    text: text(row.text, `${at}.text`),
    context: optional(row.context, `${at}.context`),
    entities: strings(row.entities, `${at}.entities`),
    tags: strings(row.tags, `${at}.tags`),
    created_at: time(row.created_at, `${at}.created_at`),
    edited_at: time(row.edited_at, `${at}.edited_at`),
    changes: changesOf(row.changes, `${at}.changes`),
    event_date: time(row.event_date, `${at}.event_date`),
    ...times(row, at),
    observation_scopes: row.observation_scopes ?? null,
    proof_count: row.proof_count === undefined ? 1 : whole(row.proof_count, `${at}.proof_count`),
    sources: array(row.sources ?? [], `${at}.sources`).map((source, n) => {
      const { document_id: document, fact_index: index } = object(source, `${at}.sources[${n}]`)
      return { document_id: text(document, `${at}.sources[${n}].document_id`), fact_index: whole(index, `${at}.sources[${n}].fact_index`) }
    })
  }
}

function hiddenObservationOf (value: unknown, at: string): TransferObservation {
  const { invalidation_reason: reason, invalidated_at: since } = object(value, at)
  return {
    ...observationOf(value, at),
    invalidation_reason: optional(reason, `${at}.invalidation_reason`), invalidated_at: moment(since, `${at}.invalidated_at`)
  }
}

function times (row: JsonRow, at: string): Pick<TransferFact, 'occurred_start' | 'occurred_end' | 'mentioned_at'> {
  return {
    occurred_start: time(row.occurred_start, `${at}.occurred_start`),
    occurred_end: time(row.occurred_end, `${at}.occurred_end`),
    mentioned_at: time(row.mentioned_at, `${at}.mentioned_at`)
  }
}

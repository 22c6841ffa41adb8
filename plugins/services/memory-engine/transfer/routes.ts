import { bankOf } from '../aliases/alias.js'
import type { Core } from '../core.js'
import type { NewOperation } from '../operations/operation-table.js'
import { operationsOf } from '../operations/operations.js'
import { findBank, LONGEST_ID_BYTES, needBank } from '../store/bank-table.js'
import { BANK, json, WireError, type Handler, type WireAnswer, type WireRoute } from '../wire/answer.js'
import { fileOf, readForm, type FormPart } from '../wire/multipart.js'
import { bool, listOf, maybe, optional, readQuery, required, text } from '../wire/shape.js'
import type { Archive } from './archive.js'
import type { ExportOptions } from './export.js'
import { findExport, keepUpload } from './file-table.js'
import { conflictModes, type ConflictMode } from './merge.js'
import { IN_PARTS, readArchive } from './read-archive.js'
import type { ClonePayload, ImportPayload } from './works.js'

const MAX_UPLOAD_BYTES = 100 * 1024 * 1024
const importModes = ['restore', 'merge'] as const

const exportDocuments: Handler = ({ core, params, query, ignored }) => {
  const { document_id: ids, include_observations: observations, include_knowledge_base: knowledge } = readQuery(query, ignored, {
    document_id: maybe(listOf(text)), include_observations: optional(bool, false), include_knowledge_base: optional(bool, false)
  }, ['document_id'])
  if (ids !== null && (observations || knowledge)) {
    throw new WireError(400, 'include_observations and include_knowledge_base are only supported when exporting the whole bank (omit document_id)')
  }
  const options: ExportOptions = { type: 'documents', documentIds: ids, data: true, observations, knowledge, config: false, history: false }
  return submitted(core, { bankId: needBank(core.store, params.bank_id!).bank_id, type: 'export_documents', payload: options })
}

const exportBank: Handler = ({ core, params, query, ignored }) => {
  const {
    include_data: data, include_bank_config: config, include_history: history, document_id: ids
  } = readQuery(query, ignored, {
    ...parts, document_id: maybe(listOf(text))
  }, ['document_id'])
  const options: ExportOptions = { type: 'bank', documentIds: ids, data, observations: data && ids === null, knowledge: data && ids === null, config, history }
  return submitted(core, { bankId: needBank(core.store, params.bank_id!).bank_id, type: 'export_bank', payload: options })
}

const parts = {
  include_data: optional(bool, true), include_bank_config: optional(bool, true), include_history: optional(bool, false)
}

const importDocuments: Handler = async ({ core, params, query, body, headers, ignored }) => {
  const { on_conflict: given } = readQuery(query, ignored, { on_conflict: optional(text, 'skip') })
  const onConflict = conflictOf('on_conflict', given)
  const { file } = await uploaded(body, headers)
  const { bank_id: bankId } = needBank(core.store, params.bank_id!)
  const payload: ImportPayload = { onConflict, target: null }
  return submittedWithFile(core, { bankId, type: 'import_documents', filename: file.filename, payload }, file)
}

const importBank: Handler = async ({ core, params, query, body, headers, ignored }) => {
  const given = readQuery(query, ignored, {
    mode: optional(text, 'restore'), target_bank_id: maybe(text), document_conflict: optional(text, 'skip'), include_data: maybe(bool),
    include_bank_config: maybe(bool), include_history: maybe(bool), include_aliases: optional(bool, false)
  })
  if (!importModes.includes(given.mode as 'restore')) throw new WireError(400, `Invalid mode '${given.mode.slice(0, 50)}'. Must be one of: ${importModes.join(', ')}`)
  const onConflict = conflictOf('document_conflict', given.document_conflict)
  const { file, archive } = await uploaded(body, headers)
  if (archive.type !== 'bank') throw new WireError(400, `Not a whole-bank archive (archive_type='documents'); use document-transfer instead`)
  const target = bankOf(core.store, given.target_bank_id ?? params.bank_id!)
  mustBeName(target)
  const isNew = given.mode === 'restore'
  if (isNew && findBank(core.store, target) !== undefined) {
    throw new WireError(409, `Target bank '${target}' already exists; delete it first, pass another target_bank_id, or use mode=merge`)
  }
  const payload: ImportPayload = {
    onConflict, target: {
      bankId: target, isNew, data: given.include_data ?? true, config: given.include_bank_config ?? true,
      history: given.include_history ?? true, aliases: given.include_aliases
    }
  }
  return submittedWithFile(core, { bankId: params.bank_id!, type: 'import_bank', filename: file.filename, payload }, file)
}

const clone: Handler = ({ core, params, query, ignored }) => {
  const { target_bank_id: target, include_data: data, include_bank_config: config } = readQuery(query, ignored, {
    target_bank_id: required(text), ...parts
  })
  const { bank_id: bankId } = needBank(core.store, params.bank_id!)
  mustBeName(target)
  if (findBank(core.store, bankOf(core.store, target)) !== undefined) throw new WireError(409, `Target bank '${target}' already exists`)
  const payload: ClonePayload = { target, data, config }
  return submitted(core, { bankId, type: 'clone_bank', payload })
}

const download: Handler = ({ core, params }) => {
  const file = findExport(core.store, params.key!)
  if (file === null || !params.key!.startsWith('banks/')) throw new WireError(404, 'File not found')
  return {
    status: 200,
    headers: { 'content-type': 'application/zip', 'content-disposition': `attachment; filename="${file.filename}"`, 'content-length': String(file.size) },
    body: file.parts()
  }
}

function mustBeName (bankId: string): void {
  if (bankId.trim() === '' || bankId.includes('/') || Buffer.byteLength(bankId) > LONGEST_ID_BYTES) {
    throw new WireError(400, `target_bank_id must be the id of a bank, of at most ${LONGEST_ID_BYTES} bytes and without a slash`)
  }
}

function conflictOf (name: string, given: string): ConflictMode {
  if (!conflictModes.includes(given as ConflictMode)) {
    throw new WireError(400, `Invalid ${name} '${given.slice(0, 50)}'. Must be one of: ${conflictModes.join(', ')}`)
  }
  return given as ConflictMode
}

/** The archive of a form, checked whole before anything is changed. */
async function uploaded (body: Buffer, headers: Readonly<Record<string, string>>): Promise<{
  readonly file: FormPart
  readonly archive: Archive
}> {
  if (body.length > MAX_UPLOAD_BYTES) throw new WireError(400, `The archive is larger than ${MAX_UPLOAD_BYTES / 1024 / 1024} MB; ${IN_PARTS}`)
  const file = fileOf(readForm(body, headers), 'file')
  try {
    return { file, archive: await readArchive(file.bytes) }
  } catch (error) {
    throw new WireError(400, (error as Error).message)
  }
}

function submitted (core: Core, operation: NewOperation): WireAnswer {
  return json({ operation_id: operationsOf(core).submit(operation).id, status: 'pending' }, 202)
}

function submittedWithFile (core: Core, operation: NewOperation, { filename, bytes }: FormPart): WireAnswer {
  return core.store.transaction(() => {
    const { id } = operationsOf(core).submit(operation)
    keepUpload(core.store, id, { filename: filename ?? 'transfer.zip', bytes })
    return json({ operation_id: id, status: 'pending' }, 202)
  })
}

const GONE = 'This endpoint has been removed. Document export is asynchronous: POST /v1/default/banks/{bank_id}/document-transfer/export, then poll ' +
  'GET /v1/default/banks/{bank_id}/operations/{operation_id} and download its result_metadata.download_url.'

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/document-transfer`, handler: () => json({ detail: GONE }, 410) },
  { method: 'POST', path: `${BANK}/document-transfer`, handler: importDocuments },
  { method: 'POST', path: `${BANK}/document-transfer/export`, handler: exportDocuments },
  { method: 'POST', path: `${BANK}/transfer/export`, handler: exportBank },
  { method: 'POST', path: `${BANK}/transfer/import`, handler: importBank },
  { method: 'POST', path: `${BANK}/clone`, handler: clone },
  { method: 'GET', path: '/v1/default/files/download/{key*}', handler: download }
]

import type { Core } from '../core.js'
import { operationsOf } from '../operations/operations.js'
import { ensureBank } from '../store/bank-table.js'
import { readRetain } from '../retain/request.js'
import { BANK, json, WireError, type Handler, type WireRoute } from '../wire/answer.js'
import { readForm, type FormPart } from '../wire/multipart.js'
import { unprocessable } from '../wire/shape.js'
import { randomUUID } from 'node:crypto'

const MAX_FILES = 10
const MAX_BYTES = 100 * 1024 * 1024
const textTypes = /^text\/|^application\/(json|xml|yaml|x-yaml|x-ndjson|javascript|toml)|\+(json|xml)$/
const textNames = /\.(txt|md|markdown|rst|csv|tsv|json|jsonl|xml|html?|ya?ml|toml|ini|log|tex|[cm]?[jt]sx?|py|rb|go|rs|java|c|h|cpp|sh|sql)$/i

interface FileOrder {
  readonly files_metadata?: ReadonlyArray<Readonly<Record<string, unknown>> | null>
  readonly document_tags?: readonly string[]
}

/** Files of text, each an asynchronous retain of its own. Others need a converter, which this engine does not have. */
const retainFiles: Handler = ({ core, params, body, headers, ignored }) => {
  if (body.length > MAX_BYTES) throw new WireError(400, `The files are larger than ${MAX_BYTES / 1024 / 1024} MB together`)
  const parts = readForm(body, headers)
  const files = parts.filter(({ name, filename }) => name === 'files' && filename !== null)
  if (files.length === 0) throw unprocessable([{ type: 'missing', loc: ['body', 'files'], msg: 'Field required', input: null }])
  if (files.length > MAX_FILES) throw new WireError(400, `At most ${MAX_FILES} files in one call`)
  const order = orderOf(parts.find(({ name }) => name === 'request'))
  const items = files.map((file, n) => {
    const {
      document_id: documentId = null, context = null, metadata = null, tags = null, timestamp = null
    } = order.files_metadata?.[n] ?? {}
    return { content: textOf(file, n), document_id: documentId ?? `file_${randomUUID()}`, context, metadata, tags, timestamp }
  })
  const request = { items, ...order.document_tags !== undefined && { document_tags: order.document_tags } }
  const read = readRetain(Buffer.from(JSON.stringify(request)), { 'content-type': 'application/json' }, ignored, core.now())
  return json({ operation_ids: submitAll(core, params.bank_id!, files, read.items) })
}

function submitAll (core: Core, bank: string, files: readonly FormPart[], items: ReturnType<typeof readRetain>['items']): readonly string[] {
  return core.store.transaction(() => {
    const { bank_id: bankId } = ensureBank(core.store, bank, core.now())
    return items.map((item, n) => operationsOf(core).submit({
      bankId, type: 'file_convert_retain', itemsCount: 1, documentId: item.documentId, filename: files[n]!.filename, payload: { items: [item] }
    }).id)
  })
}

function orderOf (part: FormPart | undefined): FileOrder {
  if (part === undefined) return {}
  try {
    const value = JSON.parse(part.bytes.toString()) as unknown
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // said below
  }
  throw unprocessable([{ type: 'json_invalid', loc: ['body', 'request'], msg: 'JSON decode error', input: null }])
}

function textOf ({ bytes, filename, type }: FormPart, n: number): string {
  const isText = textNames.test(filename ?? '') || (type !== null && textTypes.test(type))
  if (!isText || bytes.includes(0)) {
    throw refused(n, `'${(filename ?? '').slice(0, 200)}' is not a text file; convert it to text or Markdown first, this engine has no converter`, filename)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw refused(n, `'${(filename ?? '').slice(0, 200)}' is not UTF-8`, filename)
  }
}

function refused (n: number, msg: string, input: unknown): WireError {
  return unprocessable([{ type: 'value_error', loc: ['body', 'files', n], msg: `Value error, ${msg}`, input }])
}

export const routes: readonly WireRoute[] = [{ method: 'POST', path: `${BANK}/files/retain`, handler: retainFiles }]

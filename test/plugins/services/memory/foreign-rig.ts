import { request } from 'node:http'
import { join } from 'node:path'
import type { Client } from '@modelcontextprotocol/client'
import type { Test } from 'tap'
import { chatAnswer, type EngineScript, type SeenRequest } from '../../../../kernel/testing/index.js'
import memoryStats from '../../../../plugins/api/agent-memory/index.js'
import approvalsApi from '../../../../plugins/api/approvals/index.js'
import imageCache from '../../../../plugins/api/images/index.js'
import mcpAdmin from '../../../../plugins/mcp/admin/index.js'
import mcpMemory from '../../../../plugins/mcp/memory/index.js'
import mcpServers from '../../../../plugins/mcp/servers/index.js'
import personas from '../../../../plugins/services/agent-personas/index.js'
import agents from '../../../../plugins/services/agents/index.js'
import approvals from '../../../../plugins/services/approvals/index.js'
import { unzip } from '../../../../plugins/services/memory-engine/transfer/zip.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import type { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import imageRoutes from '../../../../plugins/v1/images/index.js'
import memoryChat from '../../../../plugins/v1/memory/index.js'
import omni from '../../../../plugins/v1/omni/index.js'
import { wireGateway, type WireGateway } from '../../../wire/wire-gateway.js'
import type { BankCall, HeaderPairs, Method, Things } from './attempts.js'
import { fakeHindsight } from './fake-hindsight.js'
import { memoryPlugins } from './host.js'

/** A word in everything that is Bob's, and one in what of his lies where all may read. No request has either. */
export const SECRET = 'Zanzibar'
export const STRAY = 'Pemba'
export const WIRE = '/api/memory/hindsight/v1/default'
const BANK = `${WIRE}/banks/private__bob`

export const agent = (name: string): HeaderPairs => [['x-svc-agent', name], ['x-svc-private', '1']]

export interface Told {
  readonly status: number
  /** With what archives have in them. */
  readonly text: string
}

export interface Attempt {
  readonly method: Method
  readonly path: string
  readonly body?: unknown
  /** In place of those that say who asks. */
  readonly headers?: HeaderPairs
}

/** A request to the engine, and one to the gateway's own route for it. */
export const wire = (bank: string, { method, path, body }: Omit<BankCall, 'does'>): Attempt => ({ method, path: `${WIRE}/banks/${bank}${path}`, body })
export const api = (bank: string, { method, path, body }: Omit<BankCall, 'does'>): Attempt => ({ method, path: `/api/memory/banks/${bank}${path}`, body })

export const shown = ({ method, path, body, headers }: Attempt): string => `${method} ${path} ${JSON.stringify(body ?? '')} ${JSON.stringify(headers ?? '')}`

export const as = async (
  { gateway }: Pick<Rig, 'gateway'>, who: string, { method, path, body, headers }: Attempt
): Promise<Told> =>
  await sent(gateway.baseUrl, { method, path, body, headers: headers ?? agent(who) })

/** What a tool answers, whatever it is. */
export async function called (client: Client, name: string, args: object): Promise<string> {
  return JSON.stringify(await client.callTool({ name, arguments: { ...args } }))
}

/** A request whose path and headers go out as they are written. */
async function sent (base: string, { method, path, body, headers = [] }: Attempt): Promise<Told> {
  const { hostname, port } = new URL(base)
  const bytes = body === undefined ? null : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
  const isTyped = bytes === null || headers.some(([name]) => name === 'content-type')
  const lines = [
    ...headers.some(([name]) => name === 'host') ? [] : [['host', `${hostname}:${port}`]], ...headers, ...isTyped ? [] : [['content-type', 'application/json']],
    ...bytes === null ? [] : [['content-length', String(bytes.length)]]
  ]
  return await new Promise((resolve, reject) => {
    request({ hostname, port, method, path, headers: lines.flat() }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
        .on('end', () => resolve({ status: response.statusCode!, text: textOf(Buffer.concat(chunks)) }))
    }).on('error', reject).end(bytes ?? undefined)
  })
}

function textOf (bytes: Buffer): string {
  if (bytes.readUInt32LE?.call(bytes.length < 4 ? Buffer.alloc(4) : bytes) !== 0x04034b50) return bytes.toString()
  return [...unzip(bytes, 1e6).values()].map(String).join('\n')
}

/** A gateway on one of the engines, with what Bob keeps for himself there. */
export interface Rig {
  readonly gateway: WireGateway
  readonly things: Things
  /** All that is in Bob's bank, and what of his lies elsewhere. */
  readonly contents: () => string
  /** Until nothing is done behind the answers any more. */
  readonly settled: () => Promise<void>
  /** Whether an answer has something of Bob's bank. */
  readonly tells: (path: string, text: string) => boolean
  /** Whether the engine can do that at all. */
  readonly knows: (method: string, path: string) => boolean
}

export const engines: Readonly<Record<string, (t: Test) => Promise<Rig>>> = { 'a Hindsight server': onHindsight, 'the embedded engine': onEmbedded }

async function gatewayOn (t: Test, memory: string, answer?: (request: SeenRequest) => EngineScript): Promise<WireGateway> {
  return await wireGateway(t, {
    plugins: [
      ...memoryPlugins, agents, approvals, approvalsApi, mcpAdmin, mcpMemory, mcpServers, memoryChat, memoryStats, omni,
      imageRoutes, imageCache, personas
    ],
    files: { 'etc/svc/personas.toml': '[agents.bob.bob]\nsummary = "Has a secret"\n' },
    svc: `[memory]\nenabled = true\n${memory}`,
    onStart: ({ engine }) => engine.answer(answer ?? echo)
  })
}

/** Says what it was told. What asks for observations of Bob's it leaves waiting: that operation runs as long as the gateway. */
function echo ({ body }: SeenRequest): EngineScript {
  const { messages } = JSON.parse(body.toString()) as { readonly messages: ReadonlyArray<{ readonly content: string }> }
  const said = messages.map(({ content }) => content).join('\n')
  return said.includes('NEW FACTS') && said.includes(SECRET) ? { headAfterMs: Infinity } : { headers: { 'content-type': 'application/json' }, chunks: [chatAnswer(said)] }
}

const NONE = '5d8b8a04-fefb-4312-b6f8-04b65e09f014'

async function onHindsight (t: Test): Promise<Rig> {
  const fake = await fakeHindsight(t)
  const gateway = await gatewayOn(t, `engine = "hindsight"\nurl = "${fake.url}"\n`)
  const bob = fake.bank('private__bob')
  bob.config.reflect_mission = SECRET
  bob.directives.push({ id: 'directive-1', content: SECRET })
  const unit = { metadata: {}, mentioned_at: '2026-01-01T00:00:00Z' }
  bob.units.push({ ...unit, id: 'u-1', text: `Bob has a secret in ${SECRET}.`, document_id: 'bobs-document', tags: ['agent:bob', 'visibility:private'] })
  const stray = { ...unit, id: 'u-2', text: `Bob has another secret in ${STRAY}.`, document_id: 'stray', tags: ['agent:bob', 'visibility:private'] }
  fake.bank('shared').units.push(stray)
  fake.bank('private__b\u00f3b').units.push({ ...unit, id: 'u-3', text: `Bob has a secret in ${SECRET}.`, document_id: 'd-3', tags: [] })
  for (const alias of ['bobs', 'project__x', 'agents']) fake.aliases.set(alias, 'private__bob')
  // what the fake has no place for is not there
  const known = new Set([
    'GET /memories/u-1', 'GET /memories/list', 'GET /graph', 'GET /config', 'GET /directives', 'POST /memories/recall', 'POST /memories', 'POST /directives',
    'PATCH /config', 'DELETE /documents/bobs-document', 'DELETE /memories', 'DELETE ', 'TOOL memory_search', 'TOOL memory_list',
    'TOOL memory_recall', 'TOOL directive_list',
    'TOOL memory_add', 'TOOL memory_delete', 'TOOL directive_create'
  ])
  return {
    gateway,
    things: {
      memory: 'u-1', document: 'bobs-document', chunk: 'private__bob_d_0', entity: NONE, directive: 'directive-1', model: 'bobs-model', page: 'bobs-page',
      webhook: NONE, operation: NONE, running: NONE, file: '/v1/default/files/download/tenants/public/banks/private__bob/exports/1/transfer.zip', stray: stray.id,
      strayDocument: stray.document_id
    },
    contents: () => JSON.stringify([fake.banks.get('private__bob'), fake.banks.get('private__b\u00f3b'), fake.bank('shared').units.find(({ id }) => id === stray.id)]),
    settled: () => Promise.resolve(),
    // the chunks and archives of the fake are all the same
    tells: (path, text) => text.includes(SECRET) || text.includes('"chunk_text"') || (text.includes('zip bytes') && /private(__|%5F_)bob/.test(path)),
    knows: (method, path) => known.has(`${method} ${path}`)
  }
}

async function onEmbedded (t: Test): Promise<Rig> {
  const gateway = await gatewayOn(t, '[memory.graph]\nextraction_slot = "agent"\n')
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers of every shape
  const ask = async (method: Method, path: string, body?: unknown, headers = agent('bob')): Promise<any> => {
    const { status, text } = await sent(gateway.baseUrl, { method, path, body, headers })
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return JSON.parse(text) as unknown
  }
  const over = async (id: string): ReturnType<typeof ask> => {
    for (;;) {
      const operation = await ask('GET', `${BANK}/operations/${id}`)
      if (operation.status === 'completed') return operation
      if (operation.status === 'failed') throw new Error(operation.error_message)
    }
  }
  await ask('POST', '/api/memory/add', { text: 'Bob has no secret.', tags: [SECRET] })
  const { items: [{ id: memory }] } = await ask('GET', `${BANK}/memories/list`)
  for (const word of ['secret', 'great secret']) await ask('PATCH', `${BANK}/memories/${memory}`, { text: `Bob has a ${word} in ${SECRET}.` })
  const kept = { content: `Bob keeps a secret in ${SECRET}.`, document_id: 'bobs-document', entities: [{ text: `${SECRET} Club` }] }
  await ask('POST', `${BANK}/memories`, { items: [kept] })
  const { items: [{ id: entity }] } = await ask('GET', `${BANK}/entities`)
  const { id: directive } = await ask('POST', `${BANK}/directives`, { name: 'Bob', content: `Be silent about the secret in ${SECRET}.` })
  const model = await ask('POST', `${BANK}/mental-models`, { id: 'bobs-model', name: 'Bob', source_query: 'Which secret does Bob have?' })
  await over(model.operation_id)
  await ask('PATCH', `${BANK}/mental-models/bobs-model`, { name: `Bob in ${SECRET}`, source_query: 'Which secret does Bob keep?' })
  await over((await ask('POST', `${BANK}/mental-models/bobs-model/refresh`)).operation_id)
  const page = await ask('POST', `${BANK}/knowledge-base/pages`, { name: `The secret in ${SECRET}`, source_query: 'Which secret does Bob have?' })
  const { id: webhook } = await ask('POST', `${BANK}/webhooks`, { url: `https://${SECRET}.example/`, event_types: ['consolidation.completed'] })
  await ask('PATCH', `${BANK}/config`, { updates: { reflect_mission: SECRET } })
  const { operation_id: operation } = await ask('POST', `${BANK}/transfer/export`)
  const { result_metadata: { download_url: file } } = await over(operation)
  const { operation_id: running } = await ask('POST', `${BANK}/consolidate`, {})
  const stray = { content: `Bob has another secret in ${STRAY}.`, document_id: 'stray', tags: ['agent:bob', 'visibility:private'] }
  await ask('POST', `${WIRE}/banks/shared/memories`, { items: [stray] })
  const { items: [{ id: strayId }] } = await ask('GET', `${WIRE}/banks/shared/memories/list`)
  await ask('POST', `${WIRE}/banks/${encodeURIComponent('private__b\u00f3b')}/memories`, { items: [{ content: `Bob has a secret in ${SECRET}.` }] }, [])
  for (;;) {
    const { operations } = await ask('GET', `${BANK}/operations?limit=100`)
    if (operations.every(({ id, status }: Record<string, string>) => status === (id === running ? 'processing' : 'completed'))) break
  }
  const store = openStore(join(gateway.home, 'var/lib/svc/memory/memory.db'))
  t.teardown(() => store.close())
  const numbers = ['private__bob', 'private__b\u00f3b'].map(name => store.get<{ seq: number }>('SELECT seq FROM banks WHERE bank_id = ?', [name])!.seq)
  for (const alias of ['bobs', 'project__x', 'agents']) store.run('INSERT INTO bank_aliases (alias, bank, created_at) VALUES (?, ?, 0)', [alias, numbers[0]!])
  const queries = rowsOf(store)
  const read = (): string => JSON.stringify([
    numbers.map(seq => queries.map(({ table, sql }) => [table, store.all(sql, [seq])])), store.all('SELECT text, tags, state FROM memories WHERE id = ?', [strayId])
  ], (_, value: unknown) => value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? Buffer.from(value as ArrayBuffer).toString('hex') : value)
  let seen = { version: -1, contents: '' }
  const chunks = await ask('GET', `${BANK}/documents/bobs-document/chunks`)
  return {
    gateway,
    things: {
      memory, document: 'bobs-document', chunk: chunks.items[0].chunk_id, entity, directive, model: 'bobs-model', page: page.page_id ?? page.id,
      webhook, operation, running, file: file!, stray: strayId, strayDocument: stray.document_id
    },
    contents: () => {
      const { data_version: version } = store.get<{ data_version: number }>('PRAGMA data_version')!
      if (version !== seen.version) seen = { version, contents: read() }
      return seen.contents
    },
    settled: async () => {
      const open = `SELECT 1 FROM operations WHERE status IN ('pending', 'processing') AND next_retry_at IS NULL AND type <> 'batch_retain' AND id <> ?`
      while (store.get(open, [running]) !== undefined) await ask('GET', '/api/memory/engine')
    },
    tells: (_, text) => text.includes(SECRET),
    knows: () => true
  }
}

/** How the rows of one bank are read from each table of the database but the log of requests, which is written a little later. */
function rowsOf (store: Store): ReadonlyArray<{ readonly table: string, readonly sql: string }> {
  const tables = store.all<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'audit_log'
    AND name NOT GLOB 'text_*' AND name NOT GLOB 'sqlite_*'`).map(({ name }) => name)
  const columns = new Map(tables.map(name => [name, store.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', [name]).map(column => column.name)]))
  const condition = (table: string): string | null => {
    const own = columns.get(table)!
    if (own.includes('bank')) return 'bank = ?1'
    if (own.includes('bank_id')) return 'bank_id = (SELECT bank_id FROM banks WHERE seq = ?1)'
    const keys = store.all<{ from: string, parent: string, to: string | null }>('SELECT "from", "table" AS parent, "to" FROM pragma_foreign_key_list(?)', [table])
    for (const { from, parent, to } of keys) {
      const above = condition(parent)
      if (above !== null) return `${from} IN (SELECT ${to ?? 'seq'} FROM ${parent} WHERE ${above})`
    }
    return null
  }
  return tables.flatMap(table => {
    const where = condition(table)
    return where === null ? [] : [{ table, sql: `SELECT * FROM ${table} WHERE ${where}` }]
  })
}

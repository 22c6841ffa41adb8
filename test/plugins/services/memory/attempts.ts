/** What an agent has in its own bank, by id; on an engine that has no such thing, an id that is none. */
export interface Things {
  readonly memory: string
  readonly document: string
  readonly chunk: string
  readonly entity: string
  readonly directive: string
  readonly model: string
  readonly page: string
  readonly webhook: string
  /** One that is over, and one that runs. */
  readonly operation: string
  readonly running: string
  /** Address of an archive of the bank, below the engine's. */
  readonly file: string
  /** A memory in a bank for all that is stamped as the agent's own. */
  readonly stray: string
  /** The document that it is of. */
  readonly strayDocument: string
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A request about a bank, with what it does where it is allowed: null for one that does nothing to this bank. */
export interface BankCall {
  readonly does: 'reads' | 'writes' | null
  readonly method: Method
  /** Below the bank. */
  readonly path: string
  readonly body?: unknown
}

const call = (does: BankCall['does']) => (method: Method, path: string, body?: unknown): BankCall =>
  ({ does, method, path, ...body === undefined ? {} : { body } })
const [reads, writes, idle] = [call('reads'), call('writes'), call(null)]

/** By the ids of what is in the bank; what deletes comes last. */
export const byId = (
  { memory, document, entity, directive, model, page, webhook, operation, running }: Things
): readonly BankCall[] => [
  reads('GET', `/memories/${memory}`), reads('GET', `/memories/${memory}/history`), reads('GET', `/documents/${document}`),
  reads('GET', `/documents/${document}/chunks`), idle('GET', `/documents/${document}/history`), reads('GET', `/entities/${entity}`),
  reads('GET', `/directives/${directive}`), reads('GET', `/mental-models/${model}`), reads('GET', `/mental-models/${model}/history`),
  reads('GET', `/knowledge-base/pages/${page}`), idle('GET', `/webhooks/${webhook}/deliveries`),
  idle('GET', `/operations/${operation}?include_payload=true`), idle('POST', `/operations/${operation}/retry`),
  idle('POST', `/operations/${operation}/undo`), idle('POST', `/entities/${entity}/regenerate`),
  writes('PATCH', `/memories/${memory}`, { text: 'planted' }), writes('PATCH', `/documents/${document}`, { tags: ['planted'] }),
  writes('PATCH', `/directives/${directive}`, { content: 'planted' }), writes('PATCH', `/mental-models/${model}`, { name: 'planted' }),
  writes('PATCH', `/webhooks/${webhook}`, { enabled: false }), writes('PATCH', `/knowledge-base/nodes/${page}`, { name: 'planted' }),
  writes('POST', `/mental-models/${model}/refresh`), writes('POST', `/mental-models/${model}/clear`),
  writes('POST', `/documents/${document}/reprocess`), writes('DELETE', `/operations/${running}`),
  writes('DELETE', `/operations/${operation}/delete`), idle('DELETE', `/memories/${memory}/observations`),
  writes('DELETE', `/knowledge-base/nodes/${page}`), writes('DELETE', `/webhooks/${webhook}`), writes('DELETE', `/mental-models/${model}`),
  writes('DELETE', `/directives/${directive}`), writes('DELETE', `/memories/${memory}`), writes('DELETE', `/documents/${document}`)
]

const QUESTION = { query: 'Which secret does Bob have?' }
const ITEMS = [{ content: 'planted' }]

/** By the name of the bank alone; what deletes comes last. */
export const byBank: readonly BankCall[] = [
  reads('GET', '/memories/list'), reads('GET', '/documents'), reads('GET', '/tags'), reads('GET', '/entities'), reads('GET', '/entities/graph'),
  reads('GET', '/graph'), reads('GET', '/mental-models'), reads('GET', '/directives'), reads('GET', '/export'), reads('GET', '/webhooks'),
  reads('GET', '/knowledge-base/tree'), reads('GET', '/knowledge-base/search?q=secret'), reads('GET', '/knowledge-base/export'),
  reads('GET', '/config'), reads('POST', '/memories/recall', QUESTION), reads('POST', '/reflect', QUESTION),
  idle('POST', '/memories/recall', { ...QUESTION, tags: ['agent:bob', 'visibility:private'], trace: true }),
  ...['/stats', '/stats/memories-timeseries', '/operations', '/aliases', '/audit-logs', '/audit-logs/stats', '/llm-requests', '/llm-requests/stats',
    '/embeddings', '/observations/scopes'].map(path => idle('GET', path)),
  idle('POST', '/prompts/preview', {}), idle('POST', '/memories/dry-run-extract', { content: 'x' }), idle('POST', '/health/llm', {}),
  idle('POST', '/consolidation/recover'), idle('DELETE', '/observations'), idle('DELETE', '/aliases/bobs'), idle('PATCH', '/aliases/bobs', { primary: true }),
  writes('POST', '/memories', { items: ITEMS }), writes('POST', '/memories', { items: ITEMS, async: true }),
  writes('POST', '/directives', { name: 'planted', content: 'planted' }), writes('POST', '/mental-models', { name: 'planted', source_query: 'x' }),
  writes('POST', '/webhooks', { url: 'https://mallory.example/', event_types: ['retain.completed'] }),
  writes('POST', '/knowledge-base/folders', { name: 'planted' }), writes('POST', '/import', { version: '1', directives: [{ name: 'planted', content: 'planted' }] }),
  writes('POST', '/consolidate', {}), writes('POST', '/document-transfer/export'), writes('POST', '/transfer/export'), writes('POST', '/clone?target_bank_id=mine'),
  writes('PATCH', '/config', { updates: { reflect_mission: 'planted' } }), writes('PATCH', '', { name: 'planted' }), writes('PUT', '', { name: 'planted, too' }),
  writes('DELETE', '/config'), writes('DELETE', '/memories'), writes('DELETE', '')
]

/** Other ways to write the name of a bank: some mean the same, none may be taken for it and be another one's. */
export const spellings = (bank: string): readonly string[] => {
  const [first, rest] = [bank[0]!, bank.slice(1)]
  const encoded = [...Buffer.from(bank)].map(byte => `%${byte.toString(16)}`).join('')
  const name = encodeURIComponent(bank)
  return [
    name, encoded, encoded.toUpperCase(), `%${bank.charCodeAt(0).toString(16)}${encodeURIComponent(rest)}`,
    encodeURIComponent(bank.normalize('NFD')), encodeURIComponent(bank.normalize('NFC')), encodeURIComponent(bank.toUpperCase()),
    encodeURIComponent(first.toUpperCase() + rest), encodeURIComponent(bank.replace('__', '\uff3f_')), encodeURIComponent(bank.replace('p', '\uff50')),
    encodeURIComponent(bank.replace('__', ':')), encodeURIComponent(`${bank}\u0300`), encodeURIComponent(`${bank}\u00ad`), encodeURIComponent(`${bank}\u200b`),
    encodeURIComponent(`\ufeff${bank}`), encodeURIComponent(encoded), `${name}%20`, `%20${name}`, `${name}+`, `${name}.`, `${name}..`,
    `${name}%2e`, `${name}%00`, `${name}%0a`,
    `${name}/`, `${name}//`, `${name}%2F`, `${name}/.`, `./${name}`, `%2e/${name}`, `/${name}`, `shared/../${name}`, `shared/%2e%2e/${name}`, `shared/.%2E/${name}`,
    `shared%2F..%2F${name}`, `shared%2f%2e%2e%2f${name}`, `shared%5c..%5c${name}`, `shared\\..\\${name}`, `shared/../../banks/${name}`,
    `${name};x=1`, `${name}%3Fx`, `${name}%23x`, `${name}#x`, `${name},shared`, `shared,${name}`, `%C1%BF${name}`, `%${name}`
  ]
}

/** What is asked of a bank by each of its spellings: of the engine, and by routes of the gateway. */
export const spelled: { readonly wire: readonly BankCall[], readonly api: readonly BankCall[] } = {
  wire: [
    reads('GET', '/memories/list'), reads('POST', '/memories/recall', QUESTION), writes('POST', '/memories', { items: ITEMS }), writes('DELETE', '/memories'), writes('DELETE', '')
  ],
  api: [reads('GET', '/memories'), reads('POST', '/recall', QUESTION), writes('DELETE', '/memories'), writes('DELETE', '?confirm=private__bob')]
}

/** Pairs as they are sent, beside those that say who asks. */
export type HeaderPairs = ReadonlyArray<readonly [name: string, value: string]>
const M = ['x-svc-agent', 'mallory'] as const
const P = ['x-svc-private', '1'] as const

/** Ways to say who asks of one who is mallory. */
export const identities: readonly HeaderPairs[] = [
  [M, ['x-svc-agent', 'bob'], P], [['x-svc-agent', 'bob'], M, P], [M, ['X-SVC-AGENT', 'bob'], P], [['X-Svc-Agent', 'bob'], ['x-svc-agent',
    'mallory'], P], [M, ['x_svc_agent', 'bob'], P],
  [M, ['x-svc-agent', ''], P], [['x-svc-agent', ''], M, P], [M, P, ['x-svc-private', '0']], [M, ['x-svc-private', 'bob']],
  ...['mallory,bob', 'mallory, bob', 'bob, mallory', 'bob;mallory', 'mallory bob', 'mallory\tbob', 'private:bob', 'private__bob', 'BOB', 'Bob',
    'b\u00f6b', 'bo\u00adb', 'bob%00', 'bob.', '*', '%62ob',
    '../bob', '"bob"', 'bob/'].map((name): HeaderPairs => [['x-svc-agent', name], P]),
  ...([
    ['connection', 'close, x-svc-agent'], ['x-forwarded-user', 'bob'], ['x-remote-user', 'bob'], ['x-auth-request-user', 'bob'], ['x-user', 'bob'],
    ['x-user-id', 'bob'], ['x-agent', 'bob'], ['x-agent-id', 'bob'],
    ['x-svc-user', 'bob'], ['x-svc-bank', 'private__bob'], ['x-svc-dataset', 'private:bob'], ['x-svc-namespace', 'private:bob'], ['x-bank-id',
      'private__bob'], ['x-hindsight-bank-id', 'private__bob'],
    ['x-tenant-id', 'bob'], ['authorization', 'Bearer bob'], ['authorization', 'Basic Ym9iOg=='], ['proxy-authorization', 'Basic Ym9iOg=='],
    ['x-api-key', 'bob'], ['cookie', 'x-svc-agent=bob; agent=bob'], ['from', 'bob'],
    ['user-agent', 'bob'], ['x-forwarded-for', '127.0.0.1'], ['forwarded', 'for=127.0.0.1;by=bob'], ['x-forwarded-prefix',
      '/api/memory/banks/private__bob'], ['x-original-url', '/api/memory/banks/private__bob/memories'],
    ['x-rewrite-url', '/api/memory/banks/private__bob/memories'], ['x-http-method-override', 'DELETE'], ['mcp-session-id', 'bob.5d8b8a04-fefb-4312-b6f8-04b65e09f014']
  ] as const).map((pair): HeaderPairs => [M, P, pair])
]

/** A call of a tool of agents, with what it does where it is allowed. */
export interface ToolCall {
  readonly does: BankCall['does']
  readonly tool: string
  readonly args: Readonly<Record<string, unknown>>
}

const tool = (does: BankCall['does'], name: string, args: ToolCall['args'] = {}): ToolCall => ({ does, tool: name, args })

/** Every tool of the memory; what deletes comes last. */
export const byTool = (
  { memory, document, directive, model, operation, running, stray, strayDocument }: Things
): readonly ToolCall[] => [
  tool('reads', 'memory_search', QUESTION), tool('reads', 'memory_list'), tool('reads', 'memory_recall', QUESTION), tool('reads', 'memory_reflect', QUESTION),
  tool(null, 'memory_search', { ...QUESTION, tags: 'agent:bob, visibility:private' }), tool('reads', 'memory_history', { memory_id: memory }),
  tool(null, 'memory_history', { memory_id: stray }), tool('reads', 'mental_model_list'), tool('reads', 'mental_model_get', { id: model }),
  tool('reads', 'directive_list'), tool('reads', 'tags_list'),
  tool(null, 'bank_stats'), tool(null, 'operation_list'), tool(null, 'operation_get', { operation_id: running }),
  tool(null, 'operation_retry', { operation_id: operation }),
  ...['../../private__bob/memories', '..%2f..%2fprivate__bob%2fmemories', 'x/../../../private__bob/memories'].flatMap(above => [
    tool(null, 'memory_history', { memory_id: `${above}/${memory}` }), tool(null, 'memory_curate', { memory_id: `${above}/${memory}`, text: 'planted' }),
    tool(null, 'mental_model_get', { id: `${above}/../mental-models/${model}` }), tool(null, 'directive_delete', { id: `${above}/../directives/${directive}` }),
    tool(null, 'memory_delete', { ids: [`${above}/../documents/${document}`] })
  ]),
  tool(null, 'memory_curate', { memory_id: stray, state: 'invalidated' }), tool('writes', 'memory_curate', { memory_id: memory, text: 'planted' }),
  tool('writes', 'memory_add', { text: 'planted' }), tool('writes', 'memory_add', { text: 'planted', document_id: document, tags: ['agent:bob', 'visibility:private'] }),
  tool('writes', 'directive_create', { name: 'planted', content: 'planted' }), tool('writes', 'mental_model_create', { name: 'planted', source_query: 'planted' }),
  tool('writes', 'mental_model_refresh', { id: model }), tool('writes', 'bank_consolidate'), tool('writes', 'operation_cancel', { operation_id: running }),
  tool('writes', 'mental_model_delete', { id: model }), tool('writes', 'directive_delete', { id: directive }), tool('writes', 'memory_delete', { ids: [document] }),
  tool(null, 'memory_add', { text: 'planted', document_id: strayDocument }), tool(null, 'memory_delete', { ids: [strayDocument] })
]

/** Names of datasets that are, or may be taken for, what is one agent's alone. */
export const datasets = [
  'private:bob', 'private__bob', 'private:BOB', 'PRIVATE:bob', ' private:bob', 'private:bob ', 'private:bob/', 'private:bob\u0000',
  'private\uff1abob', 'private:b\u00f3b',
  'private:bo\u0301b', 'private:mallory/../bob', 'project:../private__bob', 'shared/../private__bob', 'private%3Abob', 'project:x', 'agents', 'bobs'
] as const

/** A bank of an engine that speaks the wire, by its public calls. */
export interface BankClient {
  exported (): Promise<Buffer>
  restored (archive: Buffer): Promise<Record<string, unknown>>
  /** What it holds, a line for each thing that is told, without what an engine gives anew: ids of memories, times of writing. */
  lines (): Promise<readonly string[]>
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
type Any = any

async function ask (url: string, method: string, body?: object | FormData): Promise<Any> {
  const isForm = body instanceof FormData
  const answer = await fetch(url, {
    method,
    ...isForm || body === undefined ? {} : { headers: { 'content-type': 'application/json' } },
    ...body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${text.slice(0, 500)}`)
  return JSON.parse(text)
}

/** An operation when it is over. */
async function ended (base: string, bank: string, id: string): Promise<Any> {
  for (;;) {
    const operation = await ask(`${base}/v1/default/banks/${bank}/operations/${id}`, 'GET')
    if (operation.status === 'completed') return operation
    if (operation.status !== 'pending' && operation.status !== 'processing') throw new Error(JSON.stringify(operation))
    await new Promise(resolve => { setTimeout(resolve, 100) })
  }
}

const text = (value: unknown): string => JSON.stringify(value, (_key, each: unknown) =>
  each !== null && typeof each === 'object' && !Array.isArray(each) ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => a < b ? -1 : 1)) : each)

export function bankAt (base: string, bank: string): BankClient {
  const own = `${base}/v1/default/banks/${bank}`
  const all = async (path: string): Promise<Any[]> => (await ask(`${own}/${path}${path.includes('?') ? '&' : '?'}limit=1000`, 'GET')).items
  return {
    exported: async () => {
      const { operation_id: id } = await ask(`${own}/transfer/export?include_history=true`, 'POST')
      const { result_metadata: { download_url: url } } = await ended(base, bank, id)
      return Buffer.from(await (await fetch(`${base}${url}`)).arrayBuffer())
    },
    restored: async archive => {
      const form = new FormData()
      form.append('file', new Blob([new Uint8Array(archive)], { type: 'application/zip' }), 'bank.zip')
      // the server takes an archive by way of a bank that is there
      await ask(`${base}/v1/default/banks/desk`, 'PUT', {})
      const { operation_id: id } = await ask(`${base}/v1/default/banks/desk/transfer/import?mode=restore&target_bank_id=${bank}`, 'POST', form)
      return (await ended(base, 'desk', id)).result_metadata
    },
    lines: async () => {
      const lines: string[] = []
      const add = (what: string, facts: Record<string, unknown>): void => {
        for (const [name, value] of Object.entries(facts)) lines.push(`${what}.${name} ${text(value ?? null)}`)
      }
      for (const { id } of await all('documents?tags_match=any')) {
        const at = `documents/${encodeURIComponent(id)}`
        const { original_text: whole, tags, document_metadata: metadata, ...others } = await ask(`${own}/${at}`, 'GET')
        const { retain_params: params, memory_unit_count: facts } = others
        add(`document ${id}`, { text: whole, tags: tags.toSorted(), metadata, params, facts })
        const chunks = await all(`${at}/chunks`)
        add(`document ${id}`, { chunks: chunks.map(({ chunk_text: chunk }: Any) => chunk) })
      }
      const states = await Promise.all(['valid', 'invalidated'].map(state => all(`memories/list?state=${state}`)))
      const memories = states.flat()
      const texts = new Map(memories.map(({ id, text: said }) => [id, said]))
      for (const row of memories) {
        const { type, ...one } = await ask(`${own}/memories/${row.id}`, 'GET').catch(() => ({ type: row.fact_type }))
        add(`memory ${row.text}`, {
          type, context: row.context, tags: (row.tags ?? []).toSorted(), entities: row.entities.split(', ').toSorted(),
          document: row.document_id, state: row.state,
          reason: row.invalidation_reason, metadata: row.metadata, mentioned_at: time(row.mentioned_at),
          occurred_start: time(row.occurred_start), occurred_end: time(row.occurred_end), proofs: row.proof_count,
          isConsolidated: row.consolidated_at !== null, scopes: one.observation_scopes,
          sources: (row.source_memory_ids ?? []).map((id: string) => texts.get(id)).toSorted()
        })
      }
      for (const each of await all('directives?active_only=false')) {
        add(`directive ${each.name}`, { content: each.content, priority: each.priority, isActive: each.is_active, tags: each.tags })
      }
      for (const each of await all('mental-models?detail=full')) {
        const { id, source_query: query, content, tags, max_tokens: tokens, trigger, is_knowledge_page: isPage } = each
        add(`model ${each.name}`, { id, query, content, tags, tokens, trigger, refreshed: time(each.last_refreshed_at), isPage })
        const history = await ask(`${own}/mental-models/${id}/history`, 'GET')
        add(`model ${each.name}`, { history: history.map(({ previous_content: before }: Any) => before) })
      }
      const tree = (nodes: Any[], path: string): void => {
        for (const { id, kind, name, children, mental_model_id: model, managed } of nodes) {
          add(`node ${path}${name}`, { id, kind, model, managed })
          tree(children, `${path}${name}/`)
        }
      }
      tree((await ask(`${own}/knowledge-base/tree`, 'GET')).roots, '')
      const { overrides } = await ask(`${own}/config`, 'GET')
      add('config', overrides)
      const { banks } = await ask(`${base}/v1/default/banks?q=${bank}`, 'GET')
      const { name, disposition, mission } = banks.find(({ bank_id: id }: Any) => id === bank)
      add('bank', { name, disposition, mission })
      for (const each of await all('webhooks')) add(`webhook ${each.url}`, { types: each.event_types, enabled: each.enabled, http: each.http_config })
      return lines
    }
  }
}

function time (given: string | null | undefined): string | null {
  return given === null || given === undefined ? null : new Date(given).toISOString()
}

/** Makes a bank with something of everything. */
export async function filledBank (base: string, bank: string): Promise<void> {
  const own = `${base}/v1/default/banks/${bank}`
  await ask(own, 'PUT', { name: 'The house', reflect_mission: 'help', disposition: { skepticism: 4, literalism: 2, empathy: 5 } })
  await ask(`${own}/config`, 'PATCH', { updates: { retain_mission: 'names', enable_auto_consolidation: false } })
  await ask(`${own}/memories`, 'POST', {
    items: [
      { content: 'Alice Miller works at Acme Corp in Paris.', context: 'work', metadata: { src: 'chat', n: '1' }, document_id: 'd1', tags: ['t', 'u'], entities: [{ text: 'Acme Corp' }], timestamp: '2024-05-01T10:00:00Z' },
      { content: 'Carol Smith plays the cello.', document_id: 'd2', tags: ['t', 'u'] },
      { content: 'Grüße aus Köln, says Dave Jones 🎻.', document_id: 'ü 3' }
    ]
  })
  await ask(`${own}/memories`, 'POST', { items: [{ content: 'Erin Brown lives in Rome.' }] })
  const { items } = await ask(`${own}/memories/list?document_id=d2`, 'GET')
  await ask(`${own}/memories/${items[0].id}`, 'PATCH', { state: 'invalidated', reason: 'wrong' })
  const { items: [erin] } = await ask(`${own}/memories/list?q=Erin`, 'GET')
  await ask(`${own}/memories/${erin.id}`, 'PATCH', { text: 'Erin Brown lives in Milan.' })
  await ask(`${own}/directives`, 'POST', { name: 'short', content: 'Be brief.', priority: 3, tags: ['t'] })
  await ask(`${own}/directives`, 'POST', { name: 'off', content: 'Say nothing.', is_active: false })
  for (let i = 0; i < 100; i++) await ask(`${own}/directives`, 'POST', { name: `rule ${i}`, content: `Heed what ${'is said '.repeat(100)} of ${i}.` })
  const { operation_id: consolidation } = await ask(`${own}/consolidate`, 'POST')
  await ended(base, bank, consolidation)
  const { operation_id: made } = await ask(`${own}/mental-models`, 'POST', { id: 'mm-1', name: 'Where people live', source_query: 'Where do people live?', tags: ['v'], max_tokens: 1000, trigger: { mode: 'full', refresh_cron: '0 3 * * *' } })
  await ended(base, bank, made)
  await ask(`${own}/mental-models/mm-1/clear`, 'POST')
  await ended(base, bank, (await ask(`${own}/mental-models/mm-1/refresh`, 'POST')).operation_id)
  const { id: folder } = await ask(`${own}/knowledge-base/folders`, 'POST', { name: 'People' })
  const { operation_id: page } = await ask(`${own}/knowledge-base/pages`, 'POST', { name: 'Alice', source_query: 'Who is Alice?', parent_id: folder, trigger: { mode: 'full' } })
  await ended(base, bank, page)
  await ask(`${own}/webhooks`, 'POST', { url: 'https://example.com/hook', secret: 's3cret', event_types: ['retain.completed'] })
}

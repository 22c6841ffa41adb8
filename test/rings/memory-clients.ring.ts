import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { liveHome, startLive } from '../e2e/live-gateway.js'
import { readArchive } from '../../plugins/services/memory-engine/transfer/read-archive.js'
import { agentsRemember } from '../plugins/mcp/memory-agents.js'
import { form, zipInMemory } from '../plugins/services/memory-engine/models-support.js'
import { shapeDifferences } from '../plugins/services/memory-engine/shape-differences.js'
import { brought, lacking, runClient, scriptsBeside } from './support/clients.js'
import { recorded, typeCheck, type Exchange, type HindsightApi } from './support/hindsight-exchanges.js'
import { startHindsight, type HindsightServer } from './support/hindsight-server.js'
import { embeddedGateway, memoryPrograms, memorySettings } from './support/memory-gateway.js'

t.setTimeout(600_000)

/** The command of each client, for a script of that name; of a client that cannot be had there is none. */
async function clientsOf (t: Test, script: string): Promise<ReadonlyArray<readonly [name: string, command: readonly string[]]>> {
  const installed = await brought(t, 'js-clients.sh', 'memory')
  const venv = await brought(t, 'python-clients.sh', 'memory')
  return [
    ...installed === null ? [] : [['npm', [process.execPath, join(await scriptsBeside(t, installed, 'memory'), `${script}.mjs`)]] as const],
    ...venv === null ? [] : [['Python', [join(venv, 'bin/python'), join(memoryPrograms, `${script}.py`)]] as const]
  ]
}

const env = (url: string): Record<string, string> => ({ RING_URL: url, RING_ENGINE: 'embedded', RING_SENTENCE: '', PYTHONDONTWRITEBYTECODE: '1' })

t.test('clients of Hindsight as they come, at the embedded engine', async t => {
  const gateway = await startLive(t, await liveHome(t, { 'etc/svc/svc.toml': memorySettings }))
  for (const [client, command] of await clientsOf(t, 'hindsight')) {
    await t.test(`each call of the ${client} client ends as its users expect`, t => runClient(t, command, env(gateway.url)))
  }
  t.equal(await gateway.kill('SIGTERM'), 0)
})

/** What a gateway answers to the script of each client. */
async function exchangesAt (
  t: Test, engine: string, url: string, api: HindsightApi
): Promise<ReadonlyMap<string, readonly Exchange[]>> {
  const runs = (await clientsOf(t, 'wire')).map(async ([client, command]) => {
    const { url: between, exchanges } = await recorded(t, url, api)
    await runClient(t, command, env(between), `${client}, ${engine}: `)
    return [client, exchanges] as const
  })
  return new Map(await Promise.all(runs))
}

/** A gateway whose memory is the server. */
async function inFront (t: Test, server: HindsightServer): Promise<string> {
  return (await startLive(t, await liveHome(t, { 'etc/svc/svc.toml': `${memorySettings}engine = "hindsight"\nurl = "${server.url}"\n` }))).url
}

/** Where answers differ, by how the line of a difference begins, and why that is meant. */
const meant: ReadonlyArray<readonly [begins: string, why: string]> = [
  ['GET /health/ready.d', 'here there is no server of a database whose connections could be counted'],
  ['GET /v1/bank-template-schema.', 'a schema of the same fields, without titles and descriptions'],
  ['GET /v1/default/banks/{bank_id}/llm-requests.items[].llm_info.', 'what is told of a call beside its tokens; of a text not even how often'],
  ['GET /v1/default/banks/{bank_id}/memories/{memory_id}.proof_count is new', 'the list has it there, too'],
  ['GET /v1/default/banks/{bank_id}/mental-models/{mental_model_id}/history[].', 'a refresh that failed is in the history here, and says why'],
  ['POST /v1/default/banks/{bank_id}/consolidation-strategies/preview status 200 is 501', 'facts of the same tags are always consolidated together'],
  ['POST /v1/default/banks/{bank_id}/memories/recall.detail: string is object', 'there, a type that is none is refused with words where its document has a list'],
  ['POST /v1/default/banks/{bank_id}/memories/recall.trace.', 'a trace tells how the engine at hand went about it'],
  ['POST /v1/default/banks/{bank_id}/mental-models/{mental_model_id}/dry-run-refresh.trace.', 'a trace'],
  ['POST /v1/default/banks/{bank_id}/reflect.trace.', 'a trace']
]
/** What the server itself answers in another form than its document says. */
const theirMisfits = new Set(['POST /v1/default/banks/{bank_id}/memories/recall 422: /detail must be array'])

/** More recalls than the clients make at a time are refused almost at once. */
const soonFull = { HINDSIGHT_API_ADMISSION_RECALL_MAX_IN_FLIGHT: '4', HINDSIGHT_API_ADMISSION_RECALL_MAX_WAIT_MS: '20' }

async function staysFull (t: Test, server: HindsightServer, front: string): Promise<void> {
  const post = (url: string, body: object): Promise<Response> =>
    fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const bank = '/v1/default/banks/full'
  t.equal((await post(`${server.url}${bank}/memories`, { items: [{ content: 'A dog sleeps.' }] })).status, 200)
  const ways = { 'the server': `${server.url}${bank}/memories/recall`, 'the wire': `${front}/api/memory/hindsight${bank}/memories/recall`, 'the operator\'s route': `${front}/api/memory/banks/full/recall` }
  const told: Record<string, string> = {}
  for (const [way, url] of Object.entries(ways)) {
    const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => post(url, { query: `dog ${i}` })))
    t.strictSame([...new Set(answers.map(({ status }) => status))].sort(), [200, 503], `${way}: some are answered, and those that are not are 503`)
    const full = answers.find(({ status }) => status === 503)!
    told[way] = full.headers.get('retry-after') ?? ''
    t.match(await full.json(), way === 'the operator\'s route' ? { error: { code: 'memory.engine_error', details: { upstream_status: 503, retry_after_s: Number } } } : { detail: String }, way)
    await Promise.all(answers.filter(each => each !== full).map(each => each.arrayBuffer()))
  }
  t.match(told['the server'], /^[1-9]\d*$/)
  t.strictSame([...new Set(Object.values(told))], [told['the server']], 'and it says when to come back as the server does')
  t.equal((await post(ways['the wire'], { query: 'dog' })).status, 200, 'soon it answers again')
}

/** What the server itself answers 410, made of what took its place there. */
async function succeeds (t: Test, server: HindsightServer, front: string): Promise<void> {
  const bank = 'successors'
  const ask = (method: string, url: string, body?: object): Promise<Response> =>
    fetch(url, { method, ...body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } })
  const theirs = `${server.url}/v1/default/banks/${bank}`
  const ours = `${front}/api/memory/banks/${bank}`
  const retained = await ask('POST', `${theirs}/memories`, { items: [{ content: 'A dog sleeps.', document_id: 'one' }, { content: 'A dog barks.', document_id: 'two' }] })
  t.equal(retained.status, 200, await retained.text())
  for (const path of ['profile', 'document-transfer']) {
    const gone = await ask('GET', `${theirs}/${path}`)
    await gone.body?.cancel()
    t.equal(gone.status, 410, `the server has no ${path} any more`)
  }
  t.match(await (await ask('GET', `${ours}/profile`)).json(), {
    bank_id: bank, name: String, disposition: { skepticism: Number, literalism: Number, empathy: Number }, mission: String
  })
  const changed = { disposition: { empathy: 5 }, mission: 'Know all dogs.' }
  t.match(await (await ask('PUT', `${ours}/profile`, changed)).json(), changed)
  t.match(await (await ask('GET', `${ours}/profile`)).json(), changed, 'and it stays')
  const file = await ask('GET', `${ours}/document-transfer`)
  const archive = Buffer.from(await file.arrayBuffer())
  t.match([file.status, file.headers.get('content-type')], [200, 'application/zip'], archive.subarray(0, 200).toString())
  const { documents } = await readArchive(archive)
  t.strictSame(documents.map(({ id }) => id).sort(), ['one', 'two'], 'all of its documents')
  const part = await (await ask('GET', `${ours}/graph/subgraph?limit=10`)).json() as { readonly returned_nodes: number }
  t.match(part, { mode: 'top', center: null, returned_nodes: Number })
  t.ok(part.returned_nodes >= 2, `${part.returned_nodes} nodes`)
}

/** More facts than an engine tells of a graph at once, the oldest of them of one document, and more pairs of names. */
function largeArchive (): Buffer {
  const crowd = Array.from({ length: 65 }, (_, n) => `Crowd${n}`)
  const facts = Array.from({ length: 2_050 }, (_, n) => {
    const at = new Date(Date.UTC(2000, 0, 1 + n)).toISOString()
    const entities = n < 3 ? ['Ann', `Zed${n}`] : n < 5 ? crowd : []
    return { text: `Note ${n}.`, fact_type: 'world', mentioned_at: at, event_date: at, created_at: at, metadata: {}, tags: [], entities }
  })
  const documents = [{ id: 'old', facts: facts.slice(0, 3) }, { id: 'new', facts: facts.slice(3) }]
  const counts = { document_count: documents.length, fact_count: facts.length, observation_count: 0 }
  const zip = zipInMemory()
  const manifest = { schema_version: 1, source_bank_id: 'x', exported_at: new Date(0).toISOString(), archive_type: 'documents', ...counts }
  zip.add('manifest.json', Buffer.from(JSON.stringify(manifest)))
  for (const [n, document] of documents.entries()) {
    zip.add(`documents/${n}.json`, Buffer.from(JSON.stringify({ original_text: null, retain_params: null, tags: [], chunks: [], ...document })))
  }
  return zip.end()
}

async function drawsLarge (t: Test, url: string): Promise<void> {
  const wire = `${url}/api/memory/hindsight/v1/default/banks/large`
  const ask = async (address: string, options: RequestInit = {}) => {
    const answer = await fetch(address, options)
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers of several routes
    return { status: answer.status, json: await answer.json() as any }
  }
  await ask(wire, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{}' })
  const [body, headers] = form('file', 'large.zip', largeArchive())
  const begun = await ask(`${wire}/document-transfer`, { method: 'POST', headers, body: new Uint8Array(body) })
  t.equal(begun.status, 202, JSON.stringify(begun.json))
  let state = 'pending'
  while (state === 'pending' || state === 'processing') state = (await ask(`${wire}/operations/${begun.json.operation_id}`)).json.status
  t.equal(state, 'completed')
  const part = (query: string) => ask(`${url}/api/memory/banks/large/graph/subgraph?${query}`)
  const labels = async (query: string): Promise<readonly string[]> =>
    (await part(query)).json.nodes.map(({ data }: { data: { label: string } }) => data.label).sort()

  const [{ id }] = (await ask(`${wire}/memories/list?type=world&q=${encodeURIComponent('Note 0.')}`)).json.items
  const newest = (await ask(`${wire}/graph?limit=2000`)).json.nodes as ReadonlyArray<{ readonly data: { readonly id: string } }>
  t.notOk(newest.some(({ data }) => data.id === id), 'it is not among the newest')
  const around = await part(`mode=ego&node=${id}`)
  t.match(around, { status: 200, json: { mode: 'ego', center: id, truncated: true, returned_edges: Number } })
  t.ok((await labels(`mode=ego&node=${id}`)).includes('Note 1.'), 'what shares its document and a name is beside it')
  t.match(await part('mode=ego&node=00000000-0000-4000-8000-000000000000'), { status: 404, json: { error: { code: 'memory.node_not_found' } } })

  const { items } = (await ask(`${wire}/entities?limit=100`)).json as { readonly items: ReadonlyArray<Record<'id' | 'canonical_name', string>> }
  const entity = (name: string): string => items.find(({ canonical_name: its }) => its === name)!.id
  t.match(await part('kind=entities'), { status: 200, json: { mode: 'top', center: null, total_entities: items.length } })
  t.ok((await labels('kind=entities&q=crowd')).length >= 60)
  t.same(await labels(`kind=entities&mode=ego&node=${entity('Zed0')}`), ['Ann', 'Zed0'], 'one of the weakest pairs')
  t.match(await part('kind=entities&mode=ego&node=00000000-0000-4000-8000-000000000000'), { status: 404 })
}

t.test('clients as they come get the same from a Hindsight server through the gateway and from the embedded engine', async t => {
  const server = await startHindsight(soonFull)
  if (typeof server === 'string') {
    lacking(t, server)
    return
  }
  t.teardown(() => server.stop())
  const api = await (await fetch(`${server.url}/openapi.json`)).json() as HindsightApi
  const misfits = typeCheck(api)
  const front = await inFront(t, server)
  const embedded = await embeddedGateway(t, server)
  const [theirs, ours] = await Promise.all([
    exchangesAt(t, 'a Hindsight server', front, api), exchangesAt(t, 'embedded', embedded, api)
  ])
  const differences = new Set<string>()
  for (const [client, want] of theirs) {
    const got = ours.get(client)!
    t.same(want.flatMap(misfits).filter(each => !theirMisfits.has(each)), [], `${client}: each answer of the server that came through the gateway is of its type`)
    t.same(got.flatMap(misfits), [], `${client}: each answer of the embedded engine is of its type`)
    t.same(got.map(({ operation }) => operation), want.map(({ operation }) => operation), `${client}: the script is the same`)
    for (const [i, { operation, status, answer }] of want.entries()) {
      const { status: other = 0, answer: its } = got[i] ?? {}
      const here = other === status ? shapeDifferences(answer, its) : [` status ${status} is ${other}`]
      for (const each of here) differences.add(`${operation}${each}`)
    }
  }
  t.same([...differences].filter(each => !meant.some(([begins]) => each.startsWith(begins))), [], 'they differ where it is meant and nowhere else')
  t.same(meant.filter(([begins]) => ![...differences].some(each => each.startsWith(begins))), [], 'each difference that is meant is there')
  const asked = new Set([...theirs.values()].flat().map(({ operation }) => operation))
  const all = Object.entries(api.paths).flatMap(([path, methods]) => Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`))
  t.same(all.filter(each => !asked.has(each)), [], 'no operation of the server is left out')
  for (const [engine, url] of [['a Hindsight server', front], ['the embedded engine', embedded]] as const) {
    await t.test(`an agent remembers over MCP what another agent may and may not see, on ${engine}`, t => agentsRemember(t, url, true))
  }
  for (const [engine, url] of [['a Hindsight server', front], ['the embedded engine', embedded]] as const) {
    await t.test(`of a bank that is larger than what can be drawn, old nodes are drawn too, on ${engine}`, t => drawsLarge(t, url))
  }
  await t.test('what the server answers 410 is made of its successors, and a part of its graph can be drawn', t => succeeds(t, server, front))
  await t.test('a server that is full stays a 503 with the time to come back, on every way to it', t => staysFull(t, server, front))
  await server.stop()
  t.same(server.pids.filter(pid => existsSync(`/proc/${pid}`)), [], 'the server and its database have ended')
})

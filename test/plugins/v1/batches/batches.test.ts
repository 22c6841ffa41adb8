import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type OpenAI from 'openai'
import { BadRequestError, NotFoundError } from 'openai'
import t from 'tap'
import { pause } from '../../../../kernel/contract/index.js'
import { FakeClock } from '../../../../kernel/testing/fake-clock.js'
import { chatAnswer } from '../../../../kernel/testing/index.js'
import { Batches } from '../../../../plugins/v1/batches/batches.js'
import type { SlotTurns } from '../../../../plugins/v1/batches/slot-turns.js'
import { until } from '../../../wire/wire-gateway.js'
import { batchGateway, batchUntil, isOver, linesOf, rowsOf, startBatch } from './support.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const ask = (content: string, more: object = {}): Readonly<Record<string, unknown>> => ({ model: 'agent', messages: [{ role: 'user', content }], ...more })
const CHAT = '/v1/chat/completions'

t.test('the openai client has a file of requests answered, and gets answers and refusals apart', async t => {
  const { client, slots, fetch } = await batchGateway(t, {
    onStart: ({ engine }) => engine.answer(({ body }) => {
      const { messages: [{ content }] } = JSON.parse(body.toString()) as { messages: [{ content: string }] }
      return content === 'bad'
        ? { status: 400, headers: JSON_TYPE, chunks: ['{"error":{"message":"no such thing"}}'] }
        : { headers: JSON_TYPE, chunks: [chatAnswer(`to ${content}`)] }
    })
  })
  const lines = linesOf(CHAT, ask('one'), ask('two'), ask('x', { model: 'nobody' }), ask('bad'), ask('x', { stream: true }), { messages: [] })
  const created = await startBatch(client, `\ufeff${lines}\n\n`)
  t.match(created, { object: 'batch', endpoint: CHAT, status: /^(validating|in_progress)$/, completion_window: '24h', expires_at: created.created_at + 86_400, metadata: null })
  await client.files.delete(created.input_file_id)
  const done = await batchUntil(client, created.id, isOver)
  t.match(done, { status: 'completed', request_counts: { total: 6, completed: 2, failed: 4 }, errors: null, completed_at: Number, in_progress_at: Number })
  const answers = await rowsOf(client, done.output_file_id)
  const contentOf = (body: unknown): unknown => (body as OpenAI.ChatCompletion).choices[0]!.message.content
  t.strictSame(answers.map(({ custom_id: id, response }) => [id, response!.status_code, contentOf(response!.body)]).toSorted(),
    [['row-0', 200, 'to one'], ['row-1', 200, 'to two']])
  for (const { id, response, error } of answers) t.strictSame([response!.request_id, error], [id, null], 'engines and logs know it by the id of its line')
  const refused = await rowsOf(client, done.error_file_id)
  t.strictSame(refused.map(({ custom_id: id, response }) => [id, response!.status_code]).toSorted(), [['row-2', 404], ['row-3', 400], ['row-4', 400], ['row-5', 400]])
  t.match(refused.find(({ custom_id: id }) => id === 'row-2'), { response: { body: { error: { code: 'model.not_found' } } } })
  t.match(refused.find(({ custom_id: id }) => id === 'row-4'), { response: { body: { error: { param: 'stream' } } } })
  t.match(await client.files.retrieve(done.output_file_id!), { purpose: 'batch_output', filename: `${done.id}_output.jsonl` })
  t.strictSame((await client.batches.list()).data.map(({ id }) => id), [created.id])
  t.equal(slots.status('agent').inFlight, 0)
  const problem = await client.batches.cancel(created.id).catch((error: unknown) => error)
  t.ok(problem instanceof BadRequestError)
  t.match(problem, { code: 'batches.finished' })
  t.ok(await client.batches.retrieve('batch_none').catch((error: unknown) => error) instanceof NotFoundError)
  const unknown = await client.batches.create({ input_file_id: 'file-none', endpoint: CHAT, completion_window: '24h' }).catch((error: unknown) => error)
  t.match(unknown, { status: 404, code: 'files.not_found' })
  for (const [field, body] of [['endpoint', { endpoint: '/v1/audio/speech' }], ['completion_window', { completion_window: 'soon' }], ['input_file_id', { input_file_id: '' }]] as const) {
    const answer = await fetch('/v1/batches', {
      method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ input_file_id: 'file-x', endpoint: CHAT, completion_window: '24h', ...body })
    })
    t.match([answer.status, await answer.json()], [400, { error: { code: 'validation.invalid', param: field } }])
  }
})

t.test('embeddings, completions and responses, also where the slot speaks chat alone', async t => {
  const { client } = await batchGateway(t, {
    onStart: ({ engine, slot }) => engine.answer(({ url }) => ({
      headers: JSON_TYPE,
      chunks: [slot === 'embed'
        ? JSON.stringify({ object: 'list', data: [{ object: 'embedding', index: 0, embedding: [1, 2] }], model: 'e', usage: { prompt_tokens: 1, total_tokens: 1 } })
        : url === '/v1/completions' ? JSON.stringify({ object: 'text_completion', choices: [{ index: 0, text: 'text', finish_reason: 'stop' }] }) : chatAnswer('hello')]
    }))
  })
  for (const [endpoint, body, expected] of [
    ['/v1/embeddings', { model: 'embed', input: 'x' }, { data: [{ embedding: [1, 2] }] }],
    ['/v1/completions', { model: 'agent', prompt: 'x' }, { choices: [{ text: 'text' }] }],
    ['/v1/responses', { model: 'agent', input: 'x' }, {}]
  ] as const) {
    const done = await batchUntil(client, (await startBatch(client, linesOf(endpoint, body), endpoint)).id, isOver)
    t.match(await rowsOf(client, done.output_file_id), [{ custom_id: 'row-0', response: { status_code: 200, body: expected } }], endpoint)
  }
})

t.test('a file that cannot be run fails, and says why by its lines', async t => {
  const { client, slots } = await batchGateway(t)
  const good = linesOf(CHAT, ask('x'))
  const line = (row: object): string => JSON.stringify({ custom_id: 'b', method: 'POST', url: CHAT, body: {}, ...row })
  const cases: ReadonlyArray<readonly [lines: string, code: string, line: number | null]> = [
    ['\n \r\n', 'empty_file', null],
    [`${good}\n\n{"custom_id":`, 'invalid_json_line', 3],
    [`${good}\n[]`, 'invalid_json_line', 2],
    [`${good}\n${good}`, 'duplicate_custom_id', 2],
    [line({ custom_id: undefined }), 'missing_required_parameter', 1],
    [line({ custom_id: 'x'.repeat(513) }), 'missing_required_parameter', 1],
    [line({ body: 'x' }), 'missing_required_parameter', 1],
    [line({ method: 'GET' }), 'invalid_method', 1],
    [line({ url: '/v1/embeddings' }), 'invalid_url', 1]
  ]
  for (const [lines, code, at] of cases) {
    const failed = await batchUntil(client, (await startBatch(client, lines)).id, isOver)
    t.match(failed, { status: 'failed', failed_at: Number, output_file_id: null, error_file_id: null, errors: { object: 'list', data: [{ code, line: at }] } }, code)
  }
  const many = await batchUntil(client, (await startBatch(client, 'x\n'.repeat(500))).id, isOver)
  t.equal(many.errors!.data!.length, 100)
  t.equal(slots.status('agent').state, 'offline', 'nothing was loaded for them')
})

t.test('rows wait until nobody else is with the slot, and a client that comes goes before the next', async t => {
  let open = (): void => {}
  const first = new Promise<void>(resolve => { open = resolve })
  const seen: string[] = []
  const { client, chat, slots, runtime } = await batchGateway(t, {
    onStart: ({ engine }) => engine.answer(({ body }) => {
      const { messages: [{ content }] } = JSON.parse(body.toString()) as { messages: [{ content: string }] }
      seen.push(content)
      return { headers: JSON_TYPE, chunks: [chatAnswer(content)], ...(content === 'a person' ? { after: first } : {}) }
    })
  })
  const person = chat({ messages: [{ role: 'user', content: 'a person' }] })
  await until(() => seen.length === 1, 'a person is answered')
  const { id } = await startBatch(client, linesOf(CHAT, ask('row'), ask('row')))
  await batchUntil(client, id, ({ status }) => status === 'in_progress')
  const other = chat({ messages: [{ role: 'user', content: 'another' }] })
  await (await other).text()
  t.strictSame(seen, ['a person', 'another'], 'no row yet')
  t.equal(slots.status('agent').inFlight, 1)
  open()
  await (await person).text()
  t.match(await batchUntil(client, id, isOver), { status: 'completed', request_counts: { completed: 2 } })
  t.strictSame(seen, ['a person', 'another', 'row', 'row'])
  t.ok(runtime.engine('agent').requests.length === 4)
})

t.test('rows are with an idle slot beside each other, and no further one goes out while a client is', async t => {
  const gates = new Map(['row', 'a person'].map(name => {
    let open = (): void => {}
    const opened = new Promise<void>(resolve => { open = resolve })
    return [name, { open, opened }]
  }))
  const seen: string[] = []
  const { client, chat, slots } = await batchGateway(t, {
    onStart: ({ engine }) => engine.answer(({ body }) => {
      const { messages: [{ content }] } = JSON.parse(body.toString()) as { messages: [{ content: string }] }
      seen.push(content)
      return { headers: JSON_TYPE, chunks: [chatAnswer(content)], after: gates.get(content)!.opened }
    })
  })
  await slots.ensureReady('agent', new AbortController().signal)
  const { id } = await startBatch(client, linesOf(CHAT, ...Array.from({ length: 6 }, () => ask('row'))))
  await until(() => seen.length === 2 && slots.status('agent').inFlight === 2, 'two rows are with the slot')
  const person = chat({ messages: [{ role: 'user', content: 'a person' }] })
  await until(() => seen.includes('a person'), 'a client comes')
  gates.get('row')!.open()
  await batchUntil(client, id, ({ request_counts: counts }) => counts!.completed === 2)
  for (let i = 0; i < 20; i++) await client.batches.retrieve(id)
  t.strictSame(seen, ['row', 'row', 'a person'])
  gates.get('a person')!.open()
  t.equal((await person).status, 200)
  t.match(await batchUntil(client, id, isOver), { status: 'completed', request_counts: { completed: 6, failed: 0 } })
})

t.test('a row that is to be asked again holds no place meanwhile: none goes out beside a client', async t => {
  const gates = new Map(['second', 'a person'].map(name => {
    let open = (): void => {}
    const opened = new Promise<void>(resolve => { open = resolve })
    return [name, { open, opened }]
  }))
  const seen: string[] = []
  const { client, chat, slots } = await batchGateway(t, {
    onStart: ({ engine }) => engine.answer(({ body }) => {
      const { messages: [{ content }] } = JSON.parse(body.toString()) as { messages: [{ content: string }] }
      seen.push(content)
      if (content === 'first' && seen.filter(one => one === 'first').length === 1) {
        return { status: 503, headers: JSON_TYPE, chunks: ['{"error":{"message":"busy"}}'] }
      }
      const gate = gates.get(content)
      return { headers: JSON_TYPE, chunks: [chatAnswer(content)], ...gate === undefined ? {} : { after: gate.opened } }
    })
  })
  await slots.ensureReady('agent', new AbortController().signal)
  const { id } = await startBatch(client, linesOf(CHAT, ask('first'), ask('second'), ask('third')))
  await until(() => seen.length >= 2 && slots.status('agent').inFlight === 1, 'the first row waits to be asked again')
  const person = chat({ messages: [{ role: 'user', content: 'a person' }] })
  await until(() => seen.includes('a person'), 'a client comes')
  gates.get('second')!.open()
  await batchUntil(client, id, ({ request_counts: counts }) => counts!.completed > 0)
  for (let i = 0; i < 20; i++) await client.batches.retrieve(id)
  seen.push('the answer')
  gates.get('a person')!.open()
  t.equal((await person).status, 200)
  t.match(await batchUntil(client, id, isOver), { status: 'completed', request_counts: { completed: 3, failed: 0 } })
  t.equal(seen[seen.indexOf('a person') + 1], 'the answer', 'no row beside it')
  t.strictSame(seen.toSorted(), ['a person', 'first', 'first', 'second', 'the answer', 'third'])
})

t.test('a cancelled batch keeps what was answered, and its engine works no further', async t => {
  const { client, runtime } = await batchGateway(t, {
    onStart: ({ engine }) => engine.answer(({ body }) => body.includes('hang') ? { headAfterMs: Infinity } : { headers: JSON_TYPE, chunks: [chatAnswer('x')] })
  })
  const { id } = await startBatch(client, linesOf(CHAT, ask('one'), ask('hang'), ask('hang'), ask('hang')))
  await batchUntil(client, id, ({ request_counts: counts }) => counts!.completed === 1)
  await until(() => runtime.engine('agent').active > 0, 'a row is with the engine')
  t.match(await client.batches.cancel(id), { status: 'cancelling', cancelling_at: Number })
  const done = await batchUntil(client, id, isOver)
  t.match(done, { status: 'cancelled', cancelled_at: Number, request_counts: { total: 4, completed: 1, failed: 3 } })
  t.strictSame((await rowsOf(client, done.output_file_id)).map(({ custom_id: row }) => row), ['row-0'])
  t.strictSame((await rowsOf(client, done.error_file_id)).map(({ error }) => error!.code), ['batch_cancelled', 'batch_cancelled', 'batch_cancelled'])
  await until(() => runtime.engine('agent').active === 0, 'the engine is free')
})

t.test('a batch that waits for its turn is cancelled at once', async t => {
  const { client, slots } = await batchGateway(t, {
    pluginConfig: { 'v1-batches': { active: 1 } },
    onStart: ({ engine }) => engine.answer(() => ({ headAfterMs: Infinity }))
  })
  const first = await startBatch(client, linesOf(CHAT, ask('hang')))
  await until(() => slots.status('agent').inFlight > 0, 'a row is with the slot')
  const second = await startBatch(client, linesOf(CHAT, ask('never'), ask('never')))
  t.equal(second.status, 'validating')
  await client.batches.cancel(second.id)
  t.match(await batchUntil(client, second.id, isOver), { status: 'cancelled', request_counts: { completed: 0, failed: 2 } })
  t.match(await client.batches.retrieve(first.id), { status: 'in_progress' })
  await client.batches.cancel(first.id)
  await batchUntil(client, first.id, isOver)
})

t.test('a batch that waits for its turn past its time expires, and asks nothing', async t => {
  const folder = t.testdir({ requests: linesOf(CHAT, ask('never')) })
  const clock = new FakeClock()
  const rows = new Map<string, unknown>()
  const file = { id: 'file-1', seq: 1, filename: 'a', purpose: 'batch', bytes: 1, created_at: 0, expires_at: null }
  const batches = new Batches({
    clock,
    folder: join(folder, 'batches'),
    active: 1,
    parallel: 1,
    baseUrl: () => 'http://127.0.0.1:1',
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} } as never,
    table: {
      get: key => rows.get(key),
      set: (key, value) => { rows.set(key, value) },
      delete: key => rows.delete(key),
      keys: () => [...rows.keys()]
    },
    files: { get: () => file, path: () => join(folder, 'requests'), take: () => Promise.resolve(file) },
    // the slot is never idle
    turns: { take: (...[, , , , signal]: Parameters<SlotTurns['take']>) => pause(clock, 2 ** 30, signal) } as never
  })
  t.teardown(() => batches.stop())
  await batches.load()
  const body = { input_file_id: 'file-1', endpoint: CHAT } as const
  const first = await batches.create({ ...body, completion_window: '48h' } as never, null)
  const second = await batches.create({ ...body, completion_window: '1h' } as never, null)
  while (batches.get(first.id).status !== 'in_progress') await turn()
  t.equal(batches.get(second.id).status, 'validating')
  clock.setWall(clock.now() + 2 * 3600_000)
  await clock.advance(60_000)
  while (batches.get(second.id).status !== 'expired') await turn()
  t.match(batches.get(second.id), { status: 'expired', failed: 1 })
  t.match(batches.get(first.id), { status: 'in_progress' }, 'the other one goes on')
})

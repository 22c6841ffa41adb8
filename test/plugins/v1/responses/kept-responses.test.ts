import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import Database from 'libsql'
import t from 'tap'
import { AnswerReader } from '../../../../plugins/v1/responses/kept/answer-reader.js'
import { KeptFile } from '../../../../plugins/v1/responses/kept/kept-file.js'
import { KeptResponses } from '../../../../plugins/v1/responses/kept/kept-responses.js'
import { keepingSchema } from '../../../../plugins/v1/responses/kept/settings.js'
import { FakeClock } from '../../../../kernel/testing/fake-clock.js'
import { recordingLogger } from '../../../kernel/runtime/support.js'

const DAY_MS = 86_400_000

const message = (text: string): Record<string, unknown> => ({ id: 'msg_1', type: 'message', text })
const response = (id: string, text = 'x'): Record<string, unknown> => ({ id, object: 'response', output: [message(text)] })
const fresh = (id: string, previous: string | null = null, text = 'x'): Parameters<KeptResponses['add']>[0] => ({ id, previous, input: [message(text)], response: response(id, text) })

t.test('what is deleted, replaced or dropped is soon in no byte of the file or of its log while the gateway runs', async t => {
  const path = join(t.testdir(), 'r.db')
  const said = (): string[] => {
    const bytes = ['', '-wal'].map(end => readFileSync(path + end).toString('latin1'))
    return ['qzmvorlath', 'xjgrumpfel', 'wkbrintzol', 'vyhuldrapf', 'stays'].filter(word => bytes.some(each => each.includes(word)))
  }
  const before = await KeptResponses.open(path, { days: 30, responses: 2, bytes: 1e9 })
  before.add(fresh('left', null, 'vyhuldrapf'), 0)
  before.delete('left')
  const wal = readFileSync(`${path}-wal`)
  before.close()
  writeFileSync(`${path}-wal`, wal)
  t.strictSame(said(), ['vyhuldrapf'], 'as a killed gateway leaves it')

  const clock = new FakeClock(0)
  const file = new KeptFile(path, keepingSchema.parse({ max_responses: 100 }), clock, recordingLogger())
  t.teardown(() => file.close())
  const store = await file.open()
  await clock.advance(1000)
  t.strictSame(said(), [])
  store.add({ ...fresh('conv', null, 'stays'), response: { id: 'conv', object: 'conversation', metadata: { of: 'wkbrintzol' } } }, 0)
  store.add(fresh('a', null, 'qzmvorlath'), 0)
  store.append('conv', [{ id: 'item', text: 'xjgrumpfel' }], DAY_MS * 29)
  t.strictSame(said(), ['qzmvorlath', 'xjgrumpfel', 'wkbrintzol', 'stays'])
  for (const [word, forget] of [
    ['xjgrumpfel', () => store.deleteItem('conv', 'item')],
    ['wkbrintzol', () => store.describe('conv', { id: 'conv', object: 'conversation' })],
    ['qzmvorlath', () => store.dropOld(DAY_MS * 31)]
  ] as const) {
    forget()
    t.ok(said().includes(word), 'it is in the log yet')
    await clock.advance(1000)
    t.notOk(said().includes(word))
  }
  t.strictSame(said(), ['stays'])
  store.delete('conv')
  await clock.advance(1000)
  t.strictSame(said(), [])
})

t.test('what is kept is bounded', async t => {
  const open = (limits: Parameters<typeof KeptResponses.open>[1]): Promise<KeptResponses> => KeptResponses.open(join(t.testdir(), 'r.db'), limits)

  t.test('in number: the conversation that was used least recently goes, as a whole', async t => {
    const store = await open({ days: 30, responses: 4, bytes: 1e9 })
    t.teardown(() => store.close())
    store.add(fresh('a'), 1)
    store.add(fresh('b'), 2)
    store.add(fresh('a2', 'a'), 3)
    store.add(fresh('c'), 4)
    t.strictSame(['a', 'b', 'a2', 'c'].filter(id => store.get(id) !== undefined), ['a', 'b', 'a2', 'c'])
    store.add(fresh('d'), 5)
    t.strictSame(['a', 'b', 'a2', 'c', 'd'].filter(id => store.get(id) !== undefined), ['a', 'a2', 'c', 'd'])
    store.add(fresh('e'), 6)
    t.strictSame(['a', 'a2', 'c', 'd', 'e'].filter(id => store.get(id) !== undefined), ['c', 'd', 'e'])
    store.add(fresh('c2', 'c'), 7)
    t.throws(() => { for (let n = 2; ; n++) { store.assertRoom(`c${n}`, 1); store.add(fresh(`c${n + 1}`, `c${n}`), 7 + n) } }, { code: 'responses.too_long' })
    t.strictSame([...store.items('c4', 'asc', true)].length, 8, 'a conversation is never cut to make room for itself')
  })

  t.test('in bytes: the oldest conversations go until the newest fit', async t => {
    const store = await open({ days: 30, responses: 1e6, bytes: 20_000 })
    t.teardown(() => store.close())
    for (let n = 0; n < 30; n++) store.add(fresh(`r${n}`, null, 'x'.repeat(1000)), n)
    const left = Array.from({ length: 30 }, (_, n) => n).filter(n => store.get(`r${n}`) !== undefined)
    t.ok(left.length >= 8 && left.length < 10, String(left.length))
    t.strictSame(left, Array.from({ length: left.length }, (_, i) => 30 - left.length + i), 'the newest stay')
    t.throws(() => store.assertRoom('r29', 9_000), { code: 'responses.too_long' })
  })

  t.test('in age, from the last response of the conversation on', async t => {
    const store = await open({ days: 2, responses: 100, bytes: 1e9 })
    t.teardown(() => store.close())
    store.add(fresh('a'), 0)
    store.add(fresh('b'), 0)
    store.add(fresh('b2', 'b'), DAY_MS)
    store.dropOld(2.5 * DAY_MS)
    t.strictSame(['a', 'b', 'b2'].filter(id => store.get(id) !== undefined), ['b', 'b2'])
    t.equal(store.context('a'), undefined)
    store.dropOld(4 * DAY_MS)
    t.equal(store.get('b2'), undefined)
  })

  t.test('a long conversation is kept in proportion to its length', async t => {
    const store = await open({ days: 30, responses: 10_000, bytes: 1e9 })
    t.teardown(() => store.close())
    for (let n = 0; n < 500; n++) store.add(fresh(`r${n}`, n === 0 ? null : `r${n - 1}`, `text ${n}`), n)
    t.strictSame(store.context('r499')!.map(({ text }) => text), Array.from({ length: 1000 }, (_, i) => `text ${Math.floor(i / 2)}`))
    t.strictSame([...store.items('r499', 'desc', false)].slice(0, 3).map(({ text }) => text), ['text 499', 'text 498', 'text 498'])
  })
})

t.test('an engine that says the id of a deleted response again makes no circle', async t => {
  const store = await KeptResponses.open(join(t.testdir(), 'r.db'), { days: 30, responses: 100, bytes: 1e9 })
  t.teardown(() => store.close())
  store.add(fresh('a'), 1)
  store.add(fresh('b', 'a'), 2)
  store.delete('a')
  store.add(fresh('a', 'b'), 3)
  for (const id of ['a', 'b']) t.throws(() => store.context(id), { code: 'responses.context_lost' })
})

t.test('a finished response is found in a stream however it is cut, and in nothing else', t => {
  const stream = [
    ': hello\n\n', 'event: response.created\ndata: {"type":"response.created","response":{"object":"response","id":"no"}}\n\n',
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"\\n\\nevent: response.completed\\ndata: {}"}\n\n',
    'event: response.completed\ndata: {"response":{"object":"response","id":"é🎈"},"type":"response.completed"}\n\n'
  ].join('')
  const found = (chunks: readonly Buffer[], isStream = true): unknown => {
    const reader = new AnswerReader(isStream)
    for (const chunk of chunks) reader.push(chunk)
    reader.end()
    return reader.response()?.id ?? null
  }
  const bytes = Buffer.from(stream)
  fc.assert(fc.property(fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 20 }), cuts => {
    const marks = [0, ...cuts.sort((a, b) => a - b), bytes.length]
    t.equal(found(marks.slice(1).map((mark, i) => bytes.subarray(marks[i]!, mark))), 'é🎈')
  }), { numRuns: 100 })
  t.equal(found([...bytes].map(byte => Buffer.from([byte]))), 'é🎈')
  const from = (chunks: readonly Buffer[]): string | null => {
    const reader = new AnswerReader(true)
    for (const chunk of chunks) {
      reader.push(chunk)
      if (reader.hasCome) return chunk.toString('utf8', reader.from)
    }
    return null
  }
  const last = stream.slice(stream.lastIndexOf('event: response.completed'))
  t.equal(from([bytes]), last, 'what is not of it may go on before it')
  t.equal(from([bytes.subarray(0, 200), bytes.subarray(200)]), last)
  const cut = bytes.length - Buffer.byteLength(last) + 10
  const [lead, rest] = [bytes.subarray(0, cut), bytes.subarray(cut)]
  t.equal(from([lead, rest]), rest.toString(), 'an event that began in an earlier chunk')
  t.equal(found([bytes.subarray(0, -3)]), null, 'an event that did not come whole')
  t.equal(found([Buffer.from('data: {"type":"response.incomplete","response":{"object":"response","id":"plain"}}\n\n')]), 'plain', 'an event without a name')
  t.equal(found([Buffer.from('{"object":"response",'), Buffer.from('"id":"whole"}')], false), 'whole')
  t.equal(found([Buffer.from('{"object":"list"}')], false), null)
  t.equal(found([Buffer.from('{"object":"resp')], false), null)
  t.end()
})

t.test('a database that another program holds is told as such at once, and taken again when it is free', async t => {
  const path = join(t.testdir(), 'r.db')
  const store = await KeptResponses.open(path, { days: 30, responses: 100, bytes: 1e9 })
  t.teardown(() => store.close())
  const other = new Database(path)
  t.teardown(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  t.throws(() => store.add(fresh('a'), 1), { code: 'responses.store_busy', status: 503 })
  t.throws(() => store.delete('a'), { code: 'responses.store_busy' })
  const held = join(t.testdir(), 'other.db')
  const holder = new Database(held)
  t.teardown(() => holder.close())
  holder.exec('PRAGMA journal_mode = WAL; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  await t.rejects(KeptResponses.open(held, { days: 30, responses: 100, bytes: 1e9 }), { code: 'responses.store_busy' }, 'while it is opened too')
  other.exec('ROLLBACK')
  t.equal(store.add(fresh('a'), 1), true)
})

import fc from '../../property.js'
import t from 'tap'
import type { ActivityQuery, ActivityRow, GatewayEvent, NewActivity } from '../../../kernel/contract/index.js'
import { createActivityLog } from '../../../kernel/events/activity-log.js'
import type { ActivityStore } from '../../../kernel/events/activity-store.js'
import { createEventBus } from '../../../kernel/events/event-bus.js'
import { rowOfEvent } from '../../../kernel/events/event-mirror.js'
import { isSecretKey, redact, redactLine } from '../../../kernel/contract/index.js'
import { matchesGlob } from '../../../kernel/events/type-glob.js'
import { manualClock, recordingLog } from '../config/support.js'

function bus () {
  const clock = manualClock()
  const bus = createEventBus({ clock, epoch: 'e1' })
  const emit = (...types: readonly string[]): void => {
    for (const type of types) bus.emit({ type, source: 'system', message: type })
  }
  return { bus, emit, clock }
}

const ids = (events: readonly GatewayEvent[]): readonly number[] => events.map(event => event.id)

/** Reads until `count` events came. */
async function take (events: AsyncIterable<GatewayEvent>, count: number): Promise<readonly GatewayEvent[]> {
  const taken: GatewayEvent[] = []
  for await (const event of events) {
    taken.push(event)
    if (taken.length === count) break
  }
  return taken
}

t.test('an event gets an id, a time and what it is about', async t => {
  const { bus: events, clock } = bus()
  clock.advance(1500)
  const data = { from: 'a' }
  events.emit({ type: 'slot.state', source: 'slot:agent', message: 'agent: offline -> starting', data })
  data.from = 'changed'
  t.same(events.list(), {
    events: [{
      id: 1, ts: '2026-01-01T00:00:01.500Z', type: 'slot.state', severity: 'info', source: 'slot:agent', message: 'agent: offline -> starting',
      data: { from: 'a' }
    }],
    next_since: 1,
    epoch: 'e1'
  })
})

t.test('a list of events pages on from an id, within what the ring holds', async t => {
  const { bus: events, emit } = bus()
  t.same(events.list(), { events: [], next_since: 0, epoch: 'e1' })
  emit('slot.state', 'pull.progress', 'slot.load', 'system.x')
  events.emit({ type: 'slot.failed', severity: 'error', source: 's', message: 'm' })
  t.same(ids(events.list({ type: 'slot.*' }).events), [1, 3, 5])
  t.same(ids(events.list({ severity: 'warn' }).events), [5])
  t.same(ids(events.list({ since: 3 }).events), [4, 5])
  t.same(ids(events.list({ limit: 2 }).events), [4, 5], 'the newest')
  t.match(events.list({ since: 0, limit: 2 }), { events: [{ id: 1 }, { id: 2 }], next_since: 2 }, 'a page, and where the next one starts')
  t.match(events.list({ since: 2, limit: 2 }), { events: [{ id: 3 }, { id: 4 }], next_since: 4 })
  t.match(events.list({ since: 0, type: 'nothing.*' }), { events: { length: 0 }, next_since: 5 }, 'nothing fits: go on from the newest')
  t.match(events.list({ since: 99 }), { events: { length: 0 }, next_since: 5 }, 'an id of another epoch')
  emit(...Array.from({ length: 600 }, () => 'x'))
  const all = events.list().events
  t.same([all.length, all[0]?.id, all.at(-1)?.id], [500, 106, 605], 'the ring holds 500')
})

t.test('a subscription misses no event and repeats none', async t => {
  await t.test('live only, and filtered', async t => {
    const { bus: events, emit } = bus()
    emit('slot.before')
    const subscription = events.subscribe({ type: 'slot.*' }, new AbortController().signal)
    emit('other', 'slot.a', 'slot.b')
    t.same(ids(await take(subscription, 2)), [3, 4])
    emit('slot.c')
    t.same(await take(subscription, 1), [], 'leaving the loop ended the subscription')
  })

  await t.test('from an id on, without a gap or a doubled event', async t => {
    const { bus: events, emit } = bus()
    emit('a', 'b', 'c')
    const subscription = events.subscribe({ since: 1 }, new AbortController().signal)
    emit('d')
    t.same(ids(await take(subscription, 3)), [2, 3, 4])
  })

  await t.test('what the ring has lost is a gap first', async t => {
    const { bus: events, emit } = bus()
    emit(...Array.from({ length: 510 }, () => 'x'))
    const [gap, first] = await take(events.subscribe({ since: 4, type: 'none' }, new AbortController().signal), 1)
    t.match(gap, { id: 10, type: 'events.gap', severity: 'warn', data: { dropped: 6 } }, 'it passes every filter')
    t.equal(first, undefined)
    t.equal((await take(events.subscribe({ since: 10 }, new AbortController().signal), 500)).length, 500, 'the whole ring is replayed')
  })

  await t.test('a reader that falls behind', async t => {
    const { bus: events, emit } = bus()
    const subscription = events.subscribe({}, new AbortController().signal)
    const other = events.subscribe({}, new AbortController().signal)
    emit(...Array.from({ length: 300 }, () => 'x'))
    const [gap, next, ...rest] = await take(subscription, 257)
    t.match(gap, { id: 44, type: 'events.gap', data: { dropped: 44 } })
    t.equal(next?.id, 45)
    t.equal(rest.at(-1)?.id, 300)
    t.match(await take(other, 1), [{ type: 'events.gap' }], 'each has its own queue')
  })

  await t.test('the signal ends it, also for a reader that waits, and before it began', async t => {
    const { bus: events, emit } = bus()
    const controller = new AbortController()
    const subscription = events.subscribe({}, controller.signal)
    const reader = take(subscription, 9)
    emit('a')
    await Promise.resolve()
    controller.abort()
    t.same((await reader).length, 1)
    emit('b')
    t.same(await take(events.subscribe({ since: 0 }, controller.signal), 9), [])
  })

  await t.test('several reads at once come in order', async t => {
    const { bus: events, emit } = bus()
    const iterator = events.subscribe({}, new AbortController().signal)[Symbol.asyncIterator]()
    const reads = [iterator.next(), iterator.next()]
    emit('a', 'b')
    t.same((await Promise.all(reads)).map(result => (result.value as GatewayEvent).id), [1, 2])
    await iterator.return?.()
    t.match(await iterator.next(), { done: true })
  })
})

t.test('a glob matches event types as its regular expression would, quickly', async t => {
  const table: readonly (readonly [string, string, boolean])[] = [
    ['slot.*', 'slot.state', true], ['slot.*', 'slots.state', false], ['*', '', true], ['', '', true], ['', 'a', false], ['*.state', 'slot.x.state', true],
    ['slot.?tate', 'slot.state', true], ['a*b*c', 'aXbYbZc', true], ['a*b*c', 'aXbY', false], ['slot.state', 'slot.state', true], ['**', 'x', true]
  ]
  for (const [pattern, text, fits] of table) t.equal(matchesGlob(pattern, text), fits, `${pattern} ~ ${text}`)
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 8 })
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*', '?'), maxLength: 6 })
  fc.assert(fc.property(pattern, word, (glob, text) => {
    const expression = new RegExp(`^${glob.replace(/\./g, '\\.').replace(/\*/g, '.*').replace(/\?/g, '.')}$`)
    return matchesGlob(glob, text) === expression.test(text)
  }))
  t.notOk(matchesGlob('*a'.repeat(200) + 'b', 'a'.repeat(2000)), 'no pattern takes long')
})

t.test('values of secret keys are left out of events', async t => {
  for (const key of ['api_key', 'apikey', 'API_KEY', 'key', 'token', 'HF_TOKEN', 'client-secret', 'password', 'dbPassword', 'credential', 'credentials',
    'Authorization', 'x-api-key', 'accessKey']) t.ok(isSecretKey(key), key)
  for (const key of ['max_tokens', 'keys_total', 'tokenizer', 'monkey', 'keep', 'port', 'secretary', 'model']) t.notOk(isSecretKey(key), key)
  const loop: Record<string, unknown> = { a: 1 }
  loop.self = loop
  t.same(redact({
    port: 1, token: 'x', nested: [{ api_key: 'y', deep: { Authorization: 'z', ok: true } }], key: null, big: 5n, when: new Date(0), fn: () => 1,
    map: new Map([['secret', 's'], ['a', 'b']]), error: new Error('m'), loop, bytes: new Uint8Array(3)
  }), {
    port: 1, token: '***', nested: [{ api_key: '***', deep: { Authorization: '***', ok: true } }], key: null, big: '5', when: '1970-01-01T00:00:00.000Z',
    fn: undefined, map: { secret: '***', a: 'b' }, error: { name: 'Error', message: 'm' }, loop: { a: 1, self: '[…]' }, bytes: '[3 bytes]'
  })
  t.same(redact({ a: [1, { b: 2 }, 3] }, undefined, 4), { a: [1, {}, 3] }, 'what comes after the first items is cut')
  fc.assert(fc.property(fc.object({ key: fc.constantFrom('token', 'a', 'b'), maxDepth: 4, values: [fc.constant('hunter2')] }), value =>
    !/"token":(?!"\*\*\*")/.test(JSON.stringify(redact(value)))))
})

t.test('secrets are masked in log lines, and ordinary text stays', async t => {
  const secrets: ReadonlyArray<readonly [string, string]> = [
    ['Authorization: Bearer abc.def', 'Authorization: ***REDACTED***'],
    ['{"authorization":"Basic Zm9v"}', '{"authorization":"***REDACTED***"}'],
    ['sent bearer sk-0123456789', 'sent bearer ***REDACTED***'],
    ['HF_TOKEN=hf_x OTHER=1', 'HF_TOKEN=***REDACTED*** OTHER=1'],
    ['OPENAI_API_KEY="a b" rest', 'OPENAI_API_KEY=***REDACTED*** rest'],
    ['run --api-key s3cret --port 1', 'run --api-key ***REDACTED*** --port 1'],
    ['pulling https://user:pass@hub.example/x?key=abc&n=1', 'pulling https://***REDACTED***@hub.example/x?key=***REDACTED***&n=1'],
    ['{"api_key": "abc", "eos_token": "</s>"}', '{"api_key": "***REDACTED***", "eos_token": "</s>"}'],
    ['token hf_abcdefghijklmnopqrst was refused', 'token ***REDACTED*** was refused'],
    ['sk-proj-0123456789abcdef', '***REDACTED***'],
    ['http://127.0.0.1:8080/v1 a@b max_tokens: 5', 'http://127.0.0.1:8080/v1 a@b max_tokens: 5'],
    ['BOS token = 1, key = q4', 'BOS token = 1, key = q4']
  ]
  for (const [line, wanted] of secrets) t.equal(redactLine(line), wanted)
})

t.test('activity rows are bounded, hold no secrets, and old ones are pruned', async t => {
  const setup = () => {
    const rows: Omit<ActivityRow, 'id'>[] = []
    const pruned: [string, number][] = []
    const store: ActivityStore = {
      epoch: 'a1',
      lastId: () => rows.length,
      insert: added => rows.push(...added),
      list: ({ limit = 200 } = {}) => rows.map((row, i) => ({ ...row, id: i + 1 })).reverse().slice(0, limit),
      page: () => ({ json: '[]', count: 0, next_before: null }),
      behind: (_filter, limit) => Math.max(0, rows.length - limit),
      after: (since, _filter, limit) => {
        const found = rows.map((row, i) => ({ ...row, id: i + 1 })).slice(since, since + limit)
        return { rows: found, upTo: found.at(-1)?.id ?? since }
      },
      prune: (before, maxRows) => { pruned.push([before, maxRows]); return 0 }
    }
    const settings = { enabled: true, retention_days: 30, max_rows: 500 }
    const clock = manualClock()
    const log = recordingLog()
    const activity = createActivityLog({
      store, clock, log, settings: () => settings, clean: text => text.replaceAll('hunter2', '***')
    })
    return { activity, rows, pruned, settings, clock, log, store }
  }
  const row: NewActivity = { category: 'slot', action: 'slot.create', target: 'agent', actor: 'dashboard' }

  await t.test('a row has every field, and no secret', async t => {
    const { activity, rows } = setup()
    activity.record({ ...row, after: { env: { HF_TOKEN: 'hunter2' }, port: 1 } })
    t.same(rows, [{
      ts: '2026-01-01T00:00:00.000Z', kind: 'action', ...row, severity: 'info', outcome: null, message: '', before: null,
      after: { env: { HF_TOKEN: '***' }, port: 1 }, error: null, duration_ms: null, request_id: null
    }])
    t.equal(activity.list().length, 1)
  })

  await t.test('a row is short, whatever it is about', async t => {
    const { activity, rows } = setup()
    const long = 'x'.repeat(100_000)
    const cut = `${'x'.repeat(200)}…`
    activity.record({ ...row, action: long, target: long, before: long, after: { [long]: [{ deep: { deeper: long } }], short: 'short' } })
    t.same(rows[0], {
      ...rows[0], action: cut, target: cut, before: cut, after: { [cut]: [{ deep: { deeper: cut } }], short: 'short' }
    })
    const many = Array.from({ length: 150 }, () => long)
    activity.record({ ...row, before: many, after: many })
    t.match(rows[1], { before: Array.from({ length: 150 }, () => cut), after: { truncated: true, length: 30_601 } }, 'both together are bounded')
    activity.record({ ...row, before: [...many, ...many], after: [1] })
    t.match(rows[2], { before: { truncated: true, length: 61_201 }, after: [1] })
  })

  await t.test('rows are whole where nothing is long', async t => {
    const { activity, rows } = setup()
    activity.record({ ...row, after: { env: { HF_TOKEN: 'hunter2' }, list: Array.from({ length: 500 }, (_, i) => `n${i}`) } })
    t.match(rows[0]?.after, { env: { HF_TOKEN: '***' }, list: { 499: 'n499' } })
  })

  await t.test('audited work records what happened', async t => {
    const { activity, rows, clock } = setup()
    t.equal(await activity.audited({ ...row, message: 'm' }, async () => { clock.advance(40); return 'result' }), 'result')
    const failure = new Error('no port')
    await t.rejects(activity.audited({ ...row, outcome: 'ok', severity: 'ok' }, async () => { throw failure }), failure)
    await t.rejects(activity.audited(row, async note => { note({ after: { port: 1 } }); throw failure }), failure)
    t.match(rows[2], { outcome: 'error', after: { port: 1 } }, 'what was learned on the way is kept')
    t.match(rows.slice(0, 2), [
      { outcome: 'ok', severity: 'ok', duration_ms: 40, error: null, message: 'm' },
      { outcome: 'error', severity: 'error', error: 'no port', duration_ms: 0 }
    ])
  })

  await t.test('work that is written down before it begins leaves a row if the process dies in it, and has two when it ends', async t => {
    const { activity, rows } = setup()
    await activity.audited({ ...row, outcome: 'pending' }, async () => {
      t.match(rows, [{ outcome: 'pending', severity: 'info', duration_ms: null, message: /started/ }])
    })
    t.match(rows, [{}, { outcome: 'ok', severity: 'ok', message: /^$/ }])
    t.equal(rows.length, 2)
  })

  await t.test('it prunes at the start and every 200 rows, by the settings of the moment', async t => {
    const { activity, pruned, settings } = setup()
    for (let i = 0; i < 199; i++) activity.record(row)
    t.same(pruned, [['2025-12-02T00:00:00.000Z', 500]])
    settings.retention_days = 1
    activity.record(row)
    t.same(pruned[1], ['2025-12-31T00:00:00.000Z', 500])
  })

  await t.test('it never throws, and can be off', async t => {
    const { activity, settings, rows, log, store } = setup()
    store.insert = () => { throw new Error('disk full') }
    activity.record(row)
    t.match(log.lines, [{ level: 'error', message: 'the activity row slot.create was not written: disk full' }])
    t.equal(await activity.audited(row, async () => 1), 1)
    settings.enabled = false
    activity.record(row)
    t.same(rows, [])
    t.same(activity.list(), [])
    t.equal(log.lines.length, 2)
  })

  await t.test('no text of a row has a secret, whatever it is called', async t => {
    const { activity, rows } = setup()
    await t.rejects(activity.audited({ ...row, message: 'for hunter2', before: { url: 'http://x/?a=hunter2', hunter2: [1] } }, async () => {
      throw new Error('hunter2 was refused')
    }))
    t.match(rows, [{ message: 'for ***', error: '*** was refused', before: { 'url': 'http://x/?a=***', '***': [1] } }])
  })

  await t.test('rows that may wait are written together, and in order with those that may not', async t => {
    const { activity, rows, clock, settings } = setup()
    const soon = (action: string): void => { activity.recordSoon({ ...row, action }) }
    soon('a')
    soon('b')
    t.same(rows, [])
    activity.record({ ...row, action: 'c' })
    t.same(rows.map(({ action }) => action), ['a', 'b', 'c'])
    soon('d')
    clock.advance(199)
    t.equal(rows.length, 3)
    clock.advance(1)
    t.equal(rows.length, 4)
    for (let i = 0; i < 200; i++) soon('e')
    t.equal(rows.length, 204, 'no more than 200 wait')
    soon('f')
    activity.close()
    t.equal(rows.at(-1)?.action, 'f')
    settings.enabled = false
    soon('g')
    activity.close()
    t.equal(rows.length, 205)
  })

  await t.test('a follower of the activity log reads on until the log ends', async t => {
    const { activity, rows } = setup()
    const record = (count: number): void => { for (let i = 0; i < count; i++) activity.record(row) }
    const read = async (query: ActivityQuery, count: number, stop = new AbortController()): Promise<number[]> => {
      const ids: number[] = []
      for await (const { id } of activity.follow(query, stop.signal)) {
        ids.push(id)
        if (ids.length === count) break
      }
      return ids
    }
    record(3)
    const live = read({}, 2)
    const late = read({ limit: 2 }, 3)
    const resumed = read({ since: 1 }, 4)
    record(2)
    t.same(await live, [4, 5])
    t.same(await late, [2, 3, 4])
    t.same(await resumed, [2, 3, 4, 5])
    const slow = activity.follow({ since: 5 }, new AbortController().signal)[Symbol.asyncIterator]()
    record(1000)
    const told: unknown[] = []
    while (told.length < 1_000) told.push((await slow.next()).value?.id)
    t.strictSame(told, Array.from({ length: 1_000 }, (_, i) => 6 + i))
    t.equal(rows.length, 1005)
    const gone = new AbortController()
    const leaver = read({}, 1, gone)
    gone.abort()
    t.same(await leaver, [])
    const last = read({}, 1)
    activity.close()
    t.same(await last, [], 'it ends with the log')
  })
})

t.test('an event becomes an activity row unless it is progress', async t => {
  const event = (type: string): GatewayEvent => ({ id: 1, ts: 't', type, severity: 'warn', source: 'slot:agent', message: 'm', data: { to: 'ready' } })
  t.same(rowOfEvent(event('slot.state')), {
    kind: 'event', category: 'slot', action: 'slot.state', target: 'slot:agent', actor: 'system', severity: 'warn', message: 'm', after: { to: 'ready' }
  })
  t.equal(rowOfEvent(event('mystery.thing'))?.category, 'system')
  t.equal(rowOfEvent(event('pull.progress')), null)
  t.equal(rowOfEvent(event('events.gap')), null)
})

t.test('an event has no secret', async t => {
  const events = createEventBus({ clock: manualClock(), clean: text => text.replaceAll('hunter2', '***') })
  events.emit({ type: 'x.y', source: 'system', message: 'for hunter2', data: { token: 'abc', note: ['hunter2'], max_tokens: 5 } })
  t.match(events.list().events, [{ message: 'for ***', data: { token: '***', note: ['***'], max_tokens: 5 } }])
})

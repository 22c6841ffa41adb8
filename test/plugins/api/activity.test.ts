import t from 'tap'
import type { ActivityRow, NewActivity } from '../../../kernel/contract/index.js'
import { csvRows, csvTitles } from '../../../plugins/api/activity/csv.js'
import { entryOf, isWanted } from '../../../plugins/api/journal/entry.js'
import { apiOf, openStream } from './support.js'

const api = apiOf('api-activity', 'api-journal', 'api-slots', 'api-events')

const row: NewActivity = { category: 'model', action: 'model.delete', target: 'm1', actor: 'mcp:helper', outcome: 'ok', severity: 'ok' }

t.test('audit rows are listed, filtered and exported', async t => {
  const gateway = await api(t)
  const { activity } = gateway.gateway.kernel()
  await gateway.call('PUT', '/api/slots/agent/config', { workers: 2 }, { 'x-svc-agent': 'helper', 'x-request-id': 'my-request' })
  activity.record({ ...row, message: 'a comma, a "quote"\nand a line', after: { api_key: 'hunter2' } })
  const ids = async (query = ''): Promise<number[]> => (await gateway.call('GET', `/api/activity?${query}`)).json.records.map((found: ActivityRow) => found.id)

  const all = (await gateway.call('GET', '/api/activity?kind=action')).json
  t.match(all.records, [
    { kind: 'action', category: 'model', action: 'model.delete', after: { api_key: '***' } },
    { action: 'slot.edit_config', target: 'agent', actor: 'mcp:helper', outcome: 'ok', severity: 'ok', before: { workers: 1 }, after: { workers: 2 },
      request_id: 'my-request', duration_ms: Number }
  ])
  t.match(all, { next_since: all.records[0].id, next_before: null, epoch: /^[0-9a-f]{16}$/ })
  const [second, first] = all.records.map((found: ActivityRow) => found.id)
  t.same(await ids('category=slot&kind=action'), [first])
  t.same(await ids('action=*.delete'), [second])
  t.same(await ids('search=A%20COMMA'), [second])
  t.same(await ids(`since=${first}&kind=action`), [second])
  t.same(await ids(`before=${second}&kind=action`), [first])
  t.same(await ids('actor=nobody'), [])
  t.same(await ids('severity=ok&outcome=ok&target=m1'), [second])
  const page = (await gateway.call('GET', '/api/activity?limit=1')).json
  t.match(page, { records: [{ id: second }], next_before: second, next_since: second })
  for (const query of ['limit=0', 'limit=1001', 'kind=x', 'severity=loud', 'action=%20', 'unknown=1', 'since=-1', 'outcome=good']) {
    for (const path of ['', '/stream', '/export']) {
      if (path === '/export' && query.startsWith('limit=')) continue
      t.match(await gateway.call('GET', `/api/activity${path}?${query}`), { status: 400, json: { error: { code: 'activity.invalid_query', param: /./ } } }, path + query)
    }
  }
  t.equal((await gateway.call('POST', '/api/activity')).status, 405)

  const json = await gateway.call('GET', '/api/activity/export?kind=action')
  t.equal(json.headers.get('content-disposition'), 'attachment; filename="svc-activity.json"')
  t.same(json.json.records, all.records)
  const csv = await gateway.call('GET', '/api/activity/export?fmt=csv&kind=action&category=model')
  t.match(csv.headers.get('content-type'), 'text/csv')
  t.equal(csv.headers.get('content-disposition'), 'attachment; filename="svc-activity.csv"')
  t.match(csv.text, /^id,ts,kind,.*\r\n\d+,[^,]+,action,model,model.delete,m1,mcp:helper,ok,ok,"a comma, a ""quote""\nand a line",,,,,"\{""api_key"":""\*\*\*""\}"\r\n$/)

  t.equal((await gateway.call('PUT', '/api/slots/agent/config', { workers: 3 })).status, 200)
  await gateway.file('etc/svc/svc.toml')
  await gateway.gateway.kernel().config.patchSvc({ activity: { enabled: false } })
  for (const path of ['', '/stream', '/export']) {
    t.match(await gateway.call('GET', `/api/activity${path}`), { status: 503, json: { error: { code: 'activity.unavailable' } } })
  }
})

t.test('a filter that lets little through looks at so many rows at once, and says where to go on', async t => {
  const gateway = await api(t)
  const { activity } = gateway.gateway.kernel()
  activity.record({ ...row, target: 'needle' })
  for (let i = 0; i < 12_000; i++) activity.recordSoon({ ...row, target: `hay-${i % 7}` })
  activity.record({ ...row, target: 'last' })
  const page = async (query: string): Promise<{ records: ActivityRow[], next_before: number | null }> =>
    (await gateway.call('GET', `/api/activity?${query}`)).json
  for (const filter of ['target=needle', 'search=needle', 'action=model.*&target=needle']) {
    const first = await page(filter)
    t.same(first.records, [])
    t.equal(first.next_before, activity.lastId - 10_000 + 1)
    const second = await page(`${filter}&before=${first.next_before}`)
    t.match(second, { records: [{ target: 'needle' }], next_before: null })
    t.equal((await page(`${filter}&since=${first.next_before! - 1}`)).next_before, null, 'what is not asked for is not looked at')
    t.same((await gateway.call('GET', `/api/activity/export?${filter}`)).json.records, second.records, 'an export goes on by itself')
  }
  const stream = await openStream(t, gateway, '/api/activity/stream?target=needle&limit=1')
  activity.record({ ...row, target: 'needle', message: 'a new one' })
  t.equal((await stream.next())!.data.record.message, 'a new one', 'a stream begins no further back than a page looks')
  t.equal((await (await openStream(t, gateway, '/api/activity/stream?target=needle&since=0')).next())!.data.record.message, '', 'and goes on from where it is told to')
  t.equal((await page('limit=1000')).records.length, 1000)
  const whole = (await gateway.call('GET', '/api/activity/export')).json.records as ActivityRow[]
  t.equal(whole.length, 5000)
  t.same(whole.map(({ id }) => id), Array.from({ length: 5000 }, (_, i) => activity.lastId - i), 'no row twice, none left out')
  const csv = (await gateway.call('GET', '/api/activity/export?fmt=csv&target=hay-3')).text
  t.equal(csv.split('\r\n').length, Math.ceil((12_000 - 3) / 7) + 2)
  t.same((await gateway.call('GET', '/api/activity/export?target=nobody')).json, { records: [] })
  t.equal((await gateway.call('GET', '/api/activity/export?fmt=csv&target=nobody')).text, csvTitles)
})

t.test('events are kept as rows, but for progress', async t => {
  const gateway = await api(t)
  const { events } = gateway.gateway.kernel()
  const stream = await openStream(t, gateway, '/api/activity/stream?kind=event&limit=1')
  events.emit({ type: 'pull.progress', source: 'pull:m', message: 'half' })
  events.emit({ type: 'pull.completed', source: 'pull:m', message: 'whole', data: { model_id: 'm' } })
  const { data } = await stream.until(frame => frame.data.record.category === 'pull')
  t.match(data, { record: { kind: 'event', action: 'pull.completed', target: 'pull:m', actor: 'system', message: 'whole', after: { model_id: 'm' }, outcome: null }, epoch: /./ })
  const { records } = (await gateway.call('GET', '/api/activity?category=pull')).json
  t.equal(records.length, 1)
})

t.test('a stream of rows goes on where its reader was, also in another run of the gateway', async t => {
  const gateway = await api(t)
  const { activity } = gateway.gateway.kernel()
  for (const target of ['a', 'b', 'c']) activity.record({ ...row, target })
  const stream = await openStream(t, gateway, '/api/activity/stream?kind=action&limit=2')
  const b = (await stream.next())!
  t.equal(b.data.record.target, 'b')
  t.equal((await stream.next())!.data.record.target, 'c')
  activity.record({ ...row, target: 'd' })
  t.equal((await stream.next())!.data.record.target, 'd')
  t.equal(b.id, `${activity.epoch}:${b.data.record.id}`)
  const resumed = await openStream(t, gateway, '/api/activity/stream?kind=action', { 'last-event-id': b.id! })
  t.same([(await resumed.next())!.data.record.target, (await resumed.next())!.data.record.target], ['c', 'd'])
  const foreign = await openStream(t, gateway, '/api/activity/stream?kind=action&limit=1', { 'last-event-id': 'other:1' })
  t.equal((await foreign.next())!.data.record.target, 'd', 'an id of another table means nothing')
})

t.test('an exported file has nothing that a spreadsheet would run', async t => {
  const full: ActivityRow = {
    id: 1, ts: 't', kind: 'action', category: 'c', action: 'a', target: '=cmd()', actor: '@x', severity: 'ok', outcome: null, message: '-1', before: null,
    after: [1], error: '+2', duration_ms: 1.5, request_id: null
  }
  t.equal(csvRows([full]).trimEnd(), '1,t,action,c,a,\'=cmd(),\'@x,ok,,\'-1,\'+2,1.5,,,[1]', 'a spreadsheet runs nothing of it')
  t.equal(csvTitles.trimEnd().split(',').length, 15)
  t.equal(csvRows([]), '')
})

t.test('the journal shows the events of a slot, and tells what was lost', async t => {
  const gateway = await api(t)
  const { events } = gateway.gateway.kernel()
  events.emit({ type: 'slot.state', source: 'slot:agent', message: 'agent: offline -> Starting', data: { to: 'starting' } })
  events.emit({ type: 'upstream.down', severity: 'warn', source: 'upstream:x', message: 'x is gone' })
  events.emit({ type: 'pull.completed', source: 'pull:m', message: 'for a slot', data: { slot: 'agent' } })
  const list = async (query = '') => (await gateway.call('GET', `/api/journal?${query}`)).json
  t.match(await list(), {
    entries: [
      { id: 1, source: 'slot:agent', level: 'info', msg: 'agent: offline -> Starting', slot: 'agent', data: { type: 'slot.state', source: 'slot:agent', to: 'starting' } },
      { level: 'warn', slot: null }, { slot: 'agent' }
    ],
    next_since: 3
  })
  const ids = async (query: string) => (await list(query)).entries.map((entry: { id: number }) => entry.id)
  t.same(await ids('source=slot'), [1])
  t.same(await ids('source=upstream:x'), [2])
  for (const source of ['all', 'svc', 'merged']) t.same(await ids(`source=${source}`), [1, 2, 3])
  t.same(await ids('slot=agent'), [1, 3])
  t.same(await ids('level=warn'), [2])
  t.same(await ids('q=starting'), [1])
  t.same(await ids('limit=2'), [2, 3])
  t.match(await list('since=0&limit=2'), { entries: [{ id: 1 }, { id: 2 }], next_since: 2 })
  t.match(await list('since=1&q=nothing'), { entries: { length: 0 }, next_since: 3 })
  for (const query of ['limit=501', 'level=ok', 'since=x', 'kind=1']) t.equal((await gateway.call('GET', `/api/journal?${query}`)).status, 400, query)

  const stream = await openStream(t, gateway, '/api/journal/stream?slot=agent')
  t.same([(await stream.next())!.data.id, (await stream.next())!.data.id], [1, 3])
  events.emit({ type: 'x', source: 'system', message: 'no slot' })
  events.emit({ type: 'slot.state', source: 'slot:agent', message: 'again' })
  t.match(await stream.next(), { data: { id: 5, msg: 'again' } })
  for (let i = 0; i < 600; i++) events.emit({ type: 'x', source: 'system', message: 'noise' })
  const late = await openStream(t, gateway, '/api/journal/stream?since=2&q=none')
  t.match(await late.next(), { data: { data: { type: 'events.gap', dropped: 103 } } }, 'what is lost is told, whatever the filter')
  t.match((await gateway.call('GET', '/api/events?since=2&type=none.*')).json.events, [{ type: 'events.gap', data: { dropped: 103 } }])
  const { events: [event] } = events.list({ limit: 1 })
  t.ok(isWanted(entryOf(event!), { source: 'system' }))
})

import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createFakeProviderPlugin } from '../../../../kernel/testing/index.js'
import { slotOfUnit } from '../../../../plugins/api/logs/slot-unit.js'
import { apiOf, openStream, until, type Api } from '../support.js'
import { FakeJournalctl } from './fake-journalctl.js'

const api = apiOf('api-logs', 'api-slots')

const UNIT = 'svc-api.service'
const info = (text: string) => ({ unit: UNIT, priority: 6, text })

async function journalGateway (t: Test): Promise<{ gateway: Api, journal: FakeJournalctl, get: (query: string) => ReturnType<Api['call']> }> {
  const journal = new FakeJournalctl(t.testdir())
  const gateway = await api(t, {
    svc: `[plugins.config.api-logs]\njournalctl = "${journal.command}"\n`,
    providers: [createFakeProviderPlugin()],
    files: { 'etc/svc/api.env': 'ODD_NAME=swordfish-42\n' }
  })
  return { gateway, journal, get: query => gateway.call('GET', `/api/logs?${query}`) }
}

const texts = (lines: readonly string[]): string[] => lines.map(line => line.replace(/^2026-01-31T12:00:00\+0000 svc\[42\]: /, ''))

t.test('the last lines of a unit', async t => {
  const { journal, get } = await journalGateway(t)
  t.same((await get(`unit=${UNIT}`)).json, { unit: UNIT, lines: [], count: 0, hint: `the journal has no matching entries of unit '${UNIT}'` })
  journal.write(info('one'), info('two'), { unit: UNIT, priority: 3, text: 'broken' }, { unit: 'other.service', priority: 3, text: 'of another' })
  const { status, json } = await get(`unit=${UNIT}`)
  t.equal(status, 200)
  t.equal(json.count, 3)
  t.same(texts(json.lines), ['one', 'two', 'broken'])
  t.notOk('hint' in json)
  t.same(texts((await get('unit=svc-api&n=2')).json.lines), ['two', 'broken'])
  t.same(texts((await get(`unit=${UNIT}&level=err`)).json.lines), ['broken'])
  t.same((await get(`unit=${UNIT}&since=-1h`)).json.count, 3)
  t.same(journal.calls.at(-1)!.args, [`--unit=${UNIT}`, '--lines=200', '--no-pager', '--no-hostname', '--output=short-iso', '--since=-1h'])
  t.ok(process.env.HOME !== undefined && !journal.calls.at(-1)!.env.includes('HOME'), 'it gets nothing of our environment')
  t.same(journal.running, [])
})

t.test('secrets are taken out of lines', async t => {
  const { gateway, journal, get } = await journalGateway(t)
  journal.write(info('Authorization: Bearer abc.def'), info('HF_KEY=123 go'), info('the word is swordfish-42.'), info('SVC_TOKEN="x y"'))
  const clean = ['Authorization: ***REDACTED***', 'HF_KEY=***REDACTED*** go', 'the word is ***.', 'SVC_TOKEN=***REDACTED***']
  t.same(texts((await get(`unit=${UNIT}`)).json.lines), clean)
  const stream = await openStream(t, gateway, `/api/logs/stream?unit=${UNIT}`)
  for (const line of clean) t.same(texts([(await stream.next())!.data]), [line])
})

t.test('queries that make no sense', async t => {
  const { journal, get, gateway } = await journalGateway(t)
  const bad = [
    '', 'unit=', 'unit=a%20b', 'unit=--file', 'unit=-x', 'unit=@x', 'unit=a;b', 'unit=$(id)', 'unit=a/b', 'unit=*', `unit=${'a'.repeat(300)}`, 'unit=a&n=0', 'unit=a&n=5001',
    'unit=a&n=x', 'unit=a&level=loud', 'unit=a&level=8', 'unit=a&since=%60id%60', 'unit=a&since=', 'unit=a&extra=1'
  ]
  for (const query of bad) {
    t.match(await get(query), { status: 400, json: { error: { code: 'system.logs_error' } } }, query)
    t.match(await gateway.call('GET', `/api/logs/stream?${query}`), { status: 400, json: { error: { code: 'system.logs_error' } } }, `stream ${query}`)
  }
  t.same(journal.calls, [], 'none of them came to the tool')
  t.match(await get('unit=a&since=soon'), { status: 400, json: { error: { code: 'system.logs_error', param: 'since', message: /Failed to parse timestamp: soon/ } } })
  const stream = await openStream(t, gateway, '/api/logs/stream?unit=a&since=soon')
  t.match(await stream.next(), { event: 'error', data: { message: /ended with 1: Failed to parse timestamp: soon/ } })
  t.equal(await stream.next(), null)
})

t.test('lines as they are written, for as long as somebody reads', async t => {
  const { gateway, journal } = await journalGateway(t)
  journal.write(info('old'), info('older'))
  const stream = await openStream(t, gateway, `/api/logs/stream?unit=${UNIT}&n=1`)
  t.match(await stream.next(), { event: 'message', data: /older$/ })
  journal.write(info('new'), { unit: 'other.service', priority: 6, text: 'of another' }, info('newer'))
  t.match(await stream.next(), { data: /new$/ })
  t.match(await stream.next(), { data: /newer$/ })
  t.equal(journal.running.length, 1)
  await stream.close()
  await until(() => journal.running.length === 0, 'the reader goes with its client')
})

t.test('a gateway that stops takes its readers along', async t => {
  const { gateway, journal } = await journalGateway(t)
  journal.write(info('one'))
  const stream = await openStream(t, gateway, `/api/logs/stream?unit=${UNIT}`)
  await stream.next()
  t.equal(journal.running.length, 1)
  await gateway.close()
  t.same(journal.running, [])
  t.equal(await stream.next().catch(() => null), null)
})

t.test('a journal that may not be read', async t => {
  const { journal, get } = await journalGateway(t)
  journal.deny()
  t.match((await get(`unit=${UNIT}`)).json, { lines: { length: 0 }, hint: 'No journal files were opened due to insufficient permissions.' })
})

t.test('a host without the tool, and a tool that is killed', async t => {
  const gateway = await api(t, { svc: `[plugins.config.api-logs]\njournalctl = "${join(t.testdir(), 'nowhere')}"\n` })
  t.match(await gateway.call('GET', `/api/logs?unit=${UNIT}`), { status: 200, json: { unit: UNIT, lines: { length: 0 }, count: 0, hint: /no journalctl/ } })
  const stream = await openStream(t, gateway, `/api/logs/stream?unit=${UNIT}`)
  t.match(await stream.next(), { event: 'error', data: { message: /no journalctl/ } })
  t.equal(await stream.next(), null)
  const command = join(t.testdir(), 'journalctl')
  writeFileSync(command, '#!/bin/sh\necho line\nkill -9 $$\n')
  chmodSync(command, 0o755)
  const other = await api(t, { svc: `[plugins.config.api-logs]\njournalctl = "${command}"\n` })
  t.match(await other.call('GET', `/api/logs?unit=${UNIT}`), { status: 200, json: { lines: ['line'], hint: /journalctl failed/ } })
  const broken = await openStream(t, other, `/api/logs/stream?unit=${UNIT}`)
  t.match(await broken.next(), { data: 'line' })
  t.match(await broken.next(), { event: 'error', data: { message: 'journalctl ended' } })
})

t.test('units of slots are the logs of their engines', async t => {
  const { gateway, journal, get } = await journalGateway(t)
  t.match((await get('unit=svc-slot@agent.service')).json, { unit: 'svc-slot@agent.service', lines: { length: 0 }, count: 0, hint: /svc slot load agent/ })
  const stream = await openStream(t, gateway, '/api/logs/stream?unit=svc-slot@agent&n=10')
  await gateway.call('POST', '/api/slots/agent/load')
  gateway.runtime.write('loading', 'GET /health 200', 'HF_TOKEN=abc', 'done')
  t.same((await get('unit=svc-slot@agent.service&n=2')).json, { unit: 'svc-slot@agent.service', lines: ['HF_TOKEN=***REDACTED***', 'done'], count: 2 })
  t.match((await get('unit=svc-slot@agent&level=err')).json, { count: 3, hint: /`since` and `level` are ignored/ })
  t.match(await stream.next(), { data: 'loading' })
  t.match(await stream.next(), { data: 'HF_TOKEN=***REDACTED***' })
  gateway.runtime.logFailure = new Error('the engine is gone')
  const failing = await openStream(t, gateway, '/api/logs/stream?unit=svc-slot@agent')
  t.match(await failing.next(), { event: 'error', data: { message: /the engine is gone/ } })
  t.same(journal.calls, [], 'the journal was not asked')
  journal.write({ unit: 'svc-slot@none.service', priority: 6, text: 'of the journal' })
  t.same(texts((await get('unit=svc-slot@none.service')).json.lines), ['of the journal'], 'a name that is no slot is a unit like others')
})

t.test('what unit means which slot', async t => {
  const cases: ReadonlyArray<readonly [string, string | null]> = [
    ['svc-slot@a.service', 'a'], ['svc-slot@a', 'a'], ['svc-slot@b.service', null], ['svc-slot@.service', null], ['svc-agent@a.service', null], ['a', null],
    ['svc-slot@a.socket', null], ['xsvc-slot@a.service', null]
  ]
  for (const [unit, slot] of cases) t.equal(slotOfUnit(unit, ['a', 'c.d']), slot, unit)
  t.equal(slotOfUnit('svc-slot@c.d', ['c.d']), 'c.d')
})

import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { cardIds, layoutSchema, reconciled } from '../../../plugins/api/user/layout.js'
import { AGENT, apiOf } from './support.js'

const api = apiOf('api-user', 'api-slots')

const PATH = '/api/user/dashboard-layout'
const layout = {
  v: 2, order: ['slots', 'pin:agent', 'memory', 'pin:gone'], enabled: { slots: true, quickchat: false }, spans: { 'slots': 6, 'pin:gone': 4, 'pin:agent': 3 },
  pinned: ['agent', 'gone']
}

t.test('a layout is kept, and shown without slots that are gone', async t => {
  const gateway = await api(t)
  t.same((await gateway.call('GET', PATH)).json, {}, 'none was saved')
  const saved = await gateway.call('PUT', PATH, layout)
  t.match(saved, { status: 204, text: /^$/ })
  t.same((await gateway.call('GET', PATH)).json, {
    v: 2, order: ['slots', 'pin:agent', 'memory'], enabled: { slots: true, quickchat: false }, spans: { 'slots': 6, 'pin:agent': 3 }, pinned: ['agent']
  })
  t.same(JSON.parse(await gateway.file('var/lib/svc/dashboard-layout.json')), layout, 'the file keeps what was saved')
  t.equal((await gateway.call('POST', '/api/slots', { name: 'gone', type: 'llm', provider: 'fake', device: 'cpu', model: 'fake-model' })).status, 201)
  t.same((await gateway.call('GET', PATH)).json, layout, 'a slot that is back has its pin again')
  t.match(gateway.audit().find(row => row.action === 'settings.dashboard_layout'), { outcome: 'ok', category: 'settings' })

  t.equal((await gateway.call('PUT', PATH, { v: 2, spans: { slots: 99, memory: -3, power: 4.4 } })).status, 204)
  t.same((await gateway.call('GET', PATH)).json, { v: 2, order: [], enabled: {}, spans: { slots: 12, memory: 1, power: 4 }, pinned: [] }, 'spans are cut')
})

t.test('a layout that makes no sense changes nothing', async t => {
  const gateway = await api(t)
  await gateway.call('PUT', PATH, layout)
  const before = await gateway.file('var/lib/svc/dashboard-layout.json')
  const cases: ReadonlyArray<readonly [unknown, string]> = [
    [{}, 'v'], [{ v: 3, cells: {}, quickActions: true }, 'v'], [{ v: '2' }, 'v'], [{ v: 2, order: ['slots', 'clock'] }, 'order.1'], [{ v: 2, order: ['pin:'] }, 'order.0'],
    [{ v: 2, order: ['pin:../x'] }, 'order.0'], [{ v: 2, order: 'slots' }, 'order'], [{ v: 2, enabled: { clock: true } }, 'enabled.clock'],
    [{ v: 2, enabled: { slots: 'yes' } }, 'enabled.slots'], [{ v: 2, spans: { slots: 'wide' } }, 'spans.slots'], [{ v: 2, spans: { clock: 2 } }, 'spans.clock'],
    [{ v: 2, spans: { slots: null } }, 'spans.slots'], [{ v: 2, pinned: ['A B'] }, 'pinned.0'], [{ v: 2, pinned: [1] }, 'pinned.0'], [{ v: 2, theme: 'dark' }, 'theme']
  ]
  for (const [body, field] of cases) {
    const { status, json } = await gateway.call('PUT', PATH, body)
    t.match({ status, code: json.error.code, param: json.error.param }, { status: 422, code: 'layout.invalid', param: field }, JSON.stringify(body))
    t.type(json.error.details[field], 'string', JSON.stringify(json.error.details))
  }
  t.match((await gateway.call('PUT', PATH, { v: 1, order: ['x'], theme: 1 })).json.error.details, { 'v': String, 'order.0': /must be a card/, 'theme': String }, 'all of it is told')
  t.match(await gateway.call('PUT', PATH, '[1]'), { status: 400, json: { error: { code: 'request.not_an_object' } } })
  t.match(await gateway.call('PUT', PATH, '{'), { status: 400, json: { error: { code: 'request.invalid_json' } } })
  t.equal(await gateway.file('var/lib/svc/dashboard-layout.json'), before)
})

t.test('a file that is broken or of another release is left aside', async t => {
  const gateway = await api(t, { files: { 'etc/svc/slots/agent.toml': AGENT, 'var/lib/svc/dashboard-layout.json': '{"v": 3, "cells": {}}' } })
  t.same((await gateway.call('GET', PATH)).json, {})
  t.match(gateway.logs.filter(({ level }) => level === 'warn').map(({ message }) => message), [/layout is ignored/])
  const file = join(gateway.home, 'var/lib/svc/dashboard-layout.json')
  for (const text of ['', 'null', '{ broken']) {
    writeFileSync(file, text)
    t.match(await gateway.call('GET', PATH), { status: 200, json: {} })
  }
  t.equal((await gateway.call('PUT', PATH, layout)).status, 204)
  rmSync(file)
  t.same((await gateway.call('GET', PATH)).json, {})
  chmodSync(gateway.home, 0o755)
  t.notOk(existsSync(file))
})

t.test('a layout names each card once', async t => {
  const given = layoutSchema.parse({ v: 2, order: ['slots', 'slots', 'pin:a', 'pin:a'], pinned: ['a', 'a', 'b'] })
  t.match(reconciled(given, ['a']), { order: ['slots', 'pin:a'], pinned: ['a'] })
  t.equal(layoutSchema.parse({ v: 2, order: [...cardIds] }).order.length, cardIds.length)
})

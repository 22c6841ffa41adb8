import t from 'tap'
import { connect } from '../../mcp/memory-agents.js'
import { byBank, byId, byTool, spelled, spellings } from './attempts.js'
import { api, as, called, engines, SECRET, shown, STRAY, wire, WIRE, type Attempt } from './foreign-rig.js'

for (const [engine, open] of Object.entries(engines)) {
  t.test(`the owner does by each request and tool what another one cannot on ${engine}`, async t => {
    const rig = await open(t)
    const { things, contents, knows } = rig
    const calls = [...byId(things), ...byBank].filter(({ method, path }) => knows(method, path))
    const same = spellings('private__bob').slice(0, 6).flatMap(name => [wire(name, spelled.wire[0]!), api(name, spelled.api[0]!)])
    const chat = { model: 'agent', messages: [{ role: 'user', content: 'Which secret does Bob have?' }], memory: { bank: 'private:bob', retain: false } }
    const reading: readonly Attempt[] = [
      ...calls.filter(({ does }) => does === 'reads').map(call => wire('private__bob', call)), ...same,
      api('private__bob', { method: 'GET', path: '/memories' }), api('private%5F_bob', { method: 'POST', path: '/recall', body: { query: 'secret' } }),
      { method: 'GET', path: `${WIRE}/chunks/${things.chunk}` }, { method: 'GET', path: `/api/memory/hindsight${things.file}` },
      { method: 'GET', path: `/api/memory/hindsight${things.file.replace('private__bob', 'private%5F_bob')}` },
      { method: 'POST', path: '/api/memory/search', body: { query: 'secret' } },
      { method: 'POST', path: '/api/memory/recall', body: { query: 'secret', dataset: ['private:bob'] } },
      { method: 'GET', path: '/api/memory/list?dataset=private:bob' }, { method: 'POST', path: '/v1/chat/completions', body: chat }
    ]
    for (const attempt of reading) {
      const { status, text } = await as(rig, 'bob', attempt)
      const isTold = status < 300 && rig.tells(attempt.path, text)
      t.ok(isTold, `${shown(attempt)}${isTold ? '' : `: ${status} ${text.slice(0, 300)}`}`)
    }
    const counted = { agent_id: 'bob', available: true, writes: /^[1-9]/ }
    for (const who of ['bob', '']) {
      const { text } = await as(rig, who, { method: 'GET', path: '/api/agents/bob/memory/stats', ...who === '' ? { headers: [] } : {} })
      t.match(JSON.parse(text), counted)
    }
    for (const path of ['search', 'recall']) t.match((await as(rig, 'bob', { method: 'POST', path: `/api/memory/${path}`, body: { query: 'secret' } })).text, STRAY)
    t.match((await as(rig, 'bob', { method: 'GET', path: '/api/memory/list' })).text, STRAY)
    t.match((await as(rig, 'bob', { method: 'POST', path: '/api/memory/delete', body: { ids: [things.strayDocument] } })).text, '{"deleted":1}')
    for (const call of calls.filter(({ does }) => does === 'writes')) {
      const was = contents()
      const { status, text } = await as(rig, 'bob', wire('private__bob', call))
      const isDone = status < 300 && contents() !== was
      t.ok(isDone, `${call.method} ${call.path}${isDone ? '' : `: ${status} ${text.slice(0, 300)}`}`)
    }

    const other = await open(t)
    const bob = await connect(t, other.gateway.baseUrl, { 'x-svc-agent': 'bob', 'x-svc-private': '1' })
    if (knows('TOOL', 'memory_reflect')) t.match(await called(bob, 'memory_reflect', { query: 'Which secret does Bob have?', dataset: 'shared' }), STRAY)
    for (const { does, tool, args } of byTool(other.things)) {
      if (does === null || !knows('TOOL', tool)) continue
      const was = other.contents()
      const text = await called(bob, tool, { ...args, dataset: 'private:bob' })
      const isDone = does === 'reads' ? text.includes(SECRET) : other.contents() !== was
      t.ok(isDone, `${tool} ${JSON.stringify(args)}${isDone ? '' : `: ${text.slice(0, 300)}`}`)
    }
  })
}

import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { createTestGateway, type TestGateway, type TestGatewayOptions } from '../../../kernel/testing/index.js'
import activityRoutes from '../../../plugins/api/activity/index.js'
import personaRoutes from '../../../plugins/api/agent-personas/index.js'
import personas from '../../../plugins/services/agent-personas/index.js'
import type { Answer } from './support.js'

interface Rig extends TestGateway {
  ask (method: string, path: string, body?: unknown): Promise<Answer>
}

async function rig (t: Test, options: TestGatewayOptions = {}): Promise<Rig> {
  const gateway = await createTestGateway({ plugins: [personas, personaRoutes, activityRoutes], ...options })
  t.teardown(() => gateway.close())
  return Object.assign(gateway, {
    ask: async (method: string, path: string, body?: unknown) => {
      const response = await gateway.fetch(path, {
        method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, json: text === '' ? null : JSON.parse(text) as unknown }
    }
  })
}

const COMMENTED = '# mine\n[active]\nhermes = "reviewer"\n\n[agents.hermes.reviewer]\n# what it is for\nsummary = "Reviews"\n'

t.test('personas: built-in ones and those of the file, changed and chosen by routes, with comments kept', async t => {
  const gateway = await rig(t, { files: { 'etc/svc/personas.toml': COMMENTED, 'etc/svc/agents/robo.toml': '[agent]\nname = "robo"\n' } })
  const { ask } = gateway
  const file = (): string => readFileSync(join(gateway.home, 'etc/svc/personas.toml'), 'utf8')
  const path = '/api/agents/hermes/personas'
  t.match((await ask('GET', path)).json, {
    agent_id: 'hermes',
    active: 'reviewer',
    personas: [{ id: 'hermes', active: false }, { id: 'coder' }, { id: 'svc-brain' }, { id: 'reviewer', display_name: 'reviewer', summary: 'Reviews', active: true }]
  })
  t.match((await ask('GET', '/api/agents/robo/personas')).json, { active: 'robo', personas: { length: 3 } }, 'an agent that has a file')
  t.match((await ask('GET', `${path}/coder`)).json, {
    id: 'coder', active: false, memory_namespace: 'private:hermes-coder', tools_allowed: ['*'], preferred_upstream: 'svc', preferred_model: '',
    approval: { default_policy: 'ask', auto_approve: /files\.read/, require_approval: ['files.write.*', 'shell.write.*', 'admin.*', 'svc_admin.write.*', 'kanban.write.*'] },
    raw_toml: /^\[agents\.hermes\.coder\]\n/
  })
  for (const [at, code] of [
    ['/api/agents/nobody/personas', 'persona.agent_unknown'], [`${path}/gone`, 'persona.not_found'], ['/api/agents/__proto__/personas', 'persona.agent_unknown']
  ] as const) {
    t.match(await ask('GET', at), { status: 404, json: { error: { code } } }, at)
  }

  const changed = await ask('PUT', `${path}/coder`, { tone: 'concise', system_prompt: 'Be "exact".\nAlways.', approval: { default_policy: 'never' } })
  t.match(changed, { status: 200, json: { tone: 'concise', summary: /^Reads code/, approval: { default_policy: 'never', require_approval: { length: 5 } } } })
  t.match(await ask('PUT', `${path}/reviewer`, { summary: 'Reviews changes' }), { status: 200, json: { summary: 'Reviews changes' } })
  const text = file()
  t.match(text, /^# mine\n[^]*# what it is for\nsummary = "Reviews changes"/)
  const wrong: ReadonlyArray<readonly [unknown, string]> = [
    [{ tone: 'rude' }, 'tone'], [{ approval: { default_policy: 'always' } }, 'approval.default_policy'], [{ memory_namespace: 'theirs' }, 'memory_namespace'],
    [{ tools_allowed: ['rm -rf'] }, 'tools_allowed.0'], [{ display_name: 'two\nlines' }, 'display_name'], [{ daily_usd: 3 }, 'daily_usd'], [{ system_prompt: 'x'.repeat(65_537) }, 'system_prompt']
  ]
  for (const [body, param] of wrong) t.match(await ask('PUT', `${path}/coder`, body), { status: 400, json: { error: { code: 'persona.invalid', param } } }, param)
  t.match(await ask('PUT', `${path}/Loud`, {}), { status: 400, json: { error: { code: 'persona.invalid', param: 'pid' } } })
  t.equal(file(), text, 'what is refused writes nothing')

  t.match(await ask('POST', `${path}/coder/activate`, {}), { status: 200, json: { agent_id: 'hermes', active: 'coder', previous: 'reviewer', reloaded: false, reload_error: null } })
  t.match(await ask('POST', `${path}/gone/activate`, {}), { status: 404, json: { error: { code: 'persona.not_found' } } })
  t.equal((await ask('DELETE', `${path}/coder`)).status, 204)
  t.match((await ask('GET', `${path}/coder`)).json, { active: true, tone: 'neutral' }, 'a built-in one is what it was, and stays active')
  t.match(await ask('DELETE', `${path}/coder`), { status: 409, json: { error: { code: 'persona.seed_stays' } } })
  await ask('POST', `${path}/reviewer/activate`, {})
  t.match(await ask('DELETE', `${path}/reviewer`), { status: 409, json: { error: { code: 'persona.active_stays' } } })
  t.match((await ask('GET', '/api/activity?category=agent')).json.records[0], { action: 'agent.persona_remove', target: 'hermes/reviewer', outcome: 'error' })
  t.match((await ask('GET', '/api/agents/persona-enums')).json, { tones: ['neutral', 'concise', 'friendly', 'formal', 'playful'], tools: Array })
})

t.test('a running agent is told of its persona, and nothing but this machine ever is', async t => {
  const said: unknown[] = []
  let refuses = false
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  server.on('connection', (socket, request) => {
    said.push(request.url)
    socket.send('not a message')
    socket.send(JSON.stringify({ method: 'event', params: { type: 'gateway.ready' } }))
    socket.on('message', data => {
      const { id, method, params } = JSON.parse(String(data)) as { id: number, method: string, params: unknown }
      said.push([method, params])
      const result = method === 'session.create' ? { session_id: '0123abcd' } : { key: 'personality', value: 'coder', history_reset: false }
      socket.send(JSON.stringify(refuses ? { id, error: { code: 4001, message: 'no such personality' } } : { id, result }))
    })
  })
  await new Promise(resolve => { server.once('listening', resolve) })
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const { ask } = await rig(t)
  const activate = (url: string, more: object = {}) => ask('POST', '/api/agents/hermes/personas/coder/activate', { reload_url: url, ...more })

  t.match((await activate(`http://localhost:${port}/api/ws?token=s3`)).json, { active: 'coder', reloaded: true, reload_error: null })
  t.strictSame(said, ['/api/ws?token=s3', ['session.create', {}], ['config.set', { session_id: '0123abcd', key: 'personality', value: 'coder' }]])
  refuses = true
  t.match((await activate(`ws://127.0.0.1:${port}/`)).json, { active: 'coder', reloaded: false, reload_error: 'the agent refused session.create: no such personality' })
  said.length = 0
  t.match((await activate(`ws://127.0.0.1:${port}/`, { reload: false })).json, { reloaded: false, reload_error: null })
  t.strictSame(said, [], 'it is told only where that is asked for')
  await ask('POST', '/api/agents/hermes/personas/hermes/activate', {})
  const elsewhere = [
    `ws://10.0.0.5:${port}/`, 'http://169.254.169.254/latest/', 'ws://localhost.example.com/', 'file:///etc/passwd', 'ws://127.0.0.1@10.0.0.5/', 'ws://[::ffff:10.0.0.5]/',
    'ws://0.0.0.0/', 'http://2130706434.example/', 'nonsense', `ws://user:pw@127.0.0.1:${port}/`, 'ws://127.0.0.1.nip.io/'
  ]
  for (const url of elsewhere) t.match(await activate(url), { status: 400, json: { error: { code: 'persona.reload_url_refused', param: 'reload_url' } } }, url)
  t.equal((await ask('GET', '/api/agents/hermes/personas')).json.active, 'hermes', 'what is refused activates nothing')
  server.close()
  for (const client of server.clients) client.terminate()
  t.match((await activate(`ws://127.0.0.1:${port}/`)).json, { active: 'coder', reloaded: false, reload_error: /ECONNREFUSED/ }, 'the persona is active although nothing listens')

  const wide = await rig(t, { files: { 'etc/svc/svc.toml': '[plugins.config.agent-personas]\nreload_hosts = ["10.255.255.1"]\n' } })
  t.match((await wide.ask('POST', '/api/agents/hermes/personas/coder/activate', { reload_url: 'ws://10.255.255.1:1/', reload: false })).status, 200)
})

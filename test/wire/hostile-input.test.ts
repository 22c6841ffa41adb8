import t from 'tap'
import { processorMs } from '../processor-time.js'
import { api, type Answer, type Api } from '../plugins/api/support.js'

let gateway: Api
t.before(async () => { gateway = await api(t) })

t.test('a small body cannot keep the gateway busy', async t => {
  const wide = (count: number, value: unknown = 1): Record<string, unknown> => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]))
  const hosts = Array.from({ length: 8_000 }, (_, i) => `h${i}.example`)
  const cases: ReadonlyArray<readonly [string, string, unknown, string]> = [
    ['POST', '/api/slots', { name: 'x', ...wide(4_000) }, 'request.too_complex'],
    ['POST', '/api/slots', { name: 'x', ...wide(990) }, 'validation.unknown_keys'],
    ['POST', '/api/slots', { name: 'x', options: wide(990) }, 'validation.invalid'],
    ['PUT', '/api/slots/agent/config', wide(990), 'validation.unknown_keys'],
    ['PUT', '/api/slots/agent/config', wide(990, null), 'validation.unknown_keys'],
    ['PATCH', '/api/settings', { server: { allowed_hosts: hosts } }, 'config.invalid'],
    ['PATCH', '/api/settings', { server: wide(990) }, 'config.invalid'],
    ['POST', '/api/profiles', wide(990), 'validation.unknown_keys'],
    ['POST', '/api/models', { id: 'm', path: '/dev/null', metadata: wide(990) }, 'validation.invalid']
  ]
  for (const [method, path, body, code] of cases) {
    let answer: Answer | undefined
    const ms = await processorMs(async () => { answer = await gateway.call(method, path, body) })
    t.match(answer, { status: 400, json: { error: { code } } }, `${method} ${path}: ${answer?.text.slice(0, 200)}`)
    t.ok(answer!.text.length < 32 * 1024, `${method} ${path}: an answer of ${answer?.text.length} bytes`)
    t.ok(ms < 1_500, `${method} ${path}: ${Math.round(ms)} ms`)
  }
  const options = (value: number): unknown => ({ options: wide(250, value) })
  for (const value of [1, 2]) t.equal((await gateway.call('PUT', '/api/slots/agent/config', options(value))).status, 200)
})

t.test('a body that is nested too deeply is refused with the depth that is allowed', async t => {
  const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  for (const [method, path, around] of [
    ['PATCH', '/api/settings', (value: string) => value],
    ['POST', '/api/models', (value: string) => `{"id":"m","path":"/dev/null","metadata":${value}}`],
    ['PUT', '/api/slots/agent/config', (value: string) => `{"options":${value}}`],
    ['POST', '/api/stacks/import', (value: string) => `{"envelope":${value}}`]
  ] as const) {
    for (const levels of [65, 5_000, 100_000]) {
      const answer = await gateway.call(method, path, around(nested(levels)))
      t.match(answer, { status: 400, json: { error: { code: 'request.too_complex', message: /64 levels/, details: { max_depth: 64 } } } }, `${path} ${levels}`)
    }
    t.not((await gateway.call(method, path, around(nested(60)))).status, 500, `${path} with what is allowed`)
  }
})

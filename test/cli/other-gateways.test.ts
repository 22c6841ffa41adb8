import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { freshGateway, type Rig } from './other-gateways-rig.js'
import { run, type Finished } from './support.js'

t.test('two machines: one command brings the slots of the other, and its names work here', async t => {
  const [here, there] = [await freshGateway(t), await freshGateway(t)]
  const svc = (...args: string[]): Promise<Finished> => run([...args, '--url', here.baseUrl])

  const added = await svc('upstream', 'add', '--svc', there.baseUrl)
  t.equal(added.code, 0, added.stderr)
  t.match(added.stdout, 'Upstream 127-0-0-1 is added.\nTry it: svc upstream test 127-0-0-1\n')
  t.match((await here.get('/api/upstreams')).at(-1), { name: '127-0-0-1', url: `${there.baseUrl}/v1`, auth_style: 'none', svc: true })
  t.match((await svc('upstream', 'test', '127-0-0-1')).stdout, /answers: 1 model in/)

  const plain = await here.get('/api/slots')
  t.strictSame(plain.map(({ name }) => name), ['agent', '127-0-0-1'], 'other machines are asked only where one wants to know')
  const rows = await here.get('/api/slots?remote=true')
  t.strictSame(rows.map(({ name }) => name), ['agent', '127-0-0-1', '127-0-0-1/agent'])
  t.match(rows[2], {
    kind: 'remote-slot', upstream: '127-0-0-1', slot: 'agent', url: `${there.baseUrl}/v1`, type: 'llm', state: 'offline', enabled: true,
    model_default: 'fake-model', provider: 'fake', capabilities: ['chat'], _synthetic: true
  })
  const answer = await here.chat({ model: rows[2]!.name })
  t.equal(answer.status, 200, 'the name of the row is what a request asks for')
  t.equal(there.runtime.started.length, 1)
  t.equal(here.runtime.started.length, 0)
  here.look()
  t.match((await here.get('/api/slots?remote=true'))[2], { state: 'ready' })

  const status = await svc('status')
  t.equal(status.code, 0, status.stderr)
  t.match(status.stdout, /^slots +1, 0 ready$/m, 'its slots are not counted as ours')
  t.match(status.stdout, /Slots of other gateways\nNAME +TYPE +STATE +MODEL *\n127-0-0-1\/agent +llm +ready +fake-model *\n/)
  t.match((await svc('slot', 'list', '--remote')).stdout, /^127-0-0-1\/agent +llm +ready/m)
  t.notMatch((await svc('slot', 'list')).stdout, '127-0-0-1/agent')

  t.equal((await run(['upstream', 'add', 'first', '--svc', here.baseUrl, '--url', there.baseUrl])).code, 0, 'gateways may know each other')
  here.look()
  t.strictSame((await here.get('/api/slots?remote=true')).map(({ name }) => name), ['agent', '127-0-0-1', '127-0-0-1/agent'], 'that makes no circle')

  await there.close()
  here.look()
  const gone = await svc('status')
  t.equal(gone.code, 0)
  t.match(gone.stdout, /Gateways that do not report their slots\n {2}127-0-0-1: .*ECONNREFUSED/)
  t.match((await svc('slot', 'list', '--remote')).stdout, /127-0-0-1: its slots cannot be shown: /)
})

t.test('a slot of several engines on the other machine is one row here, and fits a narrow terminal on both', async t => {
  const several = 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\nreplicas = 2\nmax_replicas = 3\n[model]\ndefault = "fake-model"\n'
  const [here, there] = [await freshGateway(t), await freshGateway(t, { files: { 'etc/svc/slots/agent.toml': several } })]
  const svc = (gateway: Rig, ...args: string[]): Promise<Finished> => run([...args, '--url', gateway.baseUrl])
  t.equal((await svc(here, 'upstream', 'add', 'workshop', '--svc', there.baseUrl)).code, 0)
  await there.slots.load('agent')
  const rows = (await here.get('/api/slots?remote=true')).filter(({ kind }) => kind === 'remote-slot')
  t.match(rows, [{ name: 'workshop/agent', state: 'ready', capabilities: ['chat'] }])
  t.equal(rows.length, 1, 'replicas are no slots')
  t.equal((await here.chat({ model: 'workshop/agent' })).status, 200)
  for (const gateway of [here, there]) {
    for (const args of [['status'], ['slot', 'list', '--remote'], ['slot', 'show', 'agent']]) {
      const { code, stdout } = await svc(gateway, ...args)
      t.equal(code, 0)
      // these gateways have no list of plugins, and say so at length
      const wide = stdout.split('\n').filter(line => line.length > 80 && !line.startsWith('plugins'))
      t.strictSame(wide, [], args.join(' '))
    }
  }
  t.match((await svc(there, 'status')).stdout, /^agent +ready \(2\/3 ready\) +fake-model/m)
  t.match((await svc(there, 'slot', 'show', 'agent')).stdout, /^replica 3 +offline$/m)
})

t.test('an address that leads back here is refused, and one written by hand shows no slot twice', async t => {
  const here = await freshGateway(t)
  const svc = (...args: string[]): Promise<Finished> => run([...args, '--url', here.baseUrl])
  const itself = await svc('upstream', 'add', 'me', '--svc', here.baseUrl.replace('127.0.0.1', 'localhost'))
  t.equal(itself.code, 1)
  t.match(itself.stderr, /url is the address of this gateway itself/)
  t.strictSame(await here.get('/api/upstreams'), [], 'and nothing was written')

  await here.gateway.kernel().config.change(draft => draft.upstreams.create({ name: 'me', url: `${here.baseUrl}/v1`, auth_style: 'none', svc: true }))
  const rows = await here.get('/api/slots?remote=true')
  t.strictSame(rows.map(({ name }) => name), ['agent', 'me'])
  t.match(rows[1], { remote_error: 'its address points back to this gateway' })

  const cases: Array<[string[], RegExp]> = [
    [['--svc', 'workshop'], /'workshop' is not an address/], [['x', 'http://a', '--svc', 'http://b'], /cannot be used with 'http:\/\/a'/],
    [['x', '--svc', 'http://b', '--template', 'openai'], /cannot be used with --template/], [[], /a name is needed/]
  ]
  for (const [args, message] of cases) {
    const { code, stderr } = await svc('upstream', 'add', ...args)
    t.equal(code, 2, args.join(' '))
    t.match(stderr, message)
  }
})

t.test('a server that is no gateway is refused; one that is off is taken; one that lies harms nothing', async t => {
  const here = await freshGateway(t)
  const liar = await fakeGateway(t)
  liar.answers.set('/api/status', { hello: 'world' })
  const svc = (...args: string[]): Promise<Finished> => run([...args, '--url', here.baseUrl])
  await here.gateway.kernel().config.setSecret('OTHERS_KEY', 'sk-of-another')
  t.match((await svc('upstream', 'add', 'web', '--svc', liar.url, '--key-env', 'OTHERS_KEY')).stderr, /answers, but not like an svc gateway/)
  t.same(liar.keys, [], 'and it was shown no key')
  t.match(await svc('upstream', 'add', 'off', '--svc', 'http://127.0.0.1:1'), { code: 0 })
  t.equal((await svc('upstream', 'rm', 'off', '--force')).code, 0)

  liar.answers.set('/api/status', { name: 'svc', instance: 'another' })
  liar.answers.set('/api/slots', 'nonsense')
  t.match(await svc('upstream', 'add', 'liar', '--svc', liar.url), { code: 0 })
  const list = async (): Promise<Row[]> => {
    here.look()
    return (await here.get('/api/slots?remote=true')).slice(1)
  }
  t.match(await list(), [{ name: 'liar', remote_error: /not like an svc gateway/ }])
  const slot = { name: 'ok', kind: 'local', state: 'ready' }
  liar.answers.set('/api/slots', [
    { ...slot, name: '../../etc' }, { ...slot, name: 7 }, null, { ...slot, state: 'x'.repeat(10_000) }, { ...slot, kind: 'remote' },
    slot, slot, ...Array.from({ length: 2_000 }, (_, i) => ({ ...slot, name: `s${i}`, ctx_max: 'many', metrics: 'none' }))
  ])
  liar.answers.set('/v1/models', { data: [{ id: 'svc/ok', capabilities: ['chat', 'vision'] }, { id: 7 }, null] })
  const rows = await list()
  t.equal(rows.length, 501, 'its row and 500 slots')
  t.match(rows[1], { name: 'liar/ok', capabilities: ['chat', 'vision'], ctx_max: null, type: null, backend: /^$/ })
  liar.answers.set('/api/slots', Array.from({ length: 100_000 }, (_, i) => ({ ...slot, name: `s${i}`, message: 'y'.repeat(100) })))
  t.match(await list(), [{ name: 'liar', remote_error: 'the answer is larger than 8 MiB' }])
})

type Row = Awaited<ReturnType<Rig['get']>>[number]

interface FakeGateway {
  readonly url: string
  readonly answers: Map<string, unknown>
  readonly keys: readonly string[]
}

async function fakeGateway (t: Test): Promise<FakeGateway> {
  const answers = new Map<string, unknown>()
  const keys: string[] = []
  const server: Server = createServer((request, response) => {
    if (request.headers.authorization !== undefined) keys.push(request.headers.authorization)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answers.get(new URL(request.url!, 'http://x').pathname) ?? {}))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => { server.close(); server.closeAllConnections() })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, answers, keys }
}

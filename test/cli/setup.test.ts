import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ggufFile } from '../kernel/models/gguf-file.js'
import { installGateway, manifest, tinyAgent, type InstallGateway } from '../plugins/api/install/support.js'
import { FakeHub } from '../plugins/services/hub/fake-hub.js'
import { FakeProcess, fakeApi, run } from './support.js'

const CPU_HOST = JSON.stringify({ probed_at: '2026-01-01T00:00:00Z', ram_mb: 16_000, ram_available_mb: 12_000 })

async function machine (t: Test, tiers: Readonly<Record<string, string>>): Promise<InstallGateway> {
  const hub = await FakeHub.start(t)
  for (const id of ['small', 'other']) hub.add(`org/${id}`, { files: { [`${id}.gguf`]: ggufFile({ weights: 300_000 }) } })
  return await installGateway(t, { hub, files: { 'etc/svc/hardware.json': CPU_HOST, ...tiers } })
}

const everyTier = (slots: ReadonlyArray<readonly [string, string]>): Record<string, string> =>
  Object.fromEntries(['Lite', 'Default', 'Pro', 'Max'].map(name => [`bundles/${name.toLowerCase()}.json`, manifest(name, slots)]))

t.test('automatic, with a gateway that runs', async t => {
  const gateway = await machine(t, everyTier([['chat.primary', 'small'], ['chat.coder', 'other']]))
  const url = ['--url', gateway.baseUrl]
  const store = join(gateway.home, 'store')
  const plain = await run(['setup', '--auto', '--no-extensions', '--storage-dir', store, ...url])
  t.equal(plain.code, 0, plain.stderr)
  t.match(plain.stdout, /^Tier \w+\nSLOT +MODEL +DEVICE +PROFILE +RESULT\nagent +small +.*made, waits for its model\nTry it: svc chat --slot agent "Hello"\n$/)
  t.match(plain.stderr, /small: 100 %/)
  t.match(JSON.parse((await run(['model', 'show', 'small', '--json', ...url])).stdout), { path: new RegExp(`^${store}/`) })
  t.equal(gateway.slots.config('agent').model.default, 'small')

  const json = await run(['setup', '--auto', '--no-pull', '--json', ...url])
  t.equal(json.code, 0, json.stderr)
  t.match(JSON.parse(json.stdout), {
    in_process: false, slots: [{ slot: 'coder', model_id: 'other', created: true, pull_job_id: null }], pulls: { length: 0 },
    extensions: [{ ext_id: 'openwebui', installed: false, skipped: 'not_asked_for' }, {}, {}]
  })
  t.match((await run(['slot', 'list', ...url], { columns: 120 })).stdout, /coder .*offline \(waits for its model\) .*other/)
  await run(['model', 'pull', 'other', '--repo', 'org/other', '--file', 'other.gguf', ...url])
  await gateway.slot('coder', ({ state }) => state === 'ready')

  const swapped = await run(['slot', 'swap', 'coder', '--model', 'small', ...url])
  t.equal(swapped.code, 0, swapped.stderr)
  t.equal(gateway.slots.status('coder').modelId, 'small')
  t.match(await readFile(join(gateway.home, 'etc/svc/slots/coder.toml'), 'utf8'), /default = "small"/, 'a swap is written down')
  await run(['slot', 'swap', 'coder', '--model', 'other', '--no-persist', ...url])
  t.equal(gateway.slots.status('coder').modelId, 'other')
  t.equal(gateway.slots.config('coder').model.default, 'small', 'unless it shall not be')
})

t.test('a pull that fails is told, and ends with 1', async t => {
  const gateway = await machine(t, everyTier([['chat.primary', 'small'], ['chat.coder', 'missing']]))
  gateway.hub.fail('cdn', 'small', { kind: 'corrupt' }, 10)
  const url = ['--url', gateway.baseUrl]
  const { code, stderr, stdout } = await run(['setup', '--auto', ...url])
  t.equal(code, 1)
  t.match(stderr, /the setup is incomplete\n {2}agent: its model was not downloaded: [^\n]*checksum_mismatch[^\n]*\n {2}coder: [^\n]*hf\.repo_not_found/)
  t.match(stdout, /hermes is skipped: it is installed on request/)
  t.match((await run(['slot', 'list', ...url], { columns: 140 })).stdout, /agent .*pull failed[^]*\nagent: its model was not downloaded: .*`svc model pull small` tries again/)
})

/** Types an answer when its question is shown. */
async function type (terminal: FakeProcess, answers: ReadonlyArray<readonly [string, string]>): Promise<void> {
  for (const [question, answer] of answers) {
    await terminal.shows('stderr', question)
    terminal.stderr.text = terminal.stderr.text.slice(terminal.stderr.text.indexOf(question) + question.length)
    terminal.stdin.write(`${answer}\n`)
  }
}

t.test('the questions at the prompt decide what is set up', async t => {
  const gateway = await machine(t, everyTier([['chat.primary', 'qwen3-4b']]))
  const kernel = gateway.gateway.kernel()
  await gateway.call('POST', '/api/models/small/pull', { hf_repo: 'org/small', hf_filename: 'small.gguf' })
  t.match(await (await gateway.fetch('/api/models/small/pull/stream')).text(), /"state":"completed"/)

  await t.test('declined at the review', async t => {
    const terminal = new FakeProcess({ tty: true, columns: 100 })
    const done = terminal.run('setup', '--url', gateway.baseUrl)
    await type(terminal, [
      ['models be stored?', ''], ['Which one?', ''], ['Set this up?', 'maybe'], ['y or n', 'n']
    ])
    t.match(await done, { code: 0, stdout: 'Nothing was changed.\n' })
    t.same(gateway.slots.names(), [])
  })

  await t.test('an answer that is none of the choices is asked for again', async t => {
    const terminal = new FakeProcess({ tty: true, columns: 100, cwd: gateway.home })
    const done = terminal.run('setup', '--url', gateway.baseUrl)
    await type(terminal, [
      ['models be stored?', 'store'], ['Which one?', '99'], ['is not one of these', 'y'], ['\'y\' is not one of these. Please give a number', 'small'],
      ['Set this up?', '']
    ])
    const { code, stdout } = await done
    t.equal(code, 0)
    t.match(stdout, /agent.*small.*made/)
    t.match(gateway.slots.config('agent'), { model: { default: 'small' }, enabled: true })
    t.equal(kernel.models.store, join(gateway.home, 'store'))
  })

  await t.test('Ctrl-C at a question ends it with code 130', async t => {
    const terminal = new FakeProcess({ tty: true })
    const done = terminal.run('setup', '--url', gateway.baseUrl)
    await terminal.shows('stderr', 'models be stored?')
    terminal.send('SIGINT')
    t.equal((await done).code, 130)
  })
})

t.test('only what can be brought here is asked for, with its size and licence; an agent that is chosen is followed until it is there', async t => {
  const tiers = everyTier([['chat.primary', 'small']])
  const bare = await machine(t, tiers)
  t.same((await bare.call('GET', '/api/install/state')).json.extensions, [])
  const none = new FakeProcess({ tty: true, columns: 80 })
  const nothing = none.run('setup', '--url', bare.baseUrl)
  await type(none, [['models be stored?', ''], ['Which one?', 'none']])
  await none.shows('stderr', 'Set this up?')
  t.notMatch(none.stderr.text, /Set up |An agent|hermes/)
  await type(none, [['Set this up?', 'n']])
  t.match(await nothing, { code: 0, stdout: 'Nothing was changed.\n' })

  const { plugins, services, registry } = await tinyAgent(t)
  const gateway = await installGateway(t, { files: { 'etc/svc/hardware.json': CPU_HOST, ...tiers }, plugins, services })
  const setUp = async (agent: string): Promise<{ readonly asked: string, readonly done: Awaited<ReturnType<FakeProcess['run']>> }> => {
    const terminal = new FakeProcess({ tty: true, columns: 200 })
    let arrive = (): void => {}
    registry.held = new Promise(resolve => { arrive = resolve })
    const done = terminal.run('setup', '--no-pull', '--url', gateway.baseUrl)
    await type(terminal, [['models be stored?', '']])
    // which apps can be brought here is a matter of the machine
    while (await terminal.showsOneOf('stderr', ['Set up ', 'Which one?']) === 'Set up ') await type(terminal, [['[y/N]', 'n']])
    await type(terminal, [['Which one?', 'none']])
    await terminal.shows('stderr', 'Which one?')
    const asked = terminal.stderr.text
    await type(terminal, [['Which one?', agent], ['Set this up?', 'y']])
    // the command looks now and then: what is over between two looks is not shown
    await terminal.shows('stderr', `${agent}: packages\n`)
    arrive()
    return { asked, done: await done }
  }
  const failed = await setUp('liar')
  t.match(failed.asked, /An agent needs a slot for code:\n[^]*\d +tiny +An agent of a few lines \(214 MB, MIT\)\n/)
  t.match(failed.done, { code: 1, stderr: /the setup is incomplete\n[^]*liar: tiny-agent 2\.9\.0 was installed instead of 3\.0\.0; try again: svc agent reprovision liar/ })
  await run(['agent', 'uninstall', 'liar', '--url', gateway.baseUrl])
  const { done } = await setUp('tiny')
  t.match(done, { code: 0, stdout: /tiny is being installed\n[^]*tiny 1\.0\.0 is installed\n/, stderr: /tiny: packages\n/ })
  t.match((await run(['agent', 'status', 'tiny', '--url', gateway.baseUrl])).stdout, /^tiny 1\.0\.0 is installed \(npm\)/)
})

t.test('Ctrl-C while the gateway makes the slots: it goes on', async t => {
  const fake = await fakeApi({
    'GET /api/install/state': { first_run: true }, 'POST /api/install/probe': { hardware: {} }, 'POST /api/install/apply': () => {}
  })
  t.teardown(() => fake.close())
  const process = new FakeProcess()
  const finished = process.run('setup', '--auto', '--url', fake.url)
  await fake.request('POST /api/install/apply')
  process.send('SIGINT')
  t.match(await finished, { code: 130, stderr: /The gateway continues: slots start once their models are downloaded/ })
})

t.test('nobody to ask, nobody to talk to', async t => {
  t.match(await run(['setup']), { code: 2, stderr: /svc setup --auto/ })
  t.match(await run(['setup', '--auto', '--url', 'http://192.0.2.1:1'], { env: { SVC_HOME: t.testdir() } }), { code: 1 })
  const server = createServer((_request, response) => { response.writeHead(404).end('not me') }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const stranger = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.match(await run(['setup', '--auto', '--url', stranger]), { code: 1, stderr: /HTTP 404/ }, 'something else that answers is not set up')
})

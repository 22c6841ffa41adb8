import { execFile } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { openWebui } from '../../plugins/services/companions/open-webui.js'
import { hindsightImage } from '../../plugins/services/memory/hindsight/program.js'
import { verbs } from '../chaos/verbs.js'
import { run, type Finished } from '../cli/support.js'
import { fakeEnginesImage } from '../e2e/fake-engines-image.js'
import { api, liveHome, startLive, writeHome } from '../e2e/live-gateway.js'
import { testEngine } from '../kernel/runtime/engines.js'
import { eventually } from '../kernel/runtime/support.js'
import { freePort } from '../ports.js'
import { containersOf, standInImage } from './support/stand-in.js'

t.setTimeout(850_000)
const execute = promisify(execFile)

interface Page {
  readonly env: Readonly<Record<string, string>>
  readonly user: number
  readonly starts: number
  readonly models: object
}

/** What is asked of a service is given two seconds, which a busy machine may need for itself. */
async function shows (list: () => Promise<Finished>, line: RegExp): Promise<void> {
  await eventually(String(line), async () => line.test((await list()).stdout))
}

t.test('without systemd a service runs as a container: wired, taken over after a crash, stopped, and taken away', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const { host } = engine
  const image = await standInImage(host, engine.nodeImage, openWebui.container!.image)
  t.teardown(() => image.remove())
  const [port, gatewayPort] = [await freePort(), await freePort()]
  const home = await liveHome(t, {
    'etc/svc/svc.toml': `[runtime]\ndriver = "docker"\n[slots]\nautostart = false\n[plugins.config.api-services]\nsystemctl = "/nonexistent"\n[plugins.config.api-services.services.openwebui]\nport = ${port}\nenv = { EXTRA = "yes" }\n`,
    'etc/svc/slots/agent.toml': 'device = "cpu"\n',
    'etc/svc/slots/embed.toml': 'device = "cpu"\ntype = "embedding"\n'
  })
  const env = { DOCKER_HOST: host }
  let gateway = await startLive(t, home, env, undefined, [], gatewayPort)
  const svc = (...words: readonly string[]): Promise<Finished> => run(['service', ...words, '--url', gateway.url])
  const page = async (): Promise<Page> => await (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })).json() as Page
  t.teardown(() => svc('uninstall', 'openwebui', '--data', '--yes').catch(() => undefined))

  const started = await svc('start', 'openwebui')
  t.match(started, { code: 0, stdout: /Open WebUI answers; svc\.toml now sets dispatcher\.list_unloaded = true/ }, started.stderr)
  const first = await page()
  t.match(first.env, {
    PORT: String(port), DATA_DIR: '/app/backend/data', OPENAI_API_BASE_URL: `${gateway.url}/v1`, ENABLE_PERSISTENT_CONFIG: 'False',
    DEFAULT_MODELS: 'agent', RAG_EMBEDDING_MODEL: 'embed', EXTRA: 'yes', WEBUI_SECRET_KEY: /^[0-9a-f]{64}$/
  })
  t.match(first.models, { object: 'list', data: Array }, 'it reaches the gateway from inside')
  await shows(() => svc('list'), /^openwebui +up +container +- /m)
  t.match(await svc('logs', 'openwebui'), { code: 0, stdout: `the stand-in listens at ${port}\n` })
  const [id, ...more] = await containersOf(host, home)
  t.strictSame(more, [], 'one container')

  await gateway.kill('SIGKILL')
  t.equal((await page()).starts, 1, 'it goes on without its gateway')
  gateway = await startLive(t, home, env, undefined, [], gatewayPort)
  await shows(() => svc('list'), /^openwebui +up +container/m)
  t.strictSame(await containersOf(host, home), [id], 'the next one takes it over')
  t.match(await svc('logs', 'openwebui'), { code: 0, stdout: /listens/ })

  t.match(await svc('restart', 'openwebui'), { code: 0 })
  t.match(await page(), { starts: 2, env: { WEBUI_SECRET_KEY: first.env.WEBUI_SECRET_KEY } }, 'its data and its secret stay')
  t.match(await svc('stop', 'openwebui'), { code: 0 })
  t.strictSame(await containersOf(host, home), [])
  await t.rejects(page())
  t.match(await svc('enable', 'openwebui'), { code: 0 })
  t.equal(await gateway.kill('SIGTERM'), 0)
  gateway = await startLive(t, home, env, undefined, [], gatewayPort)
  const again = await eventually('it runs', page)
  t.equal(again.starts, 3, 'one that is enabled starts with the gateway')

  t.match(await svc('uninstall', 'openwebui', '--data', '--yes'), { code: 0, stdout: 'Open WebUI is gone.\n' })
  t.strictSame(await containersOf(host, home), [])
  t.notOk(existsSync(join(home, 'var/lib/svc/plugin-state/api-services/openwebui')))
  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
})

t.test('Hindsight as a container: its models are slots, and its database is in a folder that its own user writes to', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const { host } = engine
  const image = await standInImage(host, engine.nodeImage, hindsightImage.image, 1000)
  t.teardown(() => image.remove())
  const port = await freePort()
  const home = await liveHome(t, {
    'etc/svc/svc.toml': `[runtime]\ndriver = "docker"\n[slots]\nautostart = false\n[plugins.config.api-services]\nsystemctl = "/nonexistent"\n[plugins.config.api-services.services.hindsight]\nport = ${port}\n`
  })
  const gateway = await startLive(t, home, { DOCKER_HOST: host })
  const svc = (...words: readonly string[]): Promise<Finished> => run([...words, '--url', gateway.url])
  t.teardown(() => svc('service', 'uninstall', 'hindsight', '--data', '--yes').catch(() => undefined))
  const refused = await svc('service', 'install', 'hindsight', '--form', 'container')
  t.match(refused, { code: 1, stderr: /needs a slot of type embedding, and none is enabled: create one with `svc slot create embed --type embedding`/ })
  await writeHome(home, Object.fromEntries([['embed', 'embedding'], ['agent', 'llm'], ['rerank', 'reranking']].map(([name, type]) =>
    [`etc/svc/slots/${name}.toml`, `device = "cpu"\ntype = "${type}"\n`])))
  t.equal((await fetch(`${gateway.url}/api/settings/reload`, { method: 'POST' })).status, 200)
  const installed = await svc('service', 'install', 'hindsight', '--form', 'container')
  t.match(installed, { code: 0 }, installed.stderr)
  const started = await svc('service', 'start', 'hindsight')
  t.match(started, { code: 0 }, started.stdout)
  const page = await (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })).json() as Page
  const v1 = `${gateway.url}/v1`
  t.match(page, {
    user: 1000,
    starts: 1,
    env: {
      HINDSIGHT_API_HOST: '127.0.0.1', HINDSIGHT_API_PORT: String(port), HINDSIGHT_API_DATABASE_URL: /^pg0:\/\/hindsight:[0-9a-f]{64}@svc$/, HOME: hindsightImage.data,
      HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL: v1, HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL: 'embed', HINDSIGHT_API_LLM_BASE_URL: v1, HINDSIGHT_API_LLM_MODEL: 'agent',
      HINDSIGHT_API_RERANKER_COHERE_BASE_URL: `${v1}/rerank`, HINDSIGHT_API_RERANKER_COHERE_MODEL: 'rerank'
    },
    models: { object: 'list' }
  })
  await shows(() => svc('service', 'list'), /^hindsight +up +container/m)
  t.match(await svc('service', 'logs', 'hindsight'), { code: 0, stdout: `the stand-in listens at ${port}\n` })
  t.match(await svc('service', 'stop', 'hindsight'), { code: 0 })
  t.strictSame(await containersOf(host, home), [])
  t.match(await svc('service', 'uninstall', 'hindsight', '--data', '--yes'), { code: 0, stdout: 'Hindsight is gone.\n' })
  t.notOk(existsSync(join(home, 'var/lib/svc/plugin-state/api-services/hindsight')))
  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
})

t.test('ComfyUI as a slot: offered, brought with its image, taken over after a crash, and taken away with its data', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const { host } = engine
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "docker"\n[slots]\nautostart = false\n[plugins.config.api-services]\nsystemctl = "/nonexistent"\n',
    'var/lib/svc/comfyui/models/checkpoints/sd_xl_turbo_1.0_fp16.safetensors': ''
  })
  const env = { DOCKER_HOST: host, SVC_TOOLBOX_IMAGE_IMAGEGEN: await fakeEnginesImage(t, engine) }
  let gateway = await startLive(t, home, env)
  const svc = (...words: readonly string[]): Promise<Finished> => run([...words, '--url', gateway.url])
  t.teardown(() => svc('service', 'uninstall', 'comfyui', '--data', '--yes').catch(() => undefined))
  const offer = async (): Promise<unknown> =>
    ((await api(gateway, 'GET', '/api/install/state')).json as { offers: Array<{ id: string }> }).offers.find(({ id }) => id === 'comfyui')
  const order = { model: 'sdxl-turbo', prompt: 'a red apple', size: '256x256', response_format: 'b64_json' }
  const data = join(home, 'var/lib/svc/comfyui')

  t.match(await offer(), { kind: 'app', name: 'ComfyUI', licence: { name: 'GPL-3.0' }, bytes: null, installed: false })
  t.match(await svc('service', 'list'), { stdout: /^comfyui +not here +slot/m, stderr: /comfyui: `svc service install comfyui` brings it/ })
  const installed = await svc('service', 'install', 'comfyui')
  t.match(installed, { code: 0, stdout: 'ComfyUI is installed.\nComfyUI: it is slot img, which is loaded on request\n', stderr: /ComfyUI: GPL-3\.0 \(https/ }, installed.stderr)
  t.match(await offer(), { installed: true })
  t.strictSame(await containersOf(host, home), [], 'nothing runs before it is asked for')
  t.match(await svc('service', 'start', 'comfyui'), { code: 0 })
  await shows(() => svc('service', 'list'), /^comfyui +up +slot +- +http:/m)
  t.match(await api(gateway, 'POST', '/v1/images/generations', order), { status: 200, json: { data: [{ b64_json: String }] } }, 'the same engine makes the images')
  const [id, ...more] = await containersOf(host, home)
  t.strictSame(more, [], 'one engine, however it is called')
  t.match(await svc('service', 'install', 'comfyui', '--form', 'container'), { code: 1, stderr: /ComfyUI runs only as a slot/ })
  t.match(await svc('service', 'install', 'comfyui'), { code: 0 }, 'a second time')

  await gateway.kill('SIGKILL')
  gateway = await startLive(t, home, env)
  await shows(() => svc('service', 'list'), /^comfyui +up +slot/m)
  t.strictSame(await containersOf(host, home), [id], 'the next gateway takes it over')

  t.match(await svc('service', 'uninstall', 'comfyui'), { code: 0, stdout: 'ComfyUI is uninstalled; its data is kept.\n' })
  t.strictSame(await containersOf(host, home), [])
  t.equal((await api(gateway, 'GET', '/api/slots/img')).status, 404)
  t.ok(existsSync(join(data, 'models/checkpoints/sd_xl_turbo_1.0_fp16.safetensors')))
  t.match(await svc('service', 'install', 'comfyui'), { code: 0 })
  t.match(await svc('service', 'uninstall', 'comfyui', '--data', '--yes'), { code: 0, stdout: 'ComfyUI is gone.\n' })
  t.notOk(existsSync(data), 'nothing is left of it')

  t.match(await svc('slot', 'create', 'pictures', '--type', 'image'), { code: 0 })
  t.match(await svc('service', 'install', 'comfyui'), { code: 0, stdout: /it is slot pictures/ }, 'a slot that is there is what it runs as')
  t.equal((await api(gateway, 'GET', '/api/slots/img')).status, 404, 'and no second one contends for its port and its GPU')
  t.match(await svc('service', 'start', 'comfyui'), { code: 0 }, 'its folders are there again')
  t.match(await svc('service', 'uninstall', 'comfyui'), { code: 1, stderr: /which its installation did not create: `svc slot delete pictures` deletes it/ })
  t.match(await svc('slot', 'delete', 'pictures', '--force'), { code: 0 })
  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
})

const crate = (image: string, port: number, word: string): string => `
import { defineAgent, definePlugin } from 'svc-gateway/plugin'
export default definePlugin({
  name: 'crate', kind: 'service', apiVersion: 1,
  register: ctx => ctx.addAgent(defineAgent({
    id: 'crate', name: 'Crate', description: 'comes in a container', licence: { name: 'MIT', url: null }, program: 'crate', requests: [],
    install: { container: { image: '${image}', bytes: null, data: '/agent', foreignUser: true } },
    server: { port: ${port}, probe: '/', args: () => ['nodejs', '/page.js'] },
    wiring: ({ agent, gateway, model, host, port, dataDir, secret }) => ({
      env: { HOST: host, PORT: String(port), DATA_DIR: dataDir, OPENAI_API_BASE_URL: gateway + '/v1', SECRET: secret, MODEL: model, AGENT: agent, WORD: '${word}' },
      files: { 'conf/model': model }
    })
  }))
})
`

t.test('an agent that a package describes comes as a container: installed, wired, taken over after a crash, upgraded, reloaded with its package, and taken away', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const { host } = engine
  const [port, gatewayPort] = [await freePort(), await freePort()]
  const name = `svc-ring-crate-${port}`
  for (const version of ['1.0.0', '1.1.0']) {
    const image = await standInImage(host, engine.nodeImage, `${name}:${version}`, 1000)
    t.teardown(() => image.remove())
  }
  const home = await liveHome(t, { 'etc/svc/svc.toml': '[runtime]\ndriver = "docker"\n[slots]\nautostart = false\n', 'etc/svc/slots/agent.toml': 'device = "cpu"\n' })
  const env = { DOCKER_HOST: host }
  let gateway = await startLive(t, home, env, undefined, [], gatewayPort)
  const agent = (...words: string[]): Promise<Finished> => run(['agent', ...words, '--url', gateway.url], { env: { HOME: home, PATH: process.env.PATH! }, cwd: home })
  const plugin = (...words: string[]): Promise<Finished> => run(['plugin', ...words, '--home', home], { env: { ...process.env, HOME: home } as Record<string, string>, cwd: home })
  const pack = async (word: string): Promise<string> => {
    await writeHome(home, {
      'package/package.json': JSON.stringify({ name: 'svc-plugin-crate', version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'service' }, peerDependencies: { 'svc-gateway': '>=0.1.0' } }),
      'package/index.js': crate(`${name}:1.0.0`, port, word)
    })
    return join(home, 'package')
  }
  const page = async (): Promise<Page> => await (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })).json() as Page
  const when = async (fits: (page: Page) => boolean): Promise<Page> => {
    for (;;) {
      const now = await page().catch(() => null)
      if (now !== null && fits(now)) return now
      await new Promise(resolve => { setTimeout(resolve, 50) })
    }
  }
  const status = async (): Promise<unknown> => (await api(gateway, 'GET', '/api/agents/crate')).json
  t.teardown(() => agent('uninstall', 'crate').catch(() => undefined))

  t.match(await plugin('add', await pack('first')), { code: 0 })
  const installed = await agent('install', 'crate')
  t.match(installed, { code: 0, stdout: /^crate 1\.0\.0 is installed \(container\), its server runs\n/ }, installed.stderr)
  t.match(await status(), { status: 'installed', form: 'container', version: '1.0.0', wanted_version: '1.0.0', program: null, unit_active: true, phases: { packages: { details: { image: `${name}:1.0.0` } } } })
  const first = await page()
  t.match(first, { user: 1000, starts: 1, env: { STAND_IN: `${name}:1.0.0`, AGENT: 'crate', MODEL: 'svc/agent', DATA_DIR: '/agent', OPENAI_API_BASE_URL: `${gateway.url}/v1`, SECRET: /^[0-9a-f]{64}$/ }, models: { object: 'list' } })
  const data = join(home, 'var/lib/svc/plugin-state/agents/crate/data')
  t.ok(existsSync(join(data, 'conf/model')) && existsSync(join(data, 'starts')), 'what it reads and writes is in its folder')
  t.equal(statSync(join(data, 'conf/model')).mode & 0o777, 0o644, 'and its own user may')
  const [id, ...more] = await containersOf(host, home)
  t.strictSame(more, [], 'one container')

  await gateway.kill('SIGKILL')
  t.equal((await page()).starts, 1, 'it goes on without its gateway')
  gateway = await startLive(t, home, env, undefined, [], gatewayPort)
  const runs = async (): Promise<boolean> => (await status() as { unit_active: boolean }).unit_active
  while (!await runs()) await new Promise(resolve => { setTimeout(resolve, 50) })
  t.strictSame(await containersOf(host, home), [id], 'the next one takes it over')

  t.match(await agent('upgrade', 'crate', '--to', '1.1.0'), { code: 0, stdout: /^crate 1\.1\.0 is installed/ })
  t.match(await page(), { starts: 2, env: { STAND_IN: `${name}:1.1.0`, SECRET: first.env.SECRET } }, 'with its data')
  t.match(await agent('upgrade', 'crate', '--to', '9.9.9'), { code: 1 }, 'an image that is nowhere')
  t.match(await status(), { status: 'installed', version: '1.1.0', wanted_version: '9.9.9', problem: String, unit_active: true })
  t.match(await page(), { env: { STAND_IN: `${name}:1.1.0` } }, 'leaves what was there')
  t.match(await agent('reprovision', 'crate'), { code: 0 })

  t.match(await plugin('add', await pack('second')), { code: 0 })
  t.match(await when(({ env: { WORD } }) => WORD === 'second'), { env: { STAND_IN: `${name}:1.1.0` } }, 'its package says something else, and it runs by that')
  t.equal((await containersOf(host, home)).length, 1)
  t.match(await plugin('remove', 'svc-plugin-crate'), { code: 0 })
  while ((await containersOf(host, home)).length > 0) await new Promise(resolve => { setTimeout(resolve, 50) })
  t.match(await status(), { problem: /plugin that describes it is not active/ }, 'without its package it does not run')
  t.match(await plugin('add', await pack('third')), { code: 0 })
  await when(({ env: { WORD } }) => WORD === 'third')
  t.match(await agent('status', 'crate'), { code: 0, stdout: /1\.1\.0 is installed \(container, 9\.9\.9 is wanted\), its server runs/ }, 'and with it again')

  for (const again of [true, false]) {
    t.match(await agent('uninstall', 'crate'), { code: 0, stdout: 'crate is gone.\n' })
    t.strictSame(await containersOf(host, home), [])
    t.notOk(existsSync(join(data, '..')), 'nothing is left')
    if (again) t.match(await agent('install', 'crate', '--form', 'container'), { code: 0, stdout: /crate 1\.0\.0 is installed/ }, 'a second time')
  }
  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
})

t.test('svc uninstall takes a service\'s container and the images of its home from a real engine, and no other', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const { host } = engine
  const image = await standInImage(host, engine.nodeImage, openWebui.container!.image)
  t.teardown(() => image.remove().catch(() => undefined))
  const docker = async (...args: readonly string[]): Promise<string> => (await execute('docker', args, { env: { ...process.env, DOCKER_HOST: host } })).stdout.trim()
  const port = await freePort()
  const home = await liveHome(t, {
    'etc/svc/svc.toml': `[runtime]\ndriver = "docker"\n[slots]\nautostart = false\n[plugins.config.api-services]\nsystemctl = "/nonexistent"\n[plugins.config.api-services.services.openwebui]\nport = ${port}\n`
  })
  const gateway = await startLive(t, home, { DOCKER_HOST: host })
  const started = await run(['service', 'start', 'openwebui', '--url', gateway.url])
  t.equal(started.code, 0, started.stdout + started.stderr)
  // of another home, and of no gateway at all
  const foreign = await docker('run', '--detach', '--label', 'svc.instance=of-another-home', '--label', 'svc.daemon=openwebui', engine.nodeImage, 'sleep', 'infinity')
  t.teardown(() => docker('rm', '--force', foreign))
  const uninstall = (...args: readonly string[]): Promise<Finished> => run(['uninstall', '--home', home, ...args], { env: { PATH: process.env.PATH!, DOCKER_HOST: host } })
  t.match(await uninstall('--force'), { code: 1, stderr: /a gateway runs on/ }, 'nothing is taken from under a gateway')
  await gateway.kill('SIGKILL')
  const [container] = await containersOf(host, home)
  const listed = await uninstall('--purge', '--dry-run')
  t.match(listed, { code: 0, stdout: new RegExp(`engine +svc-\\S+ \\(${openWebui.container!.image.replaceAll('.', '\\.')}\\)\\n[^]*image +${openWebui.container!.image.replaceAll('.', '\\.')}\\n`) })
  t.strictSame(await containersOf(host, home), [container])
  const done = await uninstall('--purge', '--force')
  t.match(done, { code: 0, stdout: /Everything is removed/ }, done.stderr)
  t.strictSame(await containersOf(host, home), [])
  t.equal(await docker('image', 'ls', '--quiet', openWebui.container!.image), '', 'its image')
  t.equal(await docker('inspect', '--format', '{{.State.Running}}', foreign), 'true')
  t.notOk(existsSync(join(home, 'var/lib/svc')))
  t.match(await uninstall('--purge', '--force'), { code: 0, stdout: /nothing to remove/ })
})

t.test('random verbs on services, agents, board, approvals and updates have one outcome each and leave nothing', async t => {
  const { violations, left, answers } = await verbs({ seed: 1, minutes: 0.1 })
  t.strictSame(violations, [])
  t.strictSame(left, [])
  t.ok(Object.keys(answers).length > 8, 'they were many')
})

import { once } from 'node:events'
import { existsSync, watch } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { access, chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { COMPANION_UNITS } from '../../../cli/unit/unit-access.js'
import { definePlugin, defineService, type AnyPlugin, type ServiceDescriptor } from '../../../kernel/contract/index.js'
import {
  createTestGateway, FakeEngineRuntime, type StartedEngine, type TestGateway, type TestGatewayOptions
} from '../../../kernel/testing/index.js'
import logs from '../../../plugins/api/logs/index.js'
import services from '../../../plugins/api/services/index.js'
import slots from '../../../plugins/api/slots/index.js'
import companions from '../../../plugins/services/companions/index.js'
import memory from '../../../plugins/services/memory/index.js'
import memoryEngine from '../../../plugins/services/memory-engine/index.js'
import { AheadClock } from '../../ahead-clock.js'
import { freePort } from '../../ports.js'
import { until } from './support.js'
import { tinyWheel } from './tiny-wheel.js'

interface Answer {
  readonly status: number
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
  readonly json: any
}

interface Services extends TestGateway {
  readonly folder: string
  readonly call: (method: string, path: string, body?: unknown) => Promise<Answer>
  readonly act: (id: string, action: unknown) => Promise<Answer>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  readonly row: (id: string) => Promise<any>
  readonly audit: () => ReadonlyArray<readonly unknown[]>
}

interface Options extends TestGatewayOptions {
  readonly settings?: Readonly<Record<string, unknown>>
  /** Script of a systemctl; without one there is none. */
  readonly systemctl?: string
  /** Child processes as they are, instead of fake engines. */
  readonly real?: boolean
}

/** A gateway with the services that ship with it, on a machine without systemd unless the test brings one. */
async function gatewayOf (
  t: Test, { settings = {}, systemctl, plugins = [], files = {}, real = false, ...options }: Options = {}
): Promise<Services> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-services-'))
  const tool = join(folder, 'systemctl')
  if (systemctl !== undefined) {
    await writeFile(tool, `#!/bin/sh\necho "$*" >> ${folder}/asked\n${systemctl}`)
    await chmod(tool, 0o755)
  }
  const gateway = await createTestGateway({
    ...(real ? {} : { runtime: new FakeEngineRuntime({ form: 'process' }) }),
    plugins: [services, companions, memory, memoryEngine, logs, slots, ...plugins],
    pluginConfig: { 'api-services': { systemctl: tool, downloads: false, ...settings } },
    files: {
      // whatever runs on this machine is not asked
      'etc/svc/api.env': `SVC_AVAHI_SERVICES_DIR=${folder}/avahi\nSVC_HOSTNAME=box\nSVC_OPENWEBUI_PROBE_URL=http://127.0.0.1:9/health\n`,
      ...files
    },
    ...options
  })
  t.teardown(async () => {
    await gateway.close()
    await rm(folder, { recursive: true, force: true })
  })
  const call: Services['call'] = async (method, path, body) => {
    const answer = await gateway.fetch(`/api${path}`, {
      method, ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    })
    const text = await answer.text()
    return { status: answer.status, json: text === '' ? null : JSON.parse(text) as unknown }
  }
  return Object.assign(gateway, {
    folder,
    call,
    act: (id: string, action: unknown) => call('POST', `/services/${id}/action`, { action }),
    row: async (id: string) => {
      const { json } = await call('GET', '/services')
      return (json as { services: Array<{ id: string }> }).services.find(service => service.id === id)
    },
    audit: () => gateway.gateway.kernel().activity.list({ kind: 'action', category: 'services' })
      .map(({ action, target, outcome, after }) => [action, target, outcome, after]).reverse()
  })
}

function pluginOf (descriptor: Partial<ServiceDescriptor> & { readonly id: string }): AnyPlugin {
  const service = defineService({
    name: 'Notes', description: 'Notes of a third party', licence: { name: 'MIT', note: null, url: null }, unit: 'notes.service', port: 4999,
    verbs: ['start', 'stop', 'restart', 'enable', 'disable'], probe: '/health', page: '/', mdns: true, probeUrlVariable: 'NOTES_PROBE', ...descriptor
  })
  return definePlugin({ name: `svc-${descriptor.id}`, kind: 'service', apiVersion: 1, register: ctx => ctx.addService(service) })
}

t.test('a machine without systemd and without any of the services is listed as what it is, and nothing is a 500', async t => {
  // whatever runs at their usual ports on this machine is not asked
  const [agentPort, memoryPort] = [await freePort(), await freePort()]
  const gateway = await gatewayOf(t, { settings: { services: { hermes: { port: agentPort }, hindsight: { port: memoryPort } } } })
  const { status, json } = await gateway.call('GET', '/services')
  t.equal(status, 200)
  t.strictSame(json.services.map(({ id }: { id: string }) => id), ['openwebui', 'comfyui', 'hermes', 'hindsight'])
  t.strictSame(json.services.map(({ unit }: { unit: string }) => unit), COMPANION_UNITS, 'an installed gateway may drive their units')
  const nothing = { managed: false, up: false, unit_state: null, mdns_url: null }
  for (const service of json.services) t.match(service, nothing, service.id)
  t.match(json.services[0], {
    unit: 'svc-openwebui.service', runs_as: null, url: 'http://127.0.0.1:3001/', actions: ['start', 'stop', 'restart', 'enable', 'disable'],
    licence: { note: /branding/ }, installation: { state: 'absent' }, detail: /nothing is listening|cannot be reached/
  })
  t.match(json.services[2], { url: null, loopback_port: agentPort, mdns_capable: false }, 'an agent on loopback has no address for others')
  t.match(json.mdns, { hostname: 'box.local', base_advertised: false, advertised: { length: 0 } })
  t.match(await gateway.call('GET', '/services/health'), { status: 200, json: { services: [{ id: 'openwebui', up: false, stat: null }] } })

  t.match(await gateway.act('openwebui', 'start'), { status: 200, json: { ok: false, active: false, message: /not installed/ } })
  t.match(await gateway.act('hermes', 'start'), { status: 200, json: { ok: false, message: /no unit svc-agent@hermes/ } })
  t.match(await gateway.act('comfyui', 'restart'), { status: 200, json: { ok: false, message: /there is none: create one/ } })
  t.match(await gateway.act('openwebui', 'stop'), { status: 200, json: { ok: true, active: false } })
  const refusals: ReadonlyArray<readonly [string, string, unknown, number, string]> = [
    ['POST', '/services/nobody/action', { action: 'start' }, 404, 'services.unknown'],
    ['POST', '/services/openwebui/action', {}, 400, 'services.action_required'],
    ['POST', '/services/openwebui/action', { action: 'explode' }, 400, 'services.action_not_allowed'],
    ['POST', '/services/comfyui/action', { action: 'disable' }, 400, 'services.action_not_allowed'],
    ['POST', '/services/mdns', {}, 400, 'services.advertise_required'],
    ['POST', '/services/openwebui/install', {}, 409, 'services.cannot_install'],
    ['POST', '/services/comfyui/install', {}, 409, 'services.cannot_install'],
    ['GET', '/services/nobody/install', undefined, 404, 'services.unknown']
  ]
  for (const [method, path, body, status, code] of refusals) {
    t.match(await gateway.call(method, path, body), { status, json: { error: { code } } }, `${method} ${path} ${JSON.stringify(body)}`)
  }
  t.match((await gateway.call('POST', '/services/hindsight/install', {})).json.error, {
    code: 'services.cannot_install', message: /needs a slot of type embedding, and none is enabled/, details: { needs: 'embedding' }
  }, 'what could not work in the end is refused before it begins')
  t.match((await gateway.act('comfyui', 'disable')).json.error.details, { allowed: ['start', 'restart'] })
  t.strictSame(gateway.audit()[0], ['services.start', 'svc-openwebui.service', 'ok', { ok: false, active: false }], 'the audit says how it ended')
})

t.test('where systemd has the unit, states, uptime and verbs are systemd\'s', async t => {
  const gateway = await gatewayOf(t, {
    systemctl: `case "$1" in
show) cat <<END
Id=svc-openwebui.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
ActiveEnterTimestamp=Mon 2026-11-23 07:00:01 UTC

Id=svc-agent@hermes.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
ActiveEnterTimestamp=
END
;;
is-active) echo active ;;
stop | enable | disable) echo "Failed to $1 $2: Access denied" >&2; exit 4 ;;
start) [ "$2" = svc-unit-enable@svc-openwebui.service.service ] || { echo "Job for $2 failed." >&2; exit 1; } ;;
esac`
  })
  t.match(await gateway.row('openwebui'), {
    managed: true, runs_as: 'unit', wired: null,
    unit_state: { active_state: 'active', sub_state: 'running', unit_file_state: 'enabled', since: '2026-11-23T07:00:01Z' }
  })
  t.match(await gateway.row('hermes'), { managed: false, runs_as: null, unit_state: null }, 'a unit that is not there is no unit')
  t.match(await gateway.act('openwebui', 'restart'), { json: { unit: 'svc-openwebui.service', ok: true, active: true } })
  const refused = /may not stop svc-openwebui\.service: `sudo (npx )?svc service install --allow svc-openwebui\.service` allows it/
  t.match(await gateway.act('openwebui', 'stop'), { status: 200, json: { ok: false, active: true, problem: 'not_permitted', message: refused } })
  t.match(await gateway.act('openwebui', 'enable'), { json: { ok: true, problem: null } }, 'a switch that the installation wrote does it')
  t.match(await gateway.act('openwebui', 'disable'), { json: { ok: false, problem: 'not_permitted' } }, 'where it is there')
  t.match(await gateway.act('openwebui', 'start'), { json: { ok: false, problem: 'failed', message: 'Job for svc-openwebui.service failed.' } })
  const asked = (await readFile(join(gateway.folder, 'asked'), 'utf8')).split('\n')
  t.ok(asked.includes('restart svc-openwebui.service') && asked.includes('stop svc-openwebui.service'))
})

t.test('a systemctl that hangs ends by force: lists and verbs have their answer in time', async t => {
  const clock = new AheadClock()
  const gateway = await gatewayOf(t, { clock, systemctl: `trap '' TERM; mkfifo ${t.testdir()}/$$; read answer < ${t.testdirName}/$$` })
  const answered = async <T>(asked: Promise<T>): Promise<T> => {
    let isOver = false
    void asked.finally(() => { isOver = true }).catch(() => undefined)
    while (!isOver) {
      await new Promise(resolve => { setTimeout(resolve, 10) })
      clock.jump(5_000)
    }
    return await asked
  }
  t.match(await answered(gateway.call('GET', '/services')), { status: 200, json: { services: [{ id: 'openwebui', runs_as: null, unit_state: null }] } })
  t.match(await answered(gateway.call('GET', '/services/mdns')), { status: 200, json: { advertised: { length: 0 } } })
  t.match(await answered(gateway.act('hermes', 'start')), { status: 200, json: { ok: false, problem: 'failed', message: /no unit/ } })
})

t.test('a service of a third party runs as a container of the gateway: wired, supervised, ended by stop', async t => {
  let gateway: Services | null = null
  const started: StartedEngine[] = []
  const runtime = new FakeEngineRuntime({
    onStart: async engine => {
      started.push(engine)
      await gateway?.gateway.kernel().config.setSecret('NOTES_PROBE', `http://127.0.0.1:${engine.engine.port}/health`)
    }
  })
  t.teardown(() => runtime.destroy())
  const notes = pluginOf({
    id: 'notes',
    container: { image: 'registry.example/notes:1', bytes: 5, data: '/data', command: ({ port }) => ['serve', String(port)] },
    env: ({ gateway, dataDir, secret, slot }) => ({ API: `${gateway}/v1`, DATA: dataDir, SECRET: secret, MODEL: slot('llm') ?? 'none', EMBED: slot('embedding') ?? 'none' }),
    settings: [{ key: 'dispatcher.show_loading', value: true, why: 'progress' }, { key: 'dispatcher.list_virtual', value: true, why: 'is so already' }]
  })
  gateway = await gatewayOf(t, {
    runtime, plugins: [notes], settings: { downloads: true, services: { notes: { port: 4888, env: { EXTRA: 'yes' } } } },
    // an empty secret is what a gateway that was killed leaves behind
    files: { 'etc/svc/slots/chat.toml': 'type = "llm"\n', 'var/lib/svc/plugin-state/api-services/notes/secret': '' }
  })
  t.match(await gateway.row('notes'), { managed: true, runs_as: 'container', up: false, unit_state: { active_state: 'inactive' } })
  const first = await gateway.act('notes', 'start')
  t.match(first.json, { ok: true, active: true, message: /svc\.toml now sets dispatcher\.show_loading = true for it/ }, first.json.message)
  const { spec } = started[0]!
  t.match(spec, {
    port: 4888,
    labels: { 'svc.daemon': 'notes' },
    env: { API: `${gateway.baseUrl}/v1`, DATA: '/data', SECRET: /^[0-9a-f]{64}$/, MODEL: 'chat', EMBED: 'none', EXTRA: 'yes' },
    form: { kind: 'container', image: 'registry.example/notes:1', command: ['serve', '4888'], network: 'host', mounts: [{ target: '/data', readOnly: false }] }
  })
  t.match(await gateway.row('notes'), { up: true, wired: true, unit_state: { active_state: 'active', sub_state: 'running', unit_file_state: 'disabled' } })
  t.match(gateway.gateway.kernel().config.snapshot.svc.dispatcher, { show_loading: true })

  await gateway.gateway.kernel().config.patchSvc({ dispatcher: { show_loading: false } })
  t.match(await gateway.act('notes', 'enable'), { json: { ok: true, active: true, message: 'Notes starts with the gateway' } }, 'what the operator undid stays undone')
  t.equal((await gateway.row('notes')).unit_state.unit_file_state, 'enabled')

  await started[0]!.engine.close()
  await runtime.stop(started[0]!.id)
  await until(() => started.length === 2, 'one that ends by itself is started again')
  t.strictSame(started[1]!.spec.env, spec.env)
  await gateway.act('notes', 'stop')
  t.equal(runtime.running, 0, 'and one that is stopped stays so')
  t.match(await gateway.row('notes'), { up: false, unit_state: { active_state: 'inactive', sub_state: 'dead' } })
  t.equal((await gateway.call('DELETE', '/services/notes/install?data=true')).status, 204)
  t.match(await gateway.row('notes'), { installation: { state: 'absent' }, unit_state: { unit_file_state: 'disabled' } })
  t.strictSame(await readdir(join(gateway.home, 'var/lib/svc/plugin-state/api-services')).catch(() => []), [])
})

t.test('what listens in the place of a service and never ends its answer is not read to the end', async t => {
  let sent = 0
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const web = createServer((request, reply) => {
    if (request.url === '/health') return void reply.end('ok')
    const more = (): void => {
      do sent += chunk.length
      while (reply.write(chunk) && !reply.destroyed)
    }
    reply.on('drain', more)
    more()
  })
  await new Promise<void>(resolve => web.listen(0, '127.0.0.1', resolve))
  t.teardown(() => { web.closeAllConnections(); web.close() })
  const { port } = web.address() as AddressInfo
  const notes = pluginOf({ id: 'notes', port, loopback: true, stat: { path: '/endless', label: 'words', value: () => 'read' } })
  const gateway = await gatewayOf(t, { plugins: [notes] })
  t.match(await gateway.row('notes'), { up: true, stat: null })
  t.ok(sent > 0 && sent < 32 * 1024 * 1024, `${sent} bytes were taken`)
})

t.test('a package of Python is installed in an environment of its own, adopted by the next gateway, and leaves nothing', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-wheel-'))
  const home = await mkdtemp(join(tmpdir(), 'svc-services-home-'))
  t.teardown(() => Promise.all([folder, home].map(each => rm(each, { recursive: true, force: true }))))
  const wheel = tinyWheel(folder)
  if (wheel === null) return void t.comment('SKIPPED: no Python with venv and pip here')
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const told = async (): Promise<{ pid: number, env: Record<string, string> }> => await (await fetch(`${origin}/`, { headers: { connection: 'close' } })).json() as never
  const page = pluginOf({
    id: 'page',
    probe: '/',
    python: { package: 'tiny-page', version: '1.2', pythons: [wheel.minor], bytes: 10, command: ({ host, port }) => ({ program: 'tiny-page', args: [host, String(port)] }) },
    env: ({ gateway, dataDir }) => ({ API: `${gateway}/v1`, DATA: dataDir })
  })
  const gatewayPort = await freePort()
  const files = { 'etc/svc/svc.toml': '[runtime]\ndriver = "process"\nstop_with_gateway = false\n[slots]\nautostart = false\n' }
  const options: Options = {
    home, files, plugins: [page], port: gatewayPort, real: true,
    settings: { downloads: true, services: { page: { port } }, installer_env: { PATH: wheel.path, PIP_NO_INDEX: '1', PIP_FIND_LINKS: folder } }
  }
  const gateway = await gatewayOf(t, options)
  t.match(await gateway.call('POST', '/services/page/install', {}), { status: 202, json: { state: 'installing', form: 'python', version: '1.2' } })
  t.match(await gateway.act('page', 'start'), { json: { ok: true, active: true } }, 'a verb waits for the installation')
  t.match(await gateway.call('GET', '/services/page/install'), { json: { state: 'installed', version: '1.2' } })
  const first = await told()
  t.match(first.env, { API: `${gateway.baseUrl}/v1` })
  t.notMatch(first.env, { PIP_NO_INDEX: String })

  const watcher = watch(first.env.DATA!)
  const again = once(watcher, 'change')
  await fetch(`${origin}/end`).catch(() => undefined)
  await again
  watcher.close()
  const second = await told()
  t.not(second.pid, first.pid, 'what ended by itself runs again')
  await gateway.gateway.stop()

  const next = await gatewayOf(t, options)
  t.equal((await told()).pid, second.pid, 'the next gateway takes over what runs')
  t.match(await next.row('page'), { up: true, unit_state: { active_state: 'active' } })
  const { json } = await next.call('GET', '/logs?unit=notes.service')
  t.match(json.lines.join('\n'), /asked for \//, 'its output is what its unit would have written')
  t.equal((await next.call('DELETE', '/services/page/install')).status, 204)
  await t.rejects(told(), 'it is gone')
  const left = await readdir(join(home, 'var/lib/svc/plugin-state/api-services/page'))
  t.strictSame(left.sort(), ['data', 'secret'], 'its data stays unless told otherwise')
  t.match(await next.act('page', 'start'), { json: { ok: false, message: /not installed: `svc service install page`/ } })
})

t.test('what an installer prints is shown without secrets, escapes and length', async t => {
  const folder = t.testdir({
    'python3.99': `#!/bin/sh
[ "$1" = -c ] && { echo look >> "$0.looks"; echo 99; exit; }
mkdir -p "$3/bin"
cat > "$3/bin/pip" <<'END'
#!/bin/sh
printf '\\033[31mLooking in indexes: https://me:hunter2@index.example/simple\\033[0m with s3cret-value\\n'
head -c 3000 /dev/zero | tr '\\0' x; echo
printf 'no such package\\a\\n'
exit 1
END
chmod +x "$3/bin/pip"
`
  })
  await chmod(join(folder, 'python3.99'), 0o755)
  const command = (): { program: string, args: string[] } => ({ program: 'odd', args: [] })
  const odd = pluginOf({ id: 'odd', python: { package: 'odd', version: '1', pythons: [99], bytes: 10, command } })
  const gateway = await gatewayOf(t, {
    plugins: [odd], settings: { downloads: true, installer_env: { PATH: `${folder}:${process.env.PATH}` } },
    files: { 'etc/svc/api.env': `SVC_AVAHI_SERVICES_DIR=${t.testdirName}/avahi\nODD_KEY=s3cret-value\n` }
  })
  const looks = async (): Promise<number> => (await readFile(join(folder, 'python3.99.looks'), 'utf8')).split('\n').length - 1
  for (let i = 0; i < 3; i++) t.match(await gateway.act('odd', 'start'), { json: { ok: false, message: /svc service install odd/ } })
  t.equal(await looks(), 1, 'what is asked often does not start a Python each time')
  const seen = new Set<string>()
  let { json } = await gateway.call('POST', '/services/odd/install', {})
  while (json.state === 'installing') {
    seen.add(json.message)
    json = (await gateway.call('GET', '/services/odd/install')).json
  }
  t.equal(await looks(), 3, 'an installation looks anew')
  t.match(json, { state: 'failed', message: /^pip install ended with 1: .*Looking in indexes: https:..\*+REDACTED\*+@index\.example.simple with \*+ \| x+…+ \| no such package$/ })
  const told = [...seen, json.message].join('\n')
  t.notMatch(told, /hunter2|s3cret-value|[\u0000-\u0009\u000b-\u001f]/)
  t.ok(told.split('\n').every(line => line.length < 1_200), 'no line is long')
})

t.test('services are announced by files of avahi, and files that are not ours stay', async t => {
  const gateway = await gatewayOf(t, { systemctl: '[ "$1" != is-active ] || [ -e "${0%/*}/away" ] || echo active', settings: { announce_on: ['none0'] } })
  const folder = join(gateway.folder, 'avahi')
  await mkdir(folder)
  for (const name of ['svc.service', 'printer.service']) await writeFile(join(folder, name), 'somebody\'s')
  t.match((await gateway.call('GET', '/services/mdns')).json, {
    available: true, base_advertised: true, advertised: { length: 0 }, advertisable: [{ id: 'openwebui', port: 3001 }, { id: 'comfyui', port: 8188 }]
  })
  t.match((await gateway.call('POST', '/services/mdns', { advertise: true })).json, { ok: true, advertised: ['comfyui', 'openwebui'] })
  t.match(await readFile(join(folder, 'svc-addon-openwebui.service'), 'utf8'), /Open WebUI on %h<.*<type>_http\._tcp<.*<port>3001</s)
  t.equal((await gateway.row('openwebui')).mdns_url, 'http://box.local:3001/')
  t.match((await gateway.call('POST', '/services/mdns', { advertise: false })).json, { ok: true, advertised: { length: 0 }, base_advertised: true })
  await gateway.call('POST', '/services/mdns', { advertise: true })
  await writeFile(join(gateway.folder, 'away'), '')
  // this machine may have a daemon of its own, whose socket tells
  const isHere = await access('/run/avahi-daemon/socket').then(() => true, () => false)
  t.match(await gateway.call('GET', '/services/mdns'), { status: 200, json: isHere ? {} : { available: false, advertised: { length: 0 } } }, 'a daemon that went away announces nothing')
  t.match(await gateway.call('POST', '/services/mdns', { advertise: true }), { status: 200, json: { ok: isHere } })
  t.equal((await gateway.call('GET', '/services')).status, 200)
  await gateway.gateway.stop()
  t.strictSame((await readdir(folder)).sort(), ['printer.service', 'svc.service'], 'a gateway that stops withdraws its own')

  const held = join(gateway.folder, 'held')
  await writeFile(held, '')
  const systemctl = `[ "$2" != avahi-daemon.service ] || { while [ -e ${held} ]; do sleep 0.02; done; echo active; }`
  const next = await gatewayOf(t, { home: gateway.home, systemctl })
  const stopped = next.gateway.stop()
  await rm(held)
  await stopped
  t.strictSame(await readdir(join(next.folder, 'avahi')), [], 'also when it stops before it has announced them')
})

t.test('services that are withdrawn while they are being announced stay withdrawn', async t => {
  const clock = new AheadClock()
  const systemctl = '[ "$2" != avahi-daemon.service ] || { : > "${0%/*}/looks"; while [ -e "${0%/*}/held" ]; do sleep 0.02; done; echo active; }'
  const gateway = await gatewayOf(t, { systemctl, clock })
  const [held, looks] = [join(gateway.folder, 'held'), join(gateway.folder, 'looks')]
  const announce = (advertise: boolean): Promise<Answer> => gateway.call('POST', '/services/mdns', { advertise })
  await writeFile(held, '')
  const announced = announce(true)
  await until(() => existsSync(looks), 'it is asked who tells the network')
  const withdrawn = announce(false)
  // it has come when what is asked behind it is answered
  for (let i = 0; i < 3; i++) await gateway.call('GET', '/slots')
  const again = announce(true)
  for (let i = 0; i < 3; i++) await gateway.call('GET', '/slots')
  const last = announce(false)
  for (let i = 0; i < 3; i++) await gateway.call('GET', '/slots')
  await rm(held)
  for (const answer of [announced, again]) t.match(await answer, { json: { ok: false, message: /withdrawn during the announcement/ } })
  for (const answer of [withdrawn, last]) t.match(await answer, { json: { ok: true } })
  clock.jump(20_000)
  // each takes as long as a look whether they are announced
  for (let i = 0; i < 4; i++) t.strictSame((await gateway.call('GET', '/services/mdns')).json.advertised, [])
  t.match((await announce(true)).json, { ok: true, advertised: ['comfyui', 'openwebui'] }, 'until they are announced again')
})

t.test('a descriptor that cannot be used falls with its plugin, and so does one whose id is taken', async t => {
  t.throws(() => pluginOf({ id: 'Bad Name' }), /its id is not kebab-case/)
  t.throws(() => pluginOf({ id: 'bad', unit: 'x' }), /its unit is not/)
  const gateway = await gatewayOf(t, { plugins: [pluginOf({ id: 'openwebui' })] })
  t.match(gateway.gateway.report().find(({ name }) => name === 'svc-openwebui'), { state: 'failed', code: 'plugin.conflict', message: /service 'openwebui' belongs to/ })
})

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { MARK, systemdUnit, sysusersFile } from '../../cli/unit/gateway-unit.js'
import { launchdPlist } from '../../cli/unit/launchd.js'
import { definePlugin, defineService } from '../../kernel/contract/index.js'
import { createTestGateway, FakeEngineRuntime } from '../../kernel/testing/index.js'
import logs from '../../plugins/api/logs/index.js'
import services from '../../plugins/api/services/index.js'
import slots from '../../plugins/api/slots/index.js'
import { bin, fakeApi, FakeProcess, run, spawnSvc, type Finished } from './support.js'

const exec = promisify(execFile)
const has = (command: string, ...args: string[]): Promise<boolean> => exec(command, args).then(() => true, () => false)

t.test('a service is installed, started, looked at, stopped and taken away at the prompt', async t => {
  const notes = definePlugin({
    name: 'notes',
    kind: 'service',
    apiVersion: 1,
    register: ctx => ctx.addService(defineService({
      id: 'notes',
      name: 'Notes',
      description: 'notes',
      licence: { name: 'Odd License', note: 'its name may not be changed', url: null },
      unit: 'notes.service',
      port: 4777,
      verbs: ['start', 'stop', 'restart', 'enable', 'disable'],
      probe: '/health',
      probeUrlVariable: 'NOTES_PROBE',
      page: '/',
      mdns: false,
      container: { image: 'registry.example/notes:1', bytes: null, data: '/data' },
      settings: [{ key: 'dispatcher.list_unloaded', value: true, why: 'saved chats' }]
    }))
  })
  const runtime = new FakeEngineRuntime({
    onStart: ({ engine }) => gateway.gateway.kernel().config.setSecret('NOTES_PROBE', `http://127.0.0.1:${engine.port}/health`)
  })
  const gateway = await createTestGateway({
    runtime, plugins: [services, logs, slots, notes], pluginConfig: { 'api-services': { systemctl: '/nonexistent' } },
    files: { 'etc/svc/api.env': `SVC_AVAHI_SERVICES_DIR=${t.testdir()}\n` }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const svc = (...args: string[]): Promise<Finished> => run(['service', ...args, '--url', gateway.baseUrl])

  t.match((await svc('list')).stdout, /^SERVICE +STATE +RUNS AS +STARTS +ADDRESS\nnotes +down +container +- +http:\/\/127\.0\.0\.1:4777\/\n$/)
  for (const way of [[], ['--follow']]) {
    const none = await svc('logs', 'notes', ...way)
    t.match(none, { code: 1, stdout: /^$/, stderr: /^Error: Notes is not installed.*\nInstall it with `(npx )?svc service install notes`\.\n$/ }, none.stderr)
  }
  const installed = await svc('install', 'notes')
  t.match(installed, { code: 0, stderr: /Notes: Odd License, its name may not be changed/ }, installed.stderr)
  t.match(installed.stdout, /Notes is installed\.\nsvc\.toml now sets \[dispatcher\] list_unloaded = true for it\.\nStart it: svc service start notes/)
  t.match(await readFile(join(gateway.home, 'etc/svc/svc.toml'), 'utf8'), /list_unloaded = true/)
  t.match(await svc('start', 'notes'), { code: 0, stdout: 'Notes answers.\n' })
  t.match(await svc('enable', 'notes'), { code: 0, stdout: 'Notes starts with the gateway.\n' })
  t.match((await svc('list')).stdout, /notes +up +container +by itself/)
  t.match(JSON.parse((await svc('list', '--json')).stdout), { services: [{ id: 'notes', up: true, installation: { form: 'container' } }] })
  t.match(await svc('logs', 'notes'), { code: 0, stdout: 'a line of the fake engine\n' })
  t.match(await svc('logs', 'notes', '-n', '1'), { code: 0, stdout: /^[^\n]*\n$/ })
  t.match(await svc('logs', 'notes', '-n', '0'), { code: 2, stderr: /must be at least 1/ })
  t.match(JSON.parse((await svc('restart', 'notes', '--json')).stdout), { ok: true, action: 'restart' })
  t.match(await svc('stop', 'notes'), { code: 0 })
  t.match(await svc('disable', 'notes'), { code: 0, stdout: 'Notes does not start with the gateway.\n' })
  t.match(await svc('uninstall', 'notes', '--data'), { code: 0, stdout: 'Notes is gone.\n' })
  t.equal(runtime.running, 0)

  t.match(await svc('start', 'nobody'), { code: 1, stderr: /there is no service 'nobody'; there are notes/ })
  t.match(await svc('install', 'nobody'), { code: 1, stderr: /There are notes/ })
  t.match(await svc('install', 'notes', '--form', 'python'), { code: 1, stderr: /Error: / }, 'it does not come that way')
  t.match(await svc('install', 'notes', '--print'), { code: 2 })
  const asked = new FakeProcess({ tty: true })
  asked.stdin.end('n\n')
  t.match(await asked.run('service', 'install', 'notes', '--url', gateway.baseUrl), { code: 1, stderr: /nothing was installed/ }, 'a licence that says something is asked about')
})

const unit = { releases: null, node: '/opt/a b/node', program: '/opt/svc/dist/cli/svc.js', home: null, user: 'daemon', groups: ['video'], path: '/usr/bin:/bin' }

t.test('systemd finds nothing wrong with the unit of the gateway, and it is hardened', async t => {
  if (!await has('systemd-analyze', '--version')) return void t.comment('SKIPPED: no systemd-analyze here')
  const folder = t.testdir()
  const node = { ...unit, node: process.execPath, program: bin, groups: [] }
  for (const [name, home] of [['svc-api', null], ['svc-other', join(folder, 'a home')]] as const) {
    const file = join(folder, `${name}.service`)
    await writeFile(file, systemdUnit({ ...node, home }))
    const { stdout, stderr } = await exec('systemd-analyze', ['verify', '--man=no', file])
    t.equal(`${stdout}${stderr}`.split('\n').filter(line => line.includes(name)).join('\n'), '', name)
    const { stdout: security } = await exec('systemd-analyze', ['security', '--offline=yes', '--no-pager', file]).catch((error: unknown) => error as { stdout: string })
    const exposure = Number(/level for [^:]*: ([\d.]+)/.exec(security)?.[1])
    t.ok(exposure < 5, `its exposure is ${exposure} of 10`)
  }
  const file = join(folder, 'sysusers.conf')
  await writeFile(file, sysusersFile('svctest'))
  await exec('systemd-sysusers', ['--dry-run', file])
  t.match(systemdUnit(unit), /^SystemCallFilter=@system-service @pkey\nSystemCallErrorNumber=EPERM$/m, 'Node is not killed for what it asks when it starts')
  t.match(systemdUnit(unit), /^ExecStart="\/opt\/a b\/node" \/opt\/svc\/dist\/cli\/svc\.js serve$/m)
  t.match(systemdUnit({ ...unit, releases: '/usr/lib/svc' }), /^ReadWritePaths=.* \/usr\/lib\/svc$/m, 'one that updates itself may write there')
})

t.test('launchd could read the job of the gateway', async t => {
  const text = launchdPlist({ ...unit, home: '/Users/a & b' }, MARK)
  if (!await has('python3', '-c', 'import plistlib')) return void t.comment('SKIPPED: no Python here')
  const reading = exec('python3', ['-c', 'import plistlib, json, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))'])
  reading.child.stdin!.end(text)
  t.match(JSON.parse((await reading).stdout), {
    Label: 'dev.svc.gateway', UserName: 'daemon', ProgramArguments: ['/opt/a b/node', unit.program, 'serve', '--home', '/Users/a & b'],
    RunAtLoad: true, KeepAlive: { SuccessfulExit: false }, Umask: 0o027, EnvironmentVariables: { PATH: '/usr/bin:/bin' },
    StandardOutPath: '/Users/a & b/var/log/svc.log', StandardErrorPath: '/Users/a & b/var/log/svc.log'
  })
})

t.test('the unit is written where it is told to, never over a file of somebody else, and removed again', async t => {
  const folder = t.testdir()
  const file = join(folder, 'svc-api.service')
  const printed = await run(['service', 'install', '--print', '--user', 'me'])
  t.match(printed, { code: 0, stdout: /^# written by svc service install\n\[Unit\][^]*\nType=notify\n[^]*\nUser=me\n/ })
  t.match(await run(['service', 'install', '--folder', folder]), { code: 0, stdout: `${file} is written.\n` })
  t.match(await run(['service', 'install', '--folder', folder, '--home', '/srv/svc']), { code: 0 }, 'its own it writes again')
  t.match(await readFile(file, 'utf8'), /serve --home \/srv\/svc\n[^]*ReadWritePaths=\/srv\/svc\n/)
  t.match(await run(['service', 'uninstall', '--folder', folder]), { code: 0 })
  t.match(await run(['service', 'uninstall', '--folder', folder]), { code: 1, stderr: /does not exist/ })
  await writeFile(file, '[Unit]\n')
  for (const verb of ['install', 'uninstall']) t.match(await run(['service', verb, '--folder', folder]), { code: 1, stderr: /was not changed/ }, verb)
})

t.test('a gateway that a service manager started tells when it is ready and when it stops', async t => {
  const isHere = await has('systemd-notify', '--version') && await has('python3', '--version')
  if (!isHere) return void t.comment('SKIPPED: no systemd-notify or no Python here')
  // the address of a socket is short
  const folder = await mkdtemp(join(tmpdir(), 'svc-notify-'))
  const socket = join(folder, 'notify')
  // Node has no sockets for datagrams of Unix
  const manager = spawn('python3', ['-uc', `
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1]); print('listening')
while True: print(listener.recv(4096).decode().replace(chr(10), ' '))
`, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    manager.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  })
  let heard = ''
  manager.stdout.setEncoding('utf8').on('data', text => { heard += text })
  const hears = async (words: RegExp): Promise<void> => {
    while (!words.test(heard)) await once(manager.stdout, 'data')
  }
  await hears(/listening/)
  const serving = spawnSvc(['serve', '--home', join(folder, 'home'), '--port', '0', '--log-level', 'warn'], { NOTIFY_SOCKET: socket })
  await hears(/READY=1 STATUS=serving at http:\/\/127\.0\.0\.1:\d+/)
  serving.child.kill('SIGTERM')
  await hears(/STOPPING=1/)
  t.match(await serving.finished, { code: 0, stderr: /^$/ })
})

t.test('a service that is not here has no address in the list, and the line below says what brings it', async t => {
  const none = { unit_state: null, up: false, detail: 'nothing listens', licence: { name: 'MIT', note: null, url: null }, installation: { state: 'absent', form: null, version: null, message: '', settings: [] } }
  const fake = await fakeApi({
    'GET /api/services': { services: [
      { ...none, id: 'notes', name: 'Notes', description: '', managed: false, runs_as: null, unit: 'notes.service', url: 'http://127.0.0.1:4777/', hints: ['`svc service install notes` brings it'] },
      { ...none, id: 'other', name: 'Other', description: '', managed: true, up: true, runs_as: 'unit', unit: 'other.service', url: 'http://127.0.0.1:4778/', hints: [] }
    ] }
  })
  t.teardown(() => fake.close())
  const { code, stdout, stderr } = await run(['service', 'list', '--url', fake.url])
  t.equal(code, 0, stderr)
  t.match(stdout, /^notes +not here +- +- +-\nother +up +unit +- +http:\/\/127\.0\.0\.1:4778\/\n$/m)
  t.equal(stderr, 'notes: `svc service install notes` brings it\n')
})

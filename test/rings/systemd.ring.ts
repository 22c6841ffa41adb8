import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { shippedProgram } from '../program.js'
import { root } from '../repository.js'

const execute = promisify(execFile)

t.setTimeout(850_000)

interface Ended { readonly code: number, readonly stdout: string, readonly stderr: string }

interface Machine {
  /** As root, or another user. */
  readonly run: (command: string, options?: { readonly user?: string, readonly input?: string }) => Promise<Ended>
  readonly svc: (...args: readonly string[]) => Promise<Ended>
  /** The command line as it is on macOS, called by sudo. */
  readonly macSvc: (...args: readonly string[]) => Promise<Ended>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers of every shape
  readonly api: (path: string, body?: unknown) => Promise<any>
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

const DARWIN = '--import=data:text/javascript,Object.defineProperty(process,`platform`,{value:`darwin`})'

/** A machine whose first process is systemd. */
async function machine (t: Test): Promise<Machine> {
  const program = `/opt/svc/${relative(root, shippedProgram())}`
  const folder = await mkdtemp(join(tmpdir(), 'svc-machine-'))
  const holder = spawn('bash', [join(root, 'test/rings/systemd-machine.sh'), folder, root, process.execPath], { stdio: ['ignore', 'inherit', 'inherit'] })
  t.teardown(async () => {
    // unshare is deaf to what is gentler, and takes its child with it
    holder.kill('SIGKILL')
    if (holder.exitCode === null && holder.signalCode === null) await once(holder, 'exit')
    const group = await readFile(join(folder, 'group'), 'utf8').catch(() => null)
    // its last processes take a moment to go
    if (group !== null) await until('the machine is gone', async () => (await shell(`find ${group.trim()} -depth -type d -exec rmdir {} +`)).code === 0 ? true : null)
    await rm(folder, { recursive: true, force: true })
  })
  const first = await until('systemd', async () => {
    if (holder.exitCode !== null) throw new Error('no machine came up')
    const pid = (await shell(`pgrep -P ${holder.pid}`)).stdout.trim()
    return pid !== '' && (await shell(`cat /proc/${pid}/comm`)).stdout.trim() === 'systemd' ? pid : null
  })
  const run: Machine['run'] = (command, { user, input } = {}) => {
    const words = user === undefined ? [] : ['runuser', '-u', user, '--']
    return ended('nsenter', ['-t', first, '-a', 'env', '-i', `PATH=${PATH}`, 'LC_ALL=C', ...words, 'sh', '-c', `cd / && ${command}`], input)
  }
  await until('the machine is up', async () => (await run('systemctl is-system-running')).stdout.trim() === 'running' ? true : null)
  return {
    run,
    svc: (...args) => run(`/opt/node ${program} ${args.map(arg => `'${arg}'`).join(' ')}`),
    macSvc: (...args) => run(`SUDO_USER=daemon NODE_OPTIONS='${DARWIN}' /opt/node ${program} ${args.join(' ')}`),
    api: async (path, body) => {
      const sent = body === undefined ? '' : '-H content-type:application/json -d @-'
      const { stdout, stderr } = await run(`curl -sS http://127.0.0.1:8080${path} ${sent}`, body === undefined ? {} : { input: JSON.stringify(body) })
      if (stdout === '') throw new Error(stderr)
      return JSON.parse(stdout) as unknown
    }
  }
}

function shell (command: string): Promise<Ended> {
  return ended('sh', ['-c', command])
}

async function ended (command: string, args: readonly string[], input?: string): Promise<Ended> {
  const running = execute(command, args, { maxBuffer: 16 * 1024 * 1024, timeout: 120_000 })
  running.child.stdin!.on('error', () => undefined).end(input)
  return await running.then(({ stdout, stderr }) => ({ code: 0, stdout, stderr }), (error: unknown) => {
    const { code, stdout, stderr } = error as Ended
    return { code, stdout, stderr }
  })
}

async function until<T> (what: string, look: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const seen = await look()
    if (seen !== null) return seen
    await new Promise(resolve => { setTimeout(resolve, 100) })
  }
}

async function missing (): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'a machine of its own needs root'
  for (const file of ['/lib/systemd/systemd', '/usr/lib/polkit-1/polkitd', '/usr/share/dbus-1/system.conf']) {
    if (await access(file).then(() => false, () => true)) return `no ${file} here: test/engines/install-packages.sh systemd`
  }
  if ((await shell('unshare --mount --pid --uts --ipc --net --cgroup --fork true && grep -q " cgroup2 " /proc/mounts')).code !== 0) return 'no namespaces of its own can be made here'
  return null
}

/** A unit that serves what its services answer. */
const unit = (port: number): string => `[Unit]
Description=stands in for a service
[Service]
ExecStart=/opt/node -e 'console.log("listening at ${port}"); require("http").createServer((q, r) => r.end(JSON.stringify({ version: "7.7" }))).listen(${port}, "127.0.0.1")'
[Install]
WantedBy=multi-user.target
`

const OPEN_WEBUI = 'svc-openwebui.service'
const why = await missing()

t.test('the gateway is a unit of a real systemd and drives the units of its services, and no others', { skip: why ?? false }, async t => {
  const { run, svc, macSvc, api } = await machine(t)
  for (const [name, port] of [[OPEN_WEBUI, 3001], ['hindsight-api.service', 9177], ['other.service', 9999], ['extra.service', 9998]] as const) {
    await run(`cat > /etc/systemd/system/${name}`, { input: unit(port) })
  }
  const act = (action: string, id = 'openwebui'): Promise<unknown> => api(`/api/services/${id}/action`, { action })
  const state = async (id = 'openwebui'): Promise<unknown> =>
    (await api('/api/services')).services.find((service: { id: string }) => service.id === id)
  const asGateway = (command: string): Promise<Ended> => run(command, { user: 'svc' })

  await t.test('it is installed, and answers as a user of its own', async t => {
    const installed = await svc('service', 'install', '--allow', 'extra.service')
    t.match(installed, { code: 0, stdout: /User svc is created\.\nThe gateway runs as svc-api and starts with the machine/ }, installed.stderr)
    t.match(await api('/api/health'), { status: 'ok' })
    t.match((await run('systemctl show -p ActiveState,SubState,UnitFileState,StatusText,Type svc-api')).stdout,
      /^Type=notify\nStatusText=serving at http:\/\/127\.0\.0\.1:8080\nActiveState=active\nSubState=running\nUnitFileState=enabled\n$/m)
    t.match((await run('ps -o user= -p $(systemctl show -p MainPID --value svc-api)')).stdout, /^svc\n$/)
    t.equal((await run('cd /etc/systemd/system && systemd-analyze verify --man=no ./svc-api.service ./svc-unit-*@.service 2>&1 | grep svc')).stdout, '')
    t.match((await svc('service', 'list')).stdout, /^openwebui +down +unit +- /m)
  })

  await t.test('verbs, states and lines of a service are systemd\'s', async t => {
    t.match(await act('start'), { ok: true, active: true, problem: null, unit: OPEN_WEBUI })
    const up = await until('it answers', async () => {
      const row = await state() as { up: boolean }
      return row.up ? row : null
    })
    t.match(up, { managed: true, runs_as: 'unit', stat: { value: '7.7' }, unit_state: { active_state: 'active', sub_state: 'running', unit_file_state: 'disabled', since: /Z$/ } })
    const pid = (await run(`systemctl show -p MainPID --value ${OPEN_WEBUI}`)).stdout
    t.match(await svc('service', 'restart', 'openwebui'), { code: 0 })
    t.not((await run(`systemctl show -p MainPID --value ${OPEN_WEBUI}`)).stdout, pid, 'it is another process')
    t.match(await svc('service', 'enable', 'openwebui'), { code: 0 })
    t.match(await state(), { unit_state: { unit_file_state: 'enabled' } })
    t.equal((await run(`systemctl is-enabled ${OPEN_WEBUI}`)).stdout.trim(), 'enabled')
    t.match(await svc('service', 'disable', 'openwebui'), { code: 0 })
    t.equal((await run(`systemctl is-enabled ${OPEN_WEBUI}`)).stdout.trim(), 'disabled')
    t.match(await svc('service', 'logs', 'openwebui'), { code: 0, stdout: /listening at 3001/ })
    t.match(await svc('service', 'stop', 'openwebui'), { code: 0 })
    t.match(await state(), { up: false, unit_state: { active_state: 'inactive' } })
    t.match(await act('start', 'hindsight'), { ok: true, active: true })
    t.match(await api('/api/install/services/hindsight-api.service/repair', {}), { unit: 'hindsight-api.service', active: true })
    t.match(await asGateway('systemctl restart extra.service'), { code: 0 }, 'what --allow named')
  })

  await t.test('its user can do nothing else', async t => {
    const orders = [
      'start other.service', 'stop systemd-journald.service', 'stop svc-api.service', 'enable other.service', `enable ${OPEN_WEBUI}`,
      'start svc-unit-enable@other.service.service', 'stop svc-unit-enable@svc-openwebui.service.service', 'daemon-reload',
      `kill ${OPEN_WEBUI}`, `set-property --runtime ${OPEN_WEBUI} CPUWeight=1`, 'link /tmp/evil.service', 'reboot'
    ]
    for (const order of orders) t.not((await asGateway(`systemctl ${order}`)).code, 0, order)
    t.not((await run(`systemctl start ${OPEN_WEBUI}`, { user: 'nobody' })).code, 0, 'and no other user what it can')
    t.equal((await run('systemctl is-active other.service')).stdout.trim(), 'inactive')
  })

  await t.test('without the rule it says what is missing', async t => {
    await run('mv /etc/polkit-1/rules.d/50-svc-gateway.rules /run/rule')
    const refused = /may not restart svc-openwebui\.service: `sudo (npx )?svc service install --allow svc-openwebui\.service` allows it/
    const answer = await until('polkit has seen it', async () => {
      const answer = await act('restart') as { ok: boolean }
      return answer.ok ? null : answer
    })
    t.match(answer, { ok: false, problem: 'not_permitted', message: refused })
    t.match(await act('enable'), { ok: false, problem: 'not_permitted' })
    t.match(await svc('service', 'restart', 'openwebui'), { code: 1, stderr: refused })
    await run('mv /run/rule /etc/polkit-1/rules.d/50-svc-gateway.rules')
  })

  await t.test('systemd starts it again when it is killed, and uninstalling takes all of it away', async t => {
    await run('systemctl kill -s KILL --kill-whom=main svc-api')
    await until('it answers again', () => api('/api/health').catch(() => null))
    const files = 'ls /etc/systemd/system /etc/polkit-1/rules.d /etc/sysusers.d'
    t.match((await run(files)).stdout, /50-svc-gateway\.rules[^]*svc-api\.service[^]*svc-unit-disable@\.service/)
    t.match(await svc('service', 'uninstall'), { code: 0 })
    t.notMatch((await run(files)).stdout, /svc-api|svc-unit|gateway\.rules|svc\.conf/)
    t.equal((await run('systemctl is-active svc-api')).stdout.trim(), 'inactive')
    t.match((await run('ls /var/lib/svc')).stdout, /svc\.db/, 'its home stays')
    t.equal((await run('systemctl --failed --no-legend')).stdout, '')
  })

  await t.test('svc uninstall lists exactly what goes: unit, rules, what runs, data and user; units and files of others stay', async t => {
    t.match(await svc('service', 'install', '--allow', 'extra.service'), { code: 0 })
    await until('it answers', () => api('/api/health').catch(() => null))
    await run('systemctl start other.service hindsight-api.service && systemctl enable other.service')
    await run('mkdir -p /etc/systemd/system/svc-api.service.d && printf "[Service]\\nMemoryMax=8G\\n" > /etc/systemd/system/svc-api.service.d/memory.conf && systemctl daemon-reload')
    await run('cat > /root/.bashrc', { input: 'umask 022\nsource <(svc completion bash)\n' })
    // a program that the gateway runs, which is its unit's
    const started = await api('/api/slots', { name: 'kept', type: 'llm', device: 'cpu' })
    t.equal(started.error, undefined, JSON.stringify(started))
    const files = async (): Promise<readonly string[]> => (await run('find /etc/systemd/system /etc/polkit-1/rules.d /etc/sysusers.d /etc/svc /var/lib/svc ! -type d | sort')).stdout.split('\n').filter(path => path !== '')
    const before = await files()
    const dry = JSON.parse((await svc('uninstall', '--purge', '--dry-run', '--json')).stdout) as { things: Array<{ kind: string, name: string }> }
    // the gateway keeps its compiled code a while after its start, whatever else goes on
    const lasting = (paths: readonly string[]): string[] => paths.filter(path => !path.startsWith('/var/lib/svc/.cache/'))
    t.strictSame(lasting(await files()), lasting(before))
    t.equal((await run('systemctl is-active svc-api')).stdout.trim(), 'active', 'a dry run stops nothing')
    const done = await svc('uninstall', '--purge', '--force')
    t.match(done, { code: 0, stdout: /svc-api\.service, which is stopped first\n[^]*Everything is removed\./ }, done.stderr)
    const after = new Set(await files())
    const gone = before.filter(path => !after.has(path))
    for (const path of gone) t.ok(dry.things.some(({ name }) => path.startsWith(name)), `${path} was listed`)
    t.strictSame([...after].map(path => path.split('/').at(-1)).toSorted(), ['extra.service', 'hindsight-api.service', 'other.service', 'other.service', 'svc-openwebui.service'], 'what is left is of others')
    t.equal((await run('systemctl show -p LoadState --value svc-api')).stdout.trim(), 'not-found')
    t.equal((await run('systemctl is-active other.service hindsight-api.service')).stdout, 'active\nactive\n')
    t.not((await run('id svc')).code, 0, 'its user is gone')
    t.equal((await run('pgrep -u svc; cat /root/.bashrc')).stdout, 'umask 022\n')
    t.equal((await run('systemctl --failed --no-legend')).stdout, '')
    t.match(await svc('uninstall', '--purge', '--force'), { code: 0, stdout: /nothing to remove/ })
  })

  await t.test('on macOS it becomes a job of launchd, which runs as who called sudo', async t => {
    const [plist, log] = ['/Library/LaunchDaemons/dev.svc.gateway.plist', '/var/log/svc.log']
    await run('cat > /usr/local/bin/launchctl && chmod +x /usr/local/bin/launchctl', { input: '#!/bin/sh\necho "$*" >> /root/told\n[ ! -e /root/refuses ] || { echo "Bootstrap failed: 5" >&2; exit 1; }\n' })
    const installed = await macSvc('service', 'install')
    t.match(installed, {
      code: 0,
      stdout: `${plist} is written.\nThe gateway runs as a job of launchd and starts with the machine: sudo launchctl print system/dev.svc.gateway\nIts log is ${log}\n`
    }, installed.stderr)
    t.equal((await run('cat /root/told')).stdout, `bootout system/dev.svc.gateway\nbootstrap system ${plist}\n`)
    t.match((await run(`cat ${plist}`)).stdout, /<key>UserName<\/key><string>daemon<[^]*\/opt\/homebrew\/bin:/)
    t.equal((await run(`stat -c %U ${log} /etc/svc /var/lib/svc`)).stdout, 'daemon\ndaemon\ndaemon\n')
    t.match(await macSvc('service', 'install', '--user', 'nobody-here'), { code: 1, stderr: /user nobody-here does not exist on this machine/ })
    await run('touch /root/refuses')
    t.match(await macSvc('service', 'install'), { code: 1, stderr: /launchd rejects .*: Bootstrap failed: 5/ })
    t.match(await macSvc('service', 'uninstall'), { code: 0, stdout: /is removed/ })
    t.not((await run(`ls ${plist}`)).code, 0)
  })
})

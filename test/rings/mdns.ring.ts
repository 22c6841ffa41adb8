import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { root } from '../repository.js'

const run = promisify(execFile)

t.setTimeout(850_000)

const PORT = 8080

/** A machine of its own: network, `/run` and what avahi is told are nobody else's. */
interface Machine {
  readonly run: (command: string, ...args: readonly string[]) => Promise<string>
  readonly start: (command: string, ...args: readonly string[]) => ChildProcess
}

async function machine (t: Test, namespace: string): Promise<Machine> {
  // the process whose namespaces the others enter; it ends with its input
  const holder = spawn('ip', ['netns', 'exec', namespace, 'unshare', '-m', 'sh', '-c',
    'mount -t tmpfs none /run && mkdir -p /run/dbus && mount -t tmpfs none /etc/avahi/services && echo ready && exec cat'], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(async () => {
    holder.stdin.end()
    if (holder.exitCode === null) await once(holder, 'exit')
  })
  await once(holder.stdout, 'data')
  const inside = (command: string, args: readonly string[]): string[] => ['-t', String(holder.pid), '-m', '-n', command, ...args]
  return {
    run: async (command, ...args) => (await run('nsenter', inside(command, args))).stdout,
    start: (command, ...args) => {
      const child = spawn('nsenter', inside(command, args), { stdio: ['ignore', 'pipe', 'inherit'] })
      t.teardown(async () => { await ended(child) })
      return child
    }
  }
}

async function ended (child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

/** Two machines in a network of their own. */
async function network (t: Test): Promise<[Machine, Machine]> {
  const names = ['a', 'b'].map(side => `svc-mdns-${side}-${process.pid}`)
  const links = ['a', 'b'].map(side => `sm${side}${process.pid}`)
  t.teardown(async () => { for (const name of names) await run('ip', ['netns', 'delete', name]).catch(() => undefined) })
  for (const name of names) await run('ip', ['netns', 'add', name])
  await run('ip', ['link', 'add', links[0]!, 'netns', names[0]!, 'type', 'veth', 'peer', 'name', links[1]!, 'netns', names[1]!])
  for (const [i, name] of names.entries()) {
    const ip = async (...args: readonly string[]): Promise<void> => { await run('ip', ['-n', name, ...args]) }
    await ip('addr', 'add', `10.201.0.${i + 1}/24`, 'dev', links[i]!)
    await ip('link', 'set', links[i]!, 'up')
    await ip('link', 'set', 'lo', 'up')
    await ip('route', 'add', 'default', 'via', `10.201.0.${2 - i}`)
  }
  return [await machine(t, names[0]!), await machine(t, names[1]!)]
}

async function until<T> (what: string, look: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const seen = await look()
    if (seen !== null) return seen
    await new Promise(resolve => { setTimeout(resolve, 200) })
  }
}

interface Gateway {
  readonly mdns: (advertise?: boolean) => Promise<Record<string, unknown>>
  readonly stop: () => Promise<void>
}

async function gateway (t: Test, where: Machine, folder: string, name: string): Promise<Gateway> {
  const home = join(folder, name)
  await mkdir(join(home, 'etc/svc'), { recursive: true })
  await writeFile(join(home, 'etc/svc/svc.toml'), '[server]\nhost = "0.0.0.0"\n')
  await writeFile(join(home, 'etc/svc/api.env'), `SVC_HOSTNAME=${name}\n`)
  const child = where.start(process.execPath, join(root, 'dist/cli/svc.js'), 'serve', '--home', home, '--port', String(PORT), '--ready-json')
  await once(child.stdout!, 'data')
  const curl = (...args: readonly string[]): Promise<string> => where.run('curl', '-sS', `http://127.0.0.1:${PORT}/api/services/mdns`, ...args)
  return {
    mdns: async advertise => JSON.parse(await (advertise === undefined ? curl()
      : curl('-H', 'content-type: application/json', '-d', JSON.stringify({ advertise })))) as Record<string, unknown>,
    stop: () => ended(child)
  }
}

async function missing (): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'networks of their own need root'
  for (const command of ['ip', 'nsenter', 'avahi-daemon', 'avahi-browse', 'dbus-daemon', 'curl']) {
    if (await run('sh', ['-c', `PATH=$PATH:/usr/sbin:/sbin command -v ${command}`]).then(() => false, () => true)) return `no ${command} here: test/engines/install-packages.sh mdns`
  }
  return null
}

process.env.PATH = `${process.env.PATH}:/usr/sbin:/sbin`
const why = await missing()

t.test('services are announced in the local network, by avahi or by the gateway, until it stops', { skip: why ?? false }, async t => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-mdns-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [alone, viewer] = await network(t)
  const conf = join(folder, 'avahi.conf')
  await writeFile(conf, '[server]\nhost-name=viewer\nuse-ipv6=no\n[wide-area]\n[publish]\n[reflector]\n[rlimits]\n')
  viewer.start('dbus-daemon', '--system', '--nofork', '--nopidfile', '--print-address')
  await until('the bus', () => viewer.run('ls', '/run/dbus/system_bus_socket').catch(() => null))
  viewer.start('avahi-daemon', '-f', conf, '--no-drop-root', '--no-rlimits', '--no-chroot')
  await until('avahi', () => viewer.run('avahi-browse', '-pt', '_http._tcp').catch(() => null))
  const seen = async (): Promise<string[]> => (await viewer.run('avahi-browse', '-prt', '_http._tcp')).split('\n').filter(line => /^=;(?!lo;).*;IPv4;/.test(line))
  const page = (host: string, ip: string): RegExp => new RegExp(`^=;.*;Open\\\\032WebUI\\\\032on\\\\032${host};.*;${host}\\.local;${ip.replaceAll('.', '\\.')};3001;.*"path=/"`, 'm')

  await t.test('where no avahi runs, the gateway answers', async t => {
    const { mdns, stop } = await gateway(t, alone, folder, 'box')
    t.match(await mdns(), { available: true, advertised: { length: 0 }, hostname: 'box.local' })
    t.strictSame(await seen(), [], 'nothing is announced unasked')
    t.match(await mdns(true), { ok: true, advertised: ['comfyui', 'openwebui'], message: 'the services are announced' })
    const lines = await until('both are seen', async () => { const lines = await seen(); return lines.length < 2 ? null : lines })
    t.match(lines.join('\n'), page('box', '10.201.0.1'))
    t.match(await until('its name', () => viewer.run('avahi-resolve', '-4', '-n', 'box.local').catch(() => null)), /box\.local\s+10\.201\.0\.1/, 'its name is known')
    t.match(await mdns(false), { ok: true, advertised: { length: 0 } })
    await until('both are withdrawn', async () => (await seen()).length === 0 ? true : null)
    t.match(await mdns(true), { ok: true, advertised: ['comfyui', 'openwebui'] }, 'a second time')
    await until('both are seen again', async () => (await seen()).length === 2 ? true : null)
    await stop()
    await until('a gateway that stops says so', async () => (await seen()).length === 0 ? true : null)
    const again = await gateway(t, alone, folder, 'box')
    await until('the next one announces them', async () => (await seen()).length === 2 ? true : null)
    await again.stop()
  })

  await t.test('where avahi runs, it is told by files', async t => {
    await viewer.run('sh', '-c', 'echo "<service-group><name>Printer</name><service><type>_http._tcp</type><port>631</port></service></service-group>" > /etc/avahi/services/printer.service')
    const { mdns, stop } = await gateway(t, viewer, folder, 'viewer')
    t.match(await mdns(true), { ok: true, available: true, advertised: ['comfyui', 'openwebui'] })
    const lines = await until('avahi has read them', async () => { const lines = await seen(); return lines.length < 3 ? null : lines })
    t.match(lines.join('\n'), page('viewer', '10.201.0.2'))
    await stop()
    const [left] = await until('they are withdrawn', async () => { const lines = await seen(); return lines.length > 1 ? null : lines })
    t.match(left, /Printer/, 'what is not ours stays')
  })
  await t.test('an avahi that comes, goes and dies while services are announced takes them over and hands them back', async t => {
    const alsoConf = join(folder, 'alone.conf')
    await writeFile(alsoConf, '[server]\nhost-name=box\nuse-ipv6=no\nenable-dbus=no\n[wide-area]\n[publish]\n[reflector]\n[rlimits]\n')
    const avahi = (): ChildProcess => alone.start('avahi-daemon', '-f', alsoConf, '--no-drop-root', '--no-rlimits', '--no-chroot')
    const files = async (): Promise<string[]> => (await alone.run('ls', '/etc/avahi/services')).split('\n').filter(name => name !== '')
    const ours = ['svc-addon-comfyui.service', 'svc-addon-openwebui.service']
    const filesAre = (wanted: readonly string[]): Promise<true> => until(`files: ${wanted.join()}`, async () => JSON.stringify(await files()) === JSON.stringify(wanted) ? true : null)
    const bothAre = async (): Promise<string> => (await until('both are seen, and nothing else', async () => {
      const lines = (await seen()).filter(line => !line.includes('Printer'))
      return lines.length === 2 ? lines : null
    })).join('\n')
    const { mdns, stop } = await gateway(t, alone, folder, 'box')
    t.match(await mdns(true), { advertised: ['comfyui', 'openwebui'] })
    t.strictSame(await files(), [])
    const first = avahi()
    await filesAre(ours)
    t.match(await bothAre(), page('box', '10.201.0.1'), 'under the same name')
    await ended(first)
    await filesAre([])
    t.match(await bothAre(), page('box', '10.201.0.1'), 'by the gateway again')
    const second = avahi()
    await filesAre(ours)
    second.kill('SIGKILL')
    await filesAre([])
    t.match(await bothAre(), page('box', '10.201.0.1'), 'a daemon that was killed says no goodbye, and leaves its pid')
    avahi()
    await filesAre(ours)
    await stop()
    t.strictSame(await files(), [])
    await until('they are withdrawn', async () => (await seen()).every(line => line.includes('Printer')) ? true : null)
  })
})

import { once } from 'node:events'
import { appendFileSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { watch } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { smallDisk } from '../../mounts.js'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import Driver from 'libsql'
import t, { type Test } from 'tap'
import { hardwareSchema } from '../../../kernel/contract/index.js'
import type { DoctorFacts, PortFacts } from '../../../cli/offline/doctor/facts.js'
import { holdersOf, parseListeners } from '../../../cli/offline/doctor/listeners.js'
import { satisfiesLeast } from '../../../cli/offline/doctor/node-version.js'
import { verdicts, type Check } from '../../../cli/offline/doctor/verdicts.js'
import { createTestGateway } from '../../../kernel/testing/index.js'
import status from '../../../plugins/api/status/index.js'
import { Ledger } from '../../../plugins/services/agent-budgets/ledger.js'
import { migrations } from '../../../plugins/services/board/migrations.js'
import { run } from '../support.js'

const fine: DoctorFacts = {
  platform: 'linux', arch: 'x64', nodeVersion: '22.1.0', nodeLeast: '20.19.0', hasSystemctl: true, user: 'svc',
  folders: [{ path: '/etc/svc', what: 'configuration', problem: null }],
  driver: 'auto', engines: [{ source: 'DOCKER_HOST', problem: null, name: 'Docker 27' }],
  hasProcessEngine: true, runtimes: null, cluster: null, hardware: hardwareSchema.parse({}), nodes: [],
  disk: { path: '/var/lib', freeBytes: 100e9, leastGb: 20 },
  ports: [{ port: 8080, use: 'the gateway', isSlot: false, holder: null, isOwn: false }],
  files: [{ file: 'svc.toml', status: 'ok', problems: [] }],
  plugins: [],
  gateway: { url: 'http://x', status: 'ok', problem: null },
  neighbour: null,
  images: { present: ['cpu'], absent: ['rocm'] }
}
const held = (more: Partial<PortFacts>): PortFacts => ({ ...fine.ports[0]!, holder: { pid: 7, command: 'nginx' }, ...more })
const amd = hardwareSchema.parse({ gpus: [{ vendor: 'amd', name: 'Radeon', vram_mb: 16384 }] })
const npu = hardwareSchema.parse({ npu: { present: true, name: 'XDNA', accel_path: '/dev/accel/accel0' } })
const node = (path: string, canOpen: boolean) => ({ path, canOpen, group: 'render' })
const noEngine = [{ source: 'the Docker socket', problem: 'does not exist (/x)', name: '' }]

t.test('doctor judges each fact it gathered, and says what to do about it', t => {
  t.ok(verdicts(fine).every(({ status }) => status === 'ok'), JSON.stringify(verdicts(fine)))
  const cases: ReadonlyArray<readonly [id: string, change: Partial<DoctorFacts>, status: Check['status'], message: RegExp]> = [
    ['system', { platform: 'darwin' }, 'warn', /not Linux/],
    ['arch', { arch: 'arm64' }, 'warn', /x86_64 only/],
    ['arch', { arch: 'ia32' }, 'fail', /no engines for ia32/],
    ['node', { nodeVersion: '20.18.3' }, 'fail', /20\.18\.3 is too old/],
    ['systemd', { hasSystemctl: false }, 'warn', /no systemctl/],
    ['folders', { folders: [{ path: '/etc/svc', what: 'configuration', problem: 'cannot be written by this user' }] }, 'fail', /\/etc\/svc \(configuration\) cannot be written/],
    ['engine', { engines: noEngine }, 'warn', /child processes: the Docker socket does not exist/],
    ['engine', { engines: noEngine, hasProcessEngine: false }, 'warn', /^no container engine answers, and neither llama-server nor the embedded engine/],
    ['engine', { engines: [], driver: 'process', hasProcessEngine: false }, 'warn', /neither llama-server nor the embedded engine/],
    ['engine', { engines: noEngine, driver: 'docker' }, 'fail', /driver is docker, and none answers/],
    ['engine', { engines: [], driver: 'process' }, 'ok', /child processes/],
    ['engine', { engines: [...noEngine, ...fine.engines] }, 'ok', /^Docker 27 \(DOCKER_HOST\)$/],
    ['runtimes', { runtimes: [{ name: 'docker', default: true, info: { version: '27' } }, { name: 'shed', default: false }] }, 'ok', /^docker 27, shed \(not needed yet\)$/],
    ['cluster', { cluster: { place: 'https://c', namespace: 'svc', version: 'v1.37.2', problems: [], doubts: [], gpus: { 'nvidia.com/gpu': 4 } } }, 'ok', /^Kubernetes v1\.37\.2 at https:\/\/c, namespace 'svc'; GPUs: 4 nvidia\.com\/gpu$/],
    ['cluster', { cluster: { place: 'https://c', namespace: 'svc', version: 'v1.37.2', problems: ['the account may not patch pods'], doubts: [], gpus: null } }, 'fail', /may not patch pods/],
    ['cluster', { cluster: { place: 'https://c', namespace: 'svc', version: 'v1.37.2', problems: [], doubts: ['no node has amd.com/gpu'], gpus: {} } }, 'warn', /GPUs: none; no node has/],
    ['cluster', { cluster: { place: 'no cluster is configured any more', namespace: '', version: null, problems: [], doubts: ['pods may be left'], gpus: null } }, 'warn', /configured any more; pods may be left/],
    ['runtimes', { runtimes: [{ name: 'shed', default: false, problem: 'it is locked' }] }, 'warn', /^shed \(it is locked\)$/],
    ['gpu', { hardware: null }, 'warn', /could not be probed/],
    ['gpu', { hardware: amd, nodes: [node('/dev/dri/renderD128', false), node('/dev/kfd', true)] }, 'warn', /renderD128 cannot be opened/],
    ['gpu', { hardware: amd, nodes: [node('/dev/dri/renderD128', true)] }, 'warn', /no \/dev\/kfd/],
    ['gpu', { hardware: amd, nodes: [node('/dev/dri/renderD128', true), node('/dev/kfd', true), node('/dev/dri/card0', false)] }, 'ok', /^Radeon \(16 GiB\)$/],
    ['npu', { hardware: npu, nodes: [] }, 'warn', /no device node/],
    ['npu', { hardware: npu, nodes: [node('/dev/accel/accel0', false)] }, 'warn', /cannot be opened/],
    ['npu', { hardware: npu, nodes: [node('/dev/accel/accel0', true)] }, 'ok', /XDNA at/],
    ['disk', { disk: { path: '/x', freeBytes: 1e9, leastGb: 20 } }, 'fail', /1\.0 GB free at \/x, less than 20 GB/],
    ['disk', { disk: { path: '/x', freeBytes: null, leastGb: 20 } }, 'warn', /cannot be determined/],
    ['ports', { ports: [held({})] }, 'fail', /^8080 \(the gateway\) is held by nginx \(process 7\)$/],
    ['ports', { ports: [held({ holder: { pid: null, command: '' }, use: null })] }, 'fail', /^8080 is held by another process$/],
    ['ports', { ports: [held({})], neighbour: { port: 8080, home: '/x' } }, 'warn', /^8080 .*another home \(\/x\) answers there$/],
    ['ports', { ports: [held({})], neighbour: { port: 9090, home: null } }, 'fail', /^8080 .* is held by nginx/],
    ['ports', { ports: [held({ isOwn: true })] }, 'ok', /free, or in use by svc/],
    ['ports', { ports: [held({ isSlot: true, use: 'slot agent' })] }, 'warn', /slot agent/],
    ['config', { files: [{ file: 'svc.toml', status: 'broken', problems: [] }] }, 'fail', /not valid: svc\.toml/],
    ['plugins', { plugins: [{ name: 'foo', problem: '0.1.0 active, 0.2.0 waits for a restart' }] }, 'warn', /^foo: 0\.1\.0 active, 0\.2\.0 waits/],
    ['gateway', { gateway: { url: 'http://x', status: 'degraded', problem: null } }, 'warn', /degraded/],
    ['gateway', { gateway: { url: 'http://x', status: null, problem: 'no gateway answers' } }, 'warn', /no gateway answers/],
    ['images', { images: null }, 'ok', /no container engine/]
  ]
  for (const [id, change, status, message] of cases) {
    const all = verdicts({ ...fine, ...change })
    const check = all.find(other => other.id === id)!
    t.equal(check.status, status, `${id}: ${check.message}`)
    t.match(check.message, message)
    if (status === 'fail') t.not(check.next, null, `${id} says what to do`)
    t.equal(all.length, verdicts(fine).length, 'no check keeps another from its turn')
  }
  t.end()
})

t.test('versions of Node are compared number by number', t => {
  for (const [version, least, expected] of [['20.19.0', '20.19.0', true], ['20.9.9', '20.19.0', false], ['24.0.0', '20.19', true], ['18.20.1', '20', false]] as const) {
    t.equal(satisfiesLeast(version, least), expected, `${version} for ${least}`)
  }
  t.end()
})

async function listening (t: Test): Promise<{ readonly port: number, readonly server: Server }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  return { port: (server.address() as AddressInfo).port, server }
}

t.test('the process that holds a port is found', async t => {
  t.same(parseListeners([
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0000000000000000 100 0 0 10 0',
    '   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0000000000000000 100 0 0 10 0',
    '   2: 00000000000000000000000001000000:2328 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0 0 10 0'
  ].join('\n')), [{ port: 8080, inode: '4242' }, { port: 9000, inode: '77' }])
  t.equal(await holdersOf([1], '/nowhere'), null)
  if (process.platform !== 'linux') return
  const { port } = await listening(t)
  const holders = await holdersOf([port, 1])
  t.match(holders!.get(port), { pid: process.pid, command: String })
  t.equal(holders!.has(1), false)
})

t.test('the doctor looks at everything and ends with 1 when something fails', async t => {
  const { port } = await listening(t)
  const home = t.testdir({ etc: { svc: { 'svc.toml': `[server]\nport = ${port}\n[slots]\nnonsense = 1\n[runtime]\ndriver = "process"\n` } } })
  const withoutGateway = ['--url', 'http://127.0.0.1:9']
  const env = { SVC_DISK_MIN_GB: '0' }
  const sick = await run(['doctor', '--home', home, ...withoutGateway], { env })
  t.equal(sick.code, 1)
  t.match(sick.stdout, /✗ config +not valid: svc\.toml\n +`svc config validate` says what is wrong\.\n/)
  t.match(sick.stdout, /! gateway +no gateway answers at http:\/\/127\.0\.0\.1:9/)
  // the file is not valid, so the port is the default one, which somebody may hold
  t.match(sick.stderr, /^Error: failed: (ports, )?config$/m)
  const taken = await run(['doctor', '--plain', '--home', home, '--ports', `${port} 1`, ...withoutGateway], { env: { ...env, npm_command: 'exec' } })
  t.match(taken.stdout, new RegExp(`FAIL ports +${port} is held by .* \\(process ${process.pid}\\)`))
  t.match(taken.stdout, /OK {3}node /)
  t.match(taken.stdout, /`npx svc config validate` says what is wrong/, 'as it is called here')
  const json = await run(['doctor', '--json', '--home', home, ...withoutGateway], { env })
  t.equal(json.code, 1)
  const { ok, checks } = JSON.parse(json.stdout) as { ok: boolean, checks: Check[] }
  t.equal(ok, false)
  t.same(checks.map(({ id }) => id), verdicts(fine).map(({ id }) => id))
  for (const ports of ['http', '0', '70000', '']) t.match(await run(['doctor', '--ports', ports]), { code: 2, stderr: /ports from 1 to 65535/ })
})

t.test('a gateway of the home is asked, and its port is its own', async t => {
  const gateway = await createTestGateway({
    plugins: [status], files: { 'etc/svc/svc.toml': '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n' }
  })
  t.teardown(() => gateway.close())
  const port = new URL(gateway.baseUrl).port
  const { code, stdout, stderr } = await run(['doctor', '--home', gateway.home, '--ports', port], { env: { SVC_DISK_MIN_GB: '0' } })
  t.equal(code, 0, stderr)
  t.match(stdout, `gateway  answers at ${gateway.baseUrl}`)
  t.match(stdout, `ports    ${port}: free, or in use by svc`)
})

t.test('a store of many gigabytes is not copied to try an upgrade, and a disk without room for the databases is said; no copy is left', async t => {
  const disk = smallDisk(t, 96)
  if (disk === null) return void t.comment('SKIPPED: nothing may be mounted here')
  const home = join(disk, 'home')
  const state = join(home, 'var/lib/svc')
  for (const folder of ['etc/svc', 'var/lib/svc/models', 'var/lib/svc/plugin-state/board']) mkdirSync(join(home, folder), { recursive: true })
  writeFileSync(join(home, 'etc/svc/svc.toml'), '')
  // it has no blocks on the disk, and a copy of it would have all of them
  for (const place of ['models/big.gguf', 'plugin-state/board/attachment']) {
    writeFileSync(join(state, place), '')
    truncateSync(join(state, place), 8 * 1024 ** 3)
  }
  const board = new Driver(join(state, 'plugin-state/board/board.db'))
  board.exec('CREATE TABLE filler (text); INSERT INTO filler VALUES (zeroblob(8 * 1024 * 1024))')
  board.close()
  const tried = async (): Promise<{ code: number, stdout: string, left: readonly string[] }> => {
    const { code, stdout } = await run(['doctor', 'upgrade', '--json', '--home', home])
    return { code, stdout, left: readdirSync(state).filter(name => name.startsWith('upgrade-')) }
  }
  const fine = await tried()
  t.match(fine, { code: 0, left: { length: 0 } }, fine.stdout)
  t.match(JSON.parse(fine.stdout), { ok: true, databases: [{ file: 'plugin-state/board/board.db', ok: true }] })
  const filler = join(disk, 'filler')
  writeFileSync(filler, Buffer.alloc(40 * 1024 ** 2))
  const tight = await tried()
  t.match(JSON.parse(tight.stdout), { ok: false, databases: [{ ok: false, message: /the disk has no room to try it on a copy of .*board\.db/ }] })
  t.match(tight, { code: 1, left: { length: 0 } })
  // down to nothing: not even the configuration can be copied, which is larger than what a deleted copy gives back late
  writeFileSync(join(home, 'etc/svc/api.env'), 'x'.repeat(20 * 1024 ** 2))
  try {
    for (;;) appendFileSync(filler, Buffer.alloc(64 * 1024))
  } catch (error) {
    t.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
  }
  const full = await run(['doctor', 'upgrade', '--json', '--home', home])
  t.match(full, { code: 1, stdout: /^$/, stderr: /no space left|ENOSPC/ })
  t.strictSame(readdirSync(state).filter(name => name.startsWith('upgrade-')), [])
})

t.test('what an upgrade would do to the databases of plugins is tried on copies, and one that cannot be read stops it', async t => {
  const home = t.testdir({ etc: { svc: { 'svc.toml': '' } } })
  const state = join(home, 'var/lib/svc')
  const [board, ledger] = [join(state, 'plugin-state/board/board.db'), join(state, 'plugin-state/agent-budgets/ledger.db')]
  const memory = join(state, 'memory/memory.db')
  for (const path of [board, memory]) mkdirSync(dirname(path), { recursive: true })
  // as the first release left it
  const early = new Driver(board)
  early.exec(migrations[0]!)
  early.exec('PRAGMA user_version = 1')
  early.close();
  (await Ledger.open(ledger)).close()
  const before = readFileSync(board)
  const tried = async (): Promise<{ code: number, stdout: string, told: Record<string, unknown> }> => {
    const { code, stdout } = await run(['doctor', 'upgrade', '--json', '--home', home])
    const { databases } = JSON.parse(stdout) as { databases: Array<{ file: string }> }
    return { code, stdout, told: Object.fromEntries(databases.map(each => [each.file, each])) }
  }
  const copy = (async () => {
    for await (const { filename } of watch(state)) if (filename?.startsWith('upgrade-') === true) return filename
  })()
  const fine = await tried()
  t.equal(fine.code, 0, fine.stdout)
  t.match(await copy, `upgrade-${process.pid}-`, 'a gateway that starts meanwhile sees whose copy it is')
  t.match(fine.told, {
    'plugin-state/board/board.db': { ok: true, changed: true },
    'plugin-state/agent-budgets/ledger.db': { ok: true, changed: false }
  })
  t.ok(readFileSync(board).equals(before), 'the database itself is only read')
  writeFileSync(memory, 'no database at all, and longer than a header of one'.repeat(20))
  const sick = await tried()
  t.equal(sick.code, 1)
  t.match(sick.told['memory/memory.db'], { ok: false, message: /not a database/ })
  t.match((await run(['doctor', 'upgrade', '--home', home])).stdout, /✓ database of board is migrated\n[^]*✗ database of memory-engine .*not a database/)
  t.strictSame(readdirSync(state).filter(name => name.startsWith('upgrade-')), [], 'no copy is left')
})

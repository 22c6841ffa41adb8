import { createHash, generateKeyPairSync, verify } from 'node:crypto'
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { chatStream } from '../../kernel/testing/index.js'
import { treeFiles, writeRelease } from '../bundle/release.js'
import { channelServer, send, type ChannelServer } from '../plugins/services/updates/channel-server.js'
import { freePort } from '../ports.js'
import { shippedProgram } from '../program.js'
import { root } from '../repository.js'
import { startNode } from '../template/shell.js'
import { fakeUpstream, okAnswer, upstreamTable } from '../wire/fake-upstream.js'
import { run, type Finished } from '../cli/support.js'

const execute = promisify(execFile)
t.setTimeout(1_800_000)

const LAUNCHER = 'dist/lib/plugins/services/updates/launcher/launch.js'

interface Job { readonly state: string, readonly phase: string, readonly error: string | null }

interface Installed {
  readonly url: string
  readonly home: string
  readonly base: string
  /** Kills what the supervisor started, which then starts it again. */
  readonly kill: () => void
  readonly api: (path: string, init?: RequestInit) => Promise<Record<string, unknown>>
  /** Waits for a job as long as the test waits for it, over restarts. */
  readonly until: (id: string, fits: (job: Job) => boolean) => Promise<Job>
  readonly runs: () => Promise<string>
  readonly svc: (...args: string[]) => Promise<Finished>
}

/** A release in a tree, started by the launcher under a supervisor that starts it again whenever it ends. */
async function installed (
  t: Test, channel: ChannelServer, key: { readonly publicKey: string }, files: Readonly<Record<string, string>>
): Promise<Installed> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-tree-'))
  const [base, home] = [join(folder, 'releases'), join(folder, 'home')]
  const tree = join(base, 'svc-0.9.0')
  cpSync(dirname(shippedProgram()), join(tree, 'dist/lib'), { recursive: true, filter: path => !path.endsWith('.map') })
  const about = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as object
  writeFileSync(join(tree, 'package.json'), JSON.stringify({ ...about, version: '0.9.0' }))
  writeFileSync(join(tree, 'release.json'), JSON.stringify({ releases_url: channel.url, public_key: 'release.pem' }))
  writeFileSync(join(tree, 'release.pem'), key.publicKey)
  // beside the trees, where every release finds them: the archives of the test are small
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  symlinkSync('svc-0.9.0', join(base, 'current'))
  cpSync(join(tree, LAUNCHER), join(base, 'launch.mjs'))
  mkdirSync(join(home, 'etc/svc'), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, 'etc/svc', name), text)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const foreign = /^(SVC_|NODE_OPTIONS|npm_|DOCKER_)/
  const env = { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name))), SVC_SUPERVISED: '1' }
  let [child, over] = [null as ChildProcess | null, false]
  const ended = (async () => {
    while (!over) {
      child = spawn(process.execPath, [join(base, 'launch.mjs'), 'serve', '--home', home, '--port', String(port), '--ready-json'], { env, cwd: folder, stdio: 'ignore' })
      await once(child, 'exit')
    }
  })()
  t.teardown(async () => {
    over = true
    child?.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  const api: Installed['api'] = async (path, init) => await (await fetch(`${url}${path}`, init)).json() as Record<string, unknown>
  const look = async <T>(ask: () => Promise<T>, fits: (value: T) => boolean): Promise<T> => {
    for (;;) {
      const value = await ask().catch(() => null)
      if (value !== null && fits(value)) return value
      await wait(25)
    }
  }
  await look(() => api('/api/updates/state'), () => true)
  return {
    url, home, base, api,
    kill: () => { child?.kill('SIGKILL') },
    until: (id, fits) => look(async () => await api(`/api/updates/status/${id}`) as unknown as Job, fits),
    runs: async () => ((await api('/api/updates/state')).svc as { readonly current: string }).current,
    svc: (...args) => run([...args, '--url', url])
  }
}

/** Empty for a process that has ended. */
function commandLine (pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** A release that is nothing but what the test says it does. */
function fakeProgram (
  serve: string, database: object = { ok: true, from: 4, to: 4, message: null }, databases: readonly object[] = []
): string {
  return `#!/usr/bin/env node
const [, , command] = process.argv
if (command === 'doctor') console.log(JSON.stringify({ version: 'x', config: { ok: true, problems: [] }, database: ${JSON.stringify(database)}, databases: ${JSON.stringify(databases)}, plugins: [] }))
else { ${serve} }
`
}

t.test('a release is taken up over kills and under load, gone back from, and returned from when it does not stay', async t => {
  const { publicKey, privateKey: key } = generateKeyPairSync('ec', {
    namedCurve: 'P-256', publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' }
  })
  const channel = await channelServer(t)
  const upstream = await fakeUpstream(t)
  const out = mkdtempSync(join(tmpdir(), 'svc-releases-'))
  t.teardown(() => rmSync(out, { recursive: true }))
  const release = async (version: string, files: Parameters<typeof writeRelease>[0]['files'], fields: object = {}): Promise<void> => {
    const about = { 'package.json': JSON.stringify({ name: 'svc-gateway', version, type: 'module' }) }
    const pins = { 'release.json': JSON.stringify({ releases_url: channel.url, public_key: 'release.pem' }), 'release.pem': publicKey }
    await writeRelease({ out, channel: 'stable', version, files: { ...about, ...pins, ...files }, key, fields: { ...fields } })
    for (const name of ['stable.json', `stable-${version}.json`, `svc-${version}.tar.gz`, `svc-${version}.bundle.json`]) {
      channel.files.set(`/${name}`, readFileSync(join(out, name)))
    }
  }
  const settings = '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n[plugins.config.updates]\nconfirm_s = 0.5\nanswer_within_s = 120\n'
  const gateway = await installed(t, channel, { publicKey }, {
    'upstreams.toml': upstreamTable('far', upstream.url),
    // long enough to be killed in
    'svc.toml': settings.replace('confirm_s = 0.5', 'confirm_s = 60')
  })
  const apply = async (): Promise<string> => (await gateway.api('/api/updates/apply', {
    method: 'POST', body: '{}', headers: { 'content-type': 'application/json' }
  })).id as string

  // killed in each of its phases: held by the channel where it asks that, else as soon as there is something of it
  await release('1.0.0', treeFiles('1.0.0'))
  const archive = channel.files.get('/svc-1.0.0.tar.gz') as Buffer
  const ranges: Array<string | undefined> = []
  channel.files.set('/svc-1.0.0.tar.gz', (request, response) => {
    ranges.push(request.headers.range)
    if (ranges.length > 1) return send(archive, request, response)
    response.writeHead(200, { 'content-length': archive.length, 'etag': '"one"' }).write(archive.subarray(0, 500_000))
  })
  /** Never answers the first request for a file; resolves with it. */
  const held = (path: string): Promise<void> => new Promise(resolve => {
    const whole = channel.files.get(path) as Buffer
    channel.files.set(path, (request, response) => {
      channel.files.set(path, (...next) => send(whole, ...next))
      request.resume()
      response.on('error', () => {})
      resolve()
    })
  })
  const appears = async (...paths: readonly string[]): Promise<void> => {
    while (!paths.some(path => existsSync(path))) await wait(1)
  }
  const [checking, verifying] = [held('/stable.json'), held('/svc-1.0.0.bundle.json')]
  const first = await apply()
  await checking
  gateway.kill()
  const part = join(gateway.home, 'var/lib/svc/cache/1.0.0/archive.part')
  while ((statSync(part, { throwIfNoEntry: false })?.size ?? 0) < 500_000) await wait(10)
  gateway.kill()
  await verifying
  gateway.kill()
  // it may be whole before anybody looks
  await appears(join(gateway.base, 'svc-1.0.0.new'), join(gateway.base, 'svc-1.0.0'))
  gateway.kill()
  await gateway.until(first, ({ phase }) => phase === 'trying')
  gateway.kill()
  await appears(join(gateway.base, 'switch.json'))
  gateway.kill()
  await gateway.until(first, ({ phase }) => phase === 'confirming')
  writeFileSync(join(gateway.home, 'etc/svc/svc.toml'), settings)
  gateway.kill()
  t.match(await gateway.until(first, ({ state }) => state === 'applied' || state === 'failed'), { state: 'applied', error: null, restarted: true })
  t.strictSame(ranges.slice(0, 2), [undefined, 'bytes=500000-'], 'the download went on where it was')
  t.equal(await gateway.runs(), '1.0.0')
  t.equal(readlinkSync(join(gateway.base, 'current')), 'svc-1.0.0')
  const current = join(gateway.base, 'current/dist/lib/svc.cjs')
  t.equal((await execute(process.execPath, [current, '--version'])).stdout, 'svc 1.0.0\n', 'its command line is of the same release')
  const leftIn = (folder: string, pattern: RegExp): string[] => readdirSync(folder).filter(name => pattern.test(name))
  const clean = async (): Promise<void> => {
    // what says that there is something to do goes last
    while (existsSync(join(gateway.base, 'switch.json'))) await wait(10)
    t.strictSame(readdirSync(gateway.base).toSorted(), ['current', 'launch.mjs', 'svc-0.9.0', 'svc-1.0.0'], 'nothing is left over beside the trees')
    t.strictSame(leftIn(join(gateway.home, 'var/lib/svc'), /^upgrade-/), [], 'nor a copy of the home')
    t.strictSame(leftIn(join(gateway.home, 'var/lib/svc/cache'), /./), [], 'nor an archive')
  }
  await clean()
  t.equal(readFileSync(join(gateway.home, 'var/lib/svc/svc.previous'), 'utf8').trim(), join(gateway.base, 'svc-0.9.0'))
  t.match(await gateway.svc('update'), { code: 0, stdout: /Nothing to apply: 1\.0\.0 runs/ })

  // under load: a stream that runs ends whole, and whatever else is asked has an outcome
  const ask = (stream: boolean): Promise<Response> => fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'far/gpt-9', stream, messages: [{ role: 'user', content: 'hi' }] })
  })
  const words = Array.from({ length: 60 }, (_, i) => `w${i} `)
  upstream.play({ headers: { 'content-type': 'text/event-stream' }, chunks: chatStream(words), everyMs: 100 }, okAnswer)
  const stream = await ask(true)
  const outcomes: Array<Promise<string>> = []
  const load = setInterval(() => {
    outcomes.push(ask(false).then(async answer => `${answer.status} ${(await answer.text()).length > 0}`, () => 'no connection'))
  }, 100)
  const [back, text] = await Promise.all([gateway.svc('update', '--rollback'), stream.text()])
  clearInterval(load)
  t.match(text, /w0 [^]*w59 [^]*data: \[DONE\]/, 'the stream was let end')
  const seen = new Set(await Promise.all(outcomes))
  t.ok(seen.has('200 true'))
  t.strictSame([...seen].filter(outcome => !['200 true', '503 true', 'no connection'].includes(outcome)), [], 'no other outcome')
  t.match(back, { code: 0, stdout: /^0\.9\.0 runs\.$/m }, back.stderr)
  t.equal(await gateway.runs(), '0.9.0')
  const forth = await gateway.svc('update', '--rollback')
  t.match(forth, { code: 0, stdout: /^1\.0\.0 runs\.$/m }, forth.stderr)
  t.equal(await gateway.runs(), '1.0.0')

  // releases that do not stay: one that ends at once, one after ten seconds, one that damages what it migrates, one that hangs
  const state = join(gateway.home, 'var/lib/svc')
  const board = 'plugin-state/board/board.db'
  const task = await gateway.svc('board', 'add', 'kept over a return')
  t.equal(task.code, 0, task.stderr)
  const damage = [join(state, 'svc.db'), join(state, board)].map(file => `require('node:fs').writeFileSync(${JSON.stringify(file)}, 'damaged');`)
  const migrated = { ok: true, from: 4, to: 5, message: null }
  const boardToo = [{ plugin: 'board', file: board, ok: true, changed: true, message: null }]
  const cases: ReadonlyArray<readonly [version: string, program: string, why: RegExp]> = [
    ['1.1.0', fakeProgram('process.exit(3)'), /svc-1\.1\.0 was started and did not stay: it ended with exit code 3; svc-1\.0\.0 runs again/],
    ['1.1.1', fakeProgram('setTimeout(() => process.exit(9), 10_000)'), /it ended with exit code 9/],
    ['1.2.0', fakeProgram(`${damage.join(' ')} setTimeout(() => process.exit(7), 300)`, migrated, boardToo), /it ended with exit code 7/],
    ['1.2.1', fakeProgram('for (;;) {}'), /it did not answer within 3 s/],
    ['1.3.0', fakeProgram('', { ok: false, from: 4, to: null, message: 'no such column' }), /cannot take over the state database: no such column/],
    ['1.3.1', fakeProgram('', undefined, [{ ...boardToo[0], ok: false, message: 'no such lane' }]), /cannot take over the database of board: no such lane/]
  ]
  for (const [version, program, why] of cases) {
    // from the next start on, which is when the one before this returns
    if (version === '1.1.1') writeFileSync(join(gateway.home, 'etc/svc/svc.toml'), settings.replace('answer_within_s = 120', 'answer_within_s = 30'))
    if (version === '1.2.0') writeFileSync(join(gateway.home, 'etc/svc/svc.toml'), settings.replace('answer_within_s = 120', 'answer_within_s = 3'))
    await release(version, { 'dist/lib/svc.cjs': program, 'dist/lib/package.json': '{"type":"commonjs"}' })
    const failed = await gateway.svc('update')
    t.match(failed, { code: 1, stderr: why }, failed.stderr)
    t.equal(await gateway.runs(), '1.0.0', `${version} did not stay`)
    t.equal(readlinkSync(join(gateway.base, 'current')), 'svc-1.0.0')
    await clean()
  }
  const told = JSON.stringify(await gateway.api('/api/activity?limit=200&action=updates.*'))
  t.equal(told.match(/"updates\.return"/g)?.length, 4, 'each return is told')
  t.match(told, /"updates\.rollback"/, 'and the database is the one from before the damage')
  t.match((await gateway.svc('board', 'list')).stdout, /kept over a return/, 'that of the board, too')

  // a trial that is killed, and one that hangs while its updater is killed: neither it nor its copy of the home stays
  const [hangs, tried] = [join(gateway.home, 'hangs'), join(gateway.home, 'tried')]
  const hanging = `if (require('node:fs').existsSync(${JSON.stringify(hangs)})) {
  const { mkdirSync, writeFileSync } = require('node:fs')
  const copy = ${JSON.stringify(state)} + '/upgrade-' + process.pid + '-aB3dE6'
  mkdirSync(copy)
  writeFileSync(copy + '/api.env', 'HF_TOKEN=x')
  writeFileSync(${JSON.stringify(tried)}, process.pid + '\\n')
  for (;;) {}
}
`
  const trialPid = async (): Promise<number> => {
    for (;;) {
      const text = existsSync(tried) ? readFileSync(tried, 'utf8') : ''
      if (text.endsWith('\n')) {
        rmSync(tried)
        return Number(text)
      }
      await wait(10)
    }
  }
  writeFileSync(join(gateway.home, 'etc/svc/svc.toml'), settings)
  await release('1.4.0', { 'dist/lib/svc.cjs': fakeProgram('process.exit(3)').replace('if (command', `${hanging}if (command`), 'dist/lib/package.json': '{"type":"commonjs"}' })
  writeFileSync(hangs, '')
  const killed = await apply()
  process.kill(await trialPid(), 'SIGKILL')
  t.match(await gateway.until(killed, ({ state }) => state === 'failed'), { error: /svc-1\.4\.0 does not run on this machine/ })
  await clean()
  const cut = await apply()
  const orphan = await trialPid()
  rmSync(hangs)
  gateway.kill()
  t.match(await gateway.until(cut, ({ state }) => state === 'failed'), { error: /did not stay: it ended with exit code 3/ }, 'the next gateway tries it again')
  t.equal(commandLine(orphan), '', 'the trial of the one before is ended')
  await clean()
  await release('1.5.0', treeFiles('1.5.0'))
  const next = await gateway.svc('update')
  t.match(next, { code: 0 }, next.stderr)
  t.equal(await gateway.runs(), '1.5.0', 'the next update works')
})

t.test('what npm run release makes runs by itself, and is the release that its channel, its digest and its signature say', async t => {
  const out = mkdtempSync(join(tmpdir(), 'svc-made-'))
  t.teardown(() => rmSync(out, { recursive: true }))
  const { publicKey, privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256', publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' }
  })
  const [key, pub] = [join(out, 'key.pem'), join(out, 'key.pub')]
  writeFileSync(key, privateKey)
  writeFileSync(pub, publicKey)
  const made = await execute(process.execPath, [
    join(root, 'dist/test/bundle/release.js'), '--out', out, '--version', '7.0.0', '--key', key, '--public-key', pub,
    '--releases-url', 'https://releases.example/svc'
  ])
  t.match(made.stdout, /^svc 7\.0\.0 for stable is in /)
  const archive = readFileSync(join(out, 'svc-7.0.0.tar.gz'))
  t.match(JSON.parse(readFileSync(join(out, 'stable.json'), 'utf8')), {
    _schema: 'svc.releases.v1', version: '7.0.0', channel: 'stable', url: 'svc-7.0.0.tar.gz', bundle_url: 'svc-7.0.0.bundle.json',
    digest_sha256: createHash('sha256').update(archive).digest('hex'), size: archive.length
  })
  const { messageSignature: { signature } } = JSON.parse(readFileSync(join(out, 'svc-7.0.0.bundle.json'), 'utf8')) as { messageSignature: { signature: string } }
  t.ok(verify('sha256', archive, publicKey, Buffer.from(signature, 'base64')), 'signed by the key')
  await execute('tar', ['-xzf', join(out, 'svc-7.0.0.tar.gz'), '-C', out])
  const tree = join(out, 'svc-7.0.0')
  t.match(JSON.parse(readFileSync(join(tree, 'release.json'), 'utf8')), { releases_url: 'https://releases.example/svc', public_key: 'release.pem' })
  const svc = join(tree, 'dist/lib/svc.cjs')
  t.equal((await execute(process.execPath, [svc, '--version'])).stdout, 'svc 7.0.0\n')
  const gateway = await startNode(t, [svc, 'serve', '--home', join(out, 'home'), '--port', '0', '--ready-json'], { PATH: process.env.PATH!, HOME: out })
  const { url } = JSON.parse(gateway.firstLine) as { url: string }
  const get = async (path: string): Promise<unknown> => await (await fetch(`${url}${path}`)).json()
  t.match(await get('/api/status'), { status: 'ok' }, 'with all that it needs, far from a checkout')
  t.match(await get('/api/updates/state'), { svc: { current: '7.0.0', channel: 'stable' } })
  t.match(await get('/api/openapi.json'), { info: { version: '7.0.0' } })
  t.equal(await gateway.end('SIGTERM'), 0)
})

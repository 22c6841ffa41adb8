import { once } from 'node:events'
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { spawnSvc, type SpawnedSvc } from '../../../cli/support.js'
import { ggufFile } from '../../../kernel/models/gguf-file.js'
import { FakeHub } from '../hub/fake-hub.js'
import { pullGateway } from './support.js'

const KILLS = 3
const parts = ['big-00001-of-00002.gguf', 'big-00002-of-00002.gguf'].map((name, i) => [name, ggufFile({ weights: 6_000_000 + i * 4000 })] as const)
const total = parts.reduce((sum, [, bytes]) => sum + bytes.length, 0)

/** A whole gateway in a process of its own, as an operator runs it. */
async function serve (home: string): Promise<SpawnedSvc & { readonly url: string }> {
  const svc = spawnSvc(['serve', '--home', home, '--port', '0', '--ready-json', '--log-level', 'warn'])
  const { url } = JSON.parse(await svc.firstLine) as { url: string }
  return { ...svc, url }
}

t.test('a gateway that is killed in the middle of a pull, again and again', async t => {
  const hub = await FakeHub.start(t)
  hub.add('org/big', { files: Object.fromEntries(parts) })
  const home = t.testdir()
  mkdirSync(join(home, 'etc/svc'), { recursive: true })
  writeFileSync(join(home, 'etc/svc/svc.toml'), '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n')
  writeFileSync(join(home, 'etc/svc/api.env'), `HF_ENDPOINT="${hub.url}"\nno_proxy="*"\n`)
  const store = join(home, 'var/lib/svc/models')
  const points = Array.from({ length: KILLS }, (_, i) => Math.floor((i + 0.1 + Math.random() * 0.8) / (KILLS + 1) * total))
  t.comment(`to be killed after ${points.join(', ')} of ${total} bytes`)
  hub.pace = { chunk: 32 * 1024, ms: 1 }

  let svc = await serve(home)
  t.teardown(() => svc.child.kill('SIGKILL'))
  const started = await fetch(`${svc.url}/api/models/big/pull`, {
    method: 'POST', body: JSON.stringify({ hf_repo: 'org/big', hf_filename: parts[0]![0] }), headers: { 'content-type': 'application/json' }
  })
  t.equal(started.status, 202)
  const { id } = await started.json() as { id: string }

  for (const point of points) {
    while (hub.servedInTotal < point) await Promise.race(parts.map(([name]) => hub.reaches(name, hub.served(name) + 1)))
    svc.child.kill('SIGKILL')
    await once(svc.child, 'close')
    const left = partSizes(store).filter(size => !parts.some(([, bytes]) => bytes.length === size))
    const asked = hub.requests('cdn', 'big').length
    svc = await serve(home)
    while (hub.requests('cdn', 'big').length < asked + left.length) await hub.request('cdn', 'big', hub.seen.length)
    const resumed = hub.requests('cdn', 'big').slice(asked).map(({ headers }) => Number(/^bytes=(\d+)-$/.exec(headers.range ?? 'bytes=0-')?.[1]))
    t.same(resumed.sort((a, b) => a - b), left, 'every file goes on at the very byte that it had')
  }
  hub.pace = { chunk: 256 * 1024, ms: 0 }
  const stream = await (await fetch(`${svc.url}/api/models/big/pull/stream`)).text()
  t.match(JSON.parse(stream.trim().split('\n\n').filter(frame => frame.startsWith('data: ')).at(-1)!.slice(6)), { id, state: 'completed', bytes_downloaded: total })
  for (const [name, bytes] of parts) t.ok(bytes.equals(await readFile(join(store, 'big', name))), name)
  t.ok(hub.servedInTotal >= total && hub.servedInTotal < total + KILLS * 8_000_000, `${hub.servedInTotal} bytes served for ${total}`)
  const model = await (await fetch(`${svc.url}/api/models/big`)).json() as { size_bytes: number }
  t.equal(model.size_bytes, total)
  svc.child.kill('SIGTERM')
  await svc.finished
})

/** Of the part files, ascending. */
function partSizes (store: string): number[] {
  const folder = join(store, '.tmp')
  return readdirSync(folder).filter(name => name.endsWith('.part')).map(name => statSync(join(folder, name)).size).sort((a, b) => a - b)
}

t.test('killed when all was there, before it was registered', async t => {
  const hub = await FakeHub.start(t)
  hub.add('org/big', { files: Object.fromEntries(parts) })
  const home = t.testdir()
  const first = await pullGateway(t, { hub, home })
  await first.call('POST', '/api/models/big/pull', { hf_repo: 'org/big', hf_filename: parts[0]![0] })
  const { id } = await first.over('big')
  const { jobs, models } = first.gateway.kernel()
  await models.remove('big')
  jobs.update(id, { state: 'running' })
  await first.close()
  const second = await pullGateway(t, { hub, home })
  t.match(await second.over('big'), { id, state: 'completed' })
  t.match((await second.call('GET', '/api/models/big')).json, { size_bytes: total })
  t.equal(hub.servedInTotal, total, 'nothing is pulled twice')
})

t.test('a pull that was taken on and had no byte yet goes on after a restart, also where its folder is in the way for a while', async t => {
  const hub = await FakeHub.start(t)
  hub.add('org/big', { files: Object.fromEntries(parts) })
  const home = t.testdir()
  const config = { max_tries: 100, retry_base_s: 0.02 }
  hub.pace = { chunk: 1024, ms: 50 }
  const first = await pullGateway(t, { hub, home, config })
  const { json: { id } } = await first.call('POST', '/api/models/big/pull', { hf_repo: 'org/big', hf_filename: parts[0]![0] })
  await first.close()
  // as a kill leaves it that comes before the first byte
  const staging = join(home, 'var/lib/svc/models/.tmp')
  const empty = (): void => {
    rmSync(staging, { recursive: true, force: true })
    mkdirSync(staging, { recursive: true })
  }
  for (let turn = 0; turn < 3; turn++) {
    empty()
    const next = await pullGateway(t, { hub, home, config })
    t.match((await next.call('GET', '/api/models/big/pull/status')).json, { id, state: /queued|running/ }, `restart ${turn + 1}`)
    await next.received('big', 1)
    await next.close()
  }
  rmSync(staging, { recursive: true, force: true })
  writeFileSync(staging, '')
  hub.pace = { chunk: 256 * 1024, ms: 0 }
  const last = await pullGateway(t, { hub, home, config })
  t.match((await last.call('GET', '/api/models/big/pull/status')).json, { id, state: /queued|running/ })
  rmSync(staging)
  t.match(await last.over('big'), { id, state: 'completed' })
})

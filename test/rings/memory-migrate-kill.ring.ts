import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { spawnSvc, type SpawnedSvc } from '../cli/support.js'
import { api, liveHome, startLive, type LiveGateway } from '../e2e/live-gateway.js'
import { root } from '../repository.js'
import { memorySettings } from './support/memory-gateway.js'

t.setTimeout(1_800_000)

const legacy = { 'legacy/a.txt': 'Alice likes tea.', 'legacy/deep/b.jsonl': '"Bob likes coffee."\n{"text":"Carol likes tea."}\n' }
const texts = ['Alice likes tea.', 'Bob likes coffee.', 'Carol likes tea.']

class Migration {
  readonly #t: Test
  readonly #folder: string
  readonly #before: readonly string[]

  constructor (t: Test, home: string) {
    this.#t = t
    this.#folder = join(home, 'legacy')
    this.#before = this.#contents()
  }

  begin (url: string, dataset: string): SpawnedSvc {
    const svc = spawnSvc(['memory', 'migrate', '--legacy-dir', this.#folder, '--dataset', dataset, '--apply', '--url', url])
    this.#t.teardown(() => svc.child.kill('SIGKILL'))
    return svc
  }

  /** Runs it again, to its end, and looks whether all of it is there, once. */
  async isWhole (gateway: LiveGateway, dataset: string, when: string): Promise<void> {
    const t = this.#t
    const { code, stdout, stderr } = await this.begin(gateway.url, dataset).finished
    t.match({ code, stdout }, { code: 0, stdout: `3 memories of 2 files are in ${dataset}.\n` }, `${when}, the next run ends well: ${stderr}`)
    const { json } = await api(gateway, 'GET', `/api/memory/banks/${dataset.replace(':', '__')}/memories?limit=100`)
    const { items } = json as { readonly items: ReadonlyArray<{ readonly text: string }> }
    t.same(items.map(({ text }) => text).toSorted(), texts, `${when}, each memory is there once`)
    t.same(this.#contents(), this.#before, `${when}, the folder is as it was`)
  }

  /** What there is in the folder, and when it was changed. */
  #contents (): readonly string[] {
    return (readdirSync(this.#folder, { recursive: true }) as string[]).toSorted().map(name => {
      const path = join(this.#folder, name)
      const is = statSync(path)
      return `${name} ${is.mode} ${is.mtimeMs} ${is.isFile() ? readFileSync(path, 'utf8') : ''}`
    })
  }
}

const moments = ['before a request is sent', 'while a request is under way', 'before an answer has come'] as const

/** Between the command line and the gateway, which may be left at any of its requests. */
class Between {
  readonly #gateway: LiveGateway
  #seen = 0
  #leaving: { readonly at: number, readonly moment: typeof moments[number], readonly leave: () => Promise<unknown> } | null = null
  url = ''

  constructor (gateway: LiveGateway) {
    this.#gateway = gateway
  }

  get seen (): number { return this.#seen }

  async listen (t: Test): Promise<void> {
    const server = createServer((asked, response) => {
      this.#pass(asked).then(
        ({ status, bytes }) => response.writeHead(status, { 'content-type': 'application/json' }).end(bytes),
        () => response.destroy()
      )
    })
    t.teardown(() => server.close())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** From here on it counts anew, and calls `leave` at the request with this number. */
  leaveAt (at: number, moment: typeof moments[number], leave: () => Promise<unknown>): void {
    this.#seen = 0
    this.#leaving = { at, moment, leave }
  }

  async #pass (asked: IncomingMessage): Promise<{ readonly status: number, readonly bytes: Buffer }> {
    const body = await buffer(asked)
    const leaving = ++this.#seen === this.#leaving?.at ? this.#leaving : null
    if (leaving?.moment === 'before a request is sent') await left(leaving.leave())
    const { method, headers } = asked
    const sent = request(new URL(asked.url!, this.#gateway.url), { ...method !== undefined && { method }, headers, agent: false })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    sent.end(body)
    if (leaving?.moment === 'while a request is under way') {
      answered.catch(() => {})
      await once(sent, 'finish')
      sent.destroy()
      await left(leaving.leave())
    }
    const [answer] = await answered
    const bytes = await buffer(answer)
    if (leaving !== null) await left(leaving.leave())
    return { status: answer.statusCode!, bytes }
  }
}

async function left (leaving: Promise<unknown>): Promise<never> {
  await leaving
  throw new Error('it was left')
}

t.test('a migration that is killed at any of its requests is brought to its end by the next one, and makes nothing twice', async t => {
  const home = await liveHome(t, { 'etc/svc/svc.toml': memorySettings, ...legacy })
  const gateway = await startLive(t, home)
  const migration = new Migration(t, home)
  const between = new Between(gateway)
  await between.listen(t)
  t.match(await migration.begin(between.url, 'project:whole').finished, { code: 0 })
  const requests = between.seen
  t.ok(requests >= texts.length, `${requests} requests`)
  for (const moment of moments) {
    for (let at = 1; at <= requests; at++) {
      const dataset = `project:${moments.indexOf(moment)}-${at}`
      const when = `killed ${moment}, request ${at} of ${requests}`
      const killed: { svc?: SpawnedSvc } = {}
      between.leaveAt(at, moment, async () => {
        killed.svc!.child.kill('SIGKILL')
        await killed.svc!.finished
      })
      killed.svc = migration.begin(between.url, dataset)
      t.match(await killed.svc.finished, { signal: 'SIGKILL', stdout: /^$/ }, when)
      await migration.isWhole(gateway, dataset, when)
    }
  }
  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
})

t.test('of a migration whose gateway is killed before one step of its database after the other, the next one makes all of it, once', async t => {
  const home = await liveHome(t, { 'etc/svc/svc.toml': memorySettings, ...legacy })
  const arm = join(home, 'arm')
  const env = { NODE_OPTIONS: `--import=${join(root, 'dist/test/rings/support/kill-at.js')}`, SVC_RING_KILL: arm, SVC_RING_KILL_TABLE: 'memories' }
  writeFileSync(arm, '0')
  let gateway = await startLive(t, home, env)
  const migration = new Migration(t, home)
  const at: string[] = []
  for (let step = 1; ; step++) {
    const dataset = `project:step-${step}`
    writeFileSync(arm, String(step))
    const { code } = await migration.begin(gateway.url, dataset).finished
    writeFileSync(arm, '0')
    // it may have come to its step after the last answer: the engine writes down in its own time what it was asked
    if (await api(gateway, 'GET', '/api/memory/banks').then(() => true, () => false)) {
      t.equal(code, 0)
      await migration.isWhole(gateway, dataset, 'not killed')
      break
    }
    await gateway.ended
    at.push(readFileSync(`${arm}.at`, 'utf8').split(/ \(|\n/, 1)[0]!)
    gateway = await startLive(t, home, env)
    await migration.isWhole(gateway, dataset, `killed before step ${step}, ${at.at(-1)}`)
  }
  t.ok(at.length > 15 && new Set(at).size > 4, `${at.length} steps: ${at.join(', ')}`)
  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
})

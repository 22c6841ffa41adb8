import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { textWidth } from '../../cli/terminal/text-width.js'
import { createTestGateway } from '../../kernel/testing/index.js'
import settings from '../../plugins/api/settings/index.js'
import remoteCatalog from '../../plugins/providers/remote-catalog/index.js'
import status from '../../plugins/api/status/index.js'
import upstreams from '../../plugins/api/upstreams/index.js'
import models from '../../plugins/v1/models/index.js'
import { fakeUpstream, refusal, upstreamTable } from '../wire/fake-upstream.js'
import { fakeApi, FakeProcess, run, type Finished } from './support.js'

const KEY = 'sk-or-secret'

t.test('from nothing to an answer, through a real gateway', async t => {
  const remote = await fakeUpstream(t, ['vendor/one', 'vendor/two', 'other'])
  const gateway = await createTestGateway({ plugins: [remoteCatalog, upstreams] })
  t.teardown(() => gateway.close())
  const svc = (...args: string[]): Promise<Finished> => run([...args, '--url', gateway.baseUrl])
  const file = (): Promise<string> => readFile(join(gateway.home, 'etc/svc/upstreams.toml'), 'utf8')

  t.match((await svc('upstream', 'list')).stdout, /There are no upstreams\. Add one: svc upstream add/)
  const added = await svc('upstream', 'add', 'lab', remote.url, '--key-env', 'LAB_KEY', '--retries', '2', '--fallback', 'agent,spare', '--hide', 'vendor/*')
  t.equal(added.code, 0, added.stderr)
  t.match(added.stdout, 'Upstream lab is added.\nlab: LAB_KEY is not set; `svc upstream key lab` sets it\n')
  t.match(await file(), /name = "lab"\n[^]*retries = 2\n[^]*fallback = \[ "agent", "spare" \]\n[^]*exclude = \[ "vendor\/\*" \]/)

  t.match(gateway.gateway.kernel().activity.list({ kind: 'action' })[0], { target: 'lab', actor: 'cli' }, 'the audit says who did it')

  const typed = new FakeProcess()
  typed.stdin.end(`${KEY}\n`)
  const keyed = await typed.run('upstream', 'key', 'lab', '--url', gateway.baseUrl)
  t.equal(keyed.code, 0, keyed.stderr)
  t.match(keyed.stdout, /^LAB_KEY is set; it goes to http:\/\/127\.0\.0\.1:\d+\.\nUpstream lab answers: 3 models in \d+ ms\.\n$/)
  t.equal(remote.engine.requests[0]!.headers.authorization, `Bearer ${KEY}`)
  t.match((await svc('upstream', 'list')).stdout, /^NAME +STATE +MODELS +KEY +URL\nlab +ok +3 +LAB_KEY +http/)
  const shown = (await svc('upstream', 'show', 'lab')).stdout
  for (const part of ['fallback  agent, spare', 'retries   2', '  vendor/two\n', 'file      upstreams.toml']) t.match(shown, part)

  t.equal((await svc('upstream', 'edit', 'lab', '--no-advertise', '--retries', '0', '--fallback', 'none', '--models', 'other')).code, 0)
  t.match(JSON.parse((await svc('upstream', 'show', 'lab', '--json')).stdout), { retries: 0, fallback: { length: 0 }, advertise_models: false, model_filters: { models: ['other'], exclude: ['vendor/*'] } })
  const other = await fakeUpstream(t, ['vendor/one'])
  const moving = new FakeProcess()
  moving.stdin.end('sk-again\n')
  const moved = await moving.run('upstream', 'edit', 'lab', '--address', other.url, '--url', gateway.baseUrl)
  t.match(moved, { code: 0, stdout: /The key would go to another address, so it must be set again\.[^]*Upstream lab is changed/ }, moved.stderr)
  t.match(await readFile(join(gateway.home, 'etc/svc/api.env'), 'utf8'), 'sk-again')
  const back = new FakeProcess()
  back.stdin.end(`${KEY}\n`)
  t.equal((await back.run('upstream', 'edit', 'lab', '--address', remote.url, '--url', gateway.baseUrl)).code, 0)
  remote.list(refusal(401))
  const refused = await svc('upstream', 'test', 'lab')
  t.equal(refused.code, 1)
  t.match(refused.stderr, 'Error: upstream lab does not work: GET /models answered 401')
  const json = await svc('upstream', 'test', 'lab', '--json')
  t.equal(json.code, 1)
  t.match(JSON.parse(json.stdout), { ok: false, status: 401 })
  t.match((await svc('upstream', 'list')).stdout, /lab +failing[^]*\nlab: GET \/models answered 401\n$/)
  t.equal((await svc('upstream', 'edit', 'lab', '--disable')).code, 0)
  t.match((await svc('upstream', 'list')).stdout, /lab +off/)
  t.match((await svc('upstream', 'remove', 'lab')).stdout, 'Upstream lab is removed; its key LAB_KEY is kept.')
  t.match((await svc('upstream', 'rm', 'lab')).stderr, /upstream\.not_found/)
  const unknown = await svc('upstream', 'add', 'foo', '--template', 'nosuch')
  t.match(unknown, { code: 1, stderr: /^Error: no such template: 'nosuch'; there are: openai, anthropic, [\w, ]+\(upstream\.invalid\)\n {2}POST \S+ -> HTTP 400\n$/ })
  const routed = await new FakeProcess({ env: { npm_command: 'exec' } }).run('upstream', 'add', 'router', '--template', 'openrouter', '--url', gateway.baseUrl)
  t.match(routed.stdout, 'OPENROUTER_API_KEY is not set; `npx svc upstream key router` sets it', 'the command as it is called here')
})

t.test('what makes no sense is not sent', async t => {
  const fake = await fakeApi({ 'GET /api/upstreams/bare': record('bare', { auth_value_env: '', auth_configured: false }) })
  t.teardown(() => fake.close())
  const cases: Array<[string[], RegExp]> = [
    [['add', 'x'], /an address or a template is needed/], [['add', 'x', 'http://x', '--auth', 'magic'], /Allowed choices are bearer/],
    [['add', 'x', 'http://x', '--key-env', 'sk-not-a-name'], /not the key itself/], [['add', 'x', 'http://x', '--retries', '11'], /at most 10/],
    [['edit', 'x'], /no changes were given/], [['edit', 'x', '--enable', '--disable'], /cannot be used with/], [['key', 'bare'], /has no variable/]
  ]
  for (const [args, message] of cases) {
    const { code, stderr } = await run(['upstream', ...args, '--url', fake.url])
    t.equal(code, 2, args.join(' '))
    t.match(stderr, message, args.join(' '))
  }
  t.strictSame(fake.seen.map(({ line }) => line), ['GET /api/upstreams/bare'])
})

t.test('a key that is typed shows nowhere, and Ctrl-C and Ctrl-D set none', async t => {
  const fake = await fakeApi({
    'GET /api/upstreams/lab': record('lab'), 'POST /api/providers/lab/credentials': { ok: true }, 'POST /api/upstreams/lab/test': { ok: true, latency_ms: 3, models_count: 7 }
  })
  t.teardown(() => fake.close())
  const terminal = new FakeProcess({ tty: true })
  const finished = terminal.run('upstream', 'key', 'lab', '--url', fake.url)
  await terminal.shows('stderr', 'LAB_KEY: ')
  terminal.stdin.write(`${KEY}\r`)
  const { code, stdout, stderr } = await finished
  t.equal(code, 0, stderr)
  t.notMatch(stdout + stderr, KEY)
  t.same(fake.seen.find(({ line }) => line.startsWith('POST /api/providers'))?.body, { key: 'LAB_KEY', value: KEY })

  for (const [pressed, end] of [['\u0003', { code: 130 }], ['\u0004', { code: 2, stderr: /\nError: no key was given/ }]] as const) {
    const before = fake.seen.length
    const leaving = new FakeProcess({ tty: true })
    const left = leaving.run('upstream', 'key', 'lab', '--url', fake.url)
    await leaving.shows('stderr', 'LAB_KEY: ')
    leaving.stdin.write(pressed)
    t.match(await left, end)
    t.equal(fake.seen.length, before + 1, 'only the look at its name')
  }
})

t.test('aliases are set, listed and removed, and what is wrong with one is said', async t => {
  const remote = await fakeUpstream(t, ['vendor/one'])
  const gateway = await createTestGateway({ plugins: [models, settings, upstreams], files: { 'etc/svc/upstreams.toml': upstreamTable('lab', remote.url) } })
  t.teardown(() => gateway.close())
  const svc = (...args: string[]): Promise<Finished> => run(['alias', ...args, '--url', gateway.baseUrl])
  t.match((await svc('list')).stdout, 'There are no aliases. Add one: svc alias set gpt-4.1 agent')
  t.equal((await svc('set', 'gpt-4.1', 'lab/vendor/one')).stdout, 'gpt-4.1 now stands for lab/vendor/one.\n')
  t.match((await svc('set', 'qwen3:4b', 'nothing')).stdout, 'nothing does not exist yet: requests for qwen3:4b are refused until it does.')
  t.match((await svc('list')).stdout, /ALIAS +LEADS TO +STATUS *\ngpt-4\.1 +lab\/vendor\/one +remote *\nqwen3:4b +nothing +leads nowhere/)
  t.same(JSON.parse((await svc('list', '--json')).stdout), { 'gpt-4.1': 'lab/vendor/one', 'qwen3:4b': 'nothing' })
  t.match(await readFile(join(gateway.home, 'etc/svc/svc.toml'), 'utf8'), /"gpt-4\.1" = "lab\/vendor\/one"/)
  t.match((await svc('set', 'a', 'gpt-4.1')).stderr, 'must not point to another alias')
  t.match((await svc('rm', 'nobody')).stderr, 'there is no alias nobody')
  t.equal((await svc('rm', 'gpt-4.1')).stdout, 'Alias gpt-4.1 is removed.\n')
  t.same(JSON.parse((await svc('list', '--json')).stdout), { 'qwen3:4b': 'nothing' })
})

t.test('a row of the file that is invalid is told by the list', async t => {
  const row = '[[upstream]]\nname = "lab"\nurl = "lab:8080/v1"\n'
  const gateway = await createTestGateway({ plugins: [status, settings, upstreams], files: { 'etc/svc/upstreams.toml': row } })
  t.teardown(() => gateway.close())
  const list = async (): Promise<string> => (await run(['upstream', 'list', '--url', gateway.baseUrl])).stdout
  t.match(await list(), /^upstreams\.toml: .*url/)
  await writeFile(join(gateway.home, 'etc/svc/upstreams.toml'), `${row}[[upstream]]\nname = "other"\nurl = "http://127.0.0.1:9/v1"\nauth_style = "none"\n`)
  await run(['config', 'reload', '--url', gateway.baseUrl])
  t.match(await list(), /^NAME [^]*\nother [^]*\nupstreams\.toml: .*url/)
})

t.test('lists fit 80 columns and say what is wrong', async t => {
  const rows = [
    record('a-provider-with-a-rather-long-name-that-somebody-chose', { circuit: { state: 'open', failures: 5, retry_in_ms: 9_100 }, auth_key_present: false }),
    record('slotted', { kind: 'slot' }), record('fresh', { refreshed_at: null }), record('evil', { error: 'no\u001b[2J' })
  ]
  const fake = await fakeApi({ 'GET /api/upstreams': rows })
  t.teardown(() => fake.close())
  const { stdout } = await run(['upstream', 'list', '--url', fake.url])
  const lines = stdout.split('\n')
  for (const line of lines.slice(0, 5)) t.ok(textWidth(line) <= 80, line)
  t.match(stdout, /cooling down/)
  t.match(stdout, /fresh +not asked yet/)
  t.match(stdout, 'failed 5 times in a row and is not used for 10 s')
  t.notMatch(stdout, '\u001b')
  t.same(JSON.parse((await run(['upstream', 'list', '--json', '--url', fake.url])).stdout), rows)
})

function record (name: string, more: object = {}): object {
  return {
    name, kind: 'remote', source: 'upstreams.toml', url: 'https://api.example.com/v1/a/long/path/that/goes/on/and/on', enabled: true, auth_style: 'bearer',
    auth_value_env: 'LAB_KEY', auth_configured: true, auth_key_present: true, timeout_seconds: 300, retries: 0, fallback: [], models: ['m'],
    refreshed_at: '2026-01-01T00:00:00.000Z', error: null, circuit: { state: 'closed', failures: 0, retry_in_ms: 0 }, ...more
  }
}

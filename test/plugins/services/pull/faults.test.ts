import { readdir, readFile, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { ggufFile } from '../../../kernel/models/gguf-file.js'
import { FakeHub, patternBytes } from '../hub/fake-hub.js'
import { content, pullGateway, type PullGateway } from './support.js'

const big = ggufFile({ weights: 1_000_000 })

async function ready (t: Parameters<typeof pullGateway>[0], options: Parameters<typeof pullGateway>[1] = {}) {
  const gateway = await pullGateway(t, options)
  if (options.hub === undefined) gateway.hub.add('org/big', { files: { 'big.gguf': big } })
  return { gateway, hub: gateway.hub, start: () => gateway.call('POST', '/api/models/big/pull', { hf_repo: 'org/big' }) }
}

const whole = async (gateway: PullGateway): Promise<boolean> => big.equals(await content(gateway, 'big/big.gguf'))

t.test('connections that break, stall, are refused for a while: no byte lost or sent twice', async t => {
  const { gateway, hub, start } = await ready(t)
  hub.fail('cdn', 'big', { kind: 'cut', after: 300_000 })
  hub.fail('cdn', 'big', { kind: 'status', status: 503 })
  hub.fail('cdn', 'big', { kind: 'stall', after: 200_000 })
  hub.fail('cdn', 'big', { kind: 'status', status: 403 })
  hub.fail('hub', '/resolve/', { kind: 'status', status: 429, headers: { 'retry-after': '0' } }, 1, 'GET')
  hub.fail('cdn', 'big', { kind: 'cut', after: 0 })
  hub.fail('hub', '/resolve/', { kind: 'status', status: 500 }, 1, 'GET')
  await start()
  t.match(await gateway.over('big'), { state: 'completed' })
  t.ok(await whole(gateway))
  // what was cut off while it was on the wire may be sent again; nothing that was received is
  t.ok(hub.served('big.gguf') >= big.length)
  t.ok(hub.served('big.gguf') < big.length + 600_000, `${hub.served('big.gguf')} bytes served for ${big.length}`)
  const ranges = hub.requests('cdn', 'big').map(({ headers }) => headers.range)
  t.ok(ranges.slice(1).every(range => /^bytes=[1-9]\d*-$/.test(range ?? '')), `it goes on where it was: ${ranges.join(' ')}`)
  t.ok(hub.requests('cdn', 'big').slice(1).every(({ headers }) => String(headers['if-range']).startsWith('"cdn-')), 'and only in the same content')
})

t.test('Retry-After is honoured, and told', async t => {
  const { gateway, hub, start } = await ready(t)
  hub.fail('hub', '/resolve/', { kind: 'status', status: 429, headers: { 'retry-after': '3' } }, 1, 'GET')
  const from = performance.now()
  await start()
  const stream = await gateway.fetch('/api/models/big/pull/stream')
  const text = await stream.text()
  t.match(text, /waiting 3 s: .*fewer requests/)
  t.ok(performance.now() - from > 2_950)
  t.ok(await whole(gateway))
  hub.fail('hub', '/resolve/', { kind: 'status', status: 503, headers: { 'retry-after': '7' } }, 1, 'HEAD')
  const refused = await gateway.call('POST', '/api/models/other/pull', { hf_repo: 'org/big' })
  t.match(refused, { status: 503, json: { error: { code: 'hf.rate_limited' } } })
  t.equal(refused.headers.get('retry-after'), '7', 'before the first byte the caller is told to come back')
})

t.test('a hub that stays away: the pull fails, and a new one goes on from there', async t => {
  const { gateway, hub, start } = await ready(t, { config: { max_tries: 3 } })
  hub.fail('cdn', 'big', { kind: 'cut', after: 400_000 })
  hub.fail('cdn', 'big', { kind: 'status', status: 500 }, 3)
  await start()
  t.match(await gateway.over('big'), { state: 'failed', error_code: 'hf.upstream_error', error: /500/, bytes_downloaded: Number, path: null })
  t.match(gateway.pullEvents().at(-1), { type: 'pull.failed', severity: 'error', data: { error_code: 'hf.upstream_error' } })
  const had = (await stat(join(gateway.store, (await gateway.files())[1]!))).size
  t.ok(had > 200_000)
  const before = hub.served('big.gguf')
  await start()
  t.match(await gateway.over('big'), { state: 'completed' })
  t.ok(await whole(gateway))
  t.equal(hub.served('big.gguf') - before, big.length - had, 'only the rest')
  t.same(await gateway.files(), ['big/big.gguf'])
  hub.fail('cdn', 'big', { kind: 'cut', after: 0 }, 9)
  await gateway.call('POST', '/api/models/dead/pull', { hf_repo: 'org/big' })
  t.match(await gateway.over('dead'), { state: 'failed', error_code: 'hf.unreachable', error: /cannot be reached/ })
  t.equal((await gateway.call('POST', '/api/models/dead/pull/cancel')).json.state, 'failed')
  t.same(await gateway.files(), ['big/big.gguf'], 'cancelling what failed removes what it left')
})

t.test('a server that lies about size or content fails the pull', async t => {
  const { gateway, hub, start } = await ready(t, { config: { max_tries: 2 } })
  hub.fail('hub', '/resolve/', { kind: 'size', delta: 5 })
  t.match(await start(), { status: 502, json: { error: { code: 'pull.size_mismatch', message: /contradicts itself/ } } })
  for (const delta of [7, -7]) {
    hub.fail('cdn', 'big', { kind: 'size', delta })
    await start()
    t.match(await gateway.over('big'), { state: 'failed', error_code: 'pull.size_mismatch' }, `${delta} bytes`)
  }
  hub.fail('cdn', 'big', { kind: 'corrupt' })
  await start()
  t.match(await gateway.over('big'), { state: 'failed', error_code: 'pull.checksum_mismatch', error: /checksum differs/ })
  t.equal((await gateway.call('GET', '/api/models/big')).status, 404, 'nothing of it is registered')
  t.notOk((await gateway.files()).includes('big/big.gguf'))
  hub.fail('cdn', 'big', { kind: 'cut', after: 500_000 })
  hub.fail('cdn', 'big', { kind: 'no-range' })
  await start()
  t.match(await gateway.over('big'), { state: 'completed' })
  t.ok(await whole(gateway), 'a server without ranges sends all of it anew')
  hub.fail('hub', '/resolve/', { kind: 'redirect', to: 'https://127.0.0.1:9/x' }, 9, 'GET')
  await gateway.call('POST', '/api/models/away/pull', { hf_repo: 'org/big' })
  t.match(await gateway.over('away'), { state: 'failed', error_code: 'hf.unreachable', error: /127\.0\.0\.1:9/ })
  t.ok(hub.complaints.length === 0)
})

t.test('damage of what an earlier run left is found, and costs one more download', async t => {
  const { gateway, hub, start } = await ready(t, { config: { max_tries: 2 } })
  hub.fail('cdn', 'big', { kind: 'cut', after: 500_000 })
  hub.fail('cdn', 'big', { kind: 'status', status: 500 })
  await start()
  t.match(await gateway.over('big'), { state: 'failed' })
  const part = (await gateway.files()).find(name => name.endsWith('.part'))!
  const { open } = await import('node:fs/promises')
  const file = await open(join(gateway.store, part), 'r+')
  await file.write(Buffer.from('damage'), 0, 6, 1000)
  await file.close()
  await start()
  t.match(await gateway.over('big'), { state: 'completed' })
  t.ok(await whole(gateway))
  t.ok(gateway.logs.some(({ message }) => /damaged; it is downloaded again/.test(message)))
})

t.test('a gateway that stops and starts goes on by itself', async t => {
  const hub = await FakeHub.start(t)
  hub.add('org/big', { files: { 'big.gguf': big } })
  const home = t.testdir()
  hub.fail('cdn', 'big', { kind: 'stall', after: 400_000 })
  const first = await ready(t, { hub, home, config: { stall_timeout_s: 60 } })
  const id = (await first.start()).json.id
  await first.gateway.received('big', 400_000)
  const follow = await first.gateway.fetch('/api/models/big/pull/stream')
  await first.gateway.close()
  await follow.text()
  const { gateway: second } = await ready(t, { hub, home })
  const over = await second.over('big')
  t.match(over, { id, state: 'completed' }, 'the same job')
  t.ok(await whole(second))
  t.equal(second.pullEvents()[0]?.type, 'pull.queued')
  t.equal(second.pullEvents()[0]?.data.downloaded, 400_000)
  t.equal(hub.served('big.gguf'), big.length, 'no byte lost, none sent twice')
  await second.close()
  const { gateway: third } = await ready(t, { hub, home })
  t.same(third.pullEvents(), [], 'what is over is over')
  t.match((await third.call('GET', '/api/models/big/pull/status')).json, { id, state: 'completed', bytes_downloaded: big.length })
})

t.test('where pulls do not go on by themselves, they read as interrupted and a new one goes on', async t => {
  const hub = await FakeHub.start(t)
  hub.add('org/big', { files: { 'big.gguf': big } })
  const home = t.testdir()
  hub.fail('cdn', 'big', { kind: 'stall', after: 400_000 })
  const first = await ready(t, { hub, home, config: { stall_timeout_s: 60 } })
  await first.start()
  await first.gateway.received('big', 400_000)
  await first.gateway.close()
  const { gateway: second, start } = await ready(t, { hub, home, config: { resume_on_start: false } })
  t.match((await second.call('GET', '/api/models/big/pull/status')).json, { state: 'failed', error_code: 'pull.interrupted', error: /pull again/ })
  const before = hub.served('big.gguf')
  await start()
  t.match(await second.over('big'), { state: 'completed' })
  t.equal(hub.served('big.gguf') - before, big.length - 400_000)
})

t.test('names that a server should not have, and names that differ in case only', async t => {
  const { gateway, hub } = await ready(t)
  const small = patternBytes(3000)
  hub.add('org/evil', { files: { '../../../escape.gguf': small, 'ok.gguf': small, 'a/../../b.gguf': small } })
  hub.add('org/case', { files: { 'M-00001-of-00001.gguf': small, 'x.gguf': small, 'sub/mmproj-X.gguf': small, 'MMPROJ-x.gguf': small } })
  const pull = (id: string, body: object) => gateway.call('POST', `/api/models/${encodeURIComponent(id)}/pull`, body)
  for (const name of ['../../../escape.gguf', 'a/../../b.gguf']) {
    t.match(await pull('evil', { hf_repo: 'org/evil', hf_filename: name }), { status: 404, json: { error: { code: 'hf.file_not_found' } } }, name)
  }
  await pull('../../../../outside', { hf_repo: 'org/evil', hf_filename: 'ok.gguf' })
  t.match(await gateway.over('../../../../outside'), { state: 'completed' })
  for (const id of ['Same', 'same']) {
    await pull(id, { hf_repo: 'org/evil', hf_filename: 'ok.gguf' })
    t.match(await gateway.over(id), { state: 'completed' })
  }
  const files = await gateway.files()
  t.match(files, [/^Same\/ok\.gguf$/, /^outside-[0-9a-f]{8}\/ok\.gguf$/, /^same-[0-9a-f]{8}\/ok\.gguf$/])
  t.equal(new Set(files.map(name => name.toLowerCase())).size, files.length)
  t.match(await pull('two', { hf_repo: 'org/case', hf_filename: 'MMPROJ-x.gguf', mmproj_filename: 'sub/mmproj-X.gguf' }), {
    status: 422, json: { error: { code: 'model.invalid_source', message: /two files/ } }
  })
  t.same((await readdir(join(gateway.home, 'var/lib/svc'))).filter(name => /outside|escape/.test(name)), [])
  await truncate(join(gateway.store, 'Same/ok.gguf'), 0)
  t.equal((await readFile(join(gateway.store, files[2]!))).length, 3000)
})

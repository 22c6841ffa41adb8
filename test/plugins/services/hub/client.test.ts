import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { pluginConformance } from '../../../../kernel/testing/plugin-conformance.js'
import { FakeClock } from '../../../../kernel/testing/index.js'
import { createHubClient } from '../../../../plugins/services/hub/client.js'
import { refusalError, retryAfter } from '../../../../plugins/services/hub/hub-errors.js'
import hubPlugin from '../../../../plugins/services/hub/index.js'
import { repoOfUrl, requireRepoId } from '../../../../plugins/services/hub/names.js'
import { FakeHub, patternBytes, sha256Of } from './fake-hub.js'

const live = new AbortController().signal
const big = patternBytes(300_000)

async function setUp (t: Test, token: string | null = null) {
  const hub = await FakeHub.start(t)
  hub.add('org/model', {
    files: { 'a-Q4_K_M.gguf': big, 'README.md': '---\nlicense: mit\n---\n\n# A model\n', 'sub/b ü.gguf': patternBytes(5000), 'config.json': '{}', 'x.txt': 'x' },
    license: 'apache-2.0'
  })
  hub.add('org/gated', { gated: 'manual', files: { 'm.gguf': big } })
  hub.add('org/private', { isPrivate: true, files: { 'm.gguf': big } })
  let settings = { endpoint: hub.url, token }
  const client = createHubClient({ clock: new FakeClock(), settings: () => settings, setting: () => undefined })
  t.teardown(() => client.close())
  return { hub, client, use: (next: Partial<typeof settings>) => { settings = { ...settings, ...next } } }
}

const all = (body: AsyncIterable<Buffer>): Promise<Buffer> => buffer(Readable.from(body))

for (const { name, run } of pluginConformance(hubPlugin)) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

t.test('a repository, over all pages of its tree', async t => {
  const { hub, client } = await setUp(t)
  const repo = await client.repo('org/model', { signal: live })
  t.match(repo, { id: 'org/model', commit: /^[0-9a-f]{40}$/, gated: false, license: 'apache-2.0', tags: ['gguf'] })
  t.same(repo.files.map(({ path }) => path), ['a-Q4_K_M.gguf', 'README.md', 'sub/b ü.gguf', 'config.json', 'x.txt'])
  t.same(repo.files[0], { path: 'a-Q4_K_M.gguf', size: 300_000, sha256: sha256Of(big), gitSha1: null })
  t.match(repo.files[1], { sha256: null, gitSha1: /^[0-9a-f]{40}$/ })
  t.ok(hub.requests('hub', '/tree/').length > 1, 'more than one page')
  t.match((await client.repo('org/model', { revision: repo.commit, signal: live })).commit, repo.commit)
  t.equal(await client.readme('org/model', live), '# A model')
  t.equal(await client.readme('org/gated', live).catch((error: { code: string }) => error.code), 'hf.gated')
  t.match(await client.search('MODEL', { limit: 5, type: 'gguf', signal: live }), [
    { id: 'org/model', downloads: 7, likes: 3, gated: false, pipeline_tag: 'text-generation', library: 'gguf', last_modified: /^2026/ }
  ])
  t.match(hub.requests('hub', '/api/models?').at(-1)?.path, /search=MODEL.*limit=5.*filter=gguf/)
})

t.test('a file, from any byte, over a redirect to another host that never sees the token', async t => {
  const { hub, client } = await setUp(t, 'hf_good')
  const { commit } = await client.repo('org/model', { signal: live })
  const file = { repo: 'org/model', commit, path: 'a-Q4_K_M.gguf' }
  t.same(await client.head(file, live), { size: 300_000, sha256: sha256Of(big) })
  t.same(hub.requests('cdn', '/'), [], 'asking costs the storage nothing')
  const options = { from: 0, etag: null, stallMs: 5000, signal: live }
  const whole = await client.open(file, options)
  t.match(whole, { from: 0, size: 300_000, etag: /^"cdn-/ })
  t.ok(big.equals(await all(whole.body)))
  const rest = await client.open(file, { ...options, from: 299_000, etag: whole.etag })
  t.match(rest, { from: 299_000, size: 300_000, etag: whole.etag })
  t.ok(big.subarray(299_000).equals(await all(rest.body)))
  const changed = await client.open(file, { ...options, from: 299_000, etag: '"another"' })
  t.match(changed, { from: 0, size: 300_000 }, 'another content is sent as a whole')
  for await (const chunk of changed.body) {
    t.ok(chunk.length > 0)
    break
  }
  hub.fail('cdn', '/', { kind: 'no-range' })
  const whole2 = await client.open(file, { ...options, from: 5 })
  t.equal(whole2.from, 0, 'a server that knows no ranges')
  await all(whole2.body)
  const small = await client.open({ ...file, path: 'config.json' }, options)
  t.equal((await all(small.body)).toString(), '{}', 'small files come from the hub itself')
  const odd = await client.open({ ...file, path: 'sub/b ü.gguf' }, options)
  t.equal((await all(odd.body)).length, 5000)

  t.same(hub.complaints, [])
  t.ok(hub.requests('hub', '/').every(({ headers }) => headers.authorization === 'Bearer hf_good'))
  t.ok(hub.requests('cdn', '/').every(({ headers }) => headers.authorization === undefined && headers['accept-encoding'] === 'identity'))
})

t.test('refusals, each with its next step', async t => {
  const { hub, client, use } = await setUp(t)
  const { commit } = await client.repo('org/model', { signal: live })
  const open = (repo: string, path: string, at = 'main') =>
    client.open({ repo, commit: at, path }, { from: 0, etag: null, stallMs: 5000, signal: live }).then(({ body }) => all(body))
  await t.rejects(client.repo('org/nobody', { signal: live }), { code: 'hf.repo_not_found', status: 404, message: /check its name.*HF_TOKEN/ })
  await t.rejects(client.repo('org/private', { signal: live }), { code: 'hf.repo_not_found', message: /private/ })
  await t.rejects(client.repo('org/model', { revision: 'v9', signal: live }), { code: 'hf.file_not_found', message: /revision/ })
  await t.rejects(open('org/model', 'none.gguf'), { code: 'hf.file_not_found', status: 404, message: /none\.gguf/ })
  await t.rejects(open('org/gated', 'm.gguf'), { code: 'hf.gated', status: 403, message: new RegExp(`accept its licence at ${hub.url}/org/gated.*HF_TOKEN`) })
  t.match(await client.repo('org/gated', { signal: live }), { gated: true }, 'what it has may be known')
  for (const id of ['../etc', 'a/b/c', 'a b/c', '', '/', 'a/..', '.a/b']) {
    await t.rejects(client.repo(id, { signal: live }), { code: 'hf.bad_request', status: 400 }, id)
  }
  use({ token: 'hf_bad' })
  await t.rejects(client.repo('org/model', { signal: live }), { code: 'hf.token_rejected', status: 403, message: /settings\/tokens/ })
  use({ token: 'hf_good' })
  await open('org/gated', 'm.gguf')
  t.match(await client.repo('org/private', { signal: live }), { id: 'org/private' })
  await t.rejects(client.repo('org/nobody', { signal: live }), { code: 'hf.repo_not_found' })
  hub.fail('hub', 'resolve', { kind: 'status', status: 403 })
  await t.rejects(open('org/gated', 'm.gguf'), { code: 'hf.gated', message: /token of that account/ })

  hub.fail('hub', 'resolve', { kind: 'status', status: 429, headers: { 'retry-after': '7' } })
  await t.rejects(open('org/model', 'a-Q4_K_M.gguf'), { code: 'hf.rate_limited', status: 503, details: { retry_after_s: 7 } })
  hub.fail('hub', 'resolve', { kind: 'status', status: 503 })
  await t.rejects(open('org/model', 'a-Q4_K_M.gguf'), { code: 'hf.rate_limited', message: /overloaded/ })
  hub.fail('hub', 'resolve', { kind: 'status', status: 500, body: 'boom \u0007' })
  await t.rejects(open('org/model', 'a-Q4_K_M.gguf'), { code: 'hf.upstream_error', status: 502, message: /500: boom$/ })
  hub.fail('cdn', '/', { kind: 'status', status: 403 })
  await t.rejects(open('org/model', 'a-Q4_K_M.gguf'), { code: 'hf.upstream_error', message: /storage.*403/ }, 'an address that ran out is no verdict about the repository')
  hub.fail('hub', 'revision', { kind: 'status', status: 200, body: '' })
  await t.rejects(client.repo('org/model', { signal: live }), { code: 'hf.upstream_error', message: /check HF_ENDPOINT/ })
  hub.fail('hub', 'resolve', { kind: 'redirect', to: '/org/model/resolve/main/a-Q4_K_M.gguf' }, 10)
  await t.rejects(open('org/model', 'a-Q4_K_M.gguf', commit), { code: 'hf.upstream_error', message: /circle/ })
  for (const to of ['file:///etc/passwd', 'gopher://x/']) {
    const other = await setUp(t)
    other.hub.fail('hub', 'resolve', { kind: 'redirect', to })
    await t.rejects(other.client.head({ repo: 'org/model', commit: 'main', path: 'x' }, live), { code: 'hf.upstream_error', message: /not safe/ })
  }
  use({ endpoint: 'http://127.0.0.1:9' })
  await t.rejects(client.repo('org/model', { signal: live }), { code: 'hf.unreachable', status: 502, message: /127\.0\.0\.1:9 cannot be reached.*HF_ENDPOINT/ })
})

t.test('a download that stalls, breaks off or is aborted ends with its error', async t => {
  const { hub, client } = await setUp(t)
  const file = { repo: 'org/model', commit: 'main', path: 'a-Q4_K_M.gguf' }
  hub.fail('cdn', '/', { kind: 'stall', after: 1000 })
  const stalled = await client.open(file, { from: 0, etag: null, stallMs: 300, signal: live })
  await t.rejects(all(stalled.body), { code: 'UND_ERR_BODY_TIMEOUT' })
  hub.fail('cdn', '/', { kind: 'cut', after: 1000 })
  const cut = await client.open(file, { from: 0, etag: null, stallMs: 5000, signal: live })
  await t.rejects(all(cut.body), { code: 'UND_ERR_SOCKET' })
  const leaver = new AbortController()
  hub.fail('cdn', '/', { kind: 'stall', after: 1000 })
  const left = await client.open(file, { from: 0, etag: null, stallMs: 60_000, signal: leaver.signal })
  const reading = t.rejects(all(left.body), { message: 'enough' })
  leaver.abort(new Error('enough'))
  await reading
  await t.rejects(client.repo('org/model', { signal: leaver.signal }), { message: 'enough' })
})

t.test('addresses, repository ids and retry headers of the hub are parsed', async t => {
  const endpoint = 'https://hub.example/mirror'
  const table: ReadonlyArray<readonly [string, { repo: string, path: string | null } | null]> = [
    ['https://huggingface.co/org/m', { repo: 'org/m', path: null }],
    ['https://hf.co/org/m/', { repo: 'org/m', path: null }],
    ['https://huggingface.co/org/m/blob/main/sub/a%20b.gguf?download=true', { repo: 'org/m', path: 'sub/a b.gguf' }],
    ['https://hub.example/org/m/resolve/main/x.gguf', { repo: 'org/m', path: 'x.gguf' }],
    ['https://huggingface.co/org/m/tree/main', { repo: 'org/m', path: null }],
    ['hf://org/m', { repo: 'org/m', path: null }],
    ['https://huggingface.co/datasets/org/m', null], ['https://huggingface.co/org', null], ['https://evil.example/org/m', null], ['not a url', null]
  ]
  for (const [url, wanted] of table) t.same(repoOfUrl(url, endpoint), wanted, url)
  t.equal(requireRepoId('gpt2'), 'gpt2')
  t.same(['5', '0', 'Wed, 21 Oct 2026 07:28:00 GMT', 'Wed, 21 Oct 2020 07:28:00 GMT', 'soon', ''].map(value =>
    retryAfter(value, Date.parse('2026-10-21T07:27:30Z'))), [5, 0, 30, 0, null, null])
  const asked = { endpoint: 'https://h', hasToken: false, repo: 'o/m', path: null, now: 0 }
  t.match(refusalError(asked, { status: 418, headers: {}, text: 'x'.repeat(9000) }).message, /^https:\/\/h answers 418$/)
})

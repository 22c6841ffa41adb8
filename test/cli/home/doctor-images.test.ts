import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { imageAddress } from '../../../cli/offline/doctor/image-registry.js'
import type { ImageRow } from '../../../cli/offline/doctor/toolbox-pull.js'
import { run } from '../support.js'

const DIGEST = `sha256:${'a'.repeat(64)}`
const OTHER = `sha256:${'b'.repeat(64)}`

/** A registry that gives a token to anybody, for public images only, and wants it at every request. */
async function tokenRegistry (t: Test): Promise<{ readonly host: string, readonly asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => answer(request, response))
  const answer = ({ method, url = '', headers }: IncomingMessage, response: ServerResponse): void => {
    const { pathname, searchParams } = new URL(url, 'http://x')
    asked.push(`${method} ${url}`)
    if (pathname === '/token') {
      const scope = searchParams.get('scope') ?? ''
      if (headers.authorization !== undefined || searchParams.get('service') !== 'the.registry') return void response.writeHead(400).end()
      if (scope.includes('secret')) return void response.writeHead(403).end()
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ token: `for ${scope}` }))
    }
    const [, name = '', reference = ''] = /^\/v2\/(.+)\/manifests\/(.+)$/.exec(pathname) ?? []
    const scope = `repository:${name}:pull`
    if (name === 'team/basic') return void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
    if (headers.authorization !== `Bearer for ${scope}`) {
      const realm = `http://${headers.host}/token`
      return void response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}",service="the.registry",scope="${scope}"` }).end()
    }
    const isKnown = headers.accept?.includes('image.index') === true && (reference === 'v1' || reference === DIGEST)
    return void (isKnown ? response.writeHead(200, { 'docker-content-digest': DIGEST }) : response.writeHead(404)).end()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

/** Nothing listens there; ports that fetch refuses by itself would not tell. */
async function closedPort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const manifest = (images: Readonly<Record<string, { readonly tag: string, readonly digest?: string }>>): string =>
  JSON.stringify({ toolbox_images: images })

t.test('an image reference becomes a registry address, a name and a tag or digest', t => {
  const cases: ReadonlyArray<readonly [string, object]> = [
    ['ghcr.io/owner/name:v1', { base: 'https://ghcr.io', name: 'owner/name', reference: 'v1' }],
    ['docker.io/kyuz0/x', { base: 'https://registry-1.docker.io', name: 'kyuz0/x', reference: 'latest' }],
    ['debian:12', { base: 'https://registry-1.docker.io', name: 'library/debian', reference: '12' }],
    ['owner/name', { base: 'https://registry-1.docker.io', name: 'owner/name', reference: 'latest' }],
    ['127.0.0.1:5000/a/b:c', { base: 'http://127.0.0.1:5000', name: 'a/b', reference: 'c' }],
    ['localhost/a:c', { base: 'http://localhost', name: 'a', reference: 'c' }],
    ['reg.lan:5000/a:c', { base: 'https://reg.lan:5000', name: 'a', reference: 'c' }],
    [`ghcr.io/a/b:v1@${DIGEST}`, { base: 'https://ghcr.io', name: 'a/b', reference: DIGEST }]
  ]
  for (const [image, expected] of cases) t.same(imageAddress(image), expected, image)
  t.end()
})

t.test('a registry that wants a token gives one to anybody', async t => {
  const { host, asked } = await tokenRegistry(t)
  const home = t.testdir({
    'good.json': manifest({
      same: { tag: `${host}/team/engine:v1`, digest: DIGEST },
      moved: { tag: `${host}/team/engine:v1`, digest: OTHER },
      free: { tag: `${host}/team/engine:v1` },
      pinned: { tag: `${host}/team/engine@${DIGEST}` }
    }),
    'bad.json': manifest({
      good: { tag: `${host}/team/engine:v1` },
      gone: { tag: `${host}/team/engine:v9` },
      hidden: { tag: `${host}/team/secret:v1` },
      login: { tag: `${host}/team/basic:v1` },
      away: { tag: `127.0.0.1:${await closedPort()}/a/b:c` }
    }),
    'empty.json': '{}',
    'odd.json': '{"toolbox_images": {"x": {"tag": ""}}}'
  })
  const pull = (file: string, ...more: readonly string[]) => run(['doctor', 'toolbox-pull', '--manifest', file, ...more], { cwd: home })
  const good = await pull('good.json', '--json')
  t.equal(good.code, 0, good.stderr)
  const rows = JSON.parse(good.stdout) as ImageRow[]
  t.match(rows, [
    { name: 'same', ok: true, digest: DIGEST, pinned_digest: DIGEST, matches_pin: true, error: null },
    { name: 'moved', ok: true, digest: DIGEST, pinned_digest: OTHER, matches_pin: false },
    { name: 'free', ok: true, digest: DIGEST, pinned_digest: null, matches_pin: null },
    { name: 'pinned', ok: true, pinned_digest: DIGEST, matches_pin: true }
  ])
  t.ok(asked.every(line => line.startsWith('HEAD /v2/') || line.startsWith('GET /token?')), 'nothing is downloaded')
  const shown = await pull('good.json')
  t.match(shown, { code: 0, stdout: /^NAME +PUBLIC +PIN +IMAGE/, stderr: /moved: the tag has moved/ })

  const bad = await pull('bad.json', '--json')
  t.equal(bad.code, 1)
  t.match(JSON.parse(bad.stdout), [
    { ok: true }, { ok: false, error: /no such image or tag/ }, { ok: false, error: /no anonymous token: HTTP 403/ },
    { ok: false, error: /requires a login/ }, { ok: false, error: /cannot be reached \(ECONNREFUSED\)/ }
  ])
  t.match(bad.stderr, '4 of 5 images cannot be pulled anonymously')

  t.match(await pull('empty.json'), { code: 2, stderr: /no toolbox images/ })
  t.match(await pull('odd.json'), { code: 2, stderr: /odd\.json is not a manifest\n {2}toolbox_images\.x\.tag/ })
  t.match(await pull('nowhere.json'), { code: 2, stderr: /cannot be read \(ENOENT\)/ })
})

t.test('the manifest of the home counts', async t => {
  const home = t.testdir({ etc: { svc: { 'manifest.json': '{"toolbox_images": 3}' } } })
  t.match(await run(['doctor', 'toolbox-pull', '--home', home]), { code: 1, stderr: new RegExp(`${join(home, 'etc/svc/manifest.json')}: toolbox_images`) })
})

const real = process.env.SVC_TEST_REGISTRY ?? ''
const required = process.env.SVC_TEST_CONTAINERS === 'required'
t.test('a real registry is asked for tags that exist and tags that do not', { skip: real === '' && !required ? 'SVC_TEST_REGISTRY is not set' : false }, async t => {
  const { repositories } = await (await fetch(`http://${real}/v2/_catalog`)).json() as { repositories: string[] }
  const tagged = await Promise.all(repositories.map(async name => {
    const { tags } = await (await fetch(`http://${real}/v2/${name}/tags/list`)).json() as { tags: string[] | null }
    return { name, tag: tags?.[0] }
  }))
  const there = tagged.find(({ tag }) => tag !== undefined)
  if (there === undefined) return t.comment('the registry is empty')
  const home = t.testdir({
    'manifest.json': manifest({ there: { tag: `${real}/${there.name}:${there.tag!}` }, gone: { tag: `${real}/${there.name}:no-such-tag` } })
  })
  const { code, stdout } = await run(['doctor', 'toolbox-pull', '--json', '--manifest', join(home, 'manifest.json')])
  t.equal(code, 1)
  t.match(JSON.parse(stdout), [{ ok: true, digest: /^sha256:[0-9a-f]{64}$/ }, { ok: false, error: /HTTP 404/ }])
})

import { mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { core, definePlugin } from '../../../kernel/contract/index.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'
import { createTestGateway, pluginConformance, type TestGateway } from '../../../kernel/testing/index.js'
import { ImageFolder, isImageName } from '../../../plugins/api/images/cache.js'
import images from '../../../plugins/api/images/index.js'
import { imageCacheRef, type ImageCache } from '../../../plugins/api/images/ref.js'

for (const { name, run } of pluginConformance(images)) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

const png = (text: string): Buffer => Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.from(text)])

interface Cached extends TestGateway { readonly cache: ImageCache }

async function cached (t: Test, home = t.testdir({}), config: Record<string, unknown> = {}): Promise<Cached> {
  let cache: ImageCache | null = null
  const user = definePlugin({
    name: 'user', kind: 'service', apiVersion: 1, requires: { cache: imageCacheRef, clock: core.clock }, register: ctx => { cache = ctx.services.cache }
  })
  const gateway = await createTestGateway({ home, plugins: [images, user], pluginConfig: { 'api-images': config } })
  t.teardown(() => gateway.close())
  return Object.assign(gateway, { cache: cache! })
}

t.test('an image is there for good, as far as caches are concerned', async t => {
  const gateway = await cached(t)
  const path = await gateway.cache.put(png('one'))
  t.match(path, /^\/api\/images\/cache\/[0-9a-f]{8}-[0-9a-f-]{27}\.png$/)
  const answer = await gateway.fetch(path)
  t.equal(answer.status, 200)
  t.ok(Buffer.from(await answer.arrayBuffer()).equals(png('one')))
  t.match(Object.fromEntries(answer.headers), {
    'content-type': 'image/png', 'cache-control': 'public, max-age=31536000, immutable', 'content-length': '11', 'x-content-type-options': 'nosniff',
    'x-request-id': /./, 'etag': /^"[0-9a-f-]{36}"$/
  })
  const again = await gateway.fetch(path, { headers: { 'if-none-match': answer.headers.get('etag')! } })
  t.strictSame([again.status, await again.text()], [304, ''])
  const head = await gateway.fetch(path, { method: 'HEAD' })
  t.strictSame([head.status, head.headers.get('content-length'), await head.text()], [200, '11', ''])
})

t.test('an image that is not in the cache is a 404, whatever its name', async t => {
  const home = t.testdir({ var: { lib: { svc: { 'secret.png': 'secret', 'images': { cache: {} } } } } })
  const gateway = await cached(t, home)
  const folder = join(home, 'var/lib/svc/images/cache')
  // put there by somebody else while the gateway runs
  symlinkSync(join(home, 'var/lib/svc/secret.png'), join(folder, 'bbbbbbbb.png'))
  const names = [
    '00000000-0000-0000-0000-000000000000.png', 'aaaaaaaa.png', 'bbbbbbbb.png', '..%2f..%2fsecret.png', '..%2F..%2Fsecret', '%2e%2e%2f%2e%2e%2fsecret.png',
    '....png', 'a.png', 'A0000000.png', `${'a'.repeat(41)}.png`, 'aaaaaaaa%00.png', 'aaaaaaaa.png.png', 'aaaaaaaa/../aaaaaaaa.png'
  ]
  for (const name of names) {
    const answer = await gateway.fetch(`/api/images/cache/${name}`)
    t.equal(answer.status, 404, name)
    t.notMatch(await answer.text(), /^secret/)
  }
  const missing = await gateway.fetch('/api/images/cache/00000000-0000-0000-0000-000000000000.png')
  t.match(await missing.json(), { error: { code: 'image.cache_miss', details: { name: '00000000-0000-0000-0000-000000000000.png' } } })
  for (const bad of ['', '..', '../x', 'a', 'xyzxyzxyz', 'a'.repeat(41)]) t.notOk(isImageName(bad), bad)
})

t.test('it survives a restart, and clears up after a crash', async t => {
  const home = t.testdir({})
  const first = await cached(t, home)
  const path = await first.cache.put(png('kept'))
  await first.close()
  const folder = join(home, 'var/lib/svc/images/cache')
  writeFileSync(join(folder, '11111111-1111-1111-1111-111111111111.tmp'), 'half')
  mkdirSync(join(folder, '22222222.png'))
  writeFileSync(join(folder, 'notes.txt'), 'x')
  symlinkSync('/etc/hostname', join(folder, '33333333.png'))
  const second = await cached(t, home)
  t.equal((await second.fetch(path)).status, 200)
  t.strictSame(readdirSync(folder).filter(name => name.endsWith('.tmp')), [], 'what was half written is gone')
  t.equal((await second.fetch('/api/images/cache/22222222.png')).status, 404, 'a folder is no image')
  t.equal((await second.fetch('/api/images/cache/33333333.png')).status, 404, 'nor is a link')
  t.ok(readdirSync(folder).includes('notes.txt'), 'what is not ours stays')
  writeFileSync(join(folder, '44444444-4444.png'), png('put there'))
  t.equal((await second.fetch('/api/images/cache/44444444-4444.png')).status, 200, 'what appears is found without a restart')
})

t.test('as many and as large as it may be, the least recently used go', async t => {
  const clock = new FakeClock()
  const dir = t.testdir({})
  const files = new ImageFolder(join(dir, 'files'), clock, { files: 3, bytes: 1_000_000 })
  await files.load()
  const names: string[] = []
  const put = async (folder: ImageFolder, size: number): Promise<string> => {
    await clock.advance(1_000)
    return await folder.put(Buffer.alloc(size))
  }
  const has = async (folder: ImageFolder, name: string): Promise<boolean> => {
    const found = await folder.read(name)
    await found?.file.close()
    return found !== null
  }
  for (let i = 0; i < 3; i++) names.push(await put(files, 10))
  await clock.advance(1_000)
  t.ok(await has(files, names[0]!), 'the oldest is used once more')
  names.push(await put(files, 10))
  t.strictSame(readdirSync(join(dir, 'files')).sort(), [names[0], names[2], names[3]].map(name => `${name}.png`).sort())
  t.notOk(await has(files, names[1]!))
  t.strictSame(files.size, { files: 3, bytes: 30 })

  const bytes = new ImageFolder(join(dir, 'bytes'), clock, { files: 100, bytes: 100 })
  await bytes.load()
  const [a, b] = [await put(bytes, 40), await put(bytes, 40)]
  const c = await put(bytes, 40)
  t.strictSame([await has(bytes, a), await has(bytes, b), await has(bytes, c)], [false, true, true])
  const huge = await put(bytes, 500)
  t.strictSame([await has(bytes, huge), bytes.size], [true, { files: 1, bytes: 500 }], 'the newest stays, however large')

  await Promise.all(Array.from({ length: 20 }, () => files.put(Buffer.alloc(5))))
  t.equal(readdirSync(join(dir, 'files')).length, 3, 'many at once')
  t.equal(files.size.files, 3)

  const order = [...Array(3)].map((_, i) => `0000000${i}-0000`)
  mkdirSync(join(dir, 'old'))
  for (const [i, name] of order.entries()) {
    writeFileSync(join(dir, 'old', `${name}.png`), 'x')
    utimesSync(join(dir, 'old', `${name}.png`), 1_000 + i, 1_000 + i)
  }
  const smaller = new ImageFolder(join(dir, 'old'), clock, { files: 2, bytes: 1_000 })
  await smaller.load()
  t.strictSame(readdirSync(join(dir, 'old')).sort(), order.slice(1).map(name => `${name}.png`), 'a smaller limit counts for what was there')
})

t.test('a file that somebody took out is a miss', async t => {
  const gateway = await cached(t)
  const path = await gateway.cache.put(png('x'))
  const { rm } = await import('node:fs/promises')
  await rm(join(gateway.home, 'var/lib/svc/images/cache', path.split('/').at(-1)!))
  t.equal((await gateway.fetch(path)).status, 404)
  const other = await gateway.cache.put(png('y'))
  t.ok((await readFile(join(gateway.home, 'var/lib/svc/images/cache', other.split('/').at(-1)!))).equals(png('y')))
})

import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toFile } from 'openai'
import t from 'tap'
import type { Logger, PluginTable } from '../../../../kernel/contract/index.js'
import { createTestGateway, FakeClock } from '../../../../kernel/testing/index.js'
import files from '../../../../plugins/v1/files/index.js'
import { Store } from '../../../../plugins/v1/files/store.js'
import { FORM_TYPE, formOf, type Part } from '../audio/form.js'
import { clientOf } from './support.js'

const FOLDER = 'var/lib/svc/plugin-state/v1-files/files'

t.test('the openai client keeps files, pages through them and deletes them; they survive a restart', async t => {
  const first = await createTestGateway({ plugins: [files] })
  t.teardown(() => first.close())
  const client = clientOf(first.baseUrl)
  const add = async (name: string): Promise<string> => (await client.files.create({
    purpose: 'batch', file: await toFile(Buffer.from(`${name}\n`), `../${name}.jsonl`), expires_after: { anchor: 'created_at', seconds: 3600 }
  })).id
  const ids = [await add('a'), await add('b'), await add('c')]
  const one = await client.files.retrieve(ids[0]!)
  t.match(one, { object: 'file', filename: 'a.jsonl', bytes: 2, purpose: 'batch', status: 'processed', expires_at: one.created_at + 3600 })
  t.equal(await (await client.files.content(ids[1]!)).text(), 'b\n')
  const listed: string[] = []
  for await (const { id } of client.files.list({ limit: 2 })) listed.push(id)
  t.strictSame(listed, [...ids].reverse(), 'newest first, over two pages')
  t.strictSame((await client.files.list({ order: 'asc', purpose: 'batch' })).data.map(({ id }) => id), ids)
  t.strictSame((await client.files.list({ purpose: 'vision' })).data, [])
  t.strictSame(await client.files.delete(ids[1]!), { id: ids[1], object: 'file', deleted: true })
  t.match(await client.files.retrieve(ids[1]!).catch((error: unknown) => error), { status: 404, code: 'files.not_found' })
  t.equal((await stat(join(first.home, FOLDER, ids[0]!))).mode & 0o777, 0o600)

  await first.gateway.stop()
  await writeFile(join(first.home, FOLDER, 'file-half'), 'what a crash left')
  const second = await createTestGateway({ plugins: [files], home: first.home })
  const again = clientOf(second.baseUrl)
  t.strictSame((await again.files.list()).data.map(({ id }) => id), [ids[2], ids[0]])
  t.equal(await (await again.files.content(ids[2]!)).text(), 'c\n')
  t.strictSame((await readdir(join(first.home, FOLDER))).toSorted(), [ids[0], ids[2]].toSorted())
  await second.close()
})

t.test('what is too much, or no file of requests, is refused by the name of its field', async t => {
  const gateway = await createTestGateway({ plugins: [files], pluginConfig: { 'v1-files': { max_files: 1 } } })
  t.teardown(() => gateway.close())
  const post = (...parts: readonly Part[]): Promise<Response> =>
    gateway.fetch('/v1/files', { method: 'POST', headers: { 'content-type': FORM_TYPE }, body: formOf(...parts) })
  const file: Part = ['file', Buffer.from('{}')]
  const expiry = (seconds: string, anchor = 'created_at'): readonly Part[] => [['expires_after[anchor]', anchor], ['expires_after[seconds]', seconds]]
  const cases: ReadonlyArray<readonly [parts: readonly Part[], param: string]> = [
    [[file], 'purpose'], [[file, ['purpose', 'assistants']], 'purpose'], [[['purpose', 'batch']], 'file'],
    [[file, ['purpose', 'batch'], ...expiry('60')], 'expires_after[seconds]'], [[file, ['purpose', 'batch'], ...expiry('1e9')], 'expires_after[seconds]'],
    [[file, ['purpose', 'batch'], ...expiry('3600', 'now')], 'expires_after[anchor]']
  ]
  for (const [parts, param] of cases) {
    const answer = await post(...parts)
    t.match([answer.status, await answer.json()], [400, { error: { code: 'validation.invalid', param } }], param)
  }
  t.equal((await post(file, ['purpose', 'batch'])).status, 200)
  const full = await post(file, ['purpose', 'batch'])
  t.match([full.status, full.headers.get('x-should-retry'), await full.json()], [413, 'false', { error: { code: 'files.store_full' } }])
  t.equal((await readdir(join(gateway.home, FOLDER))).length, 1)
})

t.test('a file is gone when its time is over, from the list at once and from the disk soon', async t => {
  const folder = t.testdir({ made: 'x' })
  const clock = new FakeClock()
  const rows = new Map<string, unknown>()
  const table: PluginTable = {
    get: key => rows.get(key),
    set: (key, value) => { rows.set(key, value) },
    delete: key => rows.delete(key),
    keys: () => [...rows.keys()]
  }
  const gone = new AbortController()
  const quiet: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} } as never
  const store = new Store({ folder: join(folder, 'files'), table, clock, limits: { files: 10, bytes: 1000, madeBytes: 1000 }, log: quiet })
  await store.load(gone.signal)
  const { id } = await store.add({ filename: 'a', purpose: 'batch', bytes: Buffer.from('x'), expiresAfterS: 3600 })
  const made = { id: 'file-made', filename: 'b', purpose: 'batch_output', expiresAfterS: null }
  await writeFile(join(folder, 'files', 'file-made'), 'half of what a failure left')
  const kept = await store.take(join(folder, 'made'), made)
  t.equal(await readFile(store.path(kept), 'utf8'), 'x')
  t.same(await store.take(join(folder, 'made'), made), kept, 'taken once')
  clock.setWall(clock.now() + 3600_000)
  t.strictSame(store.list().map(file => file.id), ['file-made'])
  t.throws(() => store.get(id), { code: 'files.not_found' })
  await clock.advance(15 * 60_000)
  for (const end = performance.now() + 30_000; (await readdir(join(folder, 'files'))).length > 1 && performance.now() < end;) {
    await new Promise(resolve => { setTimeout(resolve, 5) })
  }
  t.strictSame([await readdir(join(folder, 'files')), store.size], [['file-made'], { files: 1, bytes: 1 }])
  await writeFile(join(folder, 'large'), Buffer.alloc(1000))
  await store.take(join(folder, 'large'), { ...made, id: 'file-large' })
  t.strictSame(store.list().map(file => file.id), ['file-large'], 'what was made first gives way to what is made')
  const own = await store.add({ filename: 'c', purpose: 'batch', bytes: Buffer.alloc(1000), expiresAfterS: null })
  t.equal(store.get(own.id).bytes, 1000, 'and takes no room from what clients upload')
  await store.remove(own.id)
  await clock.advance(0)
  gone.abort()
  t.equal(clock.pending, 0, 'it looks no more')
})

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t from 'tap'
import { modelRowSchema, svcConfigSchema, type SlotType } from '../../../kernel/contract/index.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { shippedProviders } from '../../providers.js'
import { capabilitiesOf, fitsSlotType, isMtpEligible } from '../../../kernel/models/eligibility.js'
import { createModelRegistry, type ModelRegistryOptions } from '../../../kernel/models/registry.js'
import { manualClock, processLock, recordingLog } from '../config/support.js'

async function open (home: string, text: string | null, over: Partial<ModelRegistryOptions> = {}) {
  const paths = resolvePaths({}, { home })
  mkdirSync(dirname(paths.registry), { recursive: true })
  if (text !== null) writeFileSync(paths.registry, text)
  const log = recordingLog()
  const clock = manualClock()
  const settings = svcConfigSchema.parse({}).models
  const registry = await createModelRegistry({
    paths, env: {}, log, clock, withLock: processLock(), settings: () => settings, ...over
  })
  return { registry, paths, log, clock, read: () => readFileSync(paths.registry, 'utf8') }
}

const text = `# models of this machine
[models."org/name.Q4.gguf"]
path = "/m/name.gguf"  # on the big disk
capabilities = ["chat"]

[models.plain]
path = "/m/plain.gguf"
`

t.test('a bad row of the registry is left out and told, and the others stay', async t => {
  const { registry, log } = await open(t.testdir(), `${text}
    [models.qwen3.5-4b]
    path = "/m/q.gguf"
    [models.bad]
    path = "relative"
    colour = "red"
    [models.worse]
    [models."two words"]
    path = "/m/x"
  `)
  t.same(registry.list().map(model => model.id), ['org/name.Q4.gguf', 'plain', 'qwen3.5-4b'])
  t.match(registry.get('org/name.Q4.gguf'), { path: '/m/name.gguf', capabilities: ['chat'], license: 'unknown', size_bytes: 0 })
  t.match(registry.get('qwen3.5-4b'), { path: '/m/q.gguf' }, 'an id that was left unquoted')
  t.equal(registry.get('bad'), undefined)
  t.match(log.lines.map(line => line.message), [
    'registry.toml: models.bad.path must be an absolute path; the row is ignored',
    /models\.bad\.colour is not a known key/, /models\.worse\.path is required/, /models\."two words" needs an id/
  ])
})

t.test('a registry in list form is read, and rewritten as tables', async t => {
  const { registry, read } = await open(t.testdir(), '# mine\n[[models]]\nid = "b"\npath = "/b"\n[[models]]\npath = "/c"\n[[models]]\nid = "b"\npath = "/d"\n')
  t.match(registry.list(), [{ id: 'b', path: '/b' }])
  await registry.put('a/x', { path: '/a' })
  t.same(registry.list().map(model => model.id), ['a/x', 'b'])
  t.match(read(), '[models."a/x"]', 'writing makes tables of it')
})

t.test('writing the registry keeps the comments and the order of its user', async t => {
  const { registry, read, paths } = await open(t.testdir(), text)
  let changes = 0
  const stop = registry.onChange(() => { changes++ })
  const added = await registry.put('new/one.v2', { path: '/m/n.gguf', size_bytes: 5, mmproj: null, defaults: { context_size: 4096 } })
  t.match(added, { id: 'new/one.v2', path: '/m/n.gguf', mmproj: null, defaults: { context_size: 4096 } })
  t.equal(registry.get('new/one.v2'), added)
  t.equal(read(), `${text}\n[models."new/one.v2"]\npath = "/m/n.gguf"\nsize_bytes = 5\n\n[models."new/one.v2".defaults]\ncontext_size = 4096\n`)
  t.ok(await registry.remove('new/one.v2'))
  t.notOk(await registry.remove('new/one.v2'))
  t.equal(read(), text, 'comments and order are those of the user')
  await registry.put('plain', { path: '/m/other.gguf' })
  t.equal(read(), text.replace('/m/plain.gguf', '/m/other.gguf'))
  t.equal(changes, 3)
  stop()

  await t.rejects(registry.put('x', { path: 'relative' }), { code: 'validation.invalid', details: { fields: [{ path: 'path' }] } })
  await t.rejects(registry.put('x', { path: '/x', colour: 'red' } as never), { code: 'validation.unknown_keys' })
  await t.rejects(registry.put('two words', { path: '/x' }), { code: 'validation.invalid', details: { fields: [{ path: 'id' }] } })
  t.equal(changes, 3)
  t.same(readdirSync(dirname(paths.registry)), ['registry.toml'])

  const odd = ['constructor', '__proto__', 'a"b\\c', 'ü:7b', 'a.b.c']
  for (const id of odd) await registry.put(id, { path: `/m/${id.length}` })
  for (const id of odd) t.equal(registry.get(id)?.path, `/m/${id.length}`, id)
  for (const id of odd) t.ok(await registry.remove(id), id)
  t.equal(registry.list().length, 2)
})

t.test('thirty models registered at once are all kept', async t => {
  const { registry } = await open(t.testdir(), null)
  await Promise.all(Array.from({ length: 30 }, (_, i) => registry.put(`m/${i}`, { path: `/m/${i}` })))
  t.equal(registry.list().length, 30)
})

t.test('a change reads, decides and writes in one go', async t => {
  const { registry, read } = await open(t.testdir(), text)
  let changes = 0
  registry.onChange(() => { changes++ })
  await registry.change(models => {
    t.same([...models.keys()], ['org/name.Q4.gguf', 'plain'])
    return new Map([...Array.from({ length: 500 }, (_, i) => [`m/${i}`, { path: `/m/${i}` }] as const), ['plain', null], ['nobody', null]])
  })
  t.equal(registry.list().length, 501)
  t.equal(changes, 1)
  t.match(read(), /^# models of this machine/)
  const before = read()
  await t.rejects(registry.change(models => {
    if (models.has('m/1')) throw new Error('there is one')
    return new Map()
  }), { message: 'there is one' })
  await t.rejects(registry.change(() => new Map([['good', { path: '/g' }], ['bad', { path: 'relative' }]])), { code: 'validation.invalid' })
  await registry.change(() => new Map())
  t.equal(read(), before, 'all or nothing')
})

t.test('what another process writes is seen, at most a second later', async t => {
  const { registry, paths, clock, log } = await open(t.testdir(), text)
  let changes = 0
  registry.onChange(() => { throw new Error('a listener that fails') })
  registry.onChange(() => { changes++ })
  const plain = registry.get('plain')
  writeFileSync(paths.registry, `${text}[models.other]\npath = "/o"\n`)
  t.equal(registry.get('other'), undefined, 'not looked yet')
  clock.advance(1000)
  t.ok(registry.get('other'))
  t.equal(registry.get('plain'), plain, 'rows that did not change are the same objects')
  t.equal(changes, 1)

  writeFileSync(paths.registry, '[models')
  clock.advance(1000)
  t.equal(registry.list().length, 3, 'an unparseable file keeps what is known')
  t.match(log.lines.at(-1)?.message, /is not valid TOML.*kept/)
  await t.rejects(registry.put('x', { path: '/x' }), { code: 'config.parse_error' }, 'and is not written over')
  rmSync(paths.registry)
  clock.advance(1000)
  t.same(registry.list(), [])
  t.equal(changes, 2)
})

t.test('a write that fails leaves the registry as it was', async t => {
  const ops = { ...fs, rename: async () => { throw Object.assign(new Error('full'), { code: 'ENOSPC' }) } }
  const { registry, read, paths } = await open(t.testdir(), text, { ops })
  await t.rejects(registry.put('x', { path: '/x' }), { code: 'config.write_failed', details: { path: 'registry/registry.toml', reason: 'ENOSPC' } })
  t.equal(read(), text)
  t.equal(registry.get('x'), undefined)
  t.same(readdirSync(dirname(paths.registry)), ['registry.toml'])
})

t.test('the model store is the environment\'s, else the configured one, else the default', async t => {
  const models = (over: object) => svcConfigSchema.parse({ models: over }).models
  const home = t.testdir()
  const store = async (over: object, env: Record<string, string> = {}): Promise<string> =>
    (await open(home, null, { settings: () => models(over), env })).registry.store
  t.equal(await store({}), join(home, 'var/lib/svc/models'))
  t.equal(await store({ pull_root: '/old' }), '/old')
  t.equal(await store({ pull_root: '/old', store: '/big' }), '/big')
  t.equal(await store({ store: '/big' }, { SVC_MODEL_STORE: '/env' }), '/env')
})

t.test('what a model can do, and which slots it fits', async t => {
  const { modelNames: names } = shippedProviders
  const model = (id: string, over: object = {}) => ({ id, ...modelRowSchema.parse({ path: `/m/${id}.gguf`, ...over }) })
  const table: readonly (readonly [string, readonly SlotType[]])[] = [
    ['qwen3-4b', ['llm']], ['bge-reranker-v2-m3', ['reranking']], ['qwen3-embedding-0.6b', ['embedding']], ['nomic-embed-text', ['embedding']],
    ['qwen3-vl-8b', ['llm']], ['whisper-v3', ['transcription']], ['kokoro-v1', ['tts']], ['qwen3-tts', ['tts']], ['sdxl-turbo', ['image']],
    ['flux-schnell', ['image']], ['vllm-thing', ['llm']], ['invite-model', ['llm']]
  ]
  const types: readonly SlotType[] = ['llm', 'embedding', 'reranking', 'transcription', 'tts', 'image']
  for (const [id, fits] of table) t.same(types.filter(type => fitsSlotType(model(id), type, names)), fits, id)
  t.same(capabilitiesOf(model('qwen3-vl-8b'), names), ['chat', 'vision'])
  t.ok(fitsSlotType(model('bge-reranker', { capabilities: ['chat'] }), 'llm', names), 'the registry wins over the name')
  t.same(capabilitiesOf({ ...model('m'), path: '/m/whisper.gguf' }, names), ['asr'], 'the file name counts too')
})

t.test('who is eligible for multi-token prediction', async t => {
  const table: readonly (readonly [string, string, readonly string[], boolean])[] = [
    ['qwen-27b-mtp-q6-k', '/m/x.gguf', [], true], ['x', '/m/Model.MTP.gguf', [], true], ['mtp', '/x', [], true], ['a/mtp-b', '/x', [], true],
    ['x', '/x', ['MTP'], true], ['smtp-model', '/x', [], false], ['mtpx', '/x', [], false], ['x', '/mtp/x.gguf', [], false], ['x_mtp2', '/x', [], false]
  ]
  for (const [id, path, tags, eligible] of table) t.equal(isMtpEligible({ id, path, tags: [...tags] }), eligible, `${id} ${path} ${tags.join()}`)
})

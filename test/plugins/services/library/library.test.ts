import t from 'tap'
import { modelRowSchema, type Model } from '../../../../kernel/contract/index.js'
import { pluginConformance } from '../../../../kernel/testing/plugin-conformance.js'
import { curatedMedia } from '../../../../plugins/services/library/curated-media.js'
import { curatedText } from '../../../../plugins/services/library/curated-text.js'
import { idOf, imageFolderOf, isProjectorName, partsOf, shardName, shardOf } from '../../../../plugins/services/library/file-names.js'
import library from '../../../../plugins/services/library/index.js'
import type { ModelSuggestion } from '../../../../plugins/services/library/ref.js'
import { merged } from '../../../../plugins/services/library/row-patch.js'
import { newRows } from '../../../../plugins/services/library/scan-plan.js'

for (const { name, run } of pluginConformance(library)) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

t.test('every curated model has a unique id, a file, a size and a licence', async t => {
  const curated = [...curatedText, ...curatedMedia]
  t.equal(new Set(curated.map(({ id }) => id.toLowerCase())).size, curated.length, 'ids differ in more than case')
  for (const { id, hf_repo: repo, hf_file: file, size_gb: size, vram_gb_min: vram, license_url: url, ...rest } of curated) {
    const { comfyui_subdir: folder, capability } = rest
    t.match(repo, /^[\w.-]+\/[\w.-]+$/, id)
    t.match(file, /\.(gguf|safetensors|bin)$/, id)
    t.ok(size > 0 && vram > 0, id)
    t.match(url, /^https:\/\//, id)
    t.equal(folder !== '', capability === 'image', id)
  }
})

t.test('the name of a file yields its parts, its id and its kind', async t => {
  t.same(shardOf('big-Q4_K_M-00002-of-00012.gguf'), { stem: 'big-Q4_K_M', part: 2, parts: 12, extension: '.gguf' })
  for (const name of ['big.gguf', 'big-00000-of-00002.gguf', 'big-00003-of-00002.gguf', 'big-1-of-2.gguf']) t.equal(shardOf(name), null, name)
  t.equal(shardName({ stem: 'm', parts: 3, extension: '.gguf' }, 2), 'm-00002-of-00003.gguf')
  t.same(partsOf('/m/a-00002-of-00003.gguf'), ['/m/a-00001-of-00003.gguf', '/m/a-00002-of-00003.gguf', '/m/a-00003-of-00003.gguf'])
  t.same(partsOf('/m/a.gguf'), ['/m/a.gguf'])
  t.same(['/m/Qwen 3 4B.gguf', '/m/org-x/model.gguf', '/m/x/model-00001-of-00002.gguf', '/m/a.b-Q4.gguf'].map(idOf), ['Qwen-3-4B', 'org-x', 'x', 'a.b-Q4'])
  t.same(['mmproj-x.gguf', 'x-mmproj-f16.gguf', 'mmprojector.gguf'].map(isProjectorName), [true, true, false])
  t.same(['/s/comfyui/models/checkpoints/a.safetensors', '/s/comfyui/models/loras/a.safetensors', '/s/a.safetensors'].map(imageFolderOf),
    [{ holdsModels: true }, { holdsModels: false }, null])
})

const model = (id: string, over: object = {}): Model => ({ id, ...modelRowSchema.parse({ path: `/m/${id}.gguf`, ...over }) })

t.test('which files a scan registers, and as what', async t => {
  const found = (id: string, path: string, problem: string | null = null): ModelSuggestion =>
    ({ id, path, resolved_path: path, kind: 'model', confidence: 1, row: { path }, hints: {}, problem })
  const known = new Map([['a', model('a')]])
  const { rows, skipped } = newRows([
    found('a', '/m/a.gguf'), found('a', '/n/a.gguf'), found('a', '/x y/a.gguf'), found('a', '/z/n/a.gguf'), found('b', '/n/b.gguf'), found('b', '/n/b.gguf'),
    found('c', '/n/c.gguf', 'it is broken')
  ], known)
  t.same([...rows], [
    ['n-a', { path: '/n/a.gguf' }], ['x-y-a', { path: '/x y/a.gguf' }], ['n-a-2', { path: '/z/n/a.gguf' }], ['b', { path: '/n/b.gguf' }]
  ])
  t.same(skipped, [
    { path: '/m/a.gguf', reason: 'already_registered' }, { path: '/n/b.gguf', reason: 'already_registered' },
    { path: '/n/c.gguf', reason: 'invalid_model: it is broken' }
  ])
})

t.test('a change of a row merges tables, and null removes a key', async t => {
  const before = model('m', { tags: ['x'], defaults: { context_size: 4096, profile: 'p' }, metadata: { a: 1 } })
  const change = (patch: object) => merged(before, patch as Record<string, unknown>)
  t.same(change({ name: 'N' }), { row: { path: '/m/m.gguf', name: 'N', tags: ['x'], defaults: { context_size: 4096, profile: 'p' }, metadata: { a: 1 } }, changed: ['name'] })
  t.same(change({ defaults: { profile: null, extra_args: '--y' } }).row.defaults, { context_size: 4096, extra_args: '--y' })
  t.equal(change({ defaults: null }).row.defaults, undefined)
  t.same(change({ metadata: { b: { c: null, d: [1] } } }).row.metadata, { b: { d: [1] } }, 'a null takes its key out')
  t.same(change({ metadata: { d: [null, 1] } }).row.metadata, { d: [null, 1] }, 'one in a list is left for the row to refuse')
  t.same(change({ tags: null, license: null, name: '' }).changed, ['tags', 'license'])
  t.same(change({ tags: ['x'], id: 'm' }).changed, [])
  t.throws(() => change({ id: 'other' }), { code: 'validation.invalid' })
})

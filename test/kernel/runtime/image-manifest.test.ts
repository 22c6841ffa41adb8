import t from 'tap'
import { manifestSchema } from '../../../kernel/contract/index.js'
import { shippedProviders } from '../../providers.js'
import { overrideVariable, resolveImage } from '../../../kernel/runtime/image/image-manifest.js'
import { parseImageRef, pinOf, usableReference } from '../../../kernel/runtime/image/image-ref.js'

const D = `sha256:${'1a'.repeat(32)}`
const E = `sha256:${'2b'.repeat(32)}`

t.test('an image reference is split into repository, tag and digest', async t => {
  const cases: readonly (readonly [string, string, string | null, string | null])[] = [
    ['name', 'name', null, null],
    ['name:tag', 'name', 'tag', null],
    ['owner/name', 'owner/name', null, null],
    ['ghcr.io/owner/name:server-rocm', 'ghcr.io/owner/name', 'server-rocm', null],
    ['localhost:5000/name', 'localhost:5000/name', null, null],
    ['localhost:5000/name:1', 'localhost:5000/name', '1', null],
    [`localhost:5000/name@${D}`, 'localhost:5000/name', null, D],
    [`localhost:5000/name:1@${D}`, 'localhost:5000/name', '1', D],
    [D, D, null, null]
  ]
  for (const [text, repository, tag, digest] of cases) t.same(parseImageRef(text), { repository, tag, digest }, text)
})

t.test('what an image is looked up and started by', async t => {
  const cases: readonly (readonly [string, string | null, string])[] = [
    ['repo/name:tag', null, 'repo/name:tag'],
    ['repo/name', null, 'repo/name:latest'],
    ['repo/name:tag', D, `repo/name@${D}`],
    [`repo/name:tag@${E}`, null, `repo/name@${E}`],
    [`repo/name:tag@${E}`, D, `repo/name@${D}`],
    [D, null, D]
  ]
  for (const [image, digest, expected] of cases) t.equal(usableReference(image, digest), expected, `${image} ${digest}`)
  t.equal(pinOf(`a@${E}`, null), E)
  t.equal(pinOf(`a@${E}`, D), D)
  t.equal(pinOf('a', null), null)
})

t.test('short names, references, overrides and pins', async t => {
  const manifest = manifestSchema.parse({
    toolbox_images: {
      'pinned': { tag: 'ghcr.io/o/pinned:1', digest: D },
      'empty': { tag: 'ghcr.io/o/empty:1', digest: '' },
      'npu-rt': { tag: 'ghcr.io/o/npu:1', digest: null },
      'own-pin': { tag: `ghcr.io/o/own:1@${E}`, digest: null }
    }
  })
  const cases: readonly (readonly [string, Record<string, string>, string, string | null, boolean])[] = [
    ['pinned', {}, 'ghcr.io/o/pinned:1', D, false],
    ['empty', {}, 'ghcr.io/o/empty:1', null, true],
    ['npu-rt', {}, 'ghcr.io/o/npu:1', null, true],
    ['own-pin', {}, 'ghcr.io/o/own:1', E, false],
    ['npu-rt', { SVC_TOOLBOX_IMAGE_NPU_RT: 'mine/npu:2' }, 'mine/npu:2', null, false],
    ['npu-rt', { SVC_TOOLBOX_IMAGE_NPU_RT: `mine/npu:2@${E}` }, 'mine/npu:2', E, false],
    ['pinned', { SVC_TOOLBOX_IMAGE_PINNED: 'mine/pinned:2' }, 'mine/pinned:2', null, false],
    ['pinned', { SVC_TOOLBOX_IMAGE_PINNED: '' }, 'ghcr.io/o/pinned:1', D, false],
    ['brand-new', { SVC_TOOLBOX_IMAGE_BRAND_NEW: 'mine/new:1' }, 'mine/new:1', null, false],
    ['ghcr.io/o/full:1', {}, 'ghcr.io/o/full:1', null, false],
    [`ghcr.io/o/full:1@${D}`, {}, 'ghcr.io/o/full:1', D, false],
    ['ubuntu:24.04', {}, 'ubuntu:24.04', null, false]
  ]
  for (const [image, env, ref, digest, warns] of cases) {
    const resolved = resolveImage(image, manifest, env)
    t.match(resolved, { ref, digest }, `${image} ${JSON.stringify(env)}`)
    t.equal(resolved.warning !== null, warns, `${image} ${warns ? 'warns' : 'does not warn'}`)
  }
  t.match(resolveImage('empty', manifest, {}).warning, /empty \(ghcr\.io\/o\/empty:1\) has no digest/)
})

const releaseManifest = manifestSchema.parse({ toolbox_images: shippedProviders.images })

t.test('a short name that nothing defines is never taken for an image of a public registry', async t => {
  t.throws(() => resolveImage('npu-new', releaseManifest, {}), {
    code: 'slot.config_error', message: /'npu-new' \(known: cpu, .*SVC_TOOLBOX_IMAGE_NPU_NEW/
  })
  t.throws(() => resolveImage('toString', releaseManifest, {}), { code: 'slot.config_error' })
  t.equal(overrideVariable('tts-gpu'), 'SVC_TOOLBOX_IMAGE_TTS_GPU')
})

t.test('images of the release are full references, under the names that slots and manifest.json know', async t => {
  t.strictSame(Object.keys(releaseManifest.toolbox_images).toSorted(), [
    'cpu', 'cuda', 'imagegen', 'npu-rt', 'rocm', 'speaches', 'speaches-cuda', 'tts-cpu', 'tts-gpu', 'tts-gpu-cuda', 'vulkan', 'whisper',
    'whisper-cuda', 'whisper-vulkan'
  ])
  for (const { tag } of Object.values(releaseManifest.toolbox_images)) {
    t.match(tag, /^(ghcr|docker)\.io\/[^/]+\/[^:]+:[\w.-]+$/, 'a full reference with a tag')
  }
})

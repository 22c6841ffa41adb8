import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { discreteAmd } from '../../../kernel/hardware/machines/discrete-amd.js'
import { cpuOnly } from '../../../kernel/hardware/machines/cpu-only.js'
import { nvidiaBesideRyzen, twoMakers } from '../../../kernel/hardware/machines/mixed.js'
import { nvidia } from '../../../kernel/hardware/machines/nvidia.js'
import { strixHalo } from '../../../kernel/hardware/machines/strix-halo.js'
import { apiOn } from './machine.js'
import type { Api } from '../support.js'

/** A registry with the files that it names. */
function registry (t: Test, rows: Readonly<Record<string, { readonly file: string, readonly more?: string }>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-models-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return Object.entries(rows).map(([id, { file, more = '' }]) => {
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, 'weights')
    return `[models."${id}"]\npath = "${path}"\n${more}\n`
  }).join('')
}

function whisper (t: Test): Record<string, string> {
  const rows = {
    'Whisper-Base': { file: 'ggml-base.bin', more: 'capabilities = ["asr"]' },
    'whisper-folder': { file: 'faster/model.bin', more: 'capabilities = ["asr"]' }
  }
  return { 'var/lib/svc/registry/registry.toml': registry(t, rows) }
}

interface Launch { readonly image: string, readonly command: readonly string[], readonly env: Readonly<Record<string, string>> }

function launchOf (gateway: Api, slot: string): Launch {
  const { spec } = gateway.runtime.started.findLast(started => started.slot === slot)!
  if (spec.form.kind !== 'container') throw new Error('no container')
  return { image: spec.form.image, command: spec.form.command, env: spec.env }
}

t.test('the model decides which engine hears: a GGML file whisper.cpp, a model of the hub speaches', async t => {
  const gateway = await apiOn(t, discreteAmd, { files: whisper(t) })
  const choose = (body: object): ReturnType<Api['call']> => gateway.call('POST', '/api/capabilities/voice/stt', { enabled: true, ...body })
  t.match(await choose({ model: 'Whisper-Base' }), { status: 200, json: { selection: { device: 'gpu-vulkan', provider: 'stt-engine', status: 'ready' } } })
  t.match(launchOf(gateway, 'stt'), { image: 'ghcr.io/ggml-org/whisper.cpp:main-vulkan' })
  t.match(launchOf(gateway, 'stt').command.join(' '), /--model \S+ggml-base\.bin /)
  t.match(await choose({ model: 'Whisper-Base', device: 'cpu' }), { status: 200, json: { selection: { device: 'cpu', status: 'ready' } } })
  t.match(launchOf(gateway, 'stt'), { image: 'ghcr.io/ggml-org/whisper.cpp:main', env: { PRELOAD_MODELS: undefined } })

  t.match(await choose({ model: 'Systran/faster-whisper-medium', device: null }), { status: 200, json: { selection: { device: 'cpu', status: 'ready' } } })
  t.match(launchOf(gateway, 'stt'), { image: 'ghcr.io/speaches-ai/speaches:latest-cpu', env: { PRELOAD_MODELS: '["Systran/faster-whisper-medium"]' } })
  t.match(await choose({ model: 'Systran/faster-whisper-medium', device: 'gpu-vulkan' }), { status: 400, json: { error: { message: /speaches, which does not support Vulkan.*runs on cpu/ } } })
  t.match(await choose({ model: 'whisper-folder' }), { status: 400, json: { error: { message: /neither a GGML file .* nor a model of the hub/ } } })

  const swapped = await gateway.call('POST', '/api/slots/stt/swap', { model_id: 'Whisper-Base' })
  t.match(swapped, { status: 200 })
  t.match(launchOf(gateway, 'stt').image, /whisper\.cpp:main$/, 'a swap changes the engine with the model')
})

t.test('an option that contradicts the model is refused, and what it would serve is not another model', async t => {
  const gateway = await apiOn(t, cpuOnly, { files: whisper(t) })
  const slot = (more: object): object => ({ name: 'ear', type: 'transcription', provider: 'stt-engine', device: 'cpu', ...more })
  t.match(await gateway.call('POST', '/api/slots', slot({ model: { default: 'Whisper-Base' }, options: { engine: 'speaches' } })), {
    status: 400, json: { error: { code: 'slot.config_error', message: /speaches, which cannot load the GGML file of 'Whisper-Base'.*remove `engine` from/ } }
  })
  t.match(await gateway.call('POST', '/api/slots', slot({ model: { default: 'Systran/faster-whisper-base' }, options: { engine: 'whisper-cpp' } })), {
    status: 400, json: { error: { message: /whisper\.cpp, which loads a GGML file/ } }
  })
  t.match(await gateway.call('POST', '/api/slots', slot({ model: { default: 'Whisper-Base' } })), { status: 201 })
  t.match(await gateway.call('POST', '/api/slots/ear/load'), { status: 200 })
  t.match(launchOf(gateway, 'ear'), { image: 'ghcr.io/ggml-org/whisper.cpp:main' })
})

for (const [name, machine] of Object.entries({ strixHalo, discreteAmd })) {
  t.test(`${name}: setup seeds speech to text that can start`, async t => {
    const gateway = await apiOn(t, machine, { files: whisper(t) })
    const { json } = await gateway.call('POST', '/api/install/apply', { tier: 'Default', pull: false })
    const stt = json.slots.find(({ slot }: { slot: string }) => slot === 'stt')
    t.match(stt, { created: true, device: 'cpu', error: null })
    t.match(await gateway.call('POST', '/api/slots/stt/load'), { status: 200 })
    t.match(launchOf(gateway, 'stt').image, /speaches:latest-cpu$/)

    const { catalogs } = (await gateway.call('GET', '/api/capabilities')).json
    const places = catalogs.voice.stt.find(({ id }: { id: string }) => id === 'Whisper-Base').backends.map(({ id }: { id: string }) => id)
    t.strictSame(places, ['gpu-vulkan', 'cpu'])
    t.notOk(catalogs.voice.stt.some(({ id }: { id: string }) => id === 'whisper-folder'), 'what nothing here can load is not offered')
  })
}

for (const [name, machine] of Object.entries({ nvidia, nvidiaBesideRyzen, twoMakers })) {
  t.test(`${name}: images are not made on CUDA with an image for AMD`, async t => {
    const gateway = await apiOn(t, machine, { files: { 'etc/svc/slots/old.toml': 'type = "image"\nprovider = "imagegen"\ndevice = "gpu-cuda"\nprofile = "imagegen"\n' } })
    const reason = /image imagegen \(docker\.io\/kyuz0\/amd-strix-halo-comfyui:latest\) is built for gpu-rocm and not for gpu-cuda: .*SVC_TOOLBOX_IMAGE_IMAGEGEN/
    t.match(await gateway.call('POST', '/api/slots', { name: 'img', type: 'image', provider: 'imagegen', device: 'gpu-cuda' }), {
      status: 400, json: { error: { code: 'slot.config_error', message: reason } }
    })
    t.match(await gateway.call('POST', '/api/slots/old/load'), { json: { error: { message: reason } } }, 'a file that was written before is refused when it is loaded')
    t.match(await gateway.call('POST', '/api/capabilities/img/img', { enabled: true, device: 'gpu-cuda' }), { status: 400, json: { error: { message: reason } } })
    t.equal(gateway.runtime.started.length, 0)

    const { json } = await gateway.call('POST', '/api/install/apply', { tier: 'Max', pull: false })
    const img = json.slots.find(({ slot }: { slot: string }) => slot === 'img')
    if (name === 'nvidia') t.match(img, { created: false, skipped: 'not_applicable_on_this_hardware', detail: /built for gpu-rocm/ })
    else t.match(img, { device: 'gpu-rocm' }, 'a machine that has an AMD GPU as well uses that')

    const own = { name: 'own', type: 'image', provider: 'imagegen', device: 'gpu-cuda', image: 'registry.example/comfyui-cuda:1' }
    t.match(await gateway.call('POST', '/api/slots', own), { status: 201 })
  })
}

t.test('an engine that wants a GPU for itself leaves another one alone', async t => {
  const { createFakeProviderPlugin } = await import('../../../../kernel/testing/index.js')
  const greedy = createFakeProviderPlugin({ name: 'greedy', exclusivity: 'exclusive', devices: ['gpu-cuda', 'gpu-rocm', 'gpu-vulkan'] })
  const gateway = await apiOn(t, twoMakers, { providers: [createFakeProviderPlugin(), greedy] })
  const create = (name: string, device: string, index: number | null): ReturnType<Api['call']> =>
    gateway.call('POST', '/api/slots', { name, type: 'llm', provider: 'greedy', device, gpu_index: index, model: { default: 'fake-model' } })
  t.match(await create('cuda', 'gpu-cuda', 0), { status: 201 })
  t.match(await create('rocm', 'gpu-rocm', 0), { status: 201 }, 'GPU 0 of another maker is another GPU')
  t.match(await create('vulkan', 'gpu-vulkan', 1), { status: 400, json: { error: { message: /both need device gpu-vulkan to themselves/ } } })
})

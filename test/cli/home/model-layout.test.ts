import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readlinkSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { modelRowSchema, type Model } from '../../../kernel/contract/index.js'
import { ModelLayout } from '../../../cli/offline/layout/model-layout.js'
import { planLayout } from '../../../cli/offline/layout/plan.js'
import { shippedProviders } from '../../providers.js'
import { run } from '../support.js'

const model = (id: string, path: string, over: object = {}): Model => ({ id, ...modelRowSchema.parse({ path, ...over }) })

const layout = new ModelLayout(shippedProviders.list().flatMap(({ modelFolders = [] }) => modelFolders))

t.test('what a model is for', async t => {
  const table: ReadonlyArray<readonly [string, object | null, string | null]> = [
    ['x.gguf', { capabilities: ['chat'], backends: ['vulkan'] }, 'llamacpp/chat'],
    ['x.gguf', { capabilities: ['chat', 'embed'] }, 'llamacpp/embed'],
    ['x.gguf', { capabilities: ['embed', 'rerank'] }, 'llamacpp/rerank'],
    ['x.gguf', { capabilities: ['chat', 'vision'], backends: ['cuda', 'flm'] }, 'flm/chat'],
    ['x', { capabilities: ['embed'], backends: ['npu-rt'] }, 'flm/embed'],
    ['x', { capabilities: ['asr'] }, 'whispercpp/stt'],
    ['x', { capabilities: ['asr'], backends: ['moonshine'] }, 'whispercpp/moonshine'],
    ['x', { capabilities: ['tts'] }, 'kokoro/tts'],
    ['x', { capabilities: ['image'] }, 'sd-cpp/img'],
    ['x', { capabilities: ['chat'], tags: ['omni'] }, 'collections/omni'],
    ['voices/x', { capabilities: ['chat'] }, 'llamacpp/chat'],
    ['comfyui/models/checkpoints/x.safetensors', { capabilities: [] }, null],
    ['flm-ubuntu/llama', null, 'flm/chat'],
    ['deep/moonshine_voice/m', null, 'whispercpp/moonshine'],
    ['voices/v.bin', null, 'kokoro/tts'],
    ['comfyui/models/checkpoints/x.safetensors', null, 'sd-cpp/img'],
    ['x.gguf', null, null], ['voices', null, null]
  ]
  for (const [path, over, leaf] of table) t.equal(layout.classify(path, over === null ? undefined : model('m', '/m', over)).leaf, leaf, `${path} ${JSON.stringify(over)}`)
})

t.test('the plan links each model into the folder of its capability, and overwrites nothing', async t => {
  const sources = ['a/m.gguf', 'b/m.gguf', 'c/model.gguf', 'flm-ubuntu/x', 'same.gguf', 'other.gguf', 'real.gguf', 'who.gguf']
  const models = sources.filter(source => !/who|flm/.test(source)).map(source => model(source, `/old/${source}`, { capabilities: ['chat'] }))
  const present: Record<string, string> = { 'llamacpp/chat/same.gguf': '/old/same.gguf', 'llamacpp/chat/other.gguf': '/elsewhere', 'llamacpp/chat/real.gguf': 'file' }
  const plan = (force: boolean) => planLayout({ layout, sources, mountRoot: '/old', models, present: link => present[link] ?? null, force })
    .map(({ action, link, target }) => `${action} ${link} ${target}`)
  t.same(plan(false), [
    'create llamacpp/chat/m.gguf /old/a/m.gguf', 'create llamacpp/chat/b-m.gguf /old/b/m.gguf', 'create llamacpp/chat/c-model.gguf /old/c/model.gguf',
    'create flm/chat/x /old/flm-ubuntu/x', 'skip-exists llamacpp/chat/same.gguf /old/same.gguf', 'would-overwrite llamacpp/chat/other.gguf /old/other.gguf',
    'would-overwrite llamacpp/chat/real.gguf /old/real.gguf', 'unclassified  /old/who.gguf'
  ])
  t.match(plan(true)[5], /^overwrite /)
  t.match(plan(true)[6], /^would-overwrite /, 'a real file is never replaced')
})

interface OldHome {
  readonly home: string
  readonly old: string
  readonly root: string
  readonly svc: (...args: readonly string[]) => ReturnType<typeof run>
}

function oldHome (t: Test): OldHome {
  const home = t.testdir()
  const old = join(home, 'old')
  const put = (path: string): void => {
    mkdirSync(dirname(join(old, path)), { recursive: true })
    writeFileSync(join(old, path), 'x')
  }
  for (const path of ['chat/qwen.gguf', 'embed/bge.gguf', 'flm-ubuntu/llama/weights.q4nx', 'voices/af.bin', 'hub/models--x/blobs/y.gguf', '.hidden/z.gguf', 'notes.txt', 'loose.gguf']) put(path)
  mkdirSync(join(home, 'var/lib/svc/registry'), { recursive: true })
  writeFileSync(join(home, 'var/lib/svc/registry/registry.toml'),
    `[models.qwen]\npath = "${old}/chat/qwen.gguf"\ncapabilities = ["chat"]\n[models.bge]\npath = "${old}/embed/bge.gguf"\ncapabilities = ["embed"]\nbackends = ["vulkan"]\n`)
  const root = join(home, 'var/lib/svc/models')
  return { home, old, root, svc: (...args) => run(['migrate', 'model-layout', '--home', home, '--mount-root', old, ...args], { cwd: home }) }
}

t.test('dry run, apply, apply again, things in the way', async t => {
  const { old, root, svc } = oldHome(t)
  const before = execFileSync('find', [old, '-printf', '%p %T@ %s\n']).toString()
  const dry = await svc()
  t.equal(dry.code, 0)
  t.match(dry.stdout, /^ACTION +LINK/)
  t.match(dry.stdout, /create +llamacpp\/chat\/qwen\.gguf/)
  t.match(dry.stdout, /llamacpp\/embed: 1 create\n/)
  t.match(dry.stdout, /Nothing was changed/)
  t.match(dry.stderr, /1 of 5 are skipped/)
  t.throws(() => readdirSync(root), { code: 'ENOENT' })

  const registry = join(old, '../registry.toml')
  writeFileSync(registry, `[models.qwen]\npath = "${old}/chat/qwen.gguf"\ncapabilities = ["rerank"]\n`)
  t.match((await svc('--registry', registry)).stdout, /create +llamacpp\/rerank\/qwen\.gguf/)
  const applied = await svc('--apply')
  t.equal(applied.code, 0, 'what nobody knows is a warning')
  const links = () => execFileSync('find', [root, '-type', 'l', '-printf', '%P -> %l\n']).toString().trim().split('\n').sort()
  t.same(links(), [
    `flm/chat/llama -> ${old}/flm-ubuntu/llama`, `kokoro/tts/af.bin -> ${old}/voices/af.bin`, `llamacpp/chat/qwen.gguf -> ${old}/chat/qwen.gguf`,
    `llamacpp/embed/bge.gguf -> ${old}/embed/bge.gguf`
  ])
  const json = JSON.parse((await svc('--apply', '--json')).stdout) as { steps: { action: string }[] }
  t.same(json.steps.map(({ action }) => action).sort(), ['skip-exists', 'skip-exists', 'skip-exists', 'skip-exists', 'unclassified'], 'a second run changes nothing')

  rmSync(join(root, 'kokoro/tts/af.bin'))
  symlinkSync('/elsewhere', join(root, 'kokoro/tts/af.bin'))
  rmSync(join(root, 'llamacpp/chat/qwen.gguf'))
  writeFileSync(join(root, 'llamacpp/chat/qwen.gguf'), 'real')
  t.match(await svc(), { code: 0 }, 'a dry run always ends well')
  t.match(await svc('--apply'), { code: 1, stderr: /2 links were not created/ })
  t.match(await svc('--apply', '--force'), { code: 1, stderr: /1 links were not created/ })
  t.equal(readlinkSync(join(root, 'kokoro/tts/af.bin')), `${old}/voices/af.bin`)
  t.equal(execFileSync('find', [old, '-printf', '%p %T@ %s\n']).toString(), before, 'the old tree is as it was')
  t.match((await svc('--mount-root', '/nowhere')).stdout, 'There are no models below /nowhere.')
})

t.test('a root that is not what it seems', async t => {
  const { home, svc } = oldHome(t)
  mkdirSync(join(home, 'real'))
  symlinkSync(join(home, 'real'), join(home, 'linked'))
  t.match(await svc('--canonical-root', 'linked'), { code: 2, stderr: /is a symbolic link/ })
  const folder = mkdtempSync(join(tmpdir(), 'svc-bind-'))
  mkdirSync(join(folder, 'a'))
  mkdirSync(join(folder, 'b'))
  try {
    execFileSync('mount', ['--bind', join(folder, 'a'), join(folder, 'b')], { stdio: 'ignore' })
  } catch {
    rmSync(folder, { recursive: true })
    return t.comment('skipped: nothing can be mounted here')
  }
  try {
    t.match(await svc('--canonical-root', join(folder, 'b')), { code: 2, stderr: /bind mount/ })
    t.match(await svc('--canonical-root', join(folder, 'a')), { code: 0 })
  } finally {
    execFileSync('umount', [join(folder, 'b')])
    rmSync(folder, { recursive: true })
  }
})

import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { EngineClient, SlotType } from '../../../../kernel/contract/index.js'
import type { ContainerForm, ContainerRuntime } from '../../../../kernel/contract/provider/engine-runtime.js'
import { planArgv, planLaunch } from '../../../../kernel/slots/plan/launch/launch-plan.js'
import { bigramChatTemplate, bigramGguf } from '../../../../plugins/services/demo/bigram-gguf.js'
import { shippedProviders } from '../../../providers.js'
import { openDocker, testEngine } from '../../../kernel/runtime/engines.js'
import { eventually, uniqueName } from '../../../kernel/runtime/support.js'
import { freePort } from '../../../ports.js'
import { greyPng, imageTokens, projectorGguf } from './projector-gguf.js'
import { rankGguf } from './rank-gguf.js'
import {
  findsByWords, launchInput, post, ranksByLastDigit, registeredProvider, speaksTheSentence, testModel, testProfile,
  type LaunchWish
} from './support.js'

const never = new AbortController().signal
const provider = registeredProvider()

/** Starts the container that the provider and the kernel plan for a slot, and waits until it serves. */
async function startPlanned (t: Test, runtime: ContainerRuntime, image: string, wish: LaunchWish): Promise<string> {
  const launch = launchInput({ form: 'container', port: await freePort(), ...wish })
  const access = { devices: [], cdiDevices: [], groups: [], securityOpts: [], env: {} }
  const plan = planLaunch({ launch, provider, mtp: false, access, image: { ref: image, digest: null }, publishHost: '127.0.0.1' })
  const folder = dirname(launch.model!.path)
  const form = { ...plan.form as ContainerForm, mounts: [{ source: folder, target: folder, readOnly: true }] }
  const id = await runtime.create({ name: uniqueName('svc-llm-test'), labels: {}, env: plan.env, port: launch.port, form }, never)
  t.teardown(() => runtime.remove(id))
  await runtime.start(id, never)
  return eventually(`it serves: ${plan.argv.argv.join(' ')}`, async () => {
    const engine = (await runtime.inspect(id))!
    if (engine.state === 'exited') {
      const lines: string[] = []
      for await (const line of runtime.logs(id, { tail: 20, follow: false, signal: never })) lines.push(line)
      throw new Error(lines.join('\n'))
    }
    const url = `http://${engine.address!.host}:${engine.address!.port}`
    return (await fetch(`${url}/health`)).status === 200 ? url : null
  }, 120_000)
}

function clientOf (url: string): EngineClient {
  return {
    address: { host: '', port: 0 },
    request: async ({ path, signal }) => {
      const response = await fetch(`${url}${path}`, { signal })
      const body = (async function* () { /* not used */ })()
      return { status: response.status, headers: {}, body, json: () => response.json(), text: () => response.text() }
    }
  }
}

t.test('a real llama-server takes what the provider says', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const runtime = await openDocker(engine.host)
  t.teardown(() => runtime.close())
  const folder = t.testdir({ 'gemma.gguf': bigramGguf(), 'chat.jinja': bigramChatTemplate, 'rank.gguf': rankGguf() })
  const model = testModel({ id: 'svc-demo', path: join(folder, 'gemma.gguf'), capabilities: ['chat', 'embed'] })
  const profile = testProfile('--threads 2 --threads-batch 2 -b 256 -ub 256 --parallel 1 --load-mode none')
  const start = (wish: LaunchWish): Promise<string> => startPlanned(t, runtime, engine.llamaImage, { model, profile, ...wish })
  const [chat, embedding, reranking] = await Promise.all([
    start({ slot: { workers: 2 }, chatTemplatePath: join(folder, 'chat.jinja') }),
    start({ slot: { type: 'embedding' } }),
    start({ slot: { type: 'reranking' }, model: testModel({ path: join(folder, 'rank.gguf'), capabilities: ['rerank'] }) })
  ])

  await t.test('a real llama-server chats through the provider', async t => {
    await speaksTheSentence(t, chat)
    const message = { role: 'user', content: 'hi' }
    t.match(await post(chat, provider.surfaces.responses!.path, { input: 'hi' }), { status: 200, json: { object: 'response' } })
    t.match(await post(chat, provider.surfaces.messages!.path, { max_tokens: 2, messages: [message] }),
      { status: 200, json: { type: 'message', content: [{ text: 'Hello! I ' }] } })
    t.match(await post(chat, provider.surfaces['count-tokens']!.path, { messages: [message] }), { status: 200, json: { input_tokens: Number } })
    t.equal(await provider.loadedModel!(clientOf(chat), never), 'svc-demo')
    t.match(await provider.metrics!(clientOf(chat), never), { requestsProcessing: 0, tokensPerSecond: Number })
    t.equal((await (await fetch(`${chat}/slots`)).json() as unknown[]).length, 2, 'two workers')
  })

  await t.test('embedding, on a profile made for chat', async t => {
    await findsByWords(t, embedding)
    t.equal((await post(embedding, '/v1/embeddings', { input: '5'.repeat(1000) })).status, 200, 'inputs longer than the batch of the profile')
  })

  await t.test('a real llama-server ranks through the provider', async t => {
    await ranksByLastDigit(t, reranking)
    t.equal(provider.surfaces.rerank?.path, '/v1/rerank')
  })
})

interface Usage { readonly usage: { readonly prompt_tokens: number } }

t.test('a real llama-server with a projector, and with a chat template of the operator\'s', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const runtime = await openDocker(engine.host)
  t.teardown(() => runtime.close())
  // the width of the demo model, which its header tells
  const wide = 'x'.repeat(30)
  const folder = t.testdir({
    'demo.gguf': bigramGguf(), 'mmproj.gguf': projectorGguf(1024), 'wide.jinja': bigramChatTemplate.replace('{% if', `{{ '${wide}' }}{% if`)
  })
  const model = testModel({ id: 'svc-demo', path: join(folder, 'demo.gguf'), mmproj: join(folder, 'mmproj.gguf') })
  const start = (wish: LaunchWish): Promise<string> => startPlanned(t, runtime, engine.llamaImage, { model, ...wish })
  const [seeing, blind] = await Promise.all([
    start({ mmprojPath: join(folder, 'mmproj.gguf') }), start({ chatTemplatePath: join(folder, 'wide.jinja') })
  ])
  const image = greyPng().toString('base64')
  const text = { type: 'text', text: 'what is this' }
  const chat = (part?: object): object => ({ messages: [{ role: 'user', content: part === undefined ? text.text : [text, part] }] })
  const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } }
  const tokens = async (url: string, body: object): Promise<number> =>
    ((await post(url, '/v1/chat/completions', body)).json as unknown as Usage).usage.prompt_tokens

  const [without, withImage] = [await tokens(seeing, chat()), await tokens(seeing, chat(picture))]
  t.ok(withImage >= without + imageTokens, `the image is ${withImage - without} tokens of the prompt`)
  const message = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } }
  t.equal((await post(seeing, '/v1/messages', { max_tokens: 5, ...chat(message) })).status, 200, 'also in the Messages API')
  const refused = await post(blind, '/v1/chat/completions', chat(picture))
  t.match(refused.json, { error: { message: /image input is not supported/ } }, 'without a projector it refuses')
  t.ok(await tokens(blind, chat()) >= without + wide.length / 2, 'the template is the operator\'s')
})

t.test('a real llama-server knows every flag that the gateway may give it', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const runtime = await openDocker(engine.host)
  t.teardown(() => runtime.close())
  /** Exit code and last words after reading a command line: `--version` comes last and ends it. */
  const read = async (words: readonly string[]): Promise<{ code: number | null, said: string }> => {
    const form: ContainerForm = {
      ...planLaunch({
        launch: launchInput({ form: 'container' }), provider, mtp: false, image: { ref: engine.llamaImage, digest: null }, publishHost: '127.0.0.1',
        access: { devices: [], cdiDevices: [], groups: [], securityOpts: [], env: {} }
      }).form as ContainerForm,
      mounts: [],
      entrypoint: ['llama-server'],
      command: [...words, '--version']
    }
    const id = await runtime.create({ name: uniqueName('svc-flags'), labels: {}, env: {}, port: await freePort(), form }, never)
    t.teardown(() => runtime.remove(id))
    await runtime.start(id, never)
    return eventually('it ends', async () => {
      const { state, exitCode } = (await runtime.inspect(id))!
      if (state !== 'exited') return null
      let said = ''
      for await (const line of runtime.logs(id, { tail: 5, follow: false, signal: never })) said += `${line}\n`
      return { code: exitCode, said }
    })
  }
  const seed = (name: string, type: SlotType): [string, LaunchWish] => [`profile ${name}`, { profile: shippedProviders.profiles.get(name)!, slot: { type } }]
  const files = { modelRoots: [], chatTemplatePath: '/etc/hostname', mmprojPath: '/etc/hostname' }
  const launches: Array<[what: string, wish: LaunchWish, mtp?: boolean]> = [
    ...['rocm', 'rocm-dnse', 'rocm-moe', 'vulkan', 'cuda', 'cpu-llm'].map(name => seed(name, 'llm')),
    seed('embed', 'embedding'),
    seed('rerank', 'reranking'),
    ['workers, layers, template and projector', { ...files, slot: { workers: 4, model: { n_gpu_layers: 3 } } }],
    ['what a gemma gets', { model: testModel({ id: 'gemma' }) }],
    ['multi-token prediction', {}, true]
  ]
  for (const [what, wish, mtp = false] of launches) {
    const { argv } = planArgv(provider, launchInput({ form: 'container', ...wish }), mtp)
    // the devices of a GPU build; this one has none
    const words = argv.map(word => /^(ROCm|Vulkan|CUDA)0$/.test(word) ? 'none' : word)
    const { code, said } = await read(words)
    t.equal(code, 0, `${what}: ${words.join(' ')}\n${said}`)
  }
  t.equal((await read(['--no-such-flag'])).code, 1, 'and it does refuse what it does not know')
})

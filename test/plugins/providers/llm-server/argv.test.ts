import t from 'tap'
import type { LaunchInput, ProviderSegments } from '../../../../kernel/contract/index.js'
import { mergeArgv } from '../../../../kernel/slots/plan/argv/merge.js'
import { shellWords } from '../../../../kernel/contract/text/shell-words.js'
import { abilities } from '../../../../plugins/providers/llm-server/abilities.js'
import { argvSegments, parallelOf } from '../../../../plugins/providers/llm-server/argv.js'
import { llamaFlags } from '../../../../plugins/providers/llm-server/flags.js'
import { launchInput, testModel, testProfile, type LaunchWish } from './support.js'

/** The whole command line, as the kernel merges it. */
function argv (input: LaunchInput): string {
  const { extra_args: extra } = input.slot.server
  const all = {
    ...argvSegments(input),
    profile: input.profile === null ? [] : shellWords(input.profile.flags),
    extra_args: typeof extra === 'string' ? shellWords(extra) : extra
  }
  return mergeArgv(all, llamaFlags).argv.join(' ')
}

/** Calls at a time. */
function concurrency (wish: LaunchWish): number | null {
  const input = launchInput(wish)
  return parallelOf({ ...input, argv: argv(input).split(' ') })
}

const segments = (wish: LaunchWish): ProviderSegments => argvSegments(launchInput(wish))

t.test('every command line begins with model, port and context size', async t => {
  t.same(segments({}), {
    base: [
      '--model', '/models/test.gguf', '--alias', 'test', '--host', '127.0.0.1', '--port', '8081', '--ctx-size', '4096',
      '--device', 'none', '--parallel', '1', '--metrics'
    ],
    model_defaults: [],
    chat_template: [],
    mmproj: [],
    slot_overrides: []
  })
  t.match(segments({ form: 'container', device: 'gpu-vulkan' }).base?.join(' '), /--host 0\.0\.0\.0 .*--n-gpu-layers 999/)
  t.notMatch(segments({ device: 'gpu-cuda' }).base?.join(' '), /--device/)
  t.notMatch(segments({ model: null, contextSize: null }).base?.join(' '), /--model|--alias|--ctx-size/)
})

t.test('a slot without a projector takes no images, unless one may come from elsewhere', async t => {
  const of = (wish: LaunchWish, embedded = false): unknown => {
    const { slot, model, profile, mmprojPath } = launchInput(wish)
    return abilities({ slot, model, modelId: model?.id ?? null, profile, mmprojPath }, embedded)
  }
  const schema = { json_schema: true }
  const blind = { ...schema, vision: false, audio: false }
  const table: ReadonlyArray<readonly [what: string, wish: LaunchWish, expected: unknown]> = [
    ['no projector', {}, blind],
    ['a projector', { mmprojPath: '/p.gguf' }, { ...schema, vision: true }],
    ['a template that knows tools', { model: testModel({ metadata: { tool_calling: true } }) }, { ...blind, tools: true }],
    ['one that does not', { model: testModel({ metadata: { tool_calling: false } }) }, blind],
    ['a model that the registry does not have', { model: null }, schema],
    ['a model that is said to see', { model: testModel({ capabilities: ['chat', 'vision'] }) }, schema],
    ['the same, switched off', { model: testModel({ capabilities: ['chat', 'vision'] }), slot: { vision: false } }, blind],
    ['a projector of the slot\'s arguments', { slot: { server: { extra_args: '-mm /p.gguf' } } }, schema],
    ['of the model\'s', { model: testModel({ defaults: { extra_args: '--mmproj-url https://x' } }) }, schema],
    ['of the profile', { profile: testProfile('--mmproj=/p.gguf') }, schema],
    ['of the environment', { slot: { server: { env: { LLAMA_ARG_MMPROJ: '/p.gguf' } } } }, schema],
    ['arguments that cannot be read', { slot: { server: { extra_args: '"' } } }, schema],
    ['vectors', { slot: { type: 'embedding' } }, {}]
  ]
  for (const [what, wish, expected] of table) t.strictSame(of(wish), expected, what)
  t.strictSame(of({ mmprojPath: '/p.gguf' }, true), blind, 'a projector, which the embedded engine does not load')
})

t.test('each value in its segment', async t => {
  const table: Array<[wish: LaunchWish, segment: keyof ProviderSegments, words: string]> = [
    [{ chatTemplatePath: '/t.jinja' }, 'chat_template', '--jinja --chat-template-file /t.jinja'],
    [{ chatTemplatePath: '/t.jinja', slot: { type: 'embedding' } }, 'chat_template', ''],
    [{ mmprojPath: '/p.gguf' }, 'mmproj', '--mmproj /p.gguf'],
    [{ mmprojPath: '/p.gguf', slot: { type: 'reranking' } }, 'mmproj', ''],
    [{ slot: { workers: 3 } }, 'slot_overrides', '--parallel 3 --kv-unified'],
    [{ device: 'gpu-rocm', slot: { model: { n_gpu_layers: 12 } } }, 'slot_overrides', '--n-gpu-layers 12'],
    [{ device: 'gpu-rocm', slot: { model: { n_gpu_layers: 0 } } }, 'slot_overrides', '--n-gpu-layers 0'],
    [{ slot: { model: { n_gpu_layers: 12 } } }, 'slot_overrides', ''],
    [{ slot: { model: { rope_freq_base: 10_000 } } }, 'slot_overrides', ''],
    [{ device: 'gpu-rocm', model: testModel({ defaults: { n_gpu_layers: 7, rope_freq_base: 1 } }) }, 'model_defaults', '--n-gpu-layers 7'],
    [{ device: 'gpu-rocm', model: testModel({ defaults: { n_gpu_layers: -1 } }) }, 'model_defaults', '--n-gpu-layers 999'],
    [{ model: testModel({ defaults: { extra_args: '--temp 0.5 --samplers "top_k; top_p"' } }) }, 'model_defaults',
      '--temp 0.5 --samplers top_k; top_p'],
    [{ model: testModel({ id: 'gemma-3-4b' }) }, 'model_defaults', '--cache-type-k f16 --cache-type-v f16 --cache-reuse 0'],
    [{ model: testModel({ path: '/models/Gemma3.gguf' }) }, 'model_defaults', '--cache-type-k f16 --cache-type-v f16 --cache-reuse 0'],
    [{ model: testModel({ path: '/models/gemma/qwen.gguf' }) }, 'model_defaults', ''],
    [{ model: testModel({ id: 'embeddinggemma' }) }, 'model_defaults', '']
  ]
  for (const [wish, segment, words] of table) t.equal(segments(wish)[segment]?.join(' '), words, `${segment}: ${words}`)
})

t.test('what the type of the slot demands', async t => {
  const chatModel = testModel({ capabilities: ['chat', 'embed'] })
  const embedding = { type: 'embedding' } as const
  const table: Array<[wish: LaunchWish, words: string]> = [
    [{ slot: embedding }, '--embedding --batch-size 4096 --ubatch-size 4096'],
    [{ slot: embedding, contextSize: 32_768 }, '--embedding --batch-size 8192 --ubatch-size 8192'],
    [{ slot: embedding, contextSize: null }, '--embedding --batch-size 8192 --ubatch-size 8192'],
    [{ slot: embedding, contextSize: 512 }, '--embedding --batch-size 512 --ubatch-size 512 --parallel 16 --kv-unified'],
    [{ slot: embedding, model: chatModel }, '--embedding --pooling mean --batch-size 4096 --ubatch-size 4096'],
    [{ slot: embedding, model: { ...chatModel, metadata: { pooling_type: 3 } } }, '--embedding --batch-size 4096 --ubatch-size 4096'],
    [{ slot: embedding, model: chatModel, profile: testProfile('--embeddings -ub 8192') }, '--pooling mean'],
    [{ slot: embedding, profile: testProfile('--embedding --pooling cls'), model: chatModel }, ''],
    [{ slot: { ...embedding, server: { extra_args: '--pooling last' } }, model: chatModel }, '--embedding --batch-size 4096 --ubatch-size 4096'],
    [{ slot: { type: 'reranking' }, model: chatModel }, '--reranking --batch-size 4096 --ubatch-size 4096'],
    [{ slot: { type: 'reranking' }, profile: testProfile('--rerank') }, ''],
    [{ profile: testProfile('--embedding') }, '']
  ]
  for (const [wish, words] of table) t.equal(segments(wish).slot_overrides?.join(' '), words, words)
})

t.test('flags that contradict the slot are refused', async t => {
  const table: Array<[wish: LaunchWish, code: string, message: RegExp]> = [
    [{ slot: { type: 'embedding' }, profile: testProfile('--reranking') }, 'slot.config_error', /two slots/],
    [{ slot: { type: 'reranking', server: { extra_args: ['--embeddings'] } } }, 'slot.config_error', /all-zero/],
    [{ profile: testProfile('--rerank --embedding') }, 'slot.config_error', /all-zero/],
    [{ profile: testProfile('--foo "bar') }, 'slot.config_error', /profile 'test'.*never closed/]
  ]
  for (const [wish, code, message] of table) t.throws(() => segments(wish), { code, message }, `${message}`)
})

t.test('merged: the last word on a flag wins, whatever its spelling', async t => {
  t.match(argv(launchInput({ profile: testProfile('-np 4 -fa on') })), /-np 4/, 'one worker is no wish')
  t.match(argv(launchInput({ profile: testProfile('-np 4'), slot: { workers: 2 } })), /--parallel 2/)
  t.match(argv(launchInput({ slot: { type: 'embedding' }, profile: testProfile('-b 256 -ub 256') })), /--ubatch-size 4096/,
    'the batch of a chat profile is too small for whole inputs')
  t.match(argv(launchInput({ slot: { type: 'embedding', server: { extra_args: '-ub 64' } } })), /-ub 64/)
  const jinja = argv(launchInput({ profile: testProfile('--jinja'), slot: { server: { extra_args: '--no-jinja' } } }))
  t.notMatch(jinja, /--jinja/)
  t.match(argv(launchInput({ slot: { server: { extra_args: '--lora /a --lora /b' } } })), /--lora \/a --lora \/b/)
})

t.test('what the server works on at once is its final --parallel', async t => {
  const cases: Array<[name: string, wish: LaunchWish, workers: number | null]> = [
    ['nobody says', {}, 1],
    ['the slot', { slot: { workers: 3 } }, 3],
    ['the profile', { profile: testProfile('-np 4') }, 4],
    ['the slot over the profile', { profile: testProfile('-np 4'), slot: { workers: 2 } }, 2],
    ['extra_args over all', { profile: testProfile('-np 4'), slot: { workers: 2, server: { extra_args: '--parallel=8' } } }, 8],
    ['the server itself', { slot: { server: { extra_args: '--parallel -1' } } }, null]
  ]
  for (const [name, wish, workers] of cases) t.equal(concurrency(wish), workers, name)
  t.equal(parallelOf({ ...launchInput({}), argv: [] }), null)
})

t.test('an embedding slot with a small context computes many texts of a call together, unless somebody says how many', async t => {
  const embedding = { type: 'embedding' } as const
  const cases: Array<[name: string, wish: LaunchWish, sequences: number, calls: number]> = [
    ['nobody says', { slot: embedding }, 16, 1],
    ['a profile for chat', { slot: embedding, profile: testProfile('-b 256 --parallel 1') }, 16, 1],
    ['a profile for embedding without a number', { slot: embedding, profile: testProfile('--embedding') }, 16, 1],
    ['a profile for embedding', { slot: embedding, profile: testProfile('--embedding -np 4') }, 4, 4],
    ['workers are calls', { slot: { ...embedding, workers: 3 } }, 16, 3],
    ['many workers', { slot: { ...embedding, workers: 20 } }, 20, 20],
    ['extra_args', { slot: { ...embedding, server: { extra_args: '-np 2' } } }, 2, 2],
    ['the model', { slot: embedding, model: testModel({ defaults: { extra_args: '--parallel 5' } }) }, 5, 5]
  ]
  for (const [name, more, sequences, calls] of cases) {
    const wish = { contextSize: 512, ...more }
    const flags = argv(launchInput(wish)).split(' ')
    const at = Math.max(flags.lastIndexOf('--parallel'), flags.lastIndexOf('-np'))
    t.strictSame([Number(flags[at + 1]), concurrency(wish)], [sequences, calls], name)
    t.equal(flags.includes('--kv-unified'), sequences >= 16, `${name}: every text may use the whole context`)
  }
  t.match(argv(launchInput({ slot: embedding })), /--parallel 1 /, 'in a large batch each token looks at all of the others')
  t.match(argv(launchInput({ slot: { type: 'reranking' }, contextSize: 512 })), /--parallel 1 /)
})

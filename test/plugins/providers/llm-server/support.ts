import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import type { Test } from 'tap'
import {
  hardwareSchema, modelRowSchema, profileSchema, slotConfigSchema, type EngineProvider, type LaunchInput, type Model,
  type ModelRow, type NamedProfile, type SlotConfigInput
} from '../../../../kernel/contract/index.js'
import plugin from '../../../../plugins/providers/llm-server/index.js'
import type { EngineChoice } from '../../../../plugins/providers/llm-server/launch.js'
import { bigramGguf, type BigramOptions } from '../../../../plugins/services/demo/bigram-gguf.js'
import { demoSentence } from '../../../../plugins/services/demo/sentence.js'
import { eventually } from '../../../kernel/runtime/support.js'
import { freePort } from '../../../ports.js'

const MAIN = fileURLToPath(new URL('../../../../plugins/providers/llm-server/embedded/main.js', import.meta.url))

/** Writes a bigram model into the test's folder and returns its absolute path. */
export function modelFile (t: Test, options: BigramOptions = {}): string {
  return join(t.testdir({ 'model.gguf': bigramGguf(options) }), 'model.gguf')
}

export interface EmbeddedEngine {
  readonly url: string
  readonly port: number
  readonly child: ChildProcess
  /** Exit code, when it ends by itself or by a signal sent to it. */
  readonly exited: Promise<number | null>
  /** Everything it wrote. */
  output (): string
}

/** Runs the engine program on a free port; ends with the test. Does not wait for anything. */
export async function spawnEmbedded (t: Test, argv: readonly string[], port?: number): Promise<EmbeddedEngine> {
  const at = port ?? await freePort()
  const child = spawn(process.execPath, [MAIN, '--host', '127.0.0.1', '--port', String(at), ...argv], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => { output += chunk.toString() })
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return { url: `http://127.0.0.1:${at}`, port: at, child, exited, output: () => output }
}

/** As above, and waits until it serves. */
export async function startEmbedded (t: Test, argv: readonly string[]): Promise<EmbeddedEngine> {
  const engine = await spawnEmbedded(t, argv)
  await eventually(`the engine serves: ${argv.join(' ')}`, async () => {
    if (engine.child.exitCode !== null) throw new Error(`it ended with ${engine.child.exitCode}: ${engine.output()}`)
    return (await fetch(`${engine.url}/health`)).status === 200
  }, 120_000)
  return engine
}

export interface Answer {
  readonly status: number
  readonly json: Record<string, unknown>
}

export async function post (url: string, path: string, body: unknown, signal?: AbortSignal): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), ...signal === undefined ? {} : { signal }
  })
  return { status: response.status, json: await response.json() as Record<string, unknown> }
}

export interface Chunk {
  readonly id: string
  readonly object: string
  readonly model: string
  readonly choices: ReadonlyArray<{
    readonly index: number
    readonly finish_reason: string | null
    readonly text?: string
    readonly delta?: {
      readonly role?: string
      readonly content?: string | null
      readonly tool_calls?: ReadonlyArray<{ readonly function: { readonly name?: string, readonly arguments: string } }>
    }
  }>
  readonly usage?: { readonly completion_tokens: number, readonly prompt_tokens: number, readonly total_tokens: number }
  readonly timings?: Readonly<Record<string, number>>
}

export interface Streamed {
  readonly chunks: readonly Chunk[]
  /** Text of choice 0. */
  readonly text: string
  /** Data of the last event. */
  readonly last: string
}

/** Reads a stream to its end. */
export async function stream (url: string, path: string, body: object): Promise<Streamed> {
  const response = await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify({ ...body, stream: true }) })
  const events = (await response.text()).split('\n\n').filter(event => event !== '').map(event => event.replace(/^data: /, ''))
  const chunks = events.filter(event => event.startsWith('{')).map(event => JSON.parse(event) as Chunk)
  const first = chunks.flatMap(chunk => chunk.choices).filter(choice => choice.index === 0)
  return { chunks, text: first.map(choice => choice.text ?? choice.delta?.content ?? '').join(''), last: events.at(-1) ?? '' }
}

interface FullAnswer {
  readonly choices: readonly object[]
  readonly usage: { readonly prompt_tokens: number, readonly completion_tokens: number, readonly total_tokens: number }
}

const hello = { messages: [{ role: 'user', content: 'Who are you?' }] }

/**
 * What an engine must say when it runs the demo model: the sentence, word for word, on every way to ask. Run
 * against the embedded engine and against the real llama-server, so that neither drifts from the other.
 */
export async function speaksTheSentence (t: Test, url: string): Promise<void> {
  const words = demoSentence.split(' ')
  const full = async (path: string, body: object): Promise<FullAnswer> =>
    (await post(url, path, body)).json as unknown as FullAnswer

  await t.test('chat and completions, whole', async t => {
    const chat = await full('/v1/chat/completions', hello)
    t.match(chat.choices, [{ finish_reason: 'stop', message: { role: 'assistant', content: demoSentence } }])
    t.equal(chat.usage.completion_tokens, words.length + 1, 'every word, and the end')
    t.equal(chat.usage.total_tokens, chat.usage.prompt_tokens + chat.usage.completion_tokens)
    const completion = await full('/v1/completions', { prompt: 'Once upon a time there was ', temperature: 1.5, seed: 7 })
    t.match(completion.choices, [{ finish_reason: 'stop', text: demoSentence }])
  })

  await t.test('streams: one word per event, the role first, a reason last', async t => {
    const withUsage = { ...hello, stream_options: { include_usage: true } }
    const { chunks, text, last } = await stream(url, '/v1/chat/completions', withUsage)
    t.equal(text, demoSentence)
    t.equal(last, '[DONE]')
    t.equal(chunks[0]?.choices[0]?.delta?.role, 'assistant')
    t.match(chunks[0], { object: 'chat.completion.chunk', id: /^chatcmpl-\w{32}$/ })
    const said = chunks.filter(chunk => (chunk.choices[0]?.delta?.content ?? '') !== '')
    t.same(said.map(chunk => chunk.choices[0]?.delta?.content?.trim()), words)
    t.strictSame(chunks.at(-2)?.choices[0], { finish_reason: 'stop', index: 0, delta: {} })
    const counted = words.length + 1
    t.match(chunks.at(-1), { choices: { length: 0 }, usage: { completion_tokens: counted }, timings: { predicted_n: counted } })
    t.equal((await stream(url, '/v1/completions', { prompt: 'x' })).text, demoSentence)
  })

  await t.test('stop strings, also over several words, and limits', async t => {
    const stopped = await full('/v1/completions', { prompt: 'x', stop: 'demo' })
    t.match(stopped.choices, [{ text: 'Hello! I am the ', finish_reason: 'stop' }])
    t.equal((await stream(url, '/v1/chat/completions', { ...hello, stop: ['the demo', 'never said'] })).text, 'Hello! I am ')
    const limited = await full('/v1/chat/completions', { ...hello, max_tokens: 3 })
    t.match(limited, { choices: [{ finish_reason: 'length', message: { content: 'Hello! I am ' } }], usage: { completion_tokens: 3 } })
    t.equal((await stream(url, '/v1/completions', { prompt: 'x', n_predict: 2 })).text, 'Hello! I ')
  })
}

export const facts = [
  'The Eiffel tower is in Paris, the capital of France', 'Alice likes green tea with honey in the morning',
  'The database password rotates every thirty days', 'Bob drives an old red bicycle to work',
  'The meeting about the budget was moved to Thursday', 'Our server room is kept at nineteen degrees',
  'My grandmother bakes apple pie on sundays', 'The cat sleeps on the warm radiator'
]

export const questions = [
  'Where is the Eiffel tower?', 'what does Alice like to drink?', 'how often does the password rotate', 'what does Bob drive',
  'when is the budget meeting', 'how warm is the server room', 'who bakes apple pie', 'where does the cat sleep'
]

interface Embeddings {
  readonly data: ReadonlyArray<{ readonly index: number, readonly embedding: readonly number[] }>
  readonly usage: { readonly prompt_tokens: number }
}

export async function embed (url: string, input: unknown): Promise<Embeddings> {
  return (await post(url, '/v1/embeddings', { input })).json as unknown as Embeddings
}

/** Vectors of texts that share words are closer than those of texts that do not. Run against both engines. */
export async function findsByWords (t: Test, url: string): Promise<void> {
  const known = (await embed(url, facts)).data.map(row => row.embedding)
  const asked = (await embed(url, questions)).data.map(row => row.embedding)
  for (const [i, question] of asked.entries()) {
    const scores = known.map(fact => fact.reduce((sum, value, dim) => sum + value * question[dim]!, 0))
    t.equal(scores.indexOf(Math.max(...scores)), i, questions[i]!)
  }
  t.equal(Math.round(Math.hypot(...known[0]!) * 1000), 1000, 'vectors have length 1')
}

/** Documents come back best first, with the scores that rank-gguf.ts gives them. Run against both engines. */
export async function ranksByLastDigit (t: Test, url: string): Promise<void> {
  const documents = ['about dogs 2', 'about cats 9', 'nothing', 'something 5']
  const { status, json } = await post(url, '/v1/rerank', { query: 'cats', documents })
  const results = json.results as Array<{ readonly index: number, readonly relevance_score: number }>
  t.equal(status, 200)
  t.same(results.map(result => result.index), [1, 3, 2, 0])
  t.same(results.map(result => Math.round(result.relevance_score * 100)), [99, 62, 50, 8])
  t.match(json, { object: 'list', usage: { prompt_tokens: Number, total_tokens: Number } })
  const best = await post(url, '/v1/rerank', { query: 'cats', documents, top_n: 2 })
  t.same((best.json.results as Array<{ readonly index: number }>).map(result => result.index), [1, 3])
}

/** The provider, as the plugin registers it with this configuration. */
export function registeredProvider (config: EngineChoice = { prefer: 'auto' }): EngineProvider {
  let found: EngineProvider | undefined
  const ignore = (): void => undefined
  const addProvider = (provider: EngineProvider): void => { found = provider }
  void plugin.register({ config, services: { config: { paths: { state: '/state' }, snapshot: { svc: { runtime: { driver: 'auto' } } } } }, addProvider, addSetting: ignore, addHealth: ignore } as never)
  return found!
}

export function testModel (row: Partial<ModelRow> & { readonly id?: string } = {}): Model {
  const { id = 'test', ...rest } = row
  return { ...modelRowSchema.parse({ path: '/models/test.gguf', ...rest }), id }
}

export function testProfile (flags: string, name = 'test'): NamedProfile {
  return { ...profileSchema.parse({ image: 'image', flags, device_class: 'cpu' }), name, seed: false }
}

export interface LaunchWish extends Partial<Omit<LaunchInput, 'slot'>> {
  readonly slot?: SlotConfigInput
}

/** A launch of a CPU chat slot as a process, but for what the wish says. */
export function launchInput ({ slot, ...rest }: LaunchWish = {}): LaunchInput {
  const device = rest.device ?? 'cpu'
  return {
    slot: { ...slotConfigSchema.parse({ device, ...slot }), provider: 'llm-server', name: 'agent' },
    device,
    form: 'process',
    bindHost: '127.0.0.1',
    port: 8081,
    model: testModel(),
    profile: null,
    contextSize: 4096,
    chatTemplatePath: null,
    mmprojPath: null,
    modelRoots: ['/models'],
    hardware: hardwareSchema.parse({}),
    stateDir: '/var/lib/svc/slots/agent',
    ports: {},
    engineKey: 'sk-svc-test',
    ...rest
  }
}

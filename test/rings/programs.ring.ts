import { execFile } from 'node:child_process'
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { containerGateway, embeddedGateway } from '../e2e/engine-gateways.js'
import { readStream, type LiveGateway } from '../e2e/live-gateway.js'
import { wavOf } from '../plugins/providers/audio/sound.js'
import { site } from './browser.js'
import { brought, lacking } from './support/clients.js'

interface Verdict {
  readonly success: boolean
  readonly error?: string
  readonly provider: { readonly id: string }
  readonly response?: object
}

const run = promisify(execFile)

t.setTimeout(600_000)

/** The commands of the README and of everybody's notes. */
async function curls (t: Test, url: string, media: boolean): Promise<void> {
  const curl = async (...args: string[]): Promise<string> => (await run('curl', ['-sS', '--fail-with-body', ...args])).stdout
  const post = (path: string, body: object, ...args: string[]): Promise<string> =>
    curl(...args, `${url}${path}`, '-H', 'Content-Type: application/json', '-d', JSON.stringify(body))
  const content = (text: string): string =>
    (JSON.parse(text) as { choices: Array<{ message: { content: string } }> }).choices[0]!.message.content
  const order = { model: 'agent', messages: [{ role: 'user', content: 'Who are you?' }] }
  t.equal(content(await post('/v1/chat/completions', order)), demoSentence)
  t.equal(content(await post('/v1/chat/completions', order, '--http1.0')), demoSentence, 'HTTP/1.0')
  t.equal(content(await post('/v1/chat/completions', order, '-H', 'Expect: 100-continue')), demoSentence, 'Expect: 100-continue')
  t.equal(content(await post('/v1/chat/completions', order, '-H', 'Transfer-Encoding: chunked', '--compressed')), demoSentence, 'chunked, compressed')
  const form = JSON.stringify(order)
  t.equal(content(await curl(`${url}/v1/chat/completions`, '-d', form)), demoSentence, 'without a content type, as curl sends it')
  t.match(readStream(await post('/v1/chat/completions', { ...order, stream: true }, '-N')), { content: demoSentence, done: true, error: null })
  const refused = await post('/v1/chat/completions', { ...order, model: 'nobody' })
    .then(() => null, (error: unknown) => error as { code: number, stdout: string })
  t.match([refused?.code, refused?.stdout], [22, /model\.not_found/], 'a refusal is an exit code and a reason')
  t.match(await curl('-I', `${url}/v1/models`), /200 OK/, 'HEAD')
  if (!media) return
  const folder = await mkdtemp(join(tmpdir(), 'svc-curl-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'a.wav'), wavOf(1, 16_000))
  t.match(JSON.parse(await curl(`${url}/v1/audio/transcriptions`, '-F', `file=@${join(folder, 'a.wav')}`, '-F', 'model=stt')), { text: String })
  await post('/v1/audio/speech', { model: 'tts', input: 'One sentence.', voice: 'alloy', response_format: 'wav' }, '-o', join(folder, 'b.wav'))
  t.equal((await readFile(join(folder, 'b.wav'))).subarray(0, 4).toString(), 'RIFF')
}

/** An evaluation as people write it, with every provider that reaches the gateway. */
async function promptfoo (t: Test, url: string, packages: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-promptfoo-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const openai = { apiBaseUrl: `${url}/v1`, apiKey: 'anything' }
  const provider = (id: string, config: object): object => ({ id, label: id, config: { ...config, max_tokens: 200 } })
  const schema = { type: 'object', properties: { mood: { enum: ['good', 'bad'] } }, required: ['mood'], additionalProperties: false }
  const embeddings = { id: 'openai:embedding:embed', config: openai }
  const says = [
    { type: 'equals', value: demoSentence },
    { type: 'similar', value: demoSentence, threshold: 0.9, provider: embeddings },
    { type: 'latency', threshold: 600_000 }
  ]
  const tests = (chats: readonly object[], shaped: readonly object[]): Array<[name: string, suite: object]> => [
    ['says', { prompts: ['Who are you, {{name}}?'], providers: chats, tests: [{ vars: { name: 'agent' }, assert: says }] }],
    ['fits', { prompts: ['Say it'], providers: shaped, tests: [{ assert: [{ type: 'is-json', value: schema }] }] }]
  ]
  const chats = [
    provider('openai:chat:agent', openai), provider('openai:completion:agent', openai), provider('openai:responses:agent', openai),
    provider('anthropic:messages:agent', { apiBaseUrl: url, apiKey: 'anything' })
  ]
  const shaped = [provider('openai:chat:agent', {
    ...openai, response_format: { type: 'json_schema', json_schema: { name: 'state', strict: true, schema } }
  })]
  for (const [name, suite] of tests(chats, shaped)) {
    const [config, output] = [join(folder, `${name}.json`), join(folder, `${name}.out.json`)]
    await writeFile(config, JSON.stringify(suite))
    const env = {
      PATH: process.env.PATH ?? '', HOME: folder, PROMPTFOO_CONFIG_DIR: folder, PROMPTFOO_DISABLE_TELEMETRY: '1',
      PROMPTFOO_DISABLE_UPDATE: '1', PROMPTFOO_DISABLE_REMOTE_GENERATION: '1'
    }
    const told = await run(join(packages, 'node_modules/.bin/promptfoo'), ['eval', '--no-cache', '-c', config, '-o', output], { env, cwd: folder })
      .then(() => '', (error: unknown) => (error as { stdout: string, stderr: string }).stderr + (error as { stdout: string }).stdout)
    const text = await readFile(output, 'utf8').catch(() => null)
    if (text === null) return void t.fail(told)
    const { results } = (JSON.parse(text) as { results: { results: Verdict[] } }).results
    t.equal(results.length, (name === 'says' ? chats : shaped).length)
    for (const { success, error, provider, response } of results) t.ok(success, `${name}: ${provider.id}`, { error, response })
  }
}

type Start = (t: Test, settings: string) => Promise<LiveGateway | null>

async function tries (t: Test, start: Start, media: boolean): Promise<void> {
  const sdks = await brought(t, 'js-clients.sh', 'sdks')
  const browser = await access('/usr/bin/chromium').then(() => true, () => false)
  const [page, stranger] = sdks !== null && browser ? [await site(t, sdks), await site(t, sdks)] : [null, null]
  const gateway = await start(t, page === null ? '' : `[server]\nallowed_origins = ["${page.origin}/v1"]\n`)
  if (gateway === null) return
  await t.test('curl is answered in every form of request that it sends', t => curls(t, gateway.url, media))
  await t.test('a page of an allowed origin is served in Chromium, one of another origin reads why not', async t => {
    if (page === null || stranger === null) return void lacking(t, 'there is no /usr/bin/chromium; run: test/engines/install-packages.sh browser')
    for (const [from, allowed] of [[page, true], [stranger, false]] as const) {
      const results = await from.visit({ url: gateway.url, sentence: demoSentence, media, allowed }) ?? []
      t.ok(results.length > 0)
      for (const { name, error } of results) t.equal(error, undefined, name)
    }
  })
  await t.test('an evaluation with promptfoo passes through each of its providers', async t => {
    const packages = await brought(t, 'js-clients.sh', 'promptfoo')
    if (packages !== null) await promptfoo(t, gateway.url, packages)
  })
  t.equal(await gateway.kill('SIGTERM'), 0)
}

t.test('programs that people point at a gateway, on engines in containers', t => tries(t, containerGateway, true))
t.test('and on the embedded engine', t => tries(t, embeddedGateway, false))

import t from 'tap'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { testEngine } from '../kernel/runtime/engines.js'
import { freePort } from '../ports.js'
import { startEmbedded } from '../plugins/providers/llm-server/support.js'
import { liveHome, startLive, writeHome } from './live-gateway.js'
import { callForTool, thinkingTemplate, thought, toolTemplate } from './text-surfaces.js'

t.setTimeout(600_000)

/** What each model says, in the words of which template. */
const models = {
  demo: { sentence: undefined, template: null },
  caller: { sentence: callForTool, template: toolTemplate },
  thinker: { sentence: thought, template: thinkingTemplate }
} as const
type Name = keyof typeof models

const messages = [{ role: 'user', content: 'x' }]
const tools = [{ type: 'function', function: { name: 'embed_text', parameters: { type: 'object', properties: { input: { type: 'array', items: { type: 'string' } } } } } }]
const chat = '/v1/chat/completions'
const requests: ReadonlyArray<readonly [model: Name, path: string, body: object]> = [
  ['demo', chat, { messages }],
  ['demo', chat, { messages, stream: true }],
  ['demo', chat, { messages, stream: true, stream_options: { include_usage: true } }],
  ['demo', chat, { messages, n: 2, max_tokens: 2 }],
  ['demo', chat, { messages, n: 2, max_tokens: 2, stream: true }],
  ['demo', chat, { messages, logprobs: true, top_logprobs: 2, max_tokens: 3 }],
  ['demo', chat, { messages, logprobs: true, top_logprobs: 2, max_tokens: 3, stream: true }],
  ['demo', chat, { messages, logprobs: true, max_tokens: 1 }],
  ['demo', chat, { messages, stop: ['the', 'demo'] }],
  ['demo', chat, { messages, stop: 'demo', stream: true }],
  ['demo', chat, { messages, top_logprobs: 2 }],
  ['demo', chat, { messages, logprobs: true, tools, stream: true }],
  ['demo', chat, { messages, n: 0 }],
  ['demo', chat, {}],
  ['demo', chat, { messages, response_format: { type: 'json_schema', json_schema: { schema: { const: 7 } } } }],
  ['demo', '/v1/completions', { prompt: 'x' }],
  ['demo', '/v1/completions', { prompt: 'x', stream: true }],
  ['demo', '/v1/completions', { prompt: 'x', n: 2, max_tokens: 1 }],
  ['caller', chat, { messages, tools }],
  ['caller', chat, { messages, tools, stream: true }],
  ['caller', chat, { messages, tools, logprobs: true, top_logprobs: 1 }],
  ['caller', chat, { messages, tools, tool_choice: 'none' }],
  ['caller', chat, { messages, tools, parallel_tool_calls: true }],
  ['thinker', chat, { messages }],
  ['thinker', chat, { messages, stream: true }],
  ['thinker', chat, { messages, reasoning_format: 'none' }],
  ['thinker', chat, { messages, max_tokens: 3 }]
]

/** Every path in an answer with the type of what is there, and the words that matter. Lists count as one of their elements. */
function shape (value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap(item => shape(item, `${path}[]`))
  if (typeof value === 'object' && value !== null) return Object.entries(value).flatMap(([key, item]) => shape(item, `${path}.${key}`))
  const told = /\.(role|object|type|finish_reason|name|content|reasoning_content|text)$/.test(path) && typeof value === 'string'
  return [`${path}: ${told ? JSON.stringify(value) : value === null ? 'null' : typeof value}`]
}

interface Answered {
  readonly status: number
  readonly type: string | null
  readonly shape: readonly string[]
}

async function ask (url: string, path: string, body: object): Promise<Answered> {
  const response = await fetch(`${url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ temperature: 0, ...body }) })
  const text = await response.text()
  const events = text.startsWith('data: ') ? text.split('\n\n').filter(event => event.startsWith('data: {')).map(event => JSON.parse(event.slice(6)) as object) : [JSON.parse(text) as object]
  // how a text is cut into pieces is each engine's own
  const all = new Set(events.flatMap(event => shape(event)).filter(line => events.length === 1 || !/\.delta\..*(content|arguments): |\.text: /.test(line)))
  return { status: response.status, type: response.headers.get('content-type')?.split(';')[0] ?? null, shape: [...all].sort() }
}

t.test('the embedded engine answers in the shape of a real llama-server', async t => {
  const docker = await testEngine(t, 'docker')
  if (docker === null) return
  const home = await liveHome(t, { 'etc/svc/svc.toml': '[runtime]\nstop_with_gateway = true\n[slots]\nautostart = false\n' })
  const names = Object.keys(models) as Name[]
  const store = `${home}/var/lib/svc/models`
  for (const name of names) {
    const { sentence, template } = models[name]
    await writeHome(home, {
      [`var/lib/svc/models/${name}.gguf`]: bigramGguf(sentence === undefined ? {} : { sentence }),
      ...template === null ? {} : { [`var/lib/svc/models/chat-templates/${name}.jinja`]: template },
      [`etc/svc/slots/${name}.toml`]: `type = "llm"\ndevice = "cpu"\nport = ${await freePort()}\nworkers = 2\nidle_timeout_s = 0\n` +
        `${template === null ? '' : `chat_template = "${name}"\n`}[model]\ndefault = "${name}"\ncontext_size = 4096\n`
    })
  }
  await writeHome(home, { 'var/lib/svc/registry/registry.toml': names.map(name => `[models.${name}]\npath = "${store}/${name}.gguf"\ncapabilities = ["chat"]\n`).join('') })
  const gateway = await startLive(t, home, { DOCKER_HOST: docker.host, SVC_TOOLBOX_IMAGE_CPU: docker.llamaImage })
  const embedded = new Map<Name, string>()
  for (const name of names) {
    const template = models[name].template === null ? [] : ['--chat-template-file', `${store}/chat-templates/${name}.jinja`]
    const { url } = await startEmbedded(t, ['--model', `${store}/${name}.gguf`, '--alias', name, '--ctx-size', '4096', '--parallel', '2', '--kv-unified', ...template])
    embedded.set(name, url)
  }
  for (const [name, path, body] of requests) {
    const [theirs, ours] = [await ask(`${gateway.url}/upstream/${name}`, path, body), await ask(embedded.get(name)!, path, body)]
    t.strictSame(ours, theirs, `${name} ${path} ${JSON.stringify(body)}`)
  }
  t.equal(await gateway.kill('SIGTERM'), 0)
})

import type { Test } from 'tap'
import { createFakeProviderPlugin, type EngineScript, type SeenRequest } from '../../../kernel/testing/index.js'
import type { AnyPlugin } from '../../../kernel/contract/index.js'
import { fakeUpstream, upstreamTable, type FakeUpstream } from '../fake-upstream.js'
import { wireGateway, type WireGateway } from '../wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE = { 'content-type': 'text/event-stream' }

type Fields = Readonly<Record<string, unknown>>

/** What a scripted model says: pieces in the order in which they come. */
export interface Said {
  readonly deltas: readonly Fields[]
  readonly finish?: string | null
  readonly usage?: Fields
  /** Further members of the choice that ends the answer. */
  readonly choice?: Fields
}

export const usage = {
  prompt_tokens: 20, completion_tokens: 7, total_tokens: 27,
  prompt_tokens_details: { cached_tokens: 12 }, completion_tokens_details: { reasoning_tokens: 3 }
}

const base = { id: 'chatcmpl-1', created: 1, model: 'scripted' }

/** As llama-server words a stream: the reason in an event of its own, the usage behind it. */
export function chunksOf ({ deltas, finish = 'stop', usage: used = usage, choice = {} }: Said): string[] {
  const chunk = (fields: Fields): string => `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', ...fields })}\n\n`
  return [
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: null }, finish_reason: null }] }),
    ...deltas.map(delta => chunk({ choices: [{ index: 0, delta, finish_reason: null }] })),
    ...finish === null ? [] : [
      chunk({ choices: [{ index: 0, delta: {}, finish_reason: finish, ...choice }] }), chunk({ choices: [], usage: used }), 'data: [DONE]\n\n'
    ]
  ]
}

interface CallPiece {
  readonly index: number
  readonly id?: string
  readonly function: { readonly name?: string, readonly arguments?: string }
}

/** The same answer, whole. */
export function wholeOf ({ deltas, finish = 'stop', usage: used = usage, choice = {} }: Said): string {
  const text = (key: string): string | null => deltas.map(delta => delta[key] ?? '').join('') || null
  const calls = new Map<number, { id: unknown, type: 'function', function: { name: string, arguments: string } }>()
  for (const delta of deltas) {
    for (const { index, id, function: said } of (delta.tool_calls ?? []) as CallPiece[]) {
      const call = calls.get(index) ?? { id, type: 'function', function: { name: '', arguments: '' } }
      calls.set(index, call)
      call.function.name += said.name ?? ''
      call.function.arguments += said.arguments ?? ''
    }
  }
  const message = {
    role: 'assistant', content: text('content'), reasoning_content: text('reasoning_content') ?? undefined,
    refusal: text('refusal') ?? undefined,
    ...calls.size === 0 ? {} : { tool_calls: [...calls.values()] }
  }
  return JSON.stringify({ ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish, ...choice }], usage: used })
}

/** An engine that answers as its request asks, streamed or whole, and knows one path alone. */
export function sayingOnlyChat (said: Said, script: EngineScript = {}): (request: SeenRequest) => EngineScript {
  return ({ url, body }) => {
    if (!url.endsWith('/chat/completions')) return { status: 404, headers: JSON_TYPE, chunks: ['{"error":{"message":"no"}}'] }
    const isStream = (JSON.parse(body.toString()) as Fields).stream === true
    const answer = isStream ? { headers: SSE, chunks: chunksOf(said) } : { headers: JSON_TYPE, chunks: [wholeOf(said)] }
    return { ...answer, ...script }
  }
}

export interface ChatOnly {
  readonly gateway: WireGateway
  /** What the slot, and the upstream `far`, say from now on. */
  says (said: Said, script?: EngineScript): void
  /** The body of the last chat request that reached either of them. */
  asked (): Fields
  readonly upstream: FakeUpstream
}

/** A gateway whose slot `agent` and upstream model `gpt-9` speak chat completions and nothing else. */
export async function chatOnlyGateway (t: Test, plugins: readonly AnyPlugin[], svc = ''): Promise<ChatOnly> {
  const upstream = await fakeUpstream(t)
  const chat = { path: '/v1/chat/completions', streaming: true, body: 'json' } as const
  const gateway = await wireGateway(t, {
    svc,
    plugins: [createFakeProviderPlugin({ name: 'chatty', surfaces: { chat } }), ...plugins],
    files: {
      'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "chatty"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n',
      'etc/svc/upstreams.toml': upstreamTable('far', upstream.url)
    }
  })
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  await gateway.fetch('/v1/models')
  const engine = gateway.runtime.engine('agent')
  let last: SeenRequest | null = null
  return {
    gateway,
    upstream,
    says: (said, script = {}) => {
      const answer = sayingOnlyChat(said, script)
      const play = (request: SeenRequest): EngineScript => {
        if (request.url.endsWith('/chat/completions')) last = request
        return answer(request)
      }
      engine.answer(play)
      upstream.engine.answer(request => request.method === 'GET'
        ? { headers: JSON_TYPE, chunks: ['{"object":"list","data":[{"id":"gpt-9"}]}'] }
        : play(request))
    },
    asked: () => JSON.parse(last!.body.toString()) as Fields
  }
}

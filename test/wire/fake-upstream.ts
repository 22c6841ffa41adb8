import type { Test } from 'tap'
import { chatAnswer, createFakeEngine, type EngineScript, type FakeEngine, type SeenRequest } from '../../kernel/testing/index.js'

const JSON_TYPE = { 'content-type': 'application/json' }

export interface FakeUpstream {
  readonly engine: FakeEngine
  readonly url: string
  /** Requests besides those for the model list, in order. */
  readonly calls: readonly SeenRequest[]
  /** How often its model list was asked for. */
  readonly listings: number
  /** Resolves with the n-th of them (from 0) as soon as it has come. */
  call (n: number): Promise<SeenRequest>
  /** What the next calls get, one each; the last one stays. */
  play (...scripts: readonly EngineScript[]): void
  /** What `GET /models` gets. */
  list (script: EngineScript): void
}

/** A remote provider that does what a test tells it: a model list, and one script after the other for everything else. */
export async function fakeUpstream (t: Test, ids: readonly string[] = ['gpt-9'], port = 0): Promise<FakeUpstream> {
  const engine = await createFakeEngine(port)
  t.teardown(() => engine.close())
  const isList = ({ url, method }: SeenRequest): boolean => method === 'GET' && url.split('?')[0]!.endsWith('/models')
  const calls = (): readonly SeenRequest[] => engine.requests.filter(request => !isList(request))
  let listScript: EngineScript = { headers: JSON_TYPE, chunks: [JSON.stringify({ object: 'list', data: ids.map(id => ({ id })) })] }
  let scripts: EngineScript[] = [{ headers: JSON_TYPE, chunks: [chatAnswer(`from ${ids[0]!}`)] }]
  engine.answer(request => {
    if (isList(request)) return listScript
    return scripts.length > 1 ? scripts.shift()! : scripts[0]!
  })
  return {
    engine,
    url: `${engine.origin}/v1`,
    get calls () { return calls() },
    get listings () { return engine.requests.filter(isList).length },
    call: async n => {
      for (let seen = 0; calls().length <= n; seen++) await engine.request(seen)
      return calls()[n]!
    },
    play: (...next) => { scripts = [...next] },
    list: script => { listScript = script }
  }
}

/** One `[[upstream]]` without a key. */
export function upstreamTable (name: string, url: string, more: Readonly<Record<string, unknown>> = {}): string {
  const lines = Object.entries({ auth_style: 'none', ...more }).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`)
  return `[[upstream]]\nname = "${name}"\nurl = "${url}"\n${lines.join('')}\n`
}

export const okAnswer: EngineScript = { headers: JSON_TYPE, chunks: [chatAnswer('fine')] }

export function refusal (status: number, headers: Readonly<Record<string, string>> = {}, message = `no ${status}`): EngineScript {
  return { status, headers: { ...JSON_TYPE, ...headers }, chunks: [JSON.stringify({ error: { message, type: 'upstream' } })] }
}

import type { DispatchService } from 'svc-gateway/plugin'
import { Agent, request } from 'undici'
import { memorySettings, type MemorySettings } from '../memory/settings.js'
import { bounded } from './bounded.js'
import type { ErrandAnswer } from './messages.js'

type Settings = MemorySettings['embedding']

export interface RerankCall {
  /** JSON, as a client of `/v1/rerankings` sends it. */
  readonly body: Buffer
  readonly requestId: string
  /** No client waits for it. */
  readonly background: boolean
}

const LARGEST_ANSWER_BYTES = 32 * 1024 * 1024
const { rerank_gateway_url: own } = memorySettings.schema.parse({}).embedding

/** Whether another gateway reranks than this one. Pure. */
export function reranksElsewhere ({ rerank_gateway_url: url }: Settings): boolean {
  return url !== own
}

/** Asks the reranker of the settings. Resolves with its answer, whatever the status; rejects if there is none. */
export async function askReranker (
  dispatch: DispatchService, settings: Settings, { body, requestId, background }: RerankCall, signal: AbortSignal
): Promise<ErrandAnswer> {
  if (reranksElsewhere(settings)) return await askElsewhere(settings, body, signal)
  const priority = background ? 'low' : 'normal'
  const answer = await dispatch.call({ surface: 'rerank', path: '/rerank', body, priority, requestId, signal })
  return { status: answer.status, body: await bounded(answer.body, LARGEST_ANSWER_BYTES) }
}

async function askElsewhere (
  { rerank_gateway_url: url, rerank_connect_timeout_s: connectS, rerank_read_timeout_s: readS }: Settings, body: Buffer,
  signal: AbortSignal
): Promise<ErrandAnswer> {
  const dispatcher = new Agent({ connect: { timeout: connectS * 1000 } })
  try {
    const { statusCode, body: answer } = await request(`${url.replace(/\/+$/, '')}/v1/rerankings`, {
      dispatcher, method: 'POST', headers: { 'content-type': 'application/json' }, body, signal,
      headersTimeout: readS * 1000, bodyTimeout: readS * 1000
    })
    return { status: statusCode, body: await bounded(answer, LARGEST_ANSWER_BYTES) }
  } finally {
    await dispatcher.destroy()
  }
}

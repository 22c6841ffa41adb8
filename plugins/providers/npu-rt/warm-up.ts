import { svcError, wavFile, type EngineClient, type EngineRequest, type WarmUpInput } from 'svc-gateway/plugin'
import { z } from 'zod'
import { engineFailure } from './engine-failure.js'
import { ASR_MODEL, EMBED_MODEL } from './model-table.js'

type Inference = Pick<EngineRequest, 'path' | 'headers' | 'body'>

const SAMPLE_RATE = 16_000
const BOUNDARY = 'svc-warm-up'
const answerSchema = z.union([
  z.looseObject({ choices: z.array(z.unknown()).min(1) }),
  z.looseObject({ data: z.array(z.unknown()).min(1) }),
  z.looseObject({ text: z.string() })
])

/**
 * One real inference. The engine lists its models as soon as it listens, also where its driver or firmware lets every
 * inference fail.
 */
export async function warmUp (client: EngineClient, signal: AbortSignal, { slot, modelId }: WarmUpInput): Promise<void> {
  const answer = await client.request({ method: 'POST', ...firstInference(slot.npu, modelId), signal })
  const text = await answer.text()
  const json = jsonOf(text)
  const failure = engineFailure(json)
  if (failure !== null) throw failure
  if (answer.status === 200 && answerSchema.safeParse(json).success) return
  throw svcError('dispatch.upstream_failed', `it answered the first request with ${answer.status}: ${text.slice(0, 200)}`)
}

/** The cheapest thing that the engine is there for. Pure. */
function firstInference (npu: WarmUpInput['slot']['npu'], modelId: string | null): Inference {
  if (npu?.chat !== false) {
    return { path: '/v1/chat/completions', body: { model: modelId, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1, stream: false } }
  }
  if (npu.embed) return { path: '/v1/embeddings', body: { model: EMBED_MODEL, input: 'Hi' } }
  return {
    path: '/v1/audio/transcriptions',
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    body: Buffer.concat([
      Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="model"\r\n\r\n${ASR_MODEL}\r\n--${BOUNDARY}\r\n` +
        'Content-Disposition: form-data; name="file"; filename="silence.wav"\r\nContent-Type: audio/wav\r\n\r\n'),
      wavFile(Buffer.alloc(2 * SAMPLE_RATE), SAMPLE_RATE),
      Buffer.from(`\r\n--${BOUNDARY}--\r\n`)
    ])
  }
}

function jsonOf (body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    return null
  }
}

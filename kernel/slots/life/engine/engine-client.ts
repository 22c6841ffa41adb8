import { request, type Dispatcher } from 'undici'
import {
  atPort, svcError, type EngineAddress, type EngineClient, type EngineRequest, type EngineResponse
} from '../../../contract/index.js'

const LONGEST_BODY_BYTES = 16 * 1024 * 1024

/**
 * A plain HTTP client of one engine (contract `EngineClient`).
 * @param originOf of an address
 * @param keep use connections again; not for an engine that closes them without saying so
 */
export function createEngineClient (
  address: EngineAddress, dispatcherTo: (origin: string) => Dispatcher, originOf: (address: EngineAddress) => string, keep = true
): EngineClient {
  return {
    address,
    request: async (call: EngineRequest): Promise<EngineResponse> => {
      const origin = originOf(atPort(address, call.port))
      try {
        const answer = await request(`${origin}${call.path}`, {
          dispatcher: dispatcherTo(origin),
          method: call.method ?? 'GET',
          headers: { ...jsonHeader(call.body), ...call.headers, ...address.headers },
          ...(call.body === undefined ? {} : { body: bodyOf(call.body) }),
          ...(keep ? {} : { reset: true }),
          signal: call.signal
        })
        const body = answer.body as AsyncIterable<Buffer>
        return {
          status: answer.statusCode,
          headers: answer.headers,
          body,
          text: () => readText(body),
          json: async () => JSON.parse(await readText(body)) as unknown
        }
      } catch (error) {
        if (call.signal.aborted) throw call.signal.reason
        throw svcError('dispatch.upstream_unavailable', `the engine at ${origin} cannot be reached`, { cause: error })
      }
    }
  }
}

function bodyOf (body: Buffer | string | object): Buffer | string {
  return typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
}

function jsonHeader (body: Buffer | string | object | undefined): Record<string, string> {
  return typeof body === 'object' && !Buffer.isBuffer(body) ? { 'content-type': 'application/json' } : {}
}

async function readText (body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > LONGEST_BODY_BYTES) throw svcError('dispatch.upstream_failed', 'the engine\'s answer is larger than 16 MiB')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

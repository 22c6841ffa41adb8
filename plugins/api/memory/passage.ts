import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { handled, type ActivityLog, type ConfigService, type RouteCall } from 'svc-gateway/plugin'
import {
  checkBankOf, committedSignal, identityOf, readReply, type EngineAnswer, type EngineRequest, type MemoryService
} from '../../services/memory/ref.js'
import { banksOf, checkAccess, seenBanks, targetOf, type EngineTarget } from './access.js'
import { bodyOf, hasBody } from './body.js'
import { destructionOf } from './destruction.js'
import { writtenDown } from './written-down.js'

export const PASSAGE = '/api/memory/hindsight'

export interface PassageDeps {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly memory: MemoryService
}

/** Hands a request of a Hindsight client to the engine as it came, and the answer back. */
export async function passOn (
  { activity, config, memory }: PassageDeps, call: RouteCall<unknown, unknown, Readable | undefined>
): Promise<typeof handled> {
  const { request: { raw, headers }, reply, requestId, actor } = call
  const url = raw.url ?? ''
  const below = url.slice(url.indexOf(PASSAGE) + PASSAGE.length)
  const mark = below.indexOf('?')
  const [path, query] = mark < 0 ? [below, ''] : [below.slice(0, mark), below.slice(mark + 1)]
  const method = raw.method ?? 'GET'
  const identity = identityOf(headers)
  const target = targetOf(path)
  checkAccess(identity, target, method, query)
  const engine = memory.engine()
  for (const bank of banksOf(target, query)) await memory.enter(identity.agent, bank, call.signal)
  const destruction = target.kind === 'bank' ? destructionOf(method, target.bank, target.rest, query) : null
  const isJudged = identity.agent !== null && (target.kind === 'banks' || target.kind === 'chunk')
  const limit = config.snapshot.svc.server.upload_limit_bytes
  const body = call.body === undefined || !hasBody(headers) ? null : await bodyOf(call.body, headers, limit, call.signal)
  const request: EngineRequest = {
    method,
    path,
    query,
    headers: isJudged || destruction?.goesOn === true ? { ...headers, 'accept-encoding': undefined } : headers,
    body,
    signal: destruction === null ? call.signal : committedSignal(),
    lends: !isJudged && destruction === null
  }
  const ask = async (): Promise<EngineAnswer> => {
    const answer = await engine.request(request)
    return isJudged ? await judged(answer, target, identity.agent) : answer
  }
  const answer = destruction === null
    ? await ask()
    : await writtenDown(activity, destruction, { actor, request_id: requestId }, ask)
  const response = reply.raw
  // by then the bytes have been sent, or nobody waits for them
  if (answer.letGo !== undefined) {
    if (response.closed) answer.letGo()
    else response.once('close', answer.letGo)
  }
  reply.hijack()
  const head: Readonly<Record<string, string | string[]>> = { ...headersFor(answer, headers.host), 'x-request-id': requestId }
  if (Buffer.isBuffer(answer.body)) {
    // without its length it would go out in chunks; no answer without a body may have one
    const isSized = answer.body.length > 0 && head['content-length'] === undefined
    response.writeHead(answer.status, isSized ? { ...head, 'content-length': String(answer.body.length) } : head)
    response.end(answer.body)
    return handled
  }
  response.writeHead(answer.status, head)
  try {
    await pipeline(answer.body, response)
  } catch {
    // one of the two is gone, and the other is told by the end of its connection
    answer.body.destroy()
    response.destroy()
  }
  return handled
}

/** What an agent gets of lists over all banks, and of what names its bank in the answer alone. */
async function judged (answer: EngineAnswer, target: EngineTarget, agent: string | null): Promise<EngineAnswer> {
  const { status, headers, bytes, value } = await readReply(answer)
  const whole = { status, headers, body: bytes }
  if (status > 299 || typeof value !== 'object' || value === null) return whole
  if (target.kind === 'chunk') {
    checkBankOf(agent, String((value as { readonly bank_id?: unknown }).bank_id ?? ''))
    return whole
  }
  const body = Buffer.from(JSON.stringify(seenBanks(value, agent)))
  return { status, headers: { ...headers, 'content-length': String(body.length) }, body }
}

/** A redirect stays below the passage, or is not told. */
function headersFor ({ headers }: EngineAnswer, host: string | undefined): Readonly<Record<string, string | string[]>> {
  const { location, ...others } = headers
  if (typeof location !== 'string' || !URL.canParse(location, 'http://engine')) return others
  const target = new URL(location, 'http://engine')
  const isHere = location.startsWith('/') || target.host === host
  return isHere ? { ...others, location: `${PASSAGE}${target.pathname}${target.search}` } : others
}

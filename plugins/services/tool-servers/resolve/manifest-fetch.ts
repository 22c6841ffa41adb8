import type { LookupAddress } from 'node:dns'
import { messageOf, type Clock, type SvcError } from 'svc-gateway/plugin'
import { Agent, request } from 'undici'
import { mcpError } from '../errors.js'
import { hostAddresses, hostOf, NotPublicError, publicAddresses, type AddressesOf } from './public-addresses.js'

const MAX_BYTES = 256 * 1024
const CONNECT_MS = 4_000
const READ_MS = 6_000

export interface FetchDeps {
  readonly clock: Clock
  /** `host:port` of servers that an operator trusts although their address is not public. */
  readonly trusted: readonly string[]
  readonly addressesOf?: AddressesOf
}

export interface Fetched {
  readonly status: number
  readonly type: string
  readonly text: string
}

/**
 * Fetches what a third party named, from a public address and no other: the name is resolved once, and the connection goes to
 * what it was resolved to. Redirects are answers like any other. Throws `mcp.ssrf_blocked` and `mcp.manifest_fetch_failed`.
 */
export async function fetchManifest (url: URL, deps: FetchDeps, signal: AbortSignal): Promise<Fetched> {
  const addresses = await addressesFor(url, deps, signal)
  const dispatcher = new Agent({
    connect: {
      timeout: CONNECT_MS,
      // undici asks for one address or for all of them
      lookup: (_host, options, done) => {
        if (options.all === true) done(null, [...addresses])
        else done(null, addresses[0]!.address, addresses[0]!.family)
      }
    },
    headersTimeout: READ_MS,
    bodyTimeout: READ_MS
  })
  const late = new AbortController()
  const withinMs = CONNECT_MS + READ_MS
  const timer = deps.clock.setTimer(withinMs, () => late.abort(new Error(`no complete answer within ${withinMs / 1000} s`)))
  try {
    const answer = await request(url, {
      dispatcher,
      signal: AbortSignal.any([signal, late.signal]),
      headers: { 'accept': 'application/json', 'accept-encoding': 'identity', 'user-agent': 'svc-gateway' }
    })
    const type = String(answer.headers['content-type'] ?? '')
    // a stream has no end to wait for; its head says what it is
    const isRead = answer.statusCode === 200 && !type.startsWith('text/event-stream')
    return { status: answer.statusCode, type, text: isRead ? await bodyOf(answer.body, url) : '' }
  } catch (error) {
    signal.throwIfAborted()
    throw fetchFailed(url, late.signal.aborted ? late.signal.reason : error)
  } finally {
    timer.cancel()
    await dispatcher.destroy()
  }
}

export function fetchFailed (url: URL, error: unknown): SvcError {
  const why = messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error)
  return mcpError('mcp.manifest_fetch_failed', `${url.host} returned no manifest: ${why}`, { details: { host: url.host }, cause: error })
}

async function addressesFor (
  url: URL, { trusted, addressesOf }: FetchDeps, signal: AbortSignal
): Promise<readonly LookupAddress[]> {
  const find = trusted.includes(url.host) ? hostAddresses : publicAddresses
  const addresses = await find(hostOf(url), addressesOf).catch((error: unknown) => {
    throw error instanceof NotPublicError ? notPublic(url) : fetchFailed(url, error)
  })
  signal.throwIfAborted()
  return addresses
}

export function notPublic (url: URL): SvcError {
  return mcpError('mcp.ssrf_blocked',
    `${url.host} is not on the public internet, and the gateway does not fetch from private networks for others; install the server with its manifest instead of its address`,
    { details: { host: url.host } })
}

async function bodyOf (body: AsyncIterable<Buffer>, url: URL): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_BYTES) throw new Error(`the answer of ${url.host} is larger than ${MAX_BYTES / 1024} KiB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

import { lookup, type LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { Agent, request } from 'undici'
import type { Errand, ErrandAnswer } from './messages.js'
import { isPublicAddress, targetProblem } from './webhooks/target.js'

const LARGEST_ANSWER_BYTES = 64 * 1024

export interface WebDeps {
  /** All addresses of a name. */
  readonly addressesOf: (host: string) => Promise<readonly LookupAddress[]>
  readonly isAllowed: (address: string) => boolean
}

const internet: WebDeps = { addressesOf: resolveName, isAllowed: isPublicAddress }

/**
 * Sends a webhook to the public internet and nowhere else: its name is resolved once, each address is judged, and the connection
 * goes to what was judged. Redirects are answers like any other. Rejects where there is no answer.
 */
export async function sendToWeb (errand: Extract<Errand, { to: 'web' }>, signal: AbortSignal, deps: WebDeps = internet): Promise<ErrandAnswer> {
  const problem = targetProblem(errand.url)
  if (problem !== null) throw new Error(problem)
  const host = new URL(errand.url).hostname.replace(/^\[|\]$/g, '')
  const family = isIP(host)
  const addresses = family === 0 ? await deps.addressesOf(host) : [{ address: host, family }]
  // which of them would be taken is for the other side to choose
  if (addresses.length === 0 || !addresses.every(({ address }) => deps.isAllowed(address))) {
    throw new Error(`Webhook URL host '${host}' resolves to a private/loopback/link-local address, which is not an allowed destination`)
  }
  const dispatcher = new Agent({
    connect: {
      // undici asks for one address or for all of them
      lookup: (_host, options, done) => {
        if (options.all === true) done(null, [...addresses])
        else done(null, addresses[0]!.address, addresses[0]!.family)
      }
    }
  })
  try {
    const { statusCode, body } = await request(errand.url, {
      dispatcher, method: errand.method as 'POST', headers: errand.headers, body: errand.method === 'GET' ? null : errand.body, signal
    })
    return { status: statusCode, body: await startOf(body) }
  } finally {
    await dispatcher.destroy()
  }
}

/** As much of an answer as is worth showing. */
async function startOf (body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= LARGEST_ANSWER_BYTES) break
  }
  return Buffer.concat(chunks).subarray(0, LARGEST_ANSWER_BYTES)
}

function resolveName (host: string): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) => { if (error === null) resolve(found); else reject(error) })
  })
}

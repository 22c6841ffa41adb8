import { messageOf, type ServiceDescriptor, type ServiceLook } from 'svc-gateway/plugin'

/** `up` only after it answered. */
export type Probed = ServiceLook

const PROBE_MS = 2_000
/** More than any status page says. */
const MOST_BYTES = 256 * 1024

/** Asks a service how it is. Never rejects. @param origin where it listens, no slash at its end */
export async function probe (service: Pick<ServiceDescriptor, 'probe' | 'stat'>, origin: string, replaced?: string): Promise<Probed> {
  const address = replaced ?? `${origin}${service.probe}`
  try {
    const answer = await ask(address)
    await answer.body?.cancel()
    if (answer.status >= 400) return { up: false, detail: `${address} answers ${answer.status}`, stat: null }
    return { up: true, detail: `${address} answers ${answer.status}`, stat: await statOf(service, origin) }
  } catch (error) {
    return { up: false, detail: whyNot(address, error), stat: null }
  }
}

async function statOf ({ stat }: Pick<ServiceDescriptor, 'stat'>, origin: string): Promise<Probed['stat']> {
  if (stat === undefined) return null
  try {
    const answer = await ask(`${origin}${stat.path}`)
    const text = await beginning(answer)
    const value = answer.ok && text !== null ? stat.value(JSON.parse(text)) : null
    return value === null ? null : { label: stat.label, value }
  } catch {
    return null
  }
}

/** Null for what is longer than any status page: whatever took the port may send without an end. */
async function beginning ({ body }: Response): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > MOST_BYTES) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function ask (address: string): Promise<Response> {
  return fetch(address, { redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS), headers: { connection: 'close' } })
}

function whyNot (address: string, error: unknown): string {
  const { cause, name } = error as { cause?: { code?: string }, name?: string }
  if (cause?.code === 'ECONNREFUSED') return `nothing is listening at ${new URL(address).host}`
  if (name === 'TimeoutError') return `${address} did not answer within ${PROBE_MS / 1000} seconds`
  return `${address} cannot be reached: ${cause?.code ?? messageOf(error)}`
}

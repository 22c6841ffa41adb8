import { setMaxListeners } from 'node:events'
import type { Clock } from 'svc-gateway/plugin'
import { Agent, request, type Dispatcher } from 'undici'
import type { z } from 'zod'
import { clusterSchema, guestsSchema, hostStatus, nodeSchema, nodesSchema } from './host-status.js'
import { HostTrouble, refusal, troubleText } from './host-trouble.js'
import type { HostAnswer, HostSettings, HostStatus } from './schemas.js'

const PATIENCE_MS = 3_000
const MAX_BYTES = 4 * 1024 * 1024

export interface HostQuestion {
  readonly clock: Clock
  readonly settings: HostSettings
  /** Ends the question at once; it rejects then with the reason. */
  readonly signal: AbortSignal
}

/** Asks a Proxmox host how it is: three seconds in all, over connections of its own that are gone when it resolves. */
export async function askHost ({ clock, settings, signal }: HostQuestion): Promise<HostAnswer> {
  signal.throwIfAborted()
  const patience = new AbortController()
  const timer = clock.setTimer(PATIENCE_MS, () => {
    patience.abort(new HostTrouble(`did not answer completely within ${PATIENCE_MS / 1000} seconds; check host, port and the network`))
  })
  const either = AbortSignal.any([signal, patience.signal])
  setMaxListeners(0, either) // some for each connection and request
  const dispatcher = new Agent({
    // a handshake that is under way belongs to no request: the signal ends it too
    connect: { rejectUnauthorized: settings.verify_ssl, timeout: 0, signal: either }, headersTimeout: 0, bodyTimeout: 0
  })
  try {
    return await survey(new HostConnection(dispatcher, settings, either))
  } catch (error) {
    signal.throwIfAborted()
    return { configured: true, ok: false, error: troubleText(patience.signal.aborted ? patience.signal.reason : error, settings) }
  } finally {
    timer.cancel()
    patience.abort()
    await dispatcher.destroy()
  }
}

async function survey (connection: HostConnection): Promise<HostStatus> {
  const node = await answeringNode(connection)
  const path = `/nodes/${node}`
  const [status, lxc, qemu] = await Promise.all([
    connection.get(`${path}/status`, nodeSchema), connection.get(`${path}/lxc`, guestsSchema), connection.get(`${path}/qemu`, guestsSchema)
  ])
  return hostStatus({ node, status, lxc, qemu })
}

/** In a cluster the node at the configured address; the first one that is up where the token may not know. */
async function answeringNode (connection: HostConnection): Promise<string> {
  const nodes = await connection.get('/nodes', nodesSchema)
  const up = nodes.filter(({ status }) => status === 'online').map(({ node }) => node).sort()
  const [first] = up
  if (first === undefined) throw new HostTrouble('has no node that is online; check the cluster')
  if (up.length === 1) return first
  const members = await connection.get('/cluster/status', clusterSchema).catch(error => {
    if (error instanceof HostTrouble) return []
    throw error
  })
  const local = members.find(({ type, local }) => type === 'node' && local === 1)?.name
  return local !== undefined && up.includes(local) ? local : first
}

/** The API of one host, as one token sees it. */
class HostConnection {
  readonly #dispatcher: Dispatcher
  readonly #base: string
  readonly #authorization: string
  readonly #signal: AbortSignal

  constructor (dispatcher: Dispatcher, settings: HostSettings, signal: AbortSignal) {
    const { host, port, user, token_name: name, token_value: value } = settings
    this.#dispatcher = dispatcher
    this.#base = `https://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}/api2/json`
    this.#authorization = `PVEAPIToken=${user}!${name}=${value}`
    this.#signal = signal
  }

  async get<S extends z.ZodType> (path: string, schema: S): Promise<z.output<S>> {
    const { statusCode, body } = await request(`${this.#base}${path}`, {
      dispatcher: this.#dispatcher,
      signal: this.#signal,
      headers: { 'accept': 'application/json', 'user-agent': 'svc-gateway', 'authorization': this.#authorization }
    })
    if (statusCode !== 200) {
      await body.dump({ limit: MAX_BYTES }).catch(() => undefined)
      throw refusal(statusCode, path)
    }
    const { data } = schema.safeParse(await dataOf(body, path))
    if (data === undefined) throw odd(path)
    return data
  }
}

/** Every answer is `{ data: ... }`. */
async function dataOf (body: AsyncIterable<Buffer>, path: string): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_BYTES) throw new HostTrouble(`answers ${path} with more than ${MAX_BYTES} bytes; is it a Proxmox host?`)
    chunks.push(chunk)
  }
  try {
    return (JSON.parse(Buffer.concat(chunks).toString('utf8')) as { data?: unknown } | null)?.data
  } catch {
    throw odd(path)
  }
}

function odd (path: string): HostTrouble {
  return new HostTrouble(`answers ${path} unlike Proxmox VE; check host and port`)
}

import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { svcError, type SvcError } from '../contract/index.js'

/**
 * Throws `slot.port_conflict` when something listens on the port already. A real bind, because only the
 * operating system knows; what takes the port between this check and the engine's own bind still collides there.
 */
export async function assertPortFree (host: string, port: number): Promise<void> {
  const code = await bindError(host, port)
  if (code === null) return
  if (code === 'EADDRINUSE') throw portConflict(host, port)
  throw svcError('runtime.failed', `cannot listen on port ${port} of ${host} (${code}); ${bindAdvice(code)}`,
    { details: { host, port, code } })
}

/** The same of an engine's port, where it has one, and of its further ones. */
export async function assertPortsFree (
  host: string, { port, ports = {} }: { readonly port: number | null, readonly ports?: Readonly<Record<string, number>> }
): Promise<void> {
  for (const each of [...port === null ? [] : [port], ...Object.values(ports)]) await assertPortFree(host, each)
}

/**
 * Claims a port for an engine that is about to start, against every gateway of this host, until it is released or this
 * process ends; null when the port is taken or claimed. Engines listen with TCP, so the claim is the UDP port beside it.
 */
export async function claimPort (host: string, port: number): Promise<(() => void) | null> {
  const claim = createSocket('udp4')
  const isClaimed = await new Promise<boolean>(resolve => {
    claim.once('error', () => resolve(false))
    claim.bind({ address: '127.0.0.1', port, exclusive: true }, () => resolve(true))
  })
  claim.unref()
  if (isClaimed && await bindError(host, port) === null) return () => { claim.close() }
  claim.close()
  return null
}

export function portConflict (host: string, port: number, cause?: unknown): SvcError {
  return svcError('slot.port_conflict',
    `port ${port} on ${host} is in use by another program; stop that program, or choose another port (a slot without \`port\` gets a free one at each start)`,
    { details: { host, port }, cause })
}

function bindError (host: string, port: number): Promise<string | null> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })
}

function bindAdvice (code: string): string {
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return 'no network interface has that address: check [slots] publish_host'
  if (code === 'EACCES') return 'the gateway may not use that port: choose one above 1023'
  return 'choose another port or [slots] publish_host'
}

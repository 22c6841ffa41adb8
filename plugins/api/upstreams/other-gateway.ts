import { svcError, type GatewayInfo, type SvcError, type Upstream, type UpstreamService } from 'svc-gateway/plugin'
import { z } from 'zod'

const statusSchema = z.looseObject({ name: z.string(), instance: z.string() })

/**
 * Throws `upstream.invalid` when the address of a gateway leads to this one, or to something else. One that does not answer
 * at the moment may be off, and one that wants a key may get it later: neither is an error.
 */
export async function requireOtherGateway (
  upstream: Upstream, { info, upstreams }: { readonly info: Pick<GatewayInfo, 'name' | 'instance'>, readonly upstreams: UpstreamService },
  signal: AbortSignal
): Promise<void> {
  // without its key, which may not be meant for this address
  const reading = await upstreams.read({ ...upstream, auth_style: 'none' }, '/api/status', signal)
  if (!reading.ok) {
    if (reading.status === 404 || reading.status === 200) throw noGateway(upstream)
    return
  }
  const { success, data } = statusSchema.safeParse(reading.body)
  if (!success || data.name !== info.name) throw noGateway(upstream)
  if (data.instance === info.instance) throw invalid('is the address of this gateway itself, so its requests would loop; use another')
}

function noGateway ({ url }: Upstream): SvcError {
  return invalid(`${new URL(url).origin} answers, but not like an svc gateway at /api/status; add it without \`svc\``)
}

function invalid (message: string): SvcError {
  return svcError('upstream.invalid', `url ${message}`, { param: 'url', details: { fields: [{ path: 'url', message }] } })
}

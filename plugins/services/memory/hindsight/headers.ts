type Headers = Readonly<Record<string, string | string[] | undefined>>

/** What belongs to one connection, or names the gateway's own caller. */
const dropped = new Set([
  'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding',
  'upgrade', 'host', 'expect', 'cookie', 'set-cookie', 'origin', 'referer', 'forwarded'
])

/** Headers of a client as the engine gets them. The gateway's own key wins over one that the client brings. Pure. */
export function sentHeaders (headers: Headers, key: string | undefined): Record<string, string | string[]> {
  const sent: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || dropped.has(name) || /^(?:x-svc-|x-forwarded-|sec-)/.test(name)) continue
    sent[name] = value
  }
  if (key !== undefined && key !== '') sent.authorization = `Bearer ${key}`
  return sent
}

/**
 * Headers of the engine as the client gets them. A redirect is told as a path of the engine, whatever host it names; one
 * that leads elsewhere is left out. Pure.
 * @param base address of the engine, with the path that it is served under
 */
export function answeredHeaders (headers: Headers, base: URL): Record<string, string | string[]> {
  const answered: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || dropped.has(name) || name === 'date' || name === 'server' || name === 'location') continue
    answered[name] = value
  }
  const location = typeof headers.location === 'string' ? locationBelow(headers.location, base) : null
  if (location !== null) answered.location = location
  return answered
}

/** `/v1/default/banks?limit=1` of `http://engine:9177/v1/default/banks?limit=1`; null for what is no path of the engine. */
function locationBelow (location: string, base: URL): string | null {
  const target = URL.canParse(location, base.href) ? new URL(location, base.href) : null
  const prefix = basePath(base)
  if (target === null || target.host !== base.host || !target.pathname.startsWith(`${prefix}/`)) return null
  return `${target.pathname.slice(prefix.length)}${target.search}`
}

export function basePath (base: URL): string {
  return base.pathname.replace(/\/+$/, '')
}

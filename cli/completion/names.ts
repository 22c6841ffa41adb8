import { z } from 'zod'
import type { ApiClient } from '../client/client.js'
import { packageOf, pluginListSchema } from '../record/plugin-report.js'

export const nameKinds = ['slot', 'model', 'upstream', 'profile', 'plugin', 'request', 'approval', 'service'] as const
export type NameKind = typeof nameKinds[number]

const named = z.array(z.looseObject({ name: z.string(), kind: z.string().nullish() }))
const identified = z.array(z.looseObject({ id: z.string() }))

/** Who presses a key waits no longer. */
const PATIENCE_MS = 1000

/** What a shell may take as it is: names come from elsewhere, and a command line runs what stands in it. */
const PLAIN = /^[\w.:/@+-]+$/

/** Names that the gateway knows. Never rejects: a gateway that is away knows none. */
export async function knownNames (client: () => ApiClient, kind: NameKind): Promise<readonly string[]> {
  return (await ask(client, kind).catch((): string[] => [])).filter(name => PLAIN.test(name) && !name.startsWith('-'))
}

async function ask (clientOf: () => ApiClient, kind: NameKind): Promise<readonly string[]> {
  const client = clientOf()
  const get = <S extends z.ZodType>(path: string, schema: S): Promise<z.output<S>> =>
    client.call({ path, timeoutMs: PATIENCE_MS }, schema)
  switch (kind) {
    case 'slot': return (await get('/api/slots', named)).filter(slot => slot.kind !== 'remote').map(({ name }) => name)
    case 'model': return (await get('/api/models', z.looseObject({ models: identified }))).models.map(({ id }) => id)
    case 'upstream': return (await get('/api/upstreams', named)).map(({ name }) => name)
    case 'profile': return (await get('/api/profiles', named)).map(({ name }) => name)
    case 'plugin': return (await get('/api/plugins', pluginListSchema)).map(packageOf).filter(name => name !== null)
    case 'approval': return (await get('/api/agent/approvals', z.looseObject({ approvals: identified }))).approvals.map(({ id }) => id)
    case 'service': return (await get('/api/services', z.looseObject({ services: identified }))).services.map(({ id }) => id)
    case 'request': return (await get('/api/requests', z.looseObject({ requests: identified }))).requests.map(({ id }) => id)
  }
}

import type { ModelObject } from 'svc-gateway/plugin'

const textAbilities: ReadonlySet<unknown> = new Set(['chat', 'embed'])

/** Whether a row of the list chats or embeds; upstreams' rows do not say, and count. Pure. */
export function isTextModel ({ capabilities, status }: ModelObject): boolean {
  return status === undefined || !Array.isArray(capabilities) || capabilities.some(ability => textAbilities.has(ability))
}

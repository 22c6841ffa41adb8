import { z } from 'zod'

/** `[plugins.config.tool-servers]`. */
export const settingsSchema = z.strictObject({
  registry: z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).default('https://registry.modelcontextprotocol.io')
    .meta({ description: 'Registry that the catalogue of tool servers is refreshed from' }),
  manifest_hosts: z.array(z.string().min(1).max(300)).max(100).default([])
    .meta({ description: 'host:port of servers on private networks whose manifests may be fetched anyway' })
})
export type ToolServerSettings = z.output<typeof settingsSchema>

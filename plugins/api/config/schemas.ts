import { z } from 'zod'

export const urlsSchema = z.strictObject({
  api: z.string(),
  openwebui: z.string(),
  openwebui_enabled: z.boolean().meta({ description: 'Whether its public address is configured' }),
  hermes: z.string().meta({ description: 'Empty unless its public address is configured' }),
  hermes_enabled: z.boolean(),
  comfyui: z.string()
})
export type Urls = z.output<typeof urlsSchema>

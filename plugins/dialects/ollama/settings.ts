import type { SettingsTable } from 'svc-gateway/plugin'
import { z } from 'zod'

const dialectsSchema = z.strictObject({
  ollama_port: z.int().min(0).max(65_535).default(0)
    .meta({ description: 'Additional port for programs that expect Ollama at its usual one, 11434; 0 is none', apply_class: 'live' })
})

/** `[dialects]` of svc.toml. */
export const dialectSettings: SettingsTable<typeof dialectsSchema> = { name: 'dialects', schema: dialectsSchema }

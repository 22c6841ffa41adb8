import { z } from 'zod'

/** `[plugins.config.pull]`. */
export const pullConfigSchema = z.strictObject({
  parallel_pulls: z.int().min(1).max(16).default(2).meta({ description: 'Models that are pulled at a time; others wait' }),
  parallel_files: z.int().min(1).max(16).default(3).meta({ description: 'Files of one model that are pulled at a time' }),
  stall_timeout_s: z.number().min(0.1).default(60).meta({ description: 'Longest silence of a server before the gateway reconnects' }),
  max_tries: z.int().min(1).default(8).meta({ description: 'Failures in a row, without any data between them, before a pull fails' }),
  retry_base_s: z.number().min(0.01).default(1).meta({ description: 'Wait after the first failure; it doubles with each, up to a minute' }),
  reserve_mb: z.int().min(0).default(512).meta({ description: 'Disk space in MiB that pulls leave free' }),
  resume_on_start: z.boolean().default(true)
    .meta({ description: 'Resume unfinished pulls when the gateway starts; if off, they fail, and a new pull resumes them' })
})

export type PullConfig = z.output<typeof pullConfigSchema>

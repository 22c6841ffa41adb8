import { z } from 'zod'

/** `[plugins.config.pull]`. */
export const pullConfigSchema = z.strictObject({
  parallel_pulls: z.int().min(1).max(16).default(2).meta({ description: 'Models that are pulled at a time; others wait in line' }),
  parallel_files: z.int().min(1).max(16).default(3).meta({ description: 'Files of one model that are pulled at a time' }),
  stall_timeout_s: z.number().min(0.1).default(60).meta({ description: 'Longest silence of a server before the connection is made anew' }),
  max_tries: z.int().min(1).default(8).meta({ description: 'Failures in a row, with nothing received between them, before a pull fails' }),
  retry_base_s: z.number().min(0.01).default(1).meta({ description: 'Wait after the first failure; it doubles with each, up to a minute' }),
  reserve_mb: z.int().min(0).default(512).meta({ description: 'Disk space in MiB that pulls leave free' }),
  resume_on_start: z.boolean().default(true)
    .meta({ description: 'Go on with unfinished pulls when the gateway starts; off makes them failures that a new pull goes on from' })
})

export type PullConfig = z.output<typeof pullConfigSchema>

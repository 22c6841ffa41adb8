import { z } from 'zod'

/** Severities of syslog, worst first. */
export const logLevels = ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug'] as const

export const logQuerySchema = z.strictObject({
  unit: z.string().regex(/^[A-Za-z0-9_.:][A-Za-z0-9@_.:-]{0,255}$/, {
    error: 'must be the name of a unit, such as svc-api.service: letters, digits, @ _ - . :'
  }).meta({ description: 'Name of a unit; `svc-slot@<name>.service` is the engine of a slot', examples: ['svc-api.service'] }),
  n: z.coerce.number().int().min(1).max(5000).default(200).meta({ description: 'Number of last lines' }),
  since: z.string().regex(/^[A-Za-z0-9@:.,+ -]{1,64}$/, { error: 'must be a time in the format of journalctl: 2026-01-31 12:00:00, -1h, yesterday' })
    .optional().meta({ description: 'Only lines since then, in the format of journalctl: `2026-01-31 12:00:00`, `-1h`, `yesterday`' }),
  level: z.enum(logLevels).optional().meta({ description: 'Least severity' })
})
export type LogQuery = z.output<typeof logQuerySchema>

export const logsSchema = z.strictObject({
  unit: z.string(),
  lines: z.array(z.string()).meta({ description: 'Oldest first; possible secrets are masked' }),
  count: z.int(),
  hint: z.string().optional().meta({ description: 'Why there are no lines, or fewer than requested' })
})

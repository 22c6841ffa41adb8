import { z } from 'zod'
import type { Colour } from '../terminal/output.js'

export const installationSchema = z.looseObject({
  state: z.string(),
  form: z.string().nullable(),
  version: z.string().nullable(),
  message: z.string(),
  settings: z.array(z.string())
})
export type Installation = z.output<typeof installationSchema>

export const serviceSchema = z.looseObject({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  managed: z.boolean(),
  runs_as: z.string().nullable(),
  unit: z.string(),
  unit_state: z.looseObject({ active_state: z.string(), sub_state: z.string(), unit_file_state: z.string() }).nullable(),
  up: z.boolean(),
  detail: z.string(),
  url: z.string().nullable(),
  licence: z.looseObject({ name: z.string(), note: z.string().nullable(), url: z.string().nullable() }),
  installation: installationSchema,
  hints: z.array(z.string())
})
export type ServiceRecord = z.output<typeof serviceSchema>

export const serviceListSchema = z.looseObject({ services: z.array(serviceSchema) })

/** Whether nothing of a service is on this machine: no unit, no slot, nothing that the gateway brought or runs. Pure. */
export function isAbsent ({ up, managed, runs_as: form, unit_state: unit, installation }: ServiceRecord): boolean {
  if (up || form === 'unit') return false
  if (form === 'slot') return !managed
  return installation.state === 'absent' && (unit === null || unit.active_state === 'inactive')
}

/** One word for how a service is. Pure. */
export function stateOf ({ up, unit_state: unit, installation, managed }: ServiceRecord): {
  readonly word: string
  readonly colour: Colour
} {
  if (up) return { word: 'up', colour: 'green' }
  if (installation.state === 'installing') return { word: 'installing', colour: 'cyan' }
  if (unit?.sub_state === 'auto-restart') return { word: 'restarting', colour: 'yellow' }
  if (unit?.active_state === 'active' || unit?.active_state === 'activating') return { word: 'starting', colour: 'yellow' }
  if (unit?.active_state === 'failed' || installation.state === 'failed') return { word: 'failed', colour: 'red' }
  return managed ? { word: 'down', colour: 'dim' } : { word: 'not here', colour: 'dim' }
}

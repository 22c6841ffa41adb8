import { serviceVerbs } from 'svc-gateway/plugin'
import { z } from 'zod'
import { installForms, installStates, serviceForms } from './ref.js'
import { verbProblems } from './systemd.js'

export const idParamsSchema = z.strictObject({
  id: z.string().meta({ description: 'Id of a service of GET /api/services', pattern: '^[a-z][a-z0-9-]{0,40}$', examples: ['openwebui'] })
})

const statSchema = z.strictObject({ label: z.string(), value: z.union([z.string(), z.number()]) })

const unitStateSchema = z.strictObject({
  active_state: z.string().meta({ description: 'active, activating, inactive, failed' }),
  sub_state: z.string(),
  unit_file_state: z.string().meta({ description: 'enabled: it starts with the machine, or with the gateway if that runs it' }),
  since: z.string().nullable().meta({ description: 'ISO 8601 UTC; null if it is not running' })
}).meta({ title: 'ServiceUnitState', description: 'State in the terms of systemd, even if the gateway runs the service itself' })

export const installStatusSchema = z.strictObject({
  state: z.enum(installStates),
  form: z.enum(installForms).nullable(),
  version: z.string().nullable(),
  message: z.string().meta({ description: 'Current step, or what went wrong' }),
  settings: z.array(z.string()).meta({ description: 'Settings of svc.toml that were changed for it' })
}).meta({ title: 'ServiceInstallation' })

export const serviceSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  managed: z.boolean().meta({ description: 'Whether something on this machine can run it' }),
  runs_as: z.enum(serviceForms).nullable().meta({ description: 'null if it is not installed or cannot run here' }),
  unit: z.string(),
  unit_state: unitStateSchema.nullable(),
  up: z.boolean().meta({ description: 'True only after it has answered' }),
  detail: z.string(),
  stat: statSchema.nullable(),
  url: z.string().nullable().meta({ description: 'Its page; null if a browser cannot reach one' }),
  mdns_url: z.string().nullable(),
  loopback_port: z.int().nullable().meta({ description: 'Set for a service that listens only on loopback' }),
  actions: z.array(z.enum(serviceVerbs)),
  mdns_capable: z.boolean(),
  wired: z.boolean().nullable().meta({ description: 'Whether it uses this gateway; null if unknown' }),
  licence: z.strictObject({ name: z.string(), note: z.string().nullable(), url: z.string().nullable() }),
  installation: installStatusSchema,
  hints: z.array(z.string())
}).meta({ title: 'Service' })

export const mdnsSchema = z.strictObject({
  available: z.boolean().meta({ description: 'Whether an avahi daemon is running, or the gateway can announce services itself' }),
  hostname: z.string().meta({ description: 'Ends with .local' }),
  base_advertised: z.boolean().meta({ description: 'Whether the gateway itself is announced, by a file that svc did not write' }),
  advertised: z.array(z.string()).meta({ description: 'Ids of services' })
}).meta({ title: 'ServiceAnnouncements' })

export const servicesSchema = z.strictObject({ services: z.array(serviceSchema), mdns: mdnsSchema })

export const healthSchema = z.strictObject({
  services: z.array(z.strictObject({
    id: z.string(), name: z.string(), up: z.boolean(), detail: z.string(), url: z.string().nullable(), stat: statSchema.nullable()
  }))
})

export const actionBodySchema = z.strictObject({
  action: z.string().meta({ description: 'One of the `actions` of the service', enum: [...serviceVerbs] })
}).meta({ title: 'ServiceAction' })

export const actedSchema = z.strictObject({
  id: z.string(), unit: z.string(), action: z.enum(serviceVerbs), ok: z.boolean(), active: z.boolean(), message: z.string(),
  problem: z.enum(verbProblems).nullable().meta({ description: 'Why `ok` is false; `not_permitted`: systemd does not let the user of the gateway do this' })
})

export const installBodySchema = z.strictObject({
  form: z.enum(installForms).optional().meta({ description: 'Default: a Python environment if a suitable Python exists, else a container; `slot` for services that run as one' })
}).meta({ title: 'ServiceInstallOrder' })

export const uninstallQuerySchema = z.strictObject({
  data: z.enum(['true', 'false']).default('false').meta({ description: 'Also delete its data: chats, documents, accounts' })
})

export const mdnsStateSchema = mdnsSchema.extend({
  advertisable: z.array(z.strictObject({ id: z.string(), name: z.string(), port: z.int() }))
}).meta({ title: 'ServiceAnnouncementState' })

export const advertiseBodySchema = z.strictObject({ advertise: z.boolean() }).meta({ title: 'AdvertiseOrder' })

export const advertisedSchema = mdnsSchema.extend({ ok: z.boolean(), message: z.string() }).meta({ title: 'AdvertiseOutcome' })

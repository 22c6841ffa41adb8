import { z } from 'zod'
import { hostFailedSchema, slimHostSchema } from '../stats/ref.js'

const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})'
const GROUP = '[0-9A-Fa-f]{1,4}'
/** An IPv6 address: all eight groups, or `::` in place of some. */
const IPV6 = [
  `(?:${GROUP}:){7}${GROUP}`,
  ...[1, 2, 3, 4, 5, 6].map(before => `(?:${GROUP}:){1,${before}}(?::${GROUP}){1,${7 - before}}`),
  `(?:${GROUP}:){1,7}:`,
  `:(?::${GROUP}){1,7}`,
  '::'
].join('|')
const HOST = new RegExp(`^(?:${LABEL}(?:\\.${LABEL})*\\.?|(?:${IPV6})|\\[(?:${IPV6})\\])$`)
const MAX_HOST = 253

const hostSchema = z.string({ error: 'must be the name or address of the host' }).max(MAX_HOST)
  .regex(HOST, { error: 'must be a host name or an IP address alone, without https:// and without a port' })
  .meta({ description: 'Name or IP address', minLength: 1 })
const portSchema = z.int({ error: 'must be a whole number from 1 to 65535' })
  .min(1, { error: 'must be a whole number from 1 to 65535' }).max(65_535, { error: 'must be a whole number from 1 to 65535' })
const userSchema = z.string({ error: 'must be a user with its realm, as in svc@pve' }).max(64)
  .regex(/^(?![^@]*[!=])[!-~]+@[A-Za-z][A-Za-z0-9._-]+$/, { error: 'must be a user with its realm, as in svc@pve, and without the token' })
const tokenNameSchema = z.string({ error: 'must be the name of the API token' }).max(128)
  .regex(/^[A-Za-z][A-Za-z0-9._-]*$/, { error: 'must be only the name of the API token: the part between ! and =' })
const tokenValueSchema = z.string({ error: 'must be the secret of the API token' }).max(256)
  .regex(/^[!-~]+$/, { error: 'must be the secret of the API token: one word of printable characters; leave it out to keep the stored one' })
const verifySchema = z.boolean({ error: 'must be true or false' })

/** What is needed to ask a host. */
export interface HostSettings {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly token_name: string
  /** A secret: it leaves the gateway in the header of a question to this host, and nowhere else. */
  readonly token_value: string
  readonly verify_ssl: boolean
}

const defaults = { port: 8006, verify_ssl: false } as const

export const bodySchema = z.strictObject({
  host: hostSchema,
  port: portSchema.default(defaults.port),
  user: userSchema,
  token_name: tokenNameSchema,
  token_value: tokenValueSchema.optional().meta({ description: 'If omitted, the stored one is kept', writeOnly: true }),
  verify_ssl: verifySchema.default(defaults.verify_ssl).meta({ description: 'Whether this machine must trust the certificate of the host' })
})
/** What is missing is told with a code of its own. */
export const testBodySchema = bodySchema.clone().meta({ required: ['host', 'user', 'token_name', 'token_value'] })
export type SettingsBody = z.output<typeof bodySchema>

/** `/etc/svc/proxmox.json`. Keys that are not known are left aside. */
export const fileSchema = z.object({
  proxmox: z.object({
    host: hostSchema,
    port: portSchema.default(defaults.port),
    verify_ssl: verifySchema.default(defaults.verify_ssl),
    service: z.literal('PVE', { error: 'must be PVE: no other product is supported' }).default('PVE')
  }),
  auth: z.object({ user: userSchema, token_name: tokenNameSchema, token_value: tokenValueSchema })
})

export const tenantSchema = z.strictObject({
  type: z.enum(['lxc', 'qemu']).meta({ description: 'Container or virtual machine' }),
  vmid: z.int(),
  name: z.string(),
  status: z.string().meta({ description: 'running, stopped, ...' }),
  maxmem_mb: z.int().nullable().meta({ description: 'Memory limit in MiB' }),
  mem_mb: z.int().nullable().meta({ description: 'Memory in use in MiB' }),
  maxcpu: z.number().nullable().meta({ description: 'Number of processors' }),
  cpu_pct: z.number().nullable().meta({ description: '0 to 100, of the processors that it may use' }),
  node: z.string()
})
export type Tenant = z.output<typeof tenantSchema>

export const hostStatusSchema = z.strictObject({
  ...slimHostSchema.shape,
  host_cpu_count: z.int().nullable(),
  host_uptime_s: z.int().nullable(),
  tenants_allocated_mb: z.int().meta({ description: 'Sum of the memory limits of the running ones, in MiB' }),
  tenants: z.array(tenantSchema).meta({ description: 'Of the node, by id' })
})
export type HostStatus = z.output<typeof hostStatusSchema>
export type HostAnswer = HostStatus | z.output<typeof hostFailedSchema>

export const settingsSchema = z.strictObject({
  configured: z.boolean(),
  host: z.string().nullable(),
  port: z.int().nullable(),
  user: z.string().nullable(),
  token_name: z.string().nullable(),
  verify_ssl: z.boolean().nullable(),
  token_value_set: z.boolean().meta({ description: 'The token itself is never shown' }),
  status: z.union([z.strictObject({ configured: z.literal(false) }), hostFailedSchema, hostStatusSchema])
    .meta({ description: 'At most 30 seconds old' })
})

export const removedSchema = z.strictObject({
  configured: z.literal(false),
  existed: z.boolean()
})

export const testedSchema = z.union([
  z.strictObject({
    ok: z.literal(true),
    node: z.string(),
    host_mem_total_mb: z.int(),
    tenants_total: z.int()
  }),
  z.strictObject({ ok: z.literal(false), error: z.string() })
])

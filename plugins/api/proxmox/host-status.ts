import { z } from 'zod'
import type { SlimHost } from '../stats/ref.js'
import type { HostAnswer, HostStatus, Tenant } from './schemas.js'

const MIB = 1024 * 1024

/** Older releases write some numbers as text. */
const number = z.union([z.number(), z.string().regex(/^\d+(\.\d+)?$/).transform(Number)])
const maybe = number.nullish().transform(value => value ?? null)

/** `GET /nodes`: every user may ask; without privileges it has names and little more. A name is a label of DNS. */
export const nodesSchema = z.array(z.object({
  node: z.string().max(63).regex(/^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?$/),
  status: z.string().default('online')
}))

/** `GET /cluster/status`: `local` marks the node that answers. */
export const clusterSchema = z.array(z.object({ type: z.string(), name: z.string().optional(), local: maybe }))

/** `GET /nodes/{node}/status`; needs Sys.Audit. Sizes in bytes, `cpu` from 0 to 1. */
export const nodeSchema = z.object({
  memory: z.object({ total: number, used: maybe, free: maybe }),
  cpu: maybe,
  cpuinfo: z.object({ cpus: maybe }).default({ cpus: null }),
  uptime: maybe
})

/** `GET /nodes/{node}/lxc` and `/qemu`: what the token may see (VM.Audit). */
export const guestsSchema = z.array(z.object({
  vmid: number,
  name: z.string().optional(),
  status: z.string().default('unknown'),
  maxmem: maybe,
  mem: maybe,
  cpus: maybe,
  cpu: maybe,
  template: z.union([number, z.boolean(), z.literal('')]).nullish()
}))

export interface NodeFacts {
  readonly node: string
  readonly status: z.output<typeof nodeSchema>
  readonly lxc: z.output<typeof guestsSchema>
  readonly qemu: z.output<typeof guestsSchema>
}

/** What the answers of a node come to. Pure. */
export function hostStatus ({ node, status, lxc, qemu }: NodeFacts): HostStatus {
  const { memory, cpu, cpuinfo, uptime } = status
  const tenants = [
    ...lxc.filter(isTenant).map(guest => tenantOf('lxc', node, guest)),
    ...qemu.filter(isTenant).map(guest => tenantOf('qemu', node, guest))
  ].sort((a, b) => a.vmid - b.vmid)
  const running = tenants.filter(tenant => tenant.status === 'running')
  const free = memory.free ?? (memory.used === null ? null : Math.max(0, memory.total - memory.used))
  return {
    configured: true,
    ok: true,
    node,
    host_mem_total_mb: Math.round(memory.total / MIB),
    host_mem_used_mb: mib(memory.used),
    host_mem_free_mb: mib(free),
    host_cpu_pct: percent(cpu),
    host_cpu_count: whole(cpuinfo.cpus),
    host_uptime_s: whole(uptime),
    tenants_running: running.length,
    tenants_total: tenants.length,
    tenants_allocated_mb: running.reduce((sum, { maxmem_mb: mb }) => sum + (mb ?? 0), 0),
    tenants
  }
}

/** As `/api/stats/hardware` has it. Pure. */
export function slimHost (status: HostAnswer): SlimHost {
  if (!status.ok) return status
  const {
    tenants: _tenants, host_cpu_count: _count, host_uptime_s: _uptime, tenants_allocated_mb: _allocated, ...slim
  } = status
  return slim
}

type Guest = NodeFacts['lxc'][number]

function tenantOf (type: Tenant['type'], node: string, guest: Guest): Tenant {
  return {
    type,
    vmid: Math.trunc(guest.vmid),
    name: guest.name ?? String(guest.vmid),
    status: guest.status,
    maxmem_mb: mib(guest.maxmem),
    mem_mb: mib(guest.mem),
    maxcpu: guest.cpus,
    cpu_pct: percent(guest.cpu),
    node
  }
}

/** Nothing can run a template. */
function isTenant ({ template }: Guest): boolean {
  return template === undefined || template === null || template === '' || Number(template) === 0
}

function mib (bytes: number | null): number | null {
  return bytes === null ? null : Math.round(bytes / MIB)
}

function whole (value: number | null): number | null {
  return value === null ? null : Math.trunc(value)
}

function percent (share: number | null): number | null {
  return share === null ? null : Math.round(share * 1000) / 10
}

import {
  type Clock, type GatewayInfo, type Upstream, type UpstreamReading, type UpstreamService
} from 'svc-gateway/plugin'
import { z } from 'zod'
import { mapBounded, withinMs } from './probe-limits.js'
import type { RemoteSlotRow } from './record-schema.js'
import { withoutCredentials } from './upstream-row.js'

export interface RemoteServices {
  readonly upstreams: UpstreamService
  readonly info: GatewayInfo
  readonly clock: Clock
}

/** What another gateway has, or why it is not known. */
export type RemoteSlotList =
  | { readonly rows: readonly RemoteSlotRow[], readonly error: null }
  | { readonly rows: null, readonly error: string }

const GATEWAYS_AT_A_TIME = 8
const LONGEST_LOOK_MS = 2_000
/** Several pages that look at once, and again every second, are one look. */
const LOOK_LASTS_MS = 1_000
const MOST_SLOTS = 500

interface Look {
  readonly of: Upstream
  readonly at: number
  readonly found: Promise<RemoteSlotList>
}

/** The slots of upstreams that are gateways: only their own, so gateways that know each other make no circle. */
export class RemoteSlots {
  readonly #services: RemoteServices
  readonly #looks = new Map<string, Look>()

  constructor (services: RemoteServices) {
    this.#services = services
  }

  /** By upstream. Never rejects. */
  async all (): Promise<ReadonlyMap<string, RemoteSlotList>> {
    const gateways = this.#services.upstreams.list().map(({ config }) => config).filter(({ svc, enabled }) => svc && enabled)
    for (const name of this.#looks.keys()) if (!gateways.some(gateway => gateway.name === name)) this.#looks.delete(name)
    const lists = await mapBounded(gateways, GATEWAYS_AT_A_TIME, gateway => this.#of(gateway))
    return new Map(gateways.map(({ name }, i) => [name, lists[i]!]))
  }

  #of (gateway: Upstream): Promise<RemoteSlotList> {
    const now = this.#services.clock.monotonic()
    const known = this.#looks.get(gateway.name)
    if (known !== undefined && known.of === gateway && now - known.at < LOOK_LASTS_MS) return known.found
    const found = this.#look(gateway)
    this.#looks.set(gateway.name, { of: gateway, at: now, found })
    return found
  }

  async #look (gateway: Upstream): Promise<RemoteSlotList> {
    const { upstreams, clock, info } = this.#services
    const read = (path: string, signal: AbortSignal): Promise<UpstreamReading> => upstreams.read(gateway, path, signal)
    const answers = await withinMs(clock, LONGEST_LOOK_MS, null, signal =>
      Promise.all(['/api/status', '/api/slots', '/v1/models?owned_by=svc'].map(path => read(path, signal))))
    if (answers === null) return { rows: null, error: `no answer within ${LONGEST_LOOK_MS / 1000} s` }
    const [status, slots, models] = answers as [UpstreamReading, UpstreamReading, UpstreamReading]
    for (const reading of [status, slots]) if (!reading.ok) return { rows: null, error: reading.error }
    return remoteSlotList(gateway, info.instance, {
      status: status.ok ? status.body : null, slots: slots.ok ? slots.body : null, models: models.ok ? models.body : null
    })
  }
}

const text = z.string().max(512)
const nothing = z.null().catch(null)
const statusSchema = z.looseObject({ instance: text })
const slotSchema = z.looseObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/),
  kind: z.literal('local'),
  type: text.nullable().catch(null),
  state: text,
  status: text.optional().catch(undefined),
  enabled: z.boolean().catch(true),
  model_id: text.nullable().catch(null),
  model_default: text.nullable().catch(null),
  device: text.nullable().catch(null),
  backend: text.catch(''),
  provider: text.catch(''),
  ctx_max: z.int().nullable().catch(null),
  metrics: z.looseObject({
    toks: z.number().catch(0), ttft: z.int().nullable().catch(null), ctx: z.int().nullable().catch(null),
    kv: z.number().nullable().catch(null), mem: z.int().nullable().catch(null)
  }).or(nothing)
})
const modelSchema = z.looseObject({ id: text, capabilities: z.array(text).max(32).nullable().catch(null) })

export interface RemoteAnswers {
  readonly status: unknown
  readonly slots: unknown
  readonly models: unknown
}

/**
 * Rows of what another gateway said. Slots that it says too little of are left out, and those beyond 500. Pure.
 * @param instance of this gateway: one that leads back here has no other slots
 */
export function remoteSlotList (gateway: Pick<Upstream, 'name' | 'url'>, instance: string, told: RemoteAnswers): RemoteSlotList {
  const status = statusSchema.safeParse(told.status)
  if (!status.success || !Array.isArray(told.slots)) return { rows: null, error: 'it answers, but not like an svc gateway' }
  if (status.data.instance === instance) return { rows: null, error: 'its address points back to this gateway' }
  const abilities = abilitiesOf(told.models)
  const rows = new Map<string, RemoteSlotRow>()
  for (const entry of told.slots as readonly unknown[]) {
    if (rows.size === MOST_SLOTS) break
    const slot = slotSchema.safeParse(entry)
    if (slot.success && !rows.has(slot.data.name)) rows.set(slot.data.name, rowOf(gateway, slot.data, abilities))
  }
  return { rows: [...rows.values()], error: null }
}

function rowOf (
  { name: upstream, url }: Pick<Upstream, 'name' | 'url'>, slot: z.output<typeof slotSchema>, abilities: ReadonlyMap<string, readonly string[]>
): RemoteSlotRow {
  const { name, type, state, status, enabled, model_id, model_default, device, backend, provider, ctx_max, metrics } = slot
  const { toks, ttft, ctx, kv, mem } = metrics ?? { toks: 0, ttft: null, ctx: null, kv: null, mem: null }
  const capabilities = abilities.get(`svc/${name}`)
  return {
    name: `${upstream}/${name}`,
    kind: 'remote-slot',
    upstream,
    slot: name,
    url: withoutCredentials(url),
    type, state, status: status ?? state, enabled, model_id, model_default, device, backend, provider, ctx_max,
    capabilities: capabilities === undefined ? null : [...capabilities],
    _synthetic: true,
    _synthetic_reason: `a slot of the gateway ${upstream}`,
    metrics: { toks, ttft, ctx, kv, mem }
  }
}

function abilitiesOf (models: unknown): ReadonlyMap<string, readonly string[]> {
  const data = (models as { readonly data?: unknown } | null)?.data
  const found = new Map<string, readonly string[]>()
  if (!Array.isArray(data)) return found
  for (const row of (data as readonly unknown[]).slice(0, 10 * MOST_SLOTS)) {
    const model = modelSchema.safeParse(row)
    if (model.success && model.data.capabilities !== null) found.set(model.data.id, model.data.capabilities)
  }
  return found
}

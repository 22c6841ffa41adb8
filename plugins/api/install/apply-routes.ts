import { defineRoute, whileConnected, type AnyRoute, type ConfigService, type RouteCall } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { installError } from './errors.js'
import { bringExtensions, defaultExtensions, wantsAgent, type ExtensionOrder } from './extensions.js'
import { completeFirstRun, steadyModelList } from './first-run.js'
import type { InstallApi } from './install-api.js'
import { modelBudgetMb } from './memory-budget.js'
import type { WantedSlot } from './plan.js'
import { appliedSchema, applyBodySchema, selectedSchema, selectionsBodySchema, type Selected } from './schemas.js'
import { slotKinds } from './slot-kinds.js'
import { adoptStore, storagePath } from './store-folder.js'
import { automatic, tierSlots, waitingSlots, withNpu } from './tier-slots.js'
import { fittingTier, loadTier, tierNamed, tierNames, type Tier } from './tiers.js'

type ApplyBody = z.output<typeof applyBodySchema>
type SelectionsBody = z.output<typeof selectionsBodySchema>

/** What one order comes to, once the tier is known. */
interface Order {
  readonly slots: readonly WantedSlot[]
  /** Seeds of the capability overlay. */
  readonly defaults: readonly WantedSlot[]
  readonly extensions: ExtensionOrder
  readonly storageDir: string | null
  readonly pull: boolean
}

/** Making the slots of a first run. */
export function applyRoutes (api: InstallApi): AnyRoute[] {
  return [
    defineRoute({
      method: 'POST',
      url: '/api/install/apply',
      tag: 'First run',
      summary: 'Set up the slots of a tier',
      description: 'Slots are created at once and start when their models are downloaded. A slot that fails or is skipped does not stop the others; ' +
        'an existing slot keeps its model.',
      schema: { body: applyBodySchema, response: appliedSchema },
      example: { tier: 'auto', pull: false },
      handler: call => {
        const { tier: wanted, ...body } = call.body
        return order(api, call, 'install.apply', wanted, async () => {
          const tier = await pickTier(api, wanted)
          const done = await fulfil(api, tierOrder(api, tier, isAuto(wanted), body))
          const pulls = done.slots.some(({ pull_job_id: job }) => job !== null)
          return { tier: tier.name, ...done, next: pulls ? 'pull' as const : 'done' as const }
        })
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/install/apply-selections',
      tag: 'First run',
      summary: 'Set up slots one by one',
      schema: { body: selectionsBodySchema, response: selectedSchema },
      example: { slots: [{ capability: 'embed', model_id: '' }], pull: false },
      handler: call => order(api, call, 'install.apply_selections', 'selections', () => fulfil(api, selectionOrder(call.body)))
    })
  ]
}

/** Throws `install.curated_not_found`. */
async function pickTier ({ finder, hardware }: InstallApi, wanted: string): Promise<Tier> {
  if (isAuto(wanted)) return fittingTier(await finder.tiers(), modelBudgetMb(hardware.defaultDevice, hardware.info))
  const name = tierNamed(wanted)
  if (name !== null) return await loadTier(name, finder.bundles)
  throw installError('install.curated_not_found', `no such tier: '${wanted}'; there are ${tierNames.join(', ')}, and auto`,
    { param: 'tier', details: { tier: wanted, tiers: tierNames } })
}

/** A client that leaves ends its own wait and not the work. */
function order<T> (
  api: InstallApi, call: Pick<RouteCall, 'actor' | 'requestId' | 'signal'>, action: string, target: string, work: () => Promise<T>
): Promise<unknown> {
  const row = { category: 'install', action, target, actor: call.actor, request_id: call.requestId }
  return whileConnected(call, api.activity.audited(row, async note => {
    const result = await work()
    note({ after: result })
    return result
  }))
}

/** Everything that can be refused is refused before anything is changed. */
function tierOrder ({ agents, config, slots }: InstallApi, tier: Tier, auto: boolean, body: Omit<ApplyBody, 'tier'>): Order {
  const { overrides, npu_opt_in: npu, storage_dir: storage, pull } = body
  const extensions = body.extensions ?? (auto ? defaultExtensions() : {})
  const all = tierSlots(tier, overrides, npu)
  const chosen = auto
    ? withWaiting(config, automatic(all, { slotNames: slots.names(), agent: wantsAgent(extensions, agents.list()) }))
    : { slots: all, defaults: [] }
  const order = { wanted: extensions, isAsked: body.extensions !== undefined }
  return { ...chosen, extensions: order, storageDir: storage === undefined ? null : storagePath(storage), pull }
}

type Chosen = Pick<Order, 'slots' | 'defaults'>

function withWaiting ({ snapshot }: ConfigService, { slots, defaults }: Chosen): Chosen {
  const waiting = waitingSlots(snapshot.slots.values())
  return { slots: [...waiting, ...slots.filter(({ slot }) => waiting.every(other => other.slot !== slot))], defaults }
}

function selectionOrder (body: SelectionsBody): Order {
  const { slots, extensions, npu_opt_in: npu, storage_dir: storage, pull } = body
  const wanted = slots.map((row): WantedSlot => ({
    kind: row.capability,
    slot: row.slot_name ?? slotKinds[row.capability].slot,
    port: row.port ?? null,
    modelId: row.model_id,
    device: row.device ?? null,
    profile: row.profile ?? null
  }))
  const storageDir = storage === undefined ? null : storagePath(storage)
  return {
    slots: npu ? withNpu(wanted) : wanted, defaults: [], extensions: { wanted: extensions, isAsked: true }, storageDir, pull
  }
}

function isAuto (tier: string): boolean {
  return tier.trim().toLowerCase() === 'auto'
}

async function fulfil (api: InstallApi, { slots: wanted, defaults, extensions, storageDir, pull }: Order): Promise<Selected> {
  const { installer } = api
  const warnings = [
    ...storageDir === null ? [] : await adoptStore(api, storageDir),
    ...await steadyModelList(api.config)
  ]
  const slots = await installer.apply(wanted, { pull })
  if (defaults.length > 0) await installer.seed(defaults)
  await completeFirstRun(api)
  const got = slots.filter(({ skipped, error, model_id: id }) => skipped === null && error === null && id !== '')
  return {
    model_ids: [...new Set(got.map(({ model_id: id }) => id))],
    slots: [...slots],
    extensions: await bringExtensions(api, extensions),
    warnings
  }
}

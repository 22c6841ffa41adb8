import { messageOf, type ConfigService, type NamedSlotConfig, type ServiceDescriptor, type SlotService } from 'svc-gateway/plugin'
import { join } from 'node:path'
import { refuseLink, removeFolder, type Remains } from './data-folder.js'
import { servicesError } from './errors.js'
import { usualNames } from './world.js'

export interface SlotFormDeps {
  readonly config: ConfigService
  readonly slots: SlotService
  readonly signal: AbortSignal
}

/** The first enabled slot that a service runs as; null where it is no slot, or there is none. */
export function slotOf ({ config }: Pick<SlotFormDeps, 'config'>, { slot }: ServiceDescriptor): string | null {
  if (slot === undefined) return null
  return [...config.snapshot.slots.values()].find(({ type, enabled }) => type === slot && enabled)?.name ?? null
}

/** The slot that was made for it, enabled or not. */
function madeFor ({ config }: Pick<SlotFormDeps, 'config'>, { id }: ServiceDescriptor): NamedSlotConfig | undefined {
  return [...config.snapshot.slots.values()].find(({ meta }) => meta?.service === id)
}

/** Ends a change of slots that is only looked at. */
class Trouble extends Error {}

/** Why no such slot could come up here; null when one could, or is there. */
export async function slotMisfit (deps: SlotFormDeps, service: ServiceDescriptor): Promise<string | null> {
  const own = madeFor(deps, service)
  if (own === undefined && slotOf(deps, service) !== null) return null
  try {
    return await deps.slots.change(async draft => {
      const { name } = own ?? await draft.create(usualNames[service.slot!], made(service))
      const [trouble] = await draft.troubles(name)
      if (trouble !== undefined) throw new Trouble(trouble.message)
      return null
    }, { dryRun: true })
  } catch (error) {
    return messageOf(error)
  }
}

/**
 * Makes the slot, unless there is one, and has its image. It is enabled last: a slot without its image would be asked by
 * clients. Throws `services.install_failed`, and what a slot that is written does.
 */
export async function bringSlot (deps: SlotFormDeps, service: ServiceDescriptor, tell: (message: string) => void): Promise<void> {
  const { slots } = deps
  const there = slotOf(deps, service)
  const begun = there ?? madeFor(deps, service)?.name ?? null
  const name = begun ?? (await slots.create(usualNames[service.slot!], { ...made(service), enabled: false })).name
  try {
    // one whose engine is a program of this machine has no image
    if (slots.outlook(name).image !== null) await fetchImage(deps, name, tell)
    if (there === null) await slots.update(name, { enabled: true })
  } catch (error) {
    // a gateway that stops goes on with it when it is asked again
    if (begun === null && !deps.signal.aborted) await slots.delete(name)
    throw error
  }
}

async function fetchImage ({ slots, signal }: SlotFormDeps, name: string, tell: (message: string) => void): Promise<void> {
  if ((await slots.pullStatus(name)).state === 'present') return
  await slots.pullImage(name)
  for await (const { state, image, layer, total_layers: layers, error } of slots.watchPull(name, signal)) {
    tell(`pulling ${image}: ${layer} of ${layers} layers`)
    if (state === 'failed' || state === 'cancelled') throw servicesError('services.install_failed', `the image of slot ${name} could not be pulled: ${error ?? state}`)
  }
}

/**
 * Deletes the slot that was made for the service, when its engine has let go, and its data if asked. Resolves with what is
 * left of the data. Throws `services.not_made_here`, and what keeps a slot from being deleted.
 */
export async function takeSlot (deps: SlotFormDeps, service: ServiceDescriptor, withData: boolean): Promise<Remains | null> {
  const { slots, config } = deps
  const own = madeFor(deps, service)
  const other = own === undefined ? slotOf(deps, service) : null
  if (other !== null) {
    throw servicesError('services.not_made_here', `${service.name} runs as slot ${other}, which its installation did not create: \`svc slot delete ${other}\` deletes it`,
      { details: { service: service.id, slot: other } })
  }
  const data = withData ? service.slotOffer?.data ?? null : null
  const others = [...config.snapshot.slots.values()].filter(({ name, type }) => type === service.slot && name !== own?.name)
  const [sharing] = data === null ? [] : others
  if (sharing !== undefined) {
    throw servicesError('services.not_made_here', `the data of ${service.name} is shared with slot ${sharing.name}, which its installation did not create: ` +
      'uninstall it without its data, or delete that slot first', { details: { service: service.id, slot: sharing.name } })
  }
  const folder = data === null ? null : join(config.paths.state, data)
  if (folder !== null) await refuseLink(folder, service)
  if (own !== undefined) await slots.delete(own.name)
  return folder !== null ? await removeFolder(folder) : null
}

function made ({ id, slot }: ServiceDescriptor): Readonly<Record<string, unknown>> {
  return { type: slot, meta: { service: id } }
}

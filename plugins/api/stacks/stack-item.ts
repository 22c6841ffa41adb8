import type { Device } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { stackCatalog, type NamedStack } from '../../services/stack-catalog/ref.js'
import { readPointer, stackState, type StackState } from './pointer.js'
import type { stackItemSchema } from './schemas.js'
import type { StackServices } from './stack-api.js'
import { stackNotFound } from './stack-errors.js'

export type StackItem = z.output<typeof stackItemSchema>

/** Which stack was applied last, and whether it still holds. */
export async function presentState ({ config }: Pick<StackServices, 'config'>): Promise<StackState> {
  return stackState(await readPointer(config.paths), config.snapshot)
}

/** `present` are the devices of this host. Pure. */
export function stackItem (stack: NamedStack, { active, drift }: StackState, present: readonly Device[]): StackItem {
  const isActive = stack.slug === active
  return { ...stack, active: isActive, drift: isActive ? drift : 'none', lacks: devicesOf(stack).filter(device => !present.includes(device)) }
}

/** Devices that a stack names for what it switches on, each once. Pure. */
function devicesOf ({ slots }: NamedStack): readonly Device[] {
  const named = slots.flatMap(row => [
    row.model === null ? null : row.device, ...row.capabilities.filter(({ enabled }) => enabled).map(({ device }) => device)
  ])
  return [...new Set(named.filter(device => device !== null))]
}

export function devicesHere ({ overlay }: Pick<StackServices, 'overlay'>): readonly Device[] {
  return overlay.backends().map(({ id }) => id)
}

/** Throws `stacks.not_found`. */
export function stackOf ({ config }: Pick<StackServices, 'config'>, slug: string): NamedStack {
  const stack = stackCatalog.of(config.snapshot).get(slug)
  if (stack === undefined) throw stackNotFound(slug)
  return stack
}

export async function itemOf (services: Pick<StackServices, 'config' | 'overlay'>, slug: string): Promise<StackItem> {
  return stackItem(stackOf(services, slug), await presentState(services), devicesHere(services))
}

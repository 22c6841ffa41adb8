import type { NamedSlotConfig } from '../../contract/index.js'
import { mostReplicas } from '../schedule/replica-names.js'
import type { Report, SlotSetContext } from './slot-rule-context.js'

/** What slots of several engines cannot be, and numbers that contradict each other. */
export function checkReplicas (slot: NamedSlotConfig, { providers }: Pick<SlotSetContext, 'providers'>, report: Report): void {
  const { name, replicas, min_replicas: min, max_replicas: max, port, served_by: anchor, type } = slot
  const refuse = (param: string, message: string): void => report(slot, 'replicas', 'slot.config_error', message, { param })
  const most = max ?? replicas
  if (replicas > most) refuse('max_replicas', `slot '${name}' has ${replicas} replicas but \`max_replicas\` allows ${most}; raise it or lower \`replicas\``)
  if (min > most) refuse('min_replicas', `slot '${name}' keeps ${min} replicas running but may have ${most}; lower \`min_replicas\` or raise \`max_replicas\``)
  if (anchor !== null && (replicas > 1 || (max ?? 1) > 1)) {
    refuse('replicas', `slot '${name}' runs in the engine of slot '${anchor}' and has no replicas of its own; remove \`replicas\` and \`max_replicas\``)
  }
  if (mostReplicas(slot) === 1) return
  if (port !== undefined) refuse('port', `slot '${name}' may have ${mostReplicas(slot)} engines, but a port belongs to one engine; leave \`port\` out, so that each gets a free one`)
  if (type === 'image') refuse('replicas', `slot '${name}' makes images, and jobs cannot be shared between image engines; an image slot has one engine`)
  const provider = providers.get(slot.provider)
  if (provider === undefined) return
  if (provider.exclusivity !== 'standard') refuse('replicas', `engines of provider ${provider.name} need their device to themselves; slot '${name}' can have only one`)
  else if (provider.children !== undefined && provider.children.length > 0) {
    refuse('replicas', `the engine of provider ${provider.name} also serves other slots; slot '${name}' can have only one`)
  }
}

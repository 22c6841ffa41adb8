import type { NamedSlotConfig } from '../../contract/index.js'
import { mostReplicas } from '../schedule/replica-names.js'
import type { Report, SlotSetContext } from './slot-rule-context.js'

/** What slots of several engines cannot be, and numbers that contradict each other. */
export function checkReplicas (slot: NamedSlotConfig, { providers }: Pick<SlotSetContext, 'providers'>, report: Report): void {
  const { name, replicas, min_replicas: min, max_replicas: max, port, served_by: anchor, type } = slot
  const refuse = (param: string, message: string): void => report(slot, 'replicas', 'slot.config_error', message, { param })
  const most = max ?? replicas
  if (replicas > most) refuse('max_replicas', `slot '${name}' has ${replicas} replicas and \`max_replicas\` allows ${most}; raise it or lower \`replicas\``)
  if (min > most) refuse('min_replicas', `slot '${name}' keeps ${min} replicas up and may have ${most}; lower \`min_replicas\` or raise \`max_replicas\``)
  if (anchor !== null && (replicas > 1 || (max ?? 1) > 1)) {
    refuse('replicas', `slot '${name}' runs in the engine of slot '${anchor}' and has no replicas of its own; take \`replicas\` and \`max_replicas\` out`)
  }
  if (mostReplicas(slot) === 1) return
  if (port !== undefined) refuse('port', `slot '${name}' may have ${mostReplicas(slot)} engines and one port is one engine's; leave \`port\` out, so that each gets a free one`)
  if (type === 'image') refuse('replicas', `slot '${name}' makes images, and the jobs of an image engine are its own; an image slot has one engine`)
  const provider = providers.get(slot.provider)
  if (provider === undefined) return
  if (provider.exclusivity !== 'standard') refuse('replicas', `engines of provider ${provider.name} have their device for themselves; slot '${name}' can have one`)
  else if (provider.children !== undefined && provider.children.length > 0) {
    refuse('replicas', `the engine of provider ${provider.name} serves further slots; slot '${name}' can have one`)
  }
}

import { slotAbilities, type SlotAbility } from '../../contract/index.js'
import { isServing } from '../../slots/schedule/slot-machine.js'
import type { RequestNeeds } from './request-needs.js'
import type { SlotRoute } from './route-snapshot.js'

/** Slots that a name stands for, where it matters which of them a request goes to, or whether any can serve it. */
export interface SlotChoice {
  /** Best first. */
  readonly among: readonly SlotRoute[]
  /** Others that may take what all of them lack: any slot that does the work of a role may serve it. Best first. */
  readonly standIns: readonly SlotRoute[]
}

/** No slot of the name can do what the request needs. */
export interface Inability {
  readonly ability: SlotAbility
  readonly slots: readonly string[]
}

/** The choice between slots; null where every request goes to the first one, whatever it needs. Pure. */
export function choiceOf (among: readonly SlotRoute[], standIns: readonly SlotRoute[] = []): SlotChoice | null {
  const lack = among.some(({ abilities }) => slotAbilities.some(ability => abilities[ability] === false))
  const differ = new Set(among.map(({ contextSize }) => contextSize)).size > 1
  return lack || differ ? { among, standIns } : null
}

/**
 * The first slot that does not lack what the request needs and whose context holds it, else the one of the longest context;
 * a stand-in only where every slot of the name lacks something, and only one that certainly has it all. Pure.
 */
export function ableSlot ({ among, standIns }: SlotChoice, needs: RequestNeeds): SlotRoute | Inability {
  const able = among.filter(slot => lackOf(slot, needs) === null)
  if (able.length === 1) return able[0]!
  if (able.length > 1) {
    const { tokens } = needs
    return able.find(({ contextSize }) => contextSize === null || contextSize >= tokens) ??
      able.reduce((long, slot) => slot.contextSize! > long.contextSize! ? slot : long)
  }
  const certain = standIns
    .filter(({ abilities }) => slotAbilities.every(ability => abilities[ability] === true || !needs.has(ability)))
  return certain.find(({ state }) => isServing(state)) ?? certain[0] ??
    { ability: lackOf(among[0]!, needs)!, slots: among.map(({ name }) => name) }
}

/** What the request needs and the slot cannot do. */
function lackOf ({ abilities }: SlotRoute, needs: RequestNeeds): SlotAbility | null {
  return slotAbilities.find(ability => abilities[ability] === false && needs.has(ability)) ?? null
}

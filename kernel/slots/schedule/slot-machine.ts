import type { SlotState } from '../../contract/index.js'

/** Which state may follow which. A state may always follow itself. */
const followers: Readonly<Record<SlotState, readonly SlotState[]>> = {
  offline: ['pulling', 'starting'],
  pulling: ['starting', 'error', 'offline'],
  starting: ['warming', 'error', 'offline'],
  warming: ['ready', 'idle', 'error', 'offline'],
  ready: ['serving', 'idle', 'unloading', 'error'],
  serving: ['ready', 'idle', 'error'],
  idle: ['serving', 'unloading', 'ready'],
  unloading: ['offline', 'error'],
  error: ['offline', 'pulling', 'starting']
}

/**
 * Transitions that the table does not list and that happen anyway, because something outside the slot
 * decided: a verb that cuts a load or a busy slot short, an engine that exits, an engine that was adopted.
 */
const forced: Readonly<Record<SlotState, readonly SlotState[]>> = {
  offline: ['warming', 'error', 'unloading'],
  pulling: ['unloading'],
  starting: ['unloading', 'pulling'],
  warming: ['unloading', 'serving'],
  ready: ['offline'],
  serving: ['unloading', 'offline'],
  idle: ['error', 'offline'],
  unloading: [],
  error: ['warming', 'unloading']
}

export function isLegal (from: SlotState, to: SlotState): boolean {
  return from === to || followers[from].includes(to) || forced[from].includes(to)
}

/** Whether an engine in this state takes requests: the one definition of "dispatchable". */
export function isServing (state: SlotState): boolean {
  return state === 'ready' || state === 'serving' || state === 'idle'
}

/** On the way up. */
export function isLoading (state: SlotState): boolean {
  return state === 'pulling' || state === 'starting' || state === 'warming'
}

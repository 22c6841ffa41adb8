/** The state of a slot behind `is`, where `error` alone is no English. Pure. */
export function stateWords (state: string): string {
  return state === 'error' ? 'in error' : state
}

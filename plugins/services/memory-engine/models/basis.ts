/*
 * What a mental model was made of, as a refresh tells it, is kept by ids alone: the text of a memory, or of another mental model,
 * goes with it. `shown-basis.ts` tells it with the texts that there are now.
 */

export type ReflectResponse = Readonly<Record<string, unknown>>

/** Of the lists of this engine and of a Hindsight server, those that are no memories. */
export const modelKinds: ReadonlySet<string> = new Set(['mental_models', 'mental-models'])
export const DIRECTIVES = 'directives'

export interface Named {
  readonly id: string
}

/** The lists by their kind; null where there are none. Pure. */
export function basisIn (response: ReflectResponse | null): Readonly<Record<string, readonly unknown[]>> | null {
  const based = response?.based_on
  if (typeof based !== 'object' || based === null || Array.isArray(based)) return null
  return Object.fromEntries(Object.entries(based).map(([kind, list]) => [kind, Array.isArray(list) ? list as unknown[] : []]))
}

/** Pure. */
export function namedIn (list: readonly unknown[]): readonly Named[] {
  return list.filter((each): each is Named => typeof each === 'object' && each !== null && typeof (each as Partial<Named>).id === 'string')
    .map(({ id }) => ({ id }))
}

/** As it is kept. Pure. */
export function withoutTexts<T extends ReflectResponse | null> (response: T): T {
  const lists = basisIn(response)
  if (lists === null) return response
  const kept = Object.entries(lists).map(([kind, list]) => [kind, kind === DIRECTIVES ? list : namedIn(list)])
  return { ...response, based_on: Object.fromEntries(kept) as unknown }
}

/** One page of a list, in the form that clients page through. */
export interface Page<T> {
  readonly data: readonly T[]
  readonly first_id: string | null
  readonly last_id: string | null
  readonly has_more: boolean
}

/** @param after id of the last one of the page before; one that is gone, or never was, begins anew. Pure. */
export function pageOf<T extends { readonly id: string }> (all: readonly T[], after: string | undefined, limit: number): Page<T> {
  const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1
  const data = all.slice(from, from + limit)
  return { data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: from + data.length < all.length }
}

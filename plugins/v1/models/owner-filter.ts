import type { ModelObject } from 'svc-gateway/plugin'

/** Keeps the rows of one owner. The query wins over the header. */
export function filterByOwner (
  models: readonly ModelObject[], query: string | undefined, header: string | string[] | undefined
): readonly ModelObject[] {
  const owner = query ?? (typeof header === 'string' ? header : undefined)
  return owner === undefined || owner === '' ? models : models.filter(model => model.owned_by === owner)
}

/** The `[model]` table as it was written: text alone is its `default`. Pure. */
export function modelTable (value: unknown): Record<string, unknown> {
  if (typeof value === 'string') return { default: value }
  return typeof value === 'object' && value !== null ? value as Record<string, unknown> : {}
}

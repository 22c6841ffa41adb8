/** Counts of tokens as engines tell them, in tables of any depth. */
export type Usage = Readonly<Record<string, unknown>>

export function isUsage (value: unknown): value is Usage {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Both together, count by count; what is no count is that of the second. Pure. */
export function sumOf (first: Usage, second: Usage): Usage {
  const keys = new Set([...Object.keys(first), ...Object.keys(second)])
  return Object.fromEntries([...keys].map(key => {
    const [a, b] = [first[key], second[key]]
    if (typeof a === 'number' && typeof b === 'number') return [key, a + b]
    return [key, isUsage(a) && isUsage(b) ? sumOf(a, b) : b ?? a]
  }))
}

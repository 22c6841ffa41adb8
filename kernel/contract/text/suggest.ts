/** The word among `known` that was probably meant, or null. Case does not count, and a swap of neighbours is one edit. */
export function suggest (word: string, known: readonly string[]): string | null {
  const wanted = normalise(word)
  const limit = wanted.length <= 3 ? 1 : wanted.length <= 8 ? 2 : 3
  let best: string | null = null
  let least = limit + 1
  for (const candidate of known) {
    const cost = distance(wanted, normalise(candidate), least)
    if (cost < least) {
      best = candidate
      least = cost
    }
  }
  return best
}

/** Words among `known` that begin with the given one: `gpu` is meant for one of `gpu-rocm`, `gpu-cuda`. */
export function kindsOf (word: string, known: readonly string[]): readonly string[] {
  const beginning = `${normalise(word)}_`
  return known.filter(candidate => normalise(candidate).startsWith(beginning))
}

function normalise (word: string): string {
  return word.slice(0, 64).toLowerCase().replace(/[-\s]/g, '_')
}

/** Optimal string alignment distance; gives up with `limit` once no row can stay below it. */
function distance (a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2]! + 1)
      row.push(cost)
    }
    if (Math.min(...row) >= limit) return limit
    before = previous
    previous = row
  }
  return previous[b.length]!
}

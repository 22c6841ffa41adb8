/** Maps whose keys are data. */
const isFree = /(metadata|source_facts|_by_[a-z_]+|based_on|chunks|entities|trace|reflect_response|retain_params|progress|actions|statuses)$/

/** Where an answer's shape is another; null says nothing of its type, and of a list the first one stands for all. */
export function shapeDifferences (want: unknown, got: unknown, at = ''): string[] {
  if (want === null || got === null) return []
  if (Array.isArray(want) && Array.isArray(got)) return want.length === 0 || got.length === 0 ? [] : shapeDifferences(want[0], got[0], `${at}[]`)
  if (typeof want !== typeof got || Array.isArray(want) !== Array.isArray(got)) return [`${at}: ${typeof want} is ${typeof got}`]
  if (typeof want !== 'object') return []
  const [a, b] = [want as Record<string, unknown>, got as Record<string, unknown>]
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].flatMap(name => name in a && name in b ? shapeDifferences(a[name], b[name], `${at}.${name}`)
    : isFree.test(at) ? [] : [`${at}.${name} is ${name in a ? 'missing' : 'new'}`])
}

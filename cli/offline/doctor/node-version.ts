/** `20.19.0` or later, for `20.19`. Pure. */
export function satisfiesLeast (version: string, least: string): boolean {
  const numbers = (text: string): number[] => text.replace(/^[^\d]*/, '').split('.').map(part => Number.parseInt(part, 10) || 0)
  const [have, need] = [numbers(version), numbers(least)]
  for (const [i, part] of need.entries()) {
    if ((have[i] ?? 0) !== part) return (have[i] ?? 0) > part
  }
  return true
}

import type { EngineProvider } from 'svc-gateway/plugin'

/** Paths that the gateway asks engines for by itself; engines log every one of them. */
const polledPaths = ['/metrics', '/slots', '/props', '/v1/models']

/** Decides which lines are about nothing but the gateway's own polling. Pure. */
export function noiseFilter (provider: EngineProvider | null): (line: string) => boolean {
  const paths = [...polledPaths, ...(provider === null ? [] : [provider.health.path])]
  const access = new RegExp(`\\b(?:GET|HEAD) (?:${paths.map(escaped).join('|')})(?:[\\s?"',]|$)`)
  return line => access.test(line)
}

function escaped (text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
}

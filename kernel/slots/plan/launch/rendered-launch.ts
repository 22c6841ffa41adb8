import type { LaunchDifference } from '../../../contract/services/slots/slot-outlook.js'
import type { LaunchPlan } from './launch-plan.js'

/** What a launch was made of, by key: its flags, `env.NAME`, and what its container or program has. */
export type RenderedLaunch = ReadonlyMap<string, string>

/** Pure. */
export function renderedLaunch ({ argv, env, form }: LaunchPlan): RenderedLaunch {
  const flags = argv.provenance.map(({ flag, value }) => [flag, value ?? 'on'] as const)
  const variables = Object.entries(env).map(([name, value]) => [`env.${name}`, value] as const)
  const parts = form.kind === 'candidates' ? { programs: form.candidates.map(({ label }) => label) } : { ...form, command: undefined }
  const values = Object.entries(parts).filter(([key, value]) => key !== 'kind' && value !== undefined && value !== null)
    .map(([key, value]) => [wireKey(key), typeof value === 'string' ? value : JSON.stringify(value)] as const)
  return new Map([...flags, ...variables, ...values])
}

/** How a running launch and one of now differ; values of variables, which may be secrets, are not told. Pure. */
export function launchDifferences (running: RenderedLaunch, rendered: RenderedLaunch): readonly LaunchDifference[] {
  const keys = [...new Set([...running.keys(), ...rendered.keys()])].filter(key => running.get(key) !== rendered.get(key))
  const shown = (key: string, value: string | undefined): string | null =>
    value === undefined ? null : key.startsWith('env.') ? 'set' : value
  return keys.toSorted().map(key => ({ key, running: shown(key, running.get(key)), rendered: shown(key, rendered.get(key)) }))
}

function wireKey (key: string): string {
  return key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

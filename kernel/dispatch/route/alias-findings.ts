import type { Finding } from '../../contract/index.js'
import { configFiles } from '../../config/parts/config-parts.js'
import { suggest } from '../../contract/text/suggest.js'
import type { UpstreamFacts } from '../upstream/upstream-findings.js'
import { upstreamsOf } from '../upstream/upstream-rows.js'

/** Aliases of svc.toml that lead nowhere, or that a slot's own name hides. Lists of upstreams are not asked for. Pure. */
export function aliasFindings ({ config, models, catalogue }: UpstreamFacts): readonly Finding[] {
  const upstreams = upstreamsOf(config)
  const slots = [...config.slots.values()]
  const isKnown = (target: string): boolean =>
    target.startsWith('svc/') || config.slots.has(target) || models.get(target) !== undefined || catalogue.includes(target) ||
    slots.some(({ model }) => model.default === target) ||
    upstreams.size > 0
  return Object.entries(config.svc.aliases).flatMap(([alias, target]): Finding[] => {
    const finding = { file: configFiles.svc, path: `aliases.${alias}`, severity: 'warning' as const }
    if (config.slots.has(alias)) {
      return [{ ...finding, code: 'model.not_found', message: `has no effect: slot '${alias}' has that name; remove one of them` }]
    }
    if (isKnown(target)) return []
    const meant = suggest(target, [...config.slots.keys()])
    return [{
      ...finding,
      code: 'model.not_found',
      message: `points to '${target}', which is not a known slot, model or upstream${meant === null ? '' : `; did you mean ${meant}?`}`
    }]
  })
}

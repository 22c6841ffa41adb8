import type { ConfigDraft } from 'svc-gateway/plugin'
import type { z } from 'zod'
import {
  capabilityChildren, capabilityChoices, capabilityGroupOf, type CapabilityChild, type CapabilitySelection
} from '../../services/capabilities/ref.js'
import { candidateById, legalPairs, type CandidateSource } from './candidates.js'
import { childKinds } from './children.js'
import type { migrationSchema } from './schemas.js'

export type MigrationRow = z.output<typeof migrationSchema>['rows'][number]

export interface Migrated {
  readonly next: CapabilitySelection
  readonly row: MigrationRow
}

/** One stored selection, judged: what it should become, and why. Pure. */
export function migrated (child: CapabilityChild, selection: CapabilitySelection, source: CandidateSource): Migrated {
  const kind = childKinds[child]
  const { model } = selection
  const outcome = (verdict: MigrationRow['verdict'], next: CapabilitySelection, reason: string): Migrated => ({
    next,
    row: { slot: capabilityGroupOf(child), child, model, verdict, before: placeOf(selection), after: placeOf(next), reason }
  })
  if (model === null) return outcome('empty', selection, 'no model is chosen')
  const candidate = candidateById(kind, model, source)
  if (candidate === null) return outcome('unknown_model', { ...selection, model: null, enabled: false }, 'the model is no longer in the catalogue')
  const pairs = legalPairs(kind, candidate, source)
  const isLegal = pairs.some(({ device, provider }) =>
    device === selection.device && (selection.provider ?? provider.name) === provider.name)
  if (isLegal) return outcome('ok', selection, '')
  // the device may be right and only its engine wrong
  const pair = pairs.find(({ device }) => device === selection.device) ?? pairs[0]
  if (pair === undefined) return outcome('illegal_backend', { ...selection, model: null, enabled: false }, 'no engine on this host can run the model')
  return outcome('illegal_backend', { ...selection, device: pair.device, provider: pair.provider.name },
    `the model runs on ${[...new Set(pairs.map(({ device }) => device))].join(', ')}`)
}

/** Snaps stored selections to what is legal. Slots are left alone: they follow with the next change of their capability. */
export async function migrateSelections (draft: ConfigDraft, source: CandidateSource): Promise<readonly MigrationRow[]> {
  const rows: MigrationRow[] = []
  for (const child of capabilityChildren) {
    const selection = capabilityChoices.of(draft)[child]
    if (selection === undefined) continue
    const { next, row } = migrated(child, selection, source)
    rows.push(row)
    await capabilityChoices.put(draft, child, next)
  }
  return rows
}

export function isChange ({ verdict }: MigrationRow): boolean {
  return verdict === 'illegal_backend' || verdict === 'unknown_model'
}

function placeOf ({ device, provider, enabled }: CapabilitySelection): string {
  const place = [device, provider].filter(part => part !== null).join('/')
  return `${place === '' ? '-' : place}${enabled ? '' : ' (off)'}`
}

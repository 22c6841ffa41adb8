import { z } from 'zod'
import type { ApiClient } from './client/client.js'
import { diagnosticsSchema } from './record/diagnostics.js'
import type { Output } from './terminal/output.js'
import { harmless } from './terminal/text-width.js'
import { problemText } from '../kernel/contract/text/problem-text.js'

const keys = z.array(z.string()).default([])
const reloadedSchema = z.looseObject({
  _svc: z.looseObject({
    diagnostics: diagnosticsSchema,
    apply_plan: z.looseObject({ live: keys, slot_restart: keys, gateway_restart: keys, slots: keys }).prefault({})
  })
})
export type Reloaded = z.output<typeof reloadedSchema>

/** Has the gateway read its files again. */
export function reloadGateway (client: ApiClient): Promise<Reloaded> {
  return client.call({ method: 'POST', path: '/api/settings/reload', timeoutMs: null }, reloadedSchema)
}

export function printReload (out: Output, { _svc: { apply_plan: plan } }: Reloaded): void {
  out.line('The gateway has read its configuration again.')
  out.pairs([
    ['in force', listed(plan.live)],
    ['next start of engines', listed(plan.slot_restart)],
    ['next start of svc', listed(plan.gateway_restart)]
  ])
  for (const slot of plan.slots) out.line(harmless(`Slot ${slot} runs with other settings: svc slot restart ${slot}`))
}

/** What the gateway did not take, one line each. */
export function refusedLines (diagnostics: Reloaded['_svc']['diagnostics']): string[] {
  return diagnostics.map(({ file, path, message }) => harmless(`  ${file}: ${problemText(path, message)}`))
}

function listed (names: readonly string[]): string | null {
  return names.length === 0 ? null : names.join(', ')
}

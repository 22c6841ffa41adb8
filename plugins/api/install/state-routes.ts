import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { fetch } from 'undici'
import { defineRoute, within, type AnyRoute } from 'svc-gateway/plugin'
import { availableExtensions } from './extensions.js'
import { completeFirstRun, firstRunFacts, sentinelPath } from './first-run.js'
import type { InstallApi } from './install-api.js'
import { modelBudgetMb } from './memory-budget.js'
import { completedSchema, curatedSchema, probeSchema, stateSchema } from './schemas.js'
import { fittingTier } from './tiers.js'

const WEB_UI = 'http://127.0.0.1:3001/health'
const WEB_UI_MS = 1_000

/** How far the first run is, and what it chooses from. */
export function stateRoutes (api: InstallApi): AnyRoute[] {
  const { activity, config, finder, hardware, library, models, overlay, slots } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/install/state',
      tag: 'First run',
      summary: 'Whether this is the first run',
      schema: { response: stateSchema },
      handler: async ({ signal }) => {
        const path = sentinelPath(config)
        const [sentinel, openwebui] = await Promise.all([
          access(path).then(() => true, () => false), answers(config.secret('SVC_OPENWEBUI_PROBE_URL') ?? WEB_UI, signal)
        ])
        const facts = firstRunFacts(models, slots.names(), sentinel)
        const offers = await availableExtensions(api)
        return {
          ...facts,
          openwebui_running: openwebui,
          sentinel_path: path,
          extensions: offers.map(({ id }) => id),
          offers: [...offers]
        }
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/install/probe',
      tag: 'First run',
      summary: 'Probe the hardware again',
      schema: { response: probeSchema },
      handler: call => {
        const row = { category: 'install', action: 'install.probe', target: 'hardware.json', actor: call.actor, request_id: call.requestId }
        return activity.audited(row, async () => ({ hardware: await hardware.probe(), path: join(config.paths.etc, 'hardware.json') }))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/install/complete',
      tag: 'First run',
      summary: 'Complete the first run',
      description: 'Idempotent.',
      schema: { response: completedSchema },
      handler: call => {
        const path = sentinelPath(config)
        const row = { category: 'install', action: 'install.complete', target: path, actor: call.actor, request_id: call.requestId }
        return activity.audited(row, async () => {
          await completeFirstRun(api)
          return { first_run: false as const, sentinel_path: path }
        })
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/install/curated-models',
      tag: 'First run',
      summary: 'Candidates for the main model',
      schema: { response: curatedSchema },
      handler: async () => {
        const tier = fittingTier(await finder.tiers(), modelBudgetMb(hardware.defaultDevice, hardware.info))
        const picked = tier.slots.find(({ capability }) => capability === 'chat.primary')?.model_id
        const fits = (sizeBytes: number): boolean =>
          overlay.places('llm', { id: null, file: '', sizeBytes, runtimes: [] }).some(({ fit }) => fit !== 'too_large' && fit !== 'spills')
        const offered = library.curated.filter(({ capability, bundle_only: bundleOnly }) => capability === 'chat' && !bundleOnly)
        return {
          models: offered.map(model => ({
            ...model,
            tags: [...model.tags],
            installed: models.get(model.id) !== undefined,
            fits: fits(model.size_gb * 1e9),
            recommended: model.id === picked
          })),
          custom_allowed: true as const
        }
      }
    })
  ]
}

async function answers (url: string, signal: AbortSignal): Promise<boolean> {
  try {
    return await within(signal, WEB_UI_MS, async bound => {
      const response = await fetch(url, { signal: bound, redirect: 'manual' })
      await response.body?.cancel()
      return response.ok
    })
  } catch {
    return false
  }
}

import { defineRoute, isSvcError, messageOf, modelDefaultsSchema, type AnyRoute } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { ModelSuggestion, ScanResult } from '../../services/library/ref.js'
import { audited } from './audit.js'
import type { ModelApi } from './model-api.js'
import { capabilitySchema, previewBodySchema, previewSchema, scanBodySchema, scannedSchema } from './schemas.js'
import { modelTools } from './tools.js'

const rowSchema = z.strictObject({
  path: z.string(),
  id: z.string().optional(),
  name: z.string().optional(),
  backends: z.array(z.string()).optional(),
  capabilities: z.array(capabilitySchema).optional()
})

/** Files on disk: what they seem to be, and registering them. */
export function scanRoutes (api: ModelApi): AnyRoute[] {
  const { library } = api
  return [
    defineRoute({
      method: 'POST',
      url: '/api/models/scan/preview',
      summary: 'Find and identify model files below some folders, without registering them',
      schema: { body: previewBodySchema, response: previewSchema },
      example: { paths: ['/srv/models'], recursive: true },
      tool: modelTools.preview,
      handler: async ({ body: { paths, recursive }, signal }) => {
        const { suggestions, truncated } = await library.preview(paths, { recursive, signal })
        return { preview: suggestions.map(previewRow), count: suggestions.length, ...(truncated ? { truncated } : {}) }
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/models/scan',
      summary: 'Register the models in the configured folders, or the given ones',
      schema: { body: scanBodySchema, response: scannedSchema },
      example: { rows: [{ path: '/srv/models/qwen3-4b.gguf' }] },
      tool: modelTools.scan,
      handler: call => audited(api, call, 'scan', 'models', async note => {
        const { rows } = call.body
        const result = rows === undefined ? await library.scan() : await addRows(api, rows, call.signal)
        const { added, skipped, scanned_roots: roots } = result
        note({ after: { added } })
        return { added: [...added], skipped: [...skipped], scanned_roots: [...roots] }
      })
    })
  ]
}

function previewRow ({ id, path, resolved_path, kind, confidence, row, hints, problem }: ModelSuggestion) {
  const { context_length: context } = row.metadata ?? {}
  return {
    path,
    resolved_path,
    size_bytes: row.size_bytes ?? 0,
    suggested_backends: row.backends ?? [],
    suggested_capabilities: row.capabilities ?? [],
    context_length: typeof context === 'number' ? context : null,
    confidence,
    suggested_name: row.name ?? id,
    suggested_id: id,
    kind,
    problem,
    raw_hints: hints
  }
}

/** One after the other; a row that cannot be registered is skipped with its reason. */
async function addRows ({ library, models }: ModelApi, rows: readonly unknown[], signal: AbortSignal): Promise<ScanResult> {
  const added: string[] = []
  const skipped: Array<{ path: string, reason: string }> = []
  for (const raw of rows) {
    const outcome = await addRow(library, models, raw, signal)
    if ('id' in outcome) added.push(outcome.id)
    else skipped.push(outcome)
  }
  return { added, skipped, scanned_roots: [] }
}

async function addRow (
  library: ModelApi['library'], models: ModelApi['models'], raw: unknown, signal: AbortSignal
): Promise<{ readonly id: string } | { readonly path: string, readonly reason: string }> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return { path: '', reason: 'row_not_an_object' }
  const { defaults: givenDefaults, ...rest } = raw as Record<string, unknown>
  const path = typeof rest.path === 'string' ? rest.path : ''
  if (path === '') return { path, reason: 'missing_path' }
  const defaults = modelDefaultsSchema.safeParse(givenDefaults ?? {})
  if (!defaults.success) return { path, reason: 'invalid_defaults' }
  const row = rowSchema.safeParse(rest)
  if (!row.success) return { path, reason: `invalid_model: ${row.error.issues[0]!.path.join('.')} ${row.error.issues[0]!.message}` }
  if (models.list().some(model => model.path === path)) return { path, reason: 'already_registered' }
  try {
    const suggestion = await library.describe(path, signal)
    const { id = suggestion.id, name, backends, capabilities } = row.data
    if (suggestion.problem !== null && capabilities === undefined) return { path, reason: `invalid_model: ${suggestion.problem}` }
    const given = {
      ...(name === undefined ? {} : { name }),
      ...(backends === undefined ? {} : { backends }),
      ...(capabilities === undefined ? {} : { capabilities })
    }
    await library.register(id, { ...suggestion.row, ...given, defaults: defaults.data }, { source: 'scan' })
    return { id }
  } catch (error) {
    signal.throwIfAborted()
    if (!isSvcError(error)) throw error
    return { path, reason: error.code === 'model.already_exists' ? 'already_registered' : `invalid_model: ${messageOf(error)}` }
  }
}

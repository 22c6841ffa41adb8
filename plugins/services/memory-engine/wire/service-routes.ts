import { json, type WireRoute } from './answer.js'

/** The version of the wire that this engine speaks. */
export const WIRE_VERSION = '1.1.0'

/** The features of the wire's `/version`. */
export const features = {
  observations: true, mcp: false, worker: true, bank_config_api: true, bank_llm_health: true, file_upload_api: true,
  document_export_api: true, document_import_api: true, audit_log: true, llm_trace: true, store_document_text: true
} as const

const startedAt = performance.now()

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: '/version', handler: () => json({ api_version: WIRE_VERSION, features }) },
  {
    method: 'GET', path: '/health', handler: ({ core }) => {
      const start = performance.now()
      core.store.get('SELECT 1')
      return json({
        status: 'healthy', database: 'connected', db_acquire_ms: Math.round((performance.now() - start) * 10) / 10,
        db_pool_waiting: 0, db_pool_in_use: 0, db_pool_max: 1, db_pool_idle: 1
      })
    }
  },
  { method: 'GET', path: '/health/ready', handler: () => json({ status: 'ready' }) },
  {
    method: 'GET', path: '/health/live',
    handler: () => json({ status: 'alive', version: WIRE_VERSION, uptime_seconds: Math.round(performance.now() - startedAt) / 1000 })
  }
]

import { defineRoute, type AnyRoute, type GatewayInfo } from 'svc-gateway/plugin'
import { applyRegistry } from './apply-plan.js'
import { applyRegistrySchema, jsonSchemaSchema, schemasOf } from './schemas.js'
import { settingsSchema as schemaOf } from './setting-keys.js'
import { Settings, type SettingsServices } from './settings.js'
import { settingTools } from './tools.js'

export function settingsRoutes (services: SettingsServices & { readonly info: GatewayInfo }): AnyRoute[] {
  const settings = new Settings(services)
  const schemas = schemasOf(services.config.schema)
  return [
    defineRoute({
      method: 'GET',
      url: '/api/settings',
      summary: 'Effective settings of svc.toml, without secrets',
      schema: { get response () { return schemas.settings } },
      tool: settingTools.get,
      handler: () => ({ ...settings.read(), _svc: { served: servedAt(services.info.baseUrl) } })
    }),
    ...(['PUT', 'PATCH'] as const).map(method => defineRoute({
      method,
      url: '/api/settings',
      summary: 'Change settings; all of them or none',
      description: 'Omitted keys stay. `_svc.apply_plan` shows which changes are active and which need a restart.',
      schema: { get body () { return schemas.patch }, get response () { return schemas.saved } },
      example: { slots: { idle_timeout_s: 600 } },
      ...(method === 'PUT' ? { tool: settingTools.write } : {}),
      handler: call => settings.save(call, call.body)
    })),
    defineRoute({
      method: 'GET',
      url: '/api/settings/schema',
      summary: 'Types, bounds, defaults and descriptions of all settings, as JSON Schema',
      schema: { response: jsonSchemaSchema },
      tool: settingTools.schema,
      handler: () => schemaOf(services.config.schema, services.plugins.settings())
    }),
    defineRoute({
      method: 'GET',
      url: '/api/settings/apply-plan',
      summary: 'What it takes for a change of each setting to apply',
      schema: { response: applyRegistrySchema },
      tool: settingTools.plan,
      handler: () => applyRegistry(settings.keys())
    }),
    defineRoute({
      method: 'POST',
      url: '/api/settings/reload',
      summary: 'Reload the configuration files',
      schema: { get response () { return schemas.reloaded } },
      tool: settingTools.reload,
      handler: call => settings.reload(call)
    })
  ]
}

function servedAt (baseUrl: string | null): { readonly host: string, readonly port: number } | null {
  if (baseUrl === null) return null
  const { hostname, port } = new URL(baseUrl)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port === '' ? 80 : port) }
}

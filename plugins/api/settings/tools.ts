import type { RouteTool } from 'svc-gateway/plugin'

/** What agents may do with settings. */
export const settingTools = {
  get: {
    name: 'settings_get',
    title: 'Read the settings',
    description: 'Returns all effective settings of the gateway, without secrets. Call it before changing one.',
    readOnly: true
  },
  write: {
    name: 'config_write',
    title: 'Change settings',
    description: 'Changes settings of the gateway, all or none, as tables of keys: {"slots": {"idle_timeout_s": 600}}. Look them up with settings_schema; an operator has to approve it.',
    gated: true,
    destructive: false,
    idempotent: true,
    brief: true
  },
  schema: {
    name: 'settings_schema',
    title: 'Settings and their meaning',
    description: 'Returns type, bounds, default and meaning of every setting. Call it to find the key of a setting.',
    readOnly: true,
    short: (schema: SettingSchema) => ({ settings: settingRows(schema, '') }),
    narrow: 'settings_get has the rest'
  },
  plan: {
    name: 'settings_apply_plan',
    title: 'What a change takes',
    description: 'Shows for every setting whether a change applies at once or needs a restart of a slot or of the gateway. Call it before config_write.',
    readOnly: true,
    short: ({ registry }: { readonly registry: Readonly<Record<string, { readonly apply_class: string }>> }) => {
      const byClass: Record<string, string[]> = {}
      for (const [key, { apply_class: how }] of Object.entries(registry)) (byClass[how] ??= []).push(key)
      return byClass
    }
  },
  reload: {
    name: 'settings_reload',
    title: 'Reload the configuration files',
    description: 'Applies changes of the configuration files. Call it after files were edited manually.',
    destructive: false,
    idempotent: true
  }
} satisfies Record<string, RouteTool>

interface SettingSchema {
  readonly properties?: Readonly<Record<string, SettingSchema>>
  readonly type?: unknown
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly unknown[]
}

/** One short line for each setting. */
function settingRows ({ properties, type, description, default: preset, enum: words }: SettingSchema, path: string): string[] {
  if (properties !== undefined) {
    return Object.entries(properties).flatMap(([key, inner]) => settingRows(inner, path === '' ? key : `${path}.${key}`))
  }
  const kind = words === undefined ? String(type ?? 'any') : words.join('|')
  return [`${path} (${kind}${preset === undefined ? '' : `, default ${JSON.stringify(preset)}`})${description === undefined ? '' : `: ${description}`}`]
}

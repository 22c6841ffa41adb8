import { PLUGIN_BRAND } from '../../contract/brand.js'
import {
  API_VERSION, isPlugin, isPluginErrors, isServiceRef, PLUGIN_NAME_PATTERN, pluginKinds, type AnyPlugin, type ErrorCode,
  type PluginKind
} from '../../contract/index.js'
import { kindText, type PluginManifest } from './record.js'

export interface ShapeProblem {
  readonly code: ErrorCode
  readonly message: string
}

/** Checks what was imported. Pure; gives the plugin or says what is wrong with it. */
export function checkPluginShape (module: unknown, name: string, manifest: PluginManifest | null): AnyPlugin | ShapeProblem {
  const exported = (module as { default?: unknown } | null)?.default
  if (!isPlugin(exported)) return { code: 'plugin.not_a_plugin', message: `the default export is not made by definePlugin: ${mistakeIn(module, exported)}` }
  const problem = shapeProblem(exported)
  if (problem !== null) return { code: 'plugin.not_a_plugin', message: problem }
  if (exported.apiVersion !== API_VERSION) return wrongApiVersion(exported.apiVersion)
  if (manifest === null && exported.name !== name) {
    return { code: 'plugin.not_a_plugin', message: `its name is '${exported.name}', but it is listed as '${name}'` }
  }
  const kind = kindText(exported.kind)
  if (manifest !== null && kind !== manifest.kind) {
    return { code: 'plugin.manifest_invalid', message: `package.json says kind '${manifest.kind}', the plugin says '${kind}'` }
  }
  return exported
}

/** What was exported instead of a plugin, and what to write. */
function mistakeIn (module: unknown, exported: unknown): string {
  const write = 'write `export default definePlugin({ ... })`'
  if (exported === undefined || exported === null) {
    const named = Object.entries(module ?? {}).find(([, value]) => isPlugin(value))?.[0]
    return named === undefined ? `there is no default export; ${write}` : `there is none, and '${named}' is a plugin; write \`export default ${named}\``
  }
  if (typeof exported === 'function') return `it is a function; ${write}, the function is its \`register\``
  if (typeof exported !== 'object') return `it is a ${typeof exported}; ${write}`
  if (isPlugin((exported as { default?: unknown }).default)) {
    return 'the package was built as CommonJS; set "type": "module" in package.json and build ECMAScript modules'
  }
  if (exported instanceof Promise) return 'it is a promise; await it'
  if (Object.getOwnPropertySymbols(exported).some(({ description }) => description === PLUGIN_BRAND.description)) {
    return 'another copy of svc-gateway made it; take svc-gateway out of "dependencies" and put it in "peerDependencies"'
  }
  return `it is a plain object; ${write}`
}

export function wrongApiVersion (found: unknown): ShapeProblem {
  return {
    code: 'plugin.api_version',
    message: `it was written for version ${String(found)} of the plugin contract; this gateway has version ${API_VERSION}; take a version of the package that is made for this gateway`
  }
}

function shapeProblem (plugin: AnyPlugin): string | null {
  if (typeof plugin.name !== 'string' || !PLUGIN_NAME_PATTERN.test(plugin.name)) return 'its name is not kebab-case'
  const kinds = [plugin.kind].flat() as readonly PluginKind[]
  const odd = kinds.find(kind => !pluginKinds.includes(kind))
  if (odd !== undefined) return `its kind '${String(odd)}' is not one of ${pluginKinds.join(', ')}`
  if (kinds.length === 0) return `its list of kinds is empty; name at least one of ${pluginKinds.join(', ')}`
  if (typeof plugin.register !== 'function') return 'it has no register function'
  for (const [key, ref] of Object.entries(plugin.requires ?? {})) {
    if (!isServiceRef(ref)) return `requires.${key} is not a service ref`
  }
  if (!(plugin.provides ?? []).every(isServiceRef)) return '`provides` holds something that is not a service ref'
  if (![plugin.errors ?? []].flat().every(isPluginErrors)) return '`errors` holds something that is not made by defineErrors'
  if (!isDatabases(plugin.databases ?? [])) return '`databases` holds something without the functions `path` and `upgrade`'
  if (plugin.configSchema !== undefined && typeof plugin.configSchema.safeParse !== 'function') return 'its configSchema is not a zod schema'
  return null
}

function isDatabases (value: unknown): boolean {
  return Array.isArray(value) && value.every((each: { path?: unknown, upgrade?: unknown } | null) =>
    typeof each?.path === 'function' && typeof each.upgrade === 'function')
}

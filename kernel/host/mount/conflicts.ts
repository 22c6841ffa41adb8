import {
  errorCodes, type AnyPlugin, type AnyRoute, type ConfigFileDefinition, type EngineProvider, type PluginErrors,
  type SettingsTable
} from '../../contract/index.js'
import { configFiles } from '../../config/parts/config-parts.js'
import { ADMIN } from '../../tools/route-tool.js'
import { nameOf, type PluginRecord } from '../record/record.js'
import type { Stage } from '../record/stage.js'
import { isOwnTable } from '../../contract/plugin/settings-table.js'

export interface Conflict {
  readonly message: string
  /** The contribution at fault. */
  readonly of: unknown
}

export interface Claim {
  readonly plugin: string
  readonly stage: Pick<Stage, 'routes' | 'providers' | 'runtimes' | 'tools' | 'services' | 'agents' | 'templates' | 'files'>
  readonly errors?: ReadonlyArray<PluginErrors<never>>
  /** Its table of svc.toml. */
  readonly settings?: SettingsTable | undefined
  /** What the codes of a package begin with; null for what came with the gateway, whose plugins share domains. */
  readonly domain?: string | null
}

/** The tables of a plugin. Pure. */
export function errorsOf ({ errors = [] }: Pick<AnyPlugin, 'errors'>): ReadonlyArray<PluginErrors<never>> {
  return [errors].flat()
}

/** What a plugin that was registered claims. */
export function claimOf (record: PluginRecord): Claim {
  const { stage, plugin, candidate } = record
  const isPackage = candidate.root() !== null
  return {
    plugin: record.name, stage: stage!, errors: errorsOf(plugin!), settings: plugin!.settings,
    domain: isPackage ? nameOf(record).replaceAll('-', '_') : null
  }
}

const kernelCodes: ReadonlySet<string> = new Set(Object.keys(errorCodes).map(errorKey))

const URL_PATTERN = /^\/(?:[A-Za-z0-9._~!$&'()+,;=@-]|:[A-Za-z_]\w*|\/)*\*?$/

/**
 * The first contribution of each plugin that clashes with an earlier one or cannot be mounted, in words. Pure.
 * Names of path parameters do not make two routes different.
 */
export function findConflicts (claims: readonly Claim[], taken: ReadonlySet<string> = new Set()): ReadonlyMap<string, Conflict> {
  const owners = new Map<string, string>([...taken, ...kernelCodes].map(key => [key, 'the gateway']))
  const conflicts = new Map<string, Conflict>()
  for (const { plugin, stage, errors = [], settings, domain = null } of claims) {
    const mine = new Set<string>()
    const declared = [...errors.flatMap(table => errorClaims(table, domain)), ...settingsClaims(settings, domain)]
    for (const claim of [...claimsOf(stage), ...declared]) {
      const problem = claim.problem ?? (mine.has(claim.key) ? `it declares ${claim.what} twice` : clash(claim.what, owners.get(claim.key)))
      if (problem !== null && !conflicts.has(plugin)) conflicts.set(plugin, { message: problem, of: claim.of })
      mine.add(claim.key)
    }
    // a plugin that is refused claims nothing
    if (!conflicts.has(plugin)) for (const key of mine) owners.set(key, `plugin '${plugin}'`)
  }
  return conflicts
}

/** A route as a key: method and pattern, parameters without their names. */
export function routeKey (method: string, url: string): string {
  return `route ${method} ${url.replace(/:[A-Za-z_]\w*/g, ':').replace(/(.)\/$/, '$1')}`
}

export function isMountable (url: string): boolean {
  return URL_PATTERN.test(url)
}

function claimsOf (stage: Claim['stage']): Array<{ key: string, what: string, problem: string | null, of: unknown }> {
  return [
    ...stage.routes.flatMap(placesOf).map(({ method, url, of }) => ({
      of,
      key: routeKey(method, url),
      what: `${method} ${url}`,
      problem: isMountable(url) ? null : `the URL '${url}' is not valid: it must start with a slash and hold path characters, :params and a last *`
    })),
    ...stage.providers.flatMap(providerClaims),
    ...stage.files.map(fileClaim),
    ...stage.templates.map(of => ({ of, key: `template ${of.id}`, what: `upstream template '${of.id}'`, problem: null })),
    ...stage.runtimes.map(of => ({ of, key: `runtime ${of.name}`, what: `runtime '${of.name}'`, problem: null })),
    ...stage.routes.flatMap(of => of.tool === undefined ? [] : [toolClaim(of.tool.server ?? ADMIN, of.tool.name, of)]),
    ...stage.tools.map(of => toolClaim(of.server, of.name, of)),
    ...stage.services.map(of => ({ of, key: `service ${of.id}`, what: `service '${of.id}'`, problem: null })),
    ...stage.agents.map(of => ({ of, key: `agent ${of.id}`, what: `agent '${of.id}'`, problem: null }))
  ]
}

function toolClaim (server: string, name: string, of: unknown): ReturnType<typeof claimsOf>[number] {
  return { of, key: `tool ${server} ${name}`, what: `tool '${name}' of ${server}`, problem: null }
}

function errorKey (code: string): string {
  return `error ${code}`
}

function errorClaims (of: PluginErrors<never>, domain: string | null): ReturnType<typeof claimsOf> {
  const problem = domain === null || of.domain === domain ? null
    : `its error codes start with '${of.domain}.' but must start with its own name: defineErrors('${domain}', ...)`
  return Object.keys(of.rows).map(code => ({ of, key: errorKey(code), what: `error code '${code}'`, problem }))
}

/** The tables of svc.toml are known before packages are. Several may add keys to one of the gateway's own. */
function settingsClaims (of: SettingsTable | undefined, domain: string | null): ReturnType<typeof claimsOf> {
  if (of === undefined) return []
  const problem = domain === null ? null
    : `a package cannot own the table [${of.name}] of svc.toml; give it a \`configSchema\`, for its table below [plugins.config]`
  if (!isOwnTable(of.name)) return [{ of, key: `table ${of.name}`, what: `table '${of.name}'`, problem }]
  return Object.keys(of.schema.shape).map(key => ({ of, key: `table ${of.name}.${key}`, what: `key '${of.name}.${key}'`, problem }))
}

/** Names of the gateway's own files. */
const ownFiles: ReadonlySet<string> = new Set(Object.values(configFiles))

function fileClaim (of: ConfigFileDefinition): ReturnType<typeof claimsOf>[number] {
  const what = `configuration file '${of.file}'`
  const problem = !/^[a-z][a-z0-9-]*\.toml$/.test(of.file) ? `the ${what} must be lower case letters, digits and -, then .toml`
    : ownFiles.has(of.file) ? `the ${what} is the gateway's own; choose another name` : null
  return { of, key: `file ${of.file}`, what, problem }
}

/** Names that would hide each other; default types are laid over each other instead. */
function providerClaims (of: EngineProvider): ReturnType<typeof claimsOf> {
  const { name, aliases = [], images = {}, profiles = {} } = of
  const claim = (what: string, key = what): ReturnType<typeof claimsOf>[number] => ({ key, what, problem: null, of })
  return [
    ...[name, ...aliases].map(own => claim(`provider '${own}'`, `provider ${own}`)),
    ...Object.keys(images).map(image => claim(`image '${image}'`)),
    ...Object.keys(profiles).map(profile => claim(`profile '${profile}'`))
  ]
}

function placesOf (of: AnyRoute): ReadonlyArray<Pick<AnyRoute, 'method' | 'url'> & { readonly of: AnyRoute }> {
  const { method, url, alsoAt = [] } = of
  return [url, ...alsoAt].map(place => ({ method, url: place, of }))
}

function clash (what: string, owner: string | undefined): string | null {
  if (owner === undefined) return null
  const isNamed = /^(provider|runtime|tool|service|image|profile|error code|configuration file) /.test(what)
  return `${what} belongs to ${owner}; choose another ${isNamed ? 'name' : 'URL'}`
}

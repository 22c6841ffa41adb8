import { PROVIDER_BRAND } from '../brand.js'
import { devices, slotTypes } from '../schemas/enums.js'
import { PORT_NAME_PATTERN } from '../schemas/names.js'
import { surfaceNames } from '../surface-names.js'
import { suggest } from '../text/suggest.js'
import { exclusivities, NO_PROVIDER, type EngineProvider } from './provider.js'
import { factsProblem } from './provider-facts.js'
import type { Surface } from './provider-surface.js'

/** What a field holds, in the words of its author. */
const kinds = {
  'text': (value: unknown) => typeof value === 'string',
  'true or false': (value: unknown) => typeof value === 'boolean',
  'a number': (value: unknown) => typeof value === 'number',
  'a list': (value: unknown) => Array.isArray(value),
  'a list of texts': (value: unknown) => Array.isArray(value) && value.every(one => typeof one === 'string'),
  'an object': (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'a function': (value: unknown) => typeof value === 'function',
  'text or a function': (value: unknown) => typeof value === 'string' || typeof value === 'function'
} as const
type Kind = keyof typeof kinds
type Kinds<T> = { readonly [K in keyof Required<T>]: Kind }

const providerKinds: Kinds<EngineProvider> = {
  name: 'text', title: 'text', family: 'text', devices: 'a list of texts', slotTypes: 'a list of texts', cli: 'true or false', needsModel: 'true or false',
  surfaces: 'an object', health: 'an object', exclusivity: 'text', containerSpec: 'a function', takesModel: 'true or false',
  catalogue: 'a list', fetches: 'a function', models: 'an object', carriesOnly: 'a function', requires: 'an object', about: 'an object',
  abilities: 'a function', lightPaths: 'a list of texts', keepsConnections: 'true or false', children: 'a list', unserved: 'an object',
  ports: 'a list of texts', flags: 'an object', slotOptions: 'an object', slotProblem: 'a function', modelName: 'a function',
  image: 'text or a function', defaultProfile: 'a function', argvSegments: 'a function', concurrency: 'a function',
  headers: 'a function', runtime: 'text', processSpec: 'a function', warmUp: 'a function', voices: 'a function',
  loadedModel: 'a function', metrics: 'a function', images: 'an object', profiles: 'an object', aliases: 'a list of texts',
  deviceWords: 'an object', defaultFor: 'a list', reservedPorts: 'a list', modelNames: 'an object', modelFolders: 'a list',
  vulkanVariable: 'text'
}
const needed = [
  'name', 'title', 'family', 'devices', 'slotTypes', 'cli', 'needsModel', 'surfaces', 'health', 'exclusivity', 'containerSpec'
] as const satisfies ReadonlyArray<keyof EngineProvider>

const surfaceKinds: Kinds<Surface> = {
  path: 'text', streaming: 'true or false', body: 'text', port: 'text', options: 'an object', light: 'true or false', adapt: 'a function',
  refusal: 'a function', refusalFrom: 'a number', edit: 'a function', ignores: 'a function', form: 'a function', events: 'a function'
}
const healthKinds: Kinds<EngineProvider['health']> = { path: 'text', port: 'text', verdict: 'a function', listensLate: 'true or false' }

/**
 * Brands and freezes a provider. Throws a TypeError that names the field of what is wrong, also where a compiler would have said
 * so: a plugin is often plain JavaScript. Fields that are not known are let be, unless one that is was probably meant.
 */
export function defineProvider (provider: EngineProvider): EngineProvider {
  const problem = shapeProblem(provider) ?? nameProblem(provider) ?? factsProblem(provider) ?? placesProblem(provider) ??
    surfacesProblem(provider)
  if (problem !== null) throw new TypeError(`${nameOf(provider)}: ${problem}`)
  return Object.freeze({ ...provider, [PROVIDER_BRAND]: true })
}

function nameOf (provider: Partial<EngineProvider> | null | undefined): string {
  return typeof provider?.name === 'string' ? `provider '${provider.name}'` : 'a provider without a name'
}

function shapeProblem (provider: EngineProvider): string | null {
  if (!kinds['an object'](provider)) return 'must be an object'
  const own = fieldsProblem('', provider, providerKinds, needed)
  if (own !== null) return own
  const { surfaces, health } = provider
  const words = wordProblem('devices', provider.devices, devices) ?? wordProblem('slotTypes', provider.slotTypes, slotTypes) ??
    wordProblem('exclusivity', [provider.exclusivity], exclusivities) ?? wordProblem('surfaces', Object.keys(surfaces), surfaceNames) ??
    fieldsProblem('health.', health, healthKinds, ['path'])
  if (words !== null) return words
  for (const [name, surface] of Object.entries(surfaces)) {
    const at = `surfaces.${name}`
    if (!kinds['an object'](surface)) return `${at} must be an object`
    const problem = fieldsProblem(`${at}.`, surface, surfaceKinds, ['path', 'streaming', 'body']) ??
      wordProblem(`${at}.body`, [surface.body], ['json', 'multipart'])
    if (problem !== null) return problem
  }
  return null
}

function fieldsProblem (
  at: string, given: object, known: Readonly<Record<string, Kind>>, needed: readonly string[]
): string | null {
  const fields = given as Readonly<Record<string, unknown>>
  for (const [name, kind] of Object.entries(known)) {
    const value = fields[name]
    if (value === undefined && !needed.includes(name)) continue
    if (value === undefined) return `${at}${name} is missing${missed(name, fields, known)}`
    if (!kinds[kind](value)) return `${at}${name} must be ${kind}`
  }
  for (const name of Object.keys(fields)) {
    const meant = name in known ? null : suggest(name, Object.keys(known))
    if (meant !== null) return `${at}${name} is not a known field; did you mean ${meant}?`
  }
  return null
}

/** The field that is there in its place, by a word that is nearly its own. */
function missed (name: string, fields: Readonly<Record<string, unknown>>, known: Readonly<Record<string, Kind>>): string {
  const near = suggest(name, Object.keys(fields).filter(field => !(field in known)))
  return near === null ? '' : `; there is ${near}`
}

/** @param words texts, as `kinds` has found */
function wordProblem (at: string, words: readonly string[], known: readonly string[]): string | null {
  const wrong = words.find(word => !known.includes(word))
  if (wrong === undefined) return null
  const meant = suggest(wrong, known)
  return `${at} must be one of ${known.join(', ')}, got '${wrong.slice(0, 64)}'${meant === null ? '' : `; did you mean ${meant}?`}`
}

function nameProblem ({ name, devices, slotTypes, surfaces }: EngineProvider): string | null {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) return 'name must be kebab-case'
  if (name === NO_PROVIDER) return `'${NO_PROVIDER}' is reserved for slots without a provider`
  if (devices.length === 0) return 'devices must name at least one device'
  if (slotTypes.length === 0) return 'slotTypes must name at least one slot type'
  return Object.keys(surfaces).length === 0 ? 'surfaces must hold at least one surface' : null
}

function placesProblem ({ health, surfaces, ports = [] }: EngineProvider): string | null {
  if (!health.path.startsWith('/')) return 'health.path must start with a slash'
  const wrong = ports.find(name => !PORT_NAME_PATTERN.test(name))
  if (wrong !== undefined) return `ports holds '${wrong}', which must be lower case letters, digits, _ and -`
  const used = [health, ...Object.values(surfaces)].map(({ port }) => port)
  const unknown = used.find(name => name !== undefined && !ports.includes(name))
  return unknown === undefined ? null : `the port '${unknown}' is used but not in ports`
}

function surfacesProblem ({ surfaces }: EngineProvider): string | null {
  for (const [name, surface] of Object.entries(surfaces)) {
    if (!surface.path.startsWith('/')) return `surfaces.${name}.path must start with a slash`
    if (surface.options !== undefined && surface.body !== 'json') return `surfaces.${name} has options, which go into a JSON body`
    if (surface.adapt !== undefined && surface.refusal !== undefined) return `surfaces.${name} is adapted, so it judges refusals itself`
    if (surface.adapt !== undefined && surface.events !== undefined) return `surfaces.${name} is adapted, so it writes its events itself`
    if (surface.body !== 'multipart' && surface.form !== undefined) return `surfaces.${name}.form is for multipart surfaces`
    if (surface.body === 'multipart' && surface.adapt !== undefined) {
      return `surfaces.${name} is multipart, which is streamed and cannot be adapted`
    }
  }
  return null
}

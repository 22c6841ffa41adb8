import { ENV_NAME_PATTERN } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { ResolvedManifest } from '../ref.js'
import { parseSpec, type ParsedSpec } from '../spec.js'

/** A count may come as a number, as text, or as the list itself. */
const countSchema = z.union([
  z.int().min(0), z.string().regex(/^\d{1,6}$/).transform(Number), z.array(z.unknown()).transform(list => list.length)
]).catch(0)

const textSchema = z.string().catch('')

const variableSchema = z.looseObject({ name: z.string(), isRequired: z.boolean().catch(false) })
const argumentSchema = z.looseObject({ type: textSchema, name: textSchema, value: z.string().optional() })

/** A `server.json` of the official registry. */
const registrySchema = z.looseObject({
  name: z.string().min(1),
  title: textSchema,
  description: textSchema,
  packages: z.array(z.looseObject({
    registryType: textSchema,
    registry_type: textSchema,
    identifier: z.string(),
    version: textSchema,
    transport: z.looseObject({ type: textSchema }).catch({ type: 'stdio' }),
    packageArguments: z.array(argumentSchema).catch([]),
    environmentVariables: z.array(variableSchema).catch([])
  })).catch([]),
  remotes: z.array(z.looseObject({ type: textSchema, url: z.string(), headers: z.array(variableSchema).catch([]) })).catch([])
})
export type RegistryServer = z.output<typeof registrySchema>

/** The plain form. */
const plainSchema = z.looseObject({
  id: z.string().optional(),
  name: textSchema,
  description: textSchema,
  spec: textSchema,
  transport: z.enum(['stdio', 'streamable-http']).optional(),
  url: z.string().optional(),
  tools: countSchema,
  resources: countSchema,
  prompts: countSchema,
  env_required: z.array(z.string().regex(ENV_NAME_PATTERN)).catch([])
})

/** Null for what is neither of the two forms, or names nothing that could be run or reached. Pure. */
export function readManifest (data: unknown): ResolvedManifest | null {
  const isRegistry = typeof data === 'object' && data !== null && ('packages' in data || 'remotes' in data)
  if (isRegistry) {
    const { data: server } = registrySchema.safeParse(data)
    return server === undefined ? null : ofRegistry(server)
  }
  const { data: plain } = plainSchema.safeParse(data)
  const parsed = plain === undefined ? null : parseSpec(plain.spec === '' ? plain.url ?? '' : plain.spec)
  if (plain === undefined || parsed === null) return null
  const { name, description, tools, resources, prompts } = plain
  return {
    ...base(parsed, plain.transport), id: slugOf(plain.id ?? (name === '' ? parsed.target : name)),
    name: name.slice(0, 200), description: description.slice(0, 4_000), tools, resources, prompts,
    env_required: plain.env_required
  }
}

/** What a spec by itself says. Pure. */
export function ofSpec (parsed: ParsedSpec): ResolvedManifest {
  return {
    ...base(parsed), id: slugOf(parsed.target), name: nameOf(parsed.target), description: '', tools: 0, resources: 0, prompts: 0,
    env_required: []
  }
}

/** The first package that can be run, else the first remote that can be reached. Pure. */
export function ofRegistry (server: RegistryServer): ResolvedManifest | null {
  const about = {
    id: slugOf(server.name),
    name: (server.title === '' ? server.name : server.title).slice(0, 200),
    description: server.description.slice(0, 4_000),
    tools: 0,
    resources: 0,
    prompts: 0
  }
  for (const { registryType, registry_type: older, identifier, version, transport, ...more } of server.packages) {
    const { packageArguments, environmentVariables } = more
    const parsed = parseSpec(specOf(registryType === '' ? older : registryType, identifier, version))
    if (parsed === null || (transport.type !== 'stdio' && parsed.kind !== 'oci')) continue
    return {
      ...base(parsed, transport.type === 'stdio' ? 'stdio' : 'streamable-http'), ...about,
      args: packageArguments.flatMap(({ type, name, value }) => value === undefined ? [] : type === 'named' ? [name, value] : [value]),
      env_required: required(environmentVariables)
    }
  }
  for (const { type, url, headers } of server.remotes) {
    const parsed = type === 'streamable-http' ? parseSpec(url) : null
    if (parsed?.kind === 'http') return { ...base(parsed, 'streamable-http'), ...about, env_required: required(headers) }
  }
  return null
}

export function readRegistryServer (data: unknown): RegistryServer | null {
  return registrySchema.safeParse(data).data ?? null
}

function required (variables: readonly z.output<typeof variableSchema>[]): string[] {
  return variables.filter(({ isRequired }) => isRequired).map(({ name }) => name).slice(0, 64)
}

function specOf (type: string, identifier: string, version: string): string {
  const fixed = version === '' || version === 'latest' ? '' : version
  if (type === 'npm') return `npm:${identifier}${fixed === '' ? '' : `@${fixed}`}`
  if (type === 'pypi') return `uvx:${identifier}${fixed === '' ? '' : `@${fixed}`}`
  if (type === 'oci') return `oci://${identifier}${fixed === '' || /:[^/]+$|@sha256:/.test(identifier) ? '' : `:${fixed}`}`
  return ''
}

type Base = Pick<ResolvedManifest, 'spec' | 'transport' | 'source_kind' | 'args' | 'author' | 'verified'>

function base ({ kind, spec }: ParsedSpec, transport?: 'stdio' | 'streamable-http'): Base {
  const own = kind === 'http' || kind === 'oci' ? 'streamable-http' : 'stdio'
  return { spec, transport: kind === 'oci' ? transport ?? own : own, source_kind: kind, args: [], author: 'user', verified: false }
}

/** What a package, an image or an address is called for short. */
function nameOf (target: string): string {
  if (URL.canParse(target) && /^https?:/.test(target)) return new URL(target).hostname
  return target.replace(/(?<=.)(@|==|:[^/]*$).*$/, '')
}

/** An id: the last telling part of a name, in the letters that ids have. Pure. */
export function slugOf (text: string): string {
  const name = nameOf(text)
  const last = /^[\w.-]+(\.[\w-]+)+$/.test(name) && !name.includes('/') ? name : name.split('/').at(-1)!
  const slug = last.toLowerCase().replace(/[^a-z0-9_-]+/g, '-').replace(/^[-_]+|[-_]+$/g, '').slice(0, 64)
  return slug === '' ? 'server' : slug
}

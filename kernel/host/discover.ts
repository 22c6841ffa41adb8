import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import {
  API_VERSION, messageOf, pluginKinds, providerDescriptorSchema, svcError, type AnyPlugin, type ProviderDescriptor, type SvcError
} from '../contract/index.js'
import { checkShape, dotted } from '../config/problems.js'
import { readToml } from '../config/toml-file.js'
import { pluginOfDescriptor } from './descriptor-provider.js'
import type { Candidate, PluginManifest } from './record.js'
import { wrongApiVersion } from './shape.js'

export interface BuiltinPlugin {
  readonly name: string
  readonly load: () => Promise<unknown>
}

const manifestSchema = z.looseObject({
  apiVersion: z.number(),
  kind: z.enum(pluginKinds),
  descriptor: z.string().optional()
})

const packageSchema = z.looseObject({ version: z.string().default('0.0.0'), svc: z.unknown().optional() })

export function builtinCandidates (list: readonly BuiltinPlugin[]): Candidate[] {
  return list.map(({ name, load }) => ({ name, origin: 'builtin', manifest: null, problem: null, root: null, load }))
}

export function inlineCandidates (plugins: readonly AnyPlugin[]): Candidate[] {
  return plugins.map((plugin, i) => ({
    name: nameOf(plugin) ?? `inline-${i}`,
    origin: 'inline',
    manifest: null,
    problem: null,
    root: null,
    load: () => Promise.resolve({ default: plugin })
  }))
}

/** Packages of the allow-list, from their package.json alone: nothing of them is imported (DESIGN 3). */
export function packageCandidates (home: string, allow: readonly string[]): Promise<Candidate[]> {
  return Promise.all([...new Set(allow)].map(name => packageCandidate(home, name)))
}

/** Descriptors an operator put under `<etc>/engines`. */
export async function descriptorCandidates (folder: string): Promise<Candidate[]> {
  const names = await readdir(folder).catch(() => [])
  return await Promise.all(names.filter(name => name.endsWith('.toml')).sort().map(async name => {
    const origin = `descriptor:engines/${name}`
    const read = await readDescriptor(join(folder, name), `engines/${name}`)
    return read.descriptor === null
      ? fallen(name.slice(0, -'.toml'.length), origin, read.problem)
      : candidateOf(read.descriptor, origin, folder)
  }))
}

async function packageCandidate (home: string, name: string): Promise<Candidate> {
  const folder = join(home, 'node_modules', name)
  const failed = (problem: SvcError, origin = `package:${name}`): Candidate => fallen(name, origin, problem)
  let json: unknown
  try {
    json = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  } catch (error) {
    return failed(svcError('plugin.import_failed', `package '${name}' is on the allow-list and not installed; run \`svc plugin add ${name}\``, { cause: error }))
  }
  const pkg = packageSchema.safeParse(json)
  const origin = `package:${name}@${pkg.data?.version ?? '?'}`
  const manifest = manifestSchema.safeParse(pkg.data?.svc)
  if (!manifest.success) {
    return failed(svcError('plugin.manifest_invalid',
      `package.json of '${name}' has no valid "svc" field; it needs { "apiVersion": ${API_VERSION}, "kind": "provider" }`), origin)
  }
  if (manifest.data.apiVersion !== API_VERSION) {
    return failed(svcError('plugin.api_version', wrongApiVersion(manifest.data.apiVersion).message), origin)
  }
  if (manifest.data.descriptor !== undefined) return await packagedDescriptor(folder, manifest.data.descriptor, origin, failed)
  const known: PluginManifest = { apiVersion: manifest.data.apiVersion, kind: manifest.data.kind }
  return { name, origin, manifest: known, problem: null, root: `${folder}/`, load: () => importFrom(home, name) }
}

async function packagedDescriptor (
  folder: string, file: string, origin: string, failed: (problem: SvcError, origin: string) => Candidate
): Promise<Candidate> {
  const read = await readDescriptor(join(folder, file), file)
  return read.descriptor === null ? failed(read.problem, origin) : candidateOf(read.descriptor, origin, folder)
}

type DescriptorRead = { readonly descriptor: ProviderDescriptor } | { readonly descriptor: null, readonly problem: SvcError }

async function readDescriptor (path: string, file: string): Promise<DescriptorRead> {
  const wrong = (what: string): DescriptorRead => ({ descriptor: null, problem: svcError('plugin.manifest_invalid', `${file}: ${what}`) })
  let table: unknown
  if (path.endsWith('.json')) {
    try {
      table = JSON.parse(await readFile(path, 'utf8'))
    } catch (error) {
      return wrong(messageOf(error))
    }
  } else {
    const text = await readToml(path, file)
    if (text.status === 'bad') return wrong(text.diagnostic.message)
    if (text.status === 'missing') return wrong('there is no such file')
    table = text.data
  }
  const checked = checkShape(providerDescriptorSchema, table, { audience: 'file' })
  if (checked.value !== null) return { descriptor: checked.value }
  return wrong(checked.problems.map(problem => `${dotted(problem.path)} ${problem.message}`).join('; '))
}

/** Programs named by a path are meant from the descriptor's own folder. */
function candidateOf (descriptor: ProviderDescriptor, origin: string, folder: string): Candidate {
  const process = descriptor.process?.map(token => token.startsWith('./') ? join(folder, token) : token)
  const located = { ...descriptor, ...(process === undefined ? {} : { process }) }
  const load = (): Promise<unknown> => Promise.resolve({ default: pluginOfDescriptor(located) })
  return { name: descriptor.name, origin, manifest: null, problem: null, root: null, load }
}

function fallen (name: string, origin: string, problem: SvcError): Candidate {
  return { name, origin, manifest: null, problem, root: null, load: () => Promise.resolve(null) }
}

/** Resolved from the plugin home, not from here: a package finds what is installed beside it. */
async function importFrom (home: string, name: string): Promise<unknown> {
  const loader = await import(pathToFileURL(join(home, 'loader.mjs')).href) as { load: (name: string) => Promise<unknown> }
  return await loader.load(name)
}

function nameOf (plugin: unknown): string | null {
  const name = (plugin as { name?: unknown } | null)?.name
  return typeof name === 'string' && name !== '' ? name : null
}

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import {
  API_VERSION, messageOf, pluginKinds, providerDescriptorSchema, svcError, type AnyPlugin, type Diagnostic,
  type ProviderDescriptor, type SettingsTable, type SvcError
} from '../../contract/index.js'
import { located as withLines } from '../../config/load/load-file.js'
import { checkShape, toDiagnostics, type Problem } from '../../config/check/shape-check.js'
import { readToml } from '../../config/toml/toml-file.js'
import { pluginOfDescriptor, unknownPlaceholders } from './descriptor-provider.js'
import { gatewayMisfit, jsonProblem, keyPlace } from './gateway-fit.js'
import { importFrom, type Generations } from './generations.js'
import { HOST_PACKAGE, parseJson, readPackageSource, type PackageSource } from './package-source.js'
import { kindText, type Candidate } from '../record/record.js'
import { wrongApiVersion } from '../record/shape.js'

export interface BuiltinPlugin {
  readonly name: string
  readonly load: () => Promise<unknown>
  /** Its table of svc.toml, which is known without loading it. */
  readonly settings?: SettingsTable
}

export interface PluginHome {
  /** `<state>/plugins`. */
  readonly folder: string
  /** Copies to import from; null: from where packages are installed. */
  readonly generations: Generations | null
  /** Version of this gateway. */
  readonly gateway: string
}

const manifestSchema = z.looseObject({
  apiVersion: z.number(),
  kind: z.union([z.enum(pluginKinds), z.array(z.enum(pluginKinds)).min(1)]),
  descriptor: z.string().optional(),
  reload: z.enum(['live', 'restart']).default('live')
})

const packageSchema = z.looseObject({ version: z.string().default('0.0.0'), svc: z.unknown().optional() })

/** Of a package it is not known where its code will be imported from until it is. */
const NOWHERE = (): null => null

export function builtinCandidates (list: readonly BuiltinPlugin[]): Candidate[] {
  return list.map(({ name, load }) => ({
    name, origin: 'builtin', source: `builtin:${name}`, version: null, revision: null, restarts: false, manifest: null, problem: null, root: NOWHERE, load
  }))
}

export function inlineCandidates (plugins: readonly AnyPlugin[]): Candidate[] {
  return plugins.map((plugin, i) => {
    const name = nameOf(plugin) ?? `inline-${i}`
    return {
      name,
      origin: 'inline',
      source: `inline:${name}`,
      version: null,
      revision: plugin,
      restarts: false,
      manifest: null,
      problem: null,
      root: NOWHERE,
      load: () => Promise.resolve({ default: plugin })
    }
  })
}

/** Packages of the allow-list, from their package.json alone: nothing of them is imported. */
export function packageCandidates (home: PluginHome, allow: readonly string[]): Promise<Candidate[]> {
  return Promise.all([...new Set(allow)].map(name => packageCandidate(home, name)))
}

/** Descriptors an operator put under `<etc>/engines`. */
export async function descriptorCandidates (folder: string): Promise<Candidate[]> {
  const names = await readdir(folder).catch(() => [])
  return await Promise.all(names.filter(name => name.endsWith('.toml')).sort().map(async name => {
    const known = unread(name.slice(0, -'.toml'.length), `descriptor:engines/${name}`)
    const read = await readDescriptor(join(folder, name), `engines/${name}`)
    return read.descriptor === null ? fallen(known, read.problem) : describedBy(read.descriptor, known, folder)
  }))
}

async function packageCandidate ({ folder: home, generations, gateway }: PluginHome, name: string): Promise<Candidate> {
  const folder = join(home, 'node_modules', name)
  const nowhere = unread(name, `package:${name}`)
  let text: string
  let source: PackageSource
  try {
    [text, source] = await Promise.all([readFile(join(folder, 'package.json'), 'utf8'), readPackageSource(home, name)])
  } catch (error) {
    return fallen(nowhere, svcError('plugin.import_failed', `package '${name}' is on the allow-list but not installed; run \`svc plugin add ${name}\``, { cause: error }))
  }
  const broken = jsonProblem(text)
  if (broken !== null) return fallen({ ...nowhere, origin: `package:${name}@?` }, svcError('plugin.manifest_invalid', broken))
  const json = parseJson(text)
  const pkg = packageSchema.safeParse(json)
  const version = pkg.data?.version ?? null
  const known = { ...nowhere, origin: `package:${name}@${version ?? '?'}`, version, revision: source.revision }
  const manifest = manifestSchema.safeParse(pkg.data?.svc)
  if (!manifest.success) {
    return fallen(known, svcError('plugin.manifest_invalid',
      `${keyPlace(text, 'svc')}: package '${name}' has no valid "svc" field; it needs { "apiVersion": ${API_VERSION}, "kind": "provider" }`))
  }
  const { apiVersion, kind, descriptor, reload } = manifest.data
  if (apiVersion !== API_VERSION) return fallen(known, svcError('plugin.api_version', `${keyPlace(text, 'apiVersion')}: ${wrongApiVersion(apiVersion).message}`))
  const misfit = gatewayMisfit(json, gateway)
  if (misfit !== null) return fallen(known, svcError('plugin.gateway_version', `${keyPlace(text, HOST_PACKAGE)}: it ${misfit}`))
  const here = generations === null ? () => Promise.resolve(home) : () => generations.open(source)
  if (descriptor !== undefined) return await packagedDescriptor(known, source, descriptor, here)
  let root: string | null = null
  const load = once(async () => {
    const from = await here()
    root = `${generations === null ? source.folder : join(from, 'node_modules', name)}/`
    return await importFrom(from, name)
  })
  return { ...known, problem: null, manifest: { apiVersion, kind: kindText(kind) }, restarts: reload === 'restart', root: () => root, load }
}

/** Its programs run from where the descriptor is read: a copy that stays as it is while an engine runs from it. */
async function packagedDescriptor (
  known: Unread, { name, folder }: PackageSource, file: string, open: () => Promise<string>
): Promise<Candidate> {
  const read = await readDescriptor(join(folder, file), file)
  if (read.descriptor === null) return fallen(known, read.problem)
  const { descriptor } = read
  let root: string | null = null
  const load = once(async () => {
    root = `${join(await open(), 'node_modules', name)}/`
    return { default: pluginOfDescriptor(located(descriptor, root)) }
  })
  return { ...describedBy(descriptor, known, folder), revision: known.revision, root: () => root, load }
}

type DescriptorRead = { readonly descriptor: ProviderDescriptor } | { readonly descriptor: null, readonly problem: SvcError }

async function readDescriptor (path: string, file: string): Promise<DescriptorRead> {
  const wrong = (what: string): DescriptorRead => ({ descriptor: null, problem: svcError('plugin.manifest_invalid', `${file}: ${what}`) })
  let table: unknown
  let lines = (problems: readonly Problem[]): Promise<readonly Diagnostic[]> => Promise.resolve(toDiagnostics(file, problems))
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
    lines = problems => withLines(file, text.text, problems)
  }
  const checked = checkShape(providerDescriptorSchema, table, { audience: 'file' })
  const problems = checked.value === null ? checked.problems : unknownPlaceholders(checked.value)
  if (checked.value !== null && problems.length === 0) return { descriptor: checked.value }
  const told = (await lines(problems)).map(({ path: where, line, message }) => `${where} ${message}${line === undefined ? '' : ` (line ${line})`}`)
  return wrong(told.join('; '))
}

function describedBy (descriptor: ProviderDescriptor, known: Unread, folder: string): Candidate {
  const load = (): Promise<unknown> => Promise.resolve({ default: pluginOfDescriptor(located(descriptor, folder)) })
  return { ...known, name: descriptor.name, revision: JSON.stringify(descriptor), problem: null, load }
}

/** Programs named by a path are meant from the descriptor's own folder. */
function located (descriptor: ProviderDescriptor, folder: string): ProviderDescriptor {
  const process = descriptor.process?.map(token => token.startsWith('./') ? join(folder, token) : token)
  return { ...descriptor, ...(process === undefined ? {} : { process }) }
}

type Unread = Omit<Candidate, 'problem' | 'load'>

function unread (name: string, source: string): Unread {
  return { name, origin: source, source, version: null, revision: null, restarts: false, manifest: null, root: NOWHERE }
}

/** What is wrong is part of what it is: mended, it is another. */
function fallen (known: Unread, problem: SvcError): Candidate {
  return { ...known, revision: `${String(known.revision)} ${problem.message}`, problem, load: () => Promise.resolve(null) }
}

function once<T> (work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | null = null
  return () => result ??= work()
}

function nameOf (plugin: unknown): string | null {
  const name = (plugin as { name?: unknown } | null)?.name
  return typeof name === 'string' && name !== '' ? name : null
}

import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { messageOf, within, type Manifest, type Paths } from '../../../kernel/contract/index.js'
import { loadJson } from '../../../kernel/config/load/load-file.js'
import { dotted } from '../../../kernel/config/check/shape-check.js'
import { configFiles } from '../../../kernel/config/parts/config-parts.js'
import { layManifest, parseJson, readManifest } from '../../../kernel/config/schema/json-files.js'
import { parseImageRef } from '../../../kernel/runtime/image/image-ref.js'
import type { Cli } from '../../cli.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { homeProviders } from '../home-providers.js'
import { imageAddress, manifestDigest } from './image-registry.js'

export interface ToolboxOptions {
  readonly json?: true
  readonly manifest?: string
}

export interface ImageRow {
  readonly name: string
  readonly tag: string
  readonly ok: boolean
  readonly digest: string | null
  readonly pinned_digest: string | null
  /** Null where nothing is pinned, or nothing came back. */
  readonly matches_pin: boolean | null
  readonly error: string | null
}

const PARALLEL = 4
const PATIENCE_MS = 15_000
/** The manifest has no images. */
const NO_IMAGES = 2

/** Whether the images of the manifest can be pulled anonymously: a token for anyone, then the manifest's head. */
export async function checkToolbox (cli: Cli, paths: Paths, options: ToolboxOptions): Promise<void> {
  const images = Object.entries((await wantedManifest(cli, paths, options)).toolbox_images)
  if (images.length === 0) throw new CliFailure('the manifest has no toolbox images', { exitCode: NO_IMAGES })
  const rows: ImageRow[] = []
  for (let i = 0; i < images.length; i += PARALLEL) {
    const part = images.slice(i, i + PARALLEL)
    rows.push(...await Promise.all(part.map(([name, { tag, digest }]) => checkImage(cli, name, tag, digest))))
    cli.signal.throwIfAborted()
  }
  if (options.json === true) cli.out.json(rows)
  else printRows(cli, rows)
  const bad = rows.filter(({ ok }) => !ok)
  if (bad.length > 0) throw new CliFailure(`${bad.length} of ${rows.length} images cannot be pulled anonymously`)
}

async function checkImage (cli: Cli, name: string, tag: string, pinned: string | null): Promise<ImageRow> {
  const pin = pinned === '' ? parseImageRef(tag).digest : pinned ?? parseImageRef(tag).digest
  const row = { name, tag, pinned_digest: pin }
  try {
    const digest = await within(cli.signal, PATIENCE_MS, signal => manifestDigest(imageAddress(tag), signal))
    return { ...row, ok: true, digest, matches_pin: pin === null || digest === null ? null : digest === pin, error: null }
  } catch (error) {
    return { ...row, ok: false, digest: null, matches_pin: null, error: reasonOf(error) }
  }
}

function reasonOf (error: unknown): string {
  if ((error as Error).name === 'TimeoutError') return `no answer within ${PATIENCE_MS / 1000} s`
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
  return code === undefined ? messageOf(error) : `the registry cannot be reached (${code})`
}

/** The file that was named, alone; else what the gateway would use. */
async function wantedManifest (cli: Cli, paths: Paths, { manifest }: ToolboxOptions): Promise<Manifest> {
  if (manifest !== undefined) return await namedManifest(cli, manifest)
  const { value, diagnostics } = await loadJson(paths.etc, configFiles.manifest, null, null, readManifest)
  const [problem] = diagnostics
  if (problem !== undefined) throw new CliFailure(`${join(paths.etc, problem.file)}: ${problem.path} ${problem.message}`)
  return layManifest((await homeProviders(paths)).images, value)
}

async function namedManifest (cli: Cli, file: string): Promise<Manifest> {
  const text = await readFile(resolve(cli.process.cwd(), file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw usageFailure(`${file} cannot be read (${error.code ?? error.message})`)
  })
  const json = parseJson(text, file)
  if (json.status === 'bad') throw usageFailure(`${file} ${json.diagnostic.message}`)
  const { value, problems } = readManifest(json.data)
  if (value !== null) return value
  throw usageFailure(`${file} is not a manifest`, problems.map(({ path, message }) => `  ${dotted(path)} ${message}`))
}

function printRows ({ out }: Cli, rows: readonly ImageRow[]): void {
  out.table([
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'PUBLIC', cell: ({ ok }) => ok ? 'yes' : 'no', paint: (text, { ok }) => out.paint(ok ? 'green' : 'red', text) },
    { title: 'PIN', cell: ({ matches_pin: matches, pinned_digest: pin }) => matches === null ? pin === null ? 'none' : '-' : matches ? 'same' : 'other' },
    { title: 'IMAGE', cell: ({ tag }) => tag, flexible: true },
    { title: 'PROBLEM', cell: ({ error }) => error ?? '', flexible: true }
  ], rows)
  for (const { name } of rows.filter(({ matches_pin: matches }) => matches === false)) {
    out.note(`${name}: the tag has moved; the pinned digest is used`)
  }
}

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { deviceSchema, messageOf, modelCapabilities } from 'svc-gateway/plugin'
import { z } from 'zod'
import { installError } from './errors.js'
import { slotKindNames } from './slot-kinds.js'

/** In the order of a picker, the least first. */
export const tierNames = ['Lite', 'Default', 'Pro', 'Max'] as const
export type TierName = typeof tierNames[number]

const bundleModelSchema = z.strictObject({
  id: z.string().min(1),
  hf_repo: z.string().min(1),
  hf_file: z.string().min(1),
  mmproj_file: z.string().default(''),
  size_gb: z.number().min(0).default(0),
  context_length: z.int().min(0).default(0),
  capability: z.enum(modelCapabilities).default('chat')
})
/** A model that a manifest brings along, for what the curated catalogue does not have. `size_gb` in 10^9 bytes. */
export type BundleModel = z.output<typeof bundleModelSchema>

const tierSchema = z.strictObject({
  name: z.enum(tierNames),
  description: z.string().default(''),
  memory_gb: z.number().min(0).default(0),
  slots: z.array(z.strictObject({
    capability: z.enum(slotKindNames),
    model_id: z.string(),
    device: deviceSchema.nullable().default(null),
    profile: z.string().min(1).nullable().default(null)
  })),
  models: z.array(bundleModelSchema).default([])
})
/** What a first run of one size sets up. `memory_gb` is the memory for models that it is made for, in 10^9 bytes. */
export type Tier = z.output<typeof tierSchema>

const builtinFolder = fileURLToPath(new URL('./bundles/', import.meta.url))

/** The tier that a text means: its name, or its name with the product's before it, in either case. Null for none. Pure. */
export function tierNamed (text: string): TierName | null {
  const bare = text.trim().toLowerCase().replace(/^(?:svc[-_ ])?(?:omni[-_ ])?/, '')
  return tierNames.find(name => name.toLowerCase() === bare) ?? null
}

/**
 * The manifest of a tier: of the folder, else the one that comes with the release. Throws `install.pick_default_failed` for
 * one that cannot be read.
 */
export async function loadTier (name: TierName, folder: string): Promise<Tier> {
  const file = `${name.toLowerCase()}.json`
  const path = join(folder, file)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
    throw broken(path, messageOf(error), error)
  })
  return text === null ? parsed(await readFile(join(builtinFolder, file), 'utf8'), file, name) : parsed(text, path, name)
}

export async function loadTiers (folder: string): Promise<readonly Tier[]> {
  return await Promise.all(tierNames.map(name => loadTier(name, folder)))
}

/** The largest tier that a host has the memory for; the least one if that is unknown. Pure. */
export function fittingTier (tiers: readonly Tier[], budgetMb: number): Tier {
  const budgetGb = budgetMb * 1024 * 1024 / 1e9
  return tiers.filter(({ memory_gb: needed }) => needed <= budgetGb).at(-1) ?? tiers[0]!
}

function parsed (text: string, path: string, name: TierName): Tier {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw broken(path, messageOf(error), error)
  }
  const checked = tierSchema.safeParse(json)
  if (!checked.success) throw broken(path, z.prettifyError(checked.error), checked.error)
  if (checked.data.name !== name) throw broken(path, `it is the manifest of ${checked.data.name}`, null)
  return checked.data
}

function broken (path: string, why: string, cause: unknown): Error {
  return installError('install.pick_default_failed', `the manifest ${path} is broken: ${why}`, { details: { path, reason: why }, cause })
}

import { isAbsolute } from 'node:path'
import type { Device, Model, ProviderCatalog } from 'svc-gateway/plugin'
import type { CuratedModel } from '../../services/library/ref.js'
import type { Stack, StackModel } from '../../services/stack-catalog/ref.js'
import type { ModelResolution } from './schemas.js'
import { devicesHere } from './stack-item.js'
import type { StackServices } from './stack-api.js'

/** Ids of every model that a stack refers to, in its order. Pure. */
export function modelsNamed ({ slots }: Pick<Stack, 'slots'>): readonly string[] {
  const ids = slots.flatMap(row => [row.model, ...row.capabilities.map(({ model }) => model)])
  return [...new Set(ids.filter(id => id !== null))]
}

/** Where the models of a stack are, seen from this host: registered or built into an engine, to be pulled, or neither. */
export function resolutionsOf (stack: Stack, { models, overlay, providers, library }: StackServices): readonly ModelResolution[] {
  const devices = devicesHere({ overlay })
  return modelsNamed(stack).map(id => {
    const known = stack.models[id] ?? metadataOf(id, models.get(id), library.curated)
    const { hf_repo, hf_filename } = known
    const isHere = models.get(id) !== undefined || isOfEngine(id, providers, devices) ||
      (isAbsolute(id) && models.list().some(({ path }) => path === id))
    const status = isHere ? 'present' : hf_repo !== '' && hf_filename !== '' ? 'pullable' : 'unresolvable'
    return { model_id: id, status, hf_repo, hf_filename }
  })
}

/** The same by status. Pure. */
export function byStatus (resolutions: readonly ModelResolution[]): Record<ModelResolution['status'], string[]> {
  const idsOf = (wanted: ModelResolution['status']): string[] =>
    resolutions.filter(({ status }) => status === wanted).map(({ model_id: id }) => id)
  return { present: idsOf('present'), pullable: idsOf('pullable'), unresolvable: idsOf('unresolvable') }
}

/** What a stack may say of a model: no path of this host. An unknown one is its id alone. Pure. */
export function metadataOf (id: string, model: Model | undefined, curated: readonly CuratedModel[]): StackModel {
  if (model !== undefined) {
    const { name, hf_repo, hf_filename, size_bytes, quant, capabilities, backends, mmproj } = model
    return {
      id, name, hf_repo, hf_filename, size_bytes, quant, capabilities: [...capabilities], backends: [...backends],
      mmproj: mmproj === null ? null : 'present'
    }
  }
  const offered = curated.find(other => other.id === id)
  return {
    id,
    name: offered?.display_name ?? '',
    hf_repo: offered?.hf_repo ?? '',
    hf_filename: offered?.hf_file ?? '',
    size_bytes: Math.round((offered?.size_gb ?? 0) * 1e9),
    quant: '',
    capabilities: offered === undefined ? [] : [offered.capability],
    backends: offered === undefined || offered.backend === '' ? [] : [offered.backend],
    mmproj: offered === undefined || offered.mmproj_file === '' ? null : 'present'
  }
}

/** An engine counts where this host has a device for it. */
function isOfEngine (id: string, providers: ProviderCatalog, devices: readonly Device[]): boolean {
  return providers.list().some(({ models, children = [], catalogue = [], ...engine }) => {
    if (!engine.devices.some(device => devices.includes(device))) return false
    const own = [...children.map(({ model }) => model), ...catalogue.map(model => model.id)]
    return own.includes(id) || (models?.canonical(id) ?? null) !== null
  })
}

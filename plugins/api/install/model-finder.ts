import { join } from 'node:path'
import type { ConfigService, ModelRegistry } from 'svc-gateway/plugin'
import type { ModelLibrary } from '../../services/library/ref.js'
import { indexModels, type ModelIndex } from './model-sources.js'
import { loadTiers, type Tier } from './tiers.js'

export interface FinderServices {
  readonly config: ConfigService
  readonly library: ModelLibrary
  readonly models: ModelRegistry
}

/** Tiers and models as they are known at this moment. */
export class ModelFinder {
  readonly #services: FinderServices

  constructor (services: FinderServices) {
    this.#services = services
  }

  /** Where manifests of tiers lie that go before those of the release. */
  get bundles (): string {
    const { config, models } = this.#services
    const given = config.secret('SVC_BUNDLES_DIR')?.trim() ?? ''
    return given !== '' ? given : join(models.store, 'collections', 'omni')
  }

  tiers (): Promise<readonly Tier[]> {
    return loadTiers(this.bundles)
  }

  async find (ids: readonly string[]): Promise<ModelIndex> {
    const { library, models } = this.#services
    // a broken manifest of one tier must not hide what is known elsewhere
    const bundled = await this.tiers().then(tiers => tiers.flatMap(tier => tier.models), () => [])
    return await indexModels(ids, { registered: models.list(), curated: library.curated, bundled })
  }
}

import {
  svcError, type Device, type EngineProvider, type Model, type NamedProfile, type NamedSlotConfig, type ProviderCatalog,
  type SvcError
} from '../../contract/index.js'

/** A slot with everything its file leaves open filled in. */
export interface EffectiveSlot {
  readonly slot: NamedSlotConfig
  readonly provider: EngineProvider
  readonly device: Device
  readonly profile: NamedProfile | null
  readonly model: Model | null
}

export function unknownProvider ({ name, provider }: NamedSlotConfig, providers: Pick<ProviderCatalog, 'list'>): SvcError {
  const names = providers.list().map(known => known.name).sort()
  return svcError('slot.config_error', `no such provider: '${provider}'; there are: ${names.join(', ') || 'none'}`,
    { param: 'provider', details: { slot: name, provider, providers: names } })
}

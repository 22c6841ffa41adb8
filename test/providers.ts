import type { AnyPlugin, EngineProvider, ProviderFacts } from '../kernel/contract/index.js'
import { LaidProviders } from '../kernel/config/parts/laid-providers.js'
import imagegen from '../plugins/providers/imagegen/index.js'
import llmServer from '../plugins/providers/llm-server/index.js'
import npuRt from '../plugins/providers/npu-rt/index.js'
import sttEngine from '../plugins/providers/stt-engine/index.js'
import ttsCpu from '../plugins/providers/tts-cpu/index.js'
import ttsGpu from '../plugins/providers/tts-gpu/index.js'
import { curatedMedia } from '../plugins/services/library/curated-media.js'

function providersOf (plugin: AnyPlugin): readonly EngineProvider[] {
  const found: EngineProvider[] = []
  const ignore = (): void => undefined
  void plugin.register({
    name: plugin.name,
    config: plugin.configSchema?.parse({}) ?? {},
    services: { config: { paths: { state: '/var/lib/svc' } }, curated: curatedMedia },
    addProvider: (provider: EngineProvider) => { found.push(provider) },
    addSetting: ignore, addHealth: ignore, provide: ignore, onStart: ignore, onStop: ignore
  } as never)
  return found
}

/** What the engines that ship with the gateway say of themselves. */
export const shippedProviders = new LaidProviders([imagegen, llmServer, npuRt, sttEngine, ttsCpu, ttsGpu].flatMap(plugin =>
  providersOf(plugin).map(provider => ({ provider, isBuiltin: true }))))

/** As if they shipped with the gateway. */
export function laid (...providers: readonly EngineProvider[]): LaidProviders {
  return new LaidProviders(providers.map(provider => ({ provider, isBuiltin: true })))
}

/** The images and profiles of those engines, for a fake one that stands in for them. */
export function shippedFacts (...without: readonly string[]): Pick<EngineProvider, 'images' | 'profiles'> {
  const providers = shippedProviders.list().filter(({ name }) => !without.includes(name))
  return {
    images: Object.assign({}, ...providers.map(({ images }) => images)) as NonNullable<EngineProvider['images']>,
    profiles: Object.assign({}, ...providers.map(({ profiles }) => profiles)) as NonNullable<EngineProvider['profiles']>
  }
}

/** What one of them says of itself, for a fake one of its name. */
export function factsOf (name: string): ProviderFacts {
  const provider = shippedProviders.get(name)!
  const { images = {}, profiles = {}, aliases = [], defaultFor = [], modelNames = {}, modelFolders = [] } = provider
  return { images, profiles, aliases, defaultFor, modelNames, modelFolders }
}

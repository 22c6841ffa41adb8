import type { EngineProvider } from '../../../contract/index.js'
import type { EngineSpec } from '../../../contract/provider/engine-runtime.js'
import type { RenderedLaunch } from './rendered-launch.js'

/** A launch ready to run: everything decided, nothing done. */
export interface PreparedLaunch {
  readonly spec: EngineSpec
  readonly provider: EngineProvider
  /** Model id that the engine will serve. */
  readonly modelId: string | null
  readonly configHash: string
  /** Requests it will work on at once; null takes as many as it is given. */
  readonly workers: number | null
  /** What every request to the engine carries; null: nothing. */
  readonly headers: Readonly<Record<string, string>> | null
  readonly rendered: RenderedLaunch
  readonly image: { readonly ref: string, readonly digest: string | null, readonly warning: string | null } | null
}

/** What an engine that runs was launched as. */
export type Launched = Pick<PreparedLaunch, 'provider' | 'modelId' | 'configHash' | 'workers' | 'headers'>

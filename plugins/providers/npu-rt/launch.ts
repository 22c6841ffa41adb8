import { basename, dirname } from 'node:path'
import {
  svcError, type LaunchInput, type LaunchSpecInput, type ProcessCandidate, type ProviderContainerSpec, type ProviderSegments
} from 'svc-gateway/plugin'

/** The engine keeps models in this folder below FLM_MODEL_PATH. */
const MODELS = 'models'
const ROOT = '/var/lib/flm'

/** `flm` as packages install it, where it is not on PATH. */
const INSTALLED = '/opt/fastflowlm/bin/flm'

/** Pure. No model tag: the engine serves its children alone. */
export function argvSegments ({ bindHost, port, contextSize, engineModels, slot }: LaunchInput): ProviderSegments {
  const tag = engineModels?.id ?? null
  return {
    base: [
      'serve', ...tag === null ? [] : [tag],
      '--host', bindHost, '--port', String(port),
      // any web page could ask it otherwise
      '--cors', '0',
      ...tag === null || contextSize === null ? [] : ['--ctx-len', String(contextSize)],
      ...slot.npu?.asr === true ? ['--asr', '1'] : [],
      ...slot.npu?.embed === true ? ['--embed', '1'] : []
    ]
  }
}

/** Pure. */
export function containerSpec (input: LaunchSpecInput): ProviderContainerSpec {
  return {
    // images disagree about what theirs is
    entrypoint: ['flm'],
    command: input.argv,
    env: environment(ROOT),
    mounts: [{ source: storeOf(input), target: `${ROOT}/${MODELS}`, readOnly: false }],
    // what the NPU works on is locked in memory
    ulimits: { memlock: { soft: -1, hard: -1 } }
  }
}

/** Pure. */
export function processSpec (input: LaunchSpecInput): ProcessCandidate[] {
  const store = storeOf(input)
  if (basename(store) !== MODELS) {
    throw svcError('slot.config_error', `FastFlowLM keeps its models in a folder named '${MODELS}', and [models] flm_store is ${store}: let it end in /${MODELS}`,
      { param: 'models.flm_store', details: { slot: input.slot.name, path: store } })
  }
  const env = environment(dirname(store))
  return ['flm', INSTALLED].map(command => ({ command, args: input.argv, env, label: 'flm' }))
}

function environment (root: string): Record<string, string> {
  return { FLM_MODEL_PATH: root, FLM_DISABLE_UPDATE_CHECK: '1' }
}

function storeOf ({ engineModels, slot }: LaunchSpecInput): string {
  if (engineModels !== undefined) return engineModels.store
  throw svcError('slot.config_error', `slot '${slot.name}' has no store of models`, { details: { slot: slot.name } })
}

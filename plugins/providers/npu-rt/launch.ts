import { basename, dirname } from 'node:path'
import {
  svcError, type FetchInput, type LaunchInput, type LaunchSpecInput, type ProcessCandidate, type ProviderContainerSpec,
  type ProviderSegments
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
    ...inContainer(input.argv, storeOf(input)),
    // what the NPU works on is locked in memory
    ulimits: { memlock: { soft: -1, hard: -1 } }
  }
}

/** Pure. */
export function processSpec (input: LaunchSpecInput): ProcessCandidate[] {
  return asProcess(input.argv, storeOf(input))
}

/** Its program for fetching a model. Pure. */
export function fetchContainer ({ id, store }: FetchInput): ProviderContainerSpec {
  return inContainer(['pull', id], store)
}

/** Pure. */
export function fetchProcess ({ id, store }: FetchInput): ProcessCandidate[] {
  return asProcess(['pull', id], store)
}

function inContainer (command: readonly string[], store: string): ProviderContainerSpec {
  return {
    // images disagree about what theirs is
    entrypoint: ['flm'],
    command,
    env: environment(ROOT),
    mounts: [{ source: store, target: `${ROOT}/${MODELS}`, readOnly: false }]
  }
}

function asProcess (args: readonly string[], store: string): ProcessCandidate[] {
  if (basename(store) !== MODELS) {
    throw svcError('slot.config_error', `FastFlowLM keeps its models in a folder named '${MODELS}', but [models] flm_store is ${store}: it must end in /${MODELS}`,
      { param: 'models.flm_store', details: { path: store } })
  }
  const env = environment(dirname(store))
  return ['flm', INSTALLED].map(command => ({ command, args, env, label: 'flm' }))
}

function environment (root: string): Record<string, string> {
  return { FLM_MODEL_PATH: root, FLM_DISABLE_UPDATE_CHECK: '1' }
}

function storeOf ({ engineModels, slot }: LaunchSpecInput): string {
  if (engineModels !== undefined) return engineModels.store
  throw svcError('slot.config_error', `slot '${slot.name}' has no model store`, { details: { slot: slot.name } })
}

import { basename, dirname, join } from 'node:path'
import {
  svcError, type Device, type LaunchInput, type LaunchSpecInput, type Model, type NamedSlotConfig, type ProcessCandidate,
  type ProviderContainerSpec, type ProviderSegments
} from 'svc-gateway/plugin'
import { choiceProblem, engineOf, hubModelOf } from './engine-choice.js'
import { optionsOf, type Flavour } from './options.js'

/** Where both engines serve transcription; whisper.cpp's server is told so. */
export const TRANSCRIPTION_PATH = '/v1/audio/transcriptions'
const server = ['uvicorn', '--factory', 'speaches.main:create_app'] as const
const HUB = '/home/ubuntu/.cache/huggingface/hub'

/** Short names of the manifest. Pure. */
export function imageOf (slot: NamedSlotConfig, device: Device, model: Model | null): string {
  const base = engineOf(slot, model) === 'whisper-cpp' ? 'whisper' : 'speaches'
  return device === 'cpu' ? base : `${base}-${device.slice('gpu-'.length)}`
}

/** Flags of whisper.cpp's server; speaches takes its settings from the environment. Pure. */
export function argvSegments (input: LaunchInput): ProviderSegments {
  const engine = engineChecked(input)
  const { language, convert } = optionsOf(input.slot)
  if (engine === 'speaches') return {}
  const { bindHost, port, device, form } = input
  return {
    base: [
      '--host', bindHost, '--port', String(port),
      '--model', modelFile(input).path,
      '--inference-path', TRANSCRIPTION_PATH,
      '--language', language,
      ...device === 'cpu' ? ['--no-gpu'] : [],
      ...convert ?? form === 'container' ? ['--convert'] : []
    ]
  }
}

/** Pure. */
export function containerSpec (input: LaunchSpecInput): ProviderContainerSpec {
  if (engineChecked(input) === 'whisper-cpp') {
    // the image's entry point is a shell
    return { entrypoint: ['whisper-server'], command: input.argv }
  }
  return {
    command: [...server, ...input.argv],
    env: speachesEnv(input),
    mounts: [{ source: join(input.stateDir, 'hub'), target: HUB, readOnly: false }]
  }
}

/** speaches on this host. */
export interface SpeachesHome {
  /** Python of the environment that it is installed in. */
  readonly python?: string | undefined
  /** Its checkout, which holds a page that it looks for from its working directory and does not start without. */
  readonly folder?: string | undefined
}

/** speaches is a module and has no program of its own: it is started as its image does. */
export function processSpec (input: LaunchSpecInput, { python, folder }: SpeachesHome): ProcessCandidate[] {
  if (engineChecked(input) === 'whisper-cpp') return [{ command: 'whisper-server', args: input.argv, label: 'whisper-server' }]
  if (python === undefined) throw noPython(input.slot.name)
  const workingDir = folder ?? checkoutOf(python)
  return [{
    command: python,
    args: ['-m', ...server, ...input.argv],
    env: speachesEnv(input),
    label: 'speaches',
    ...workingDir === undefined ? {} : { workingDir }
  }]
}

/** Where `uv sync` made the environment: `<checkout>/.venv/bin/python`. Pure. */
function checkoutOf (python: string): string | undefined {
  const environment = dirname(dirname(python))
  return basename(environment) === '.venv' ? dirname(environment) : undefined
}

/** The model is fetched before the server says that it is well, and stays in memory. */
function speachesEnv ({ bindHost, port, device, slot, model, stateDir, form }: LaunchInput): Record<string, string> {
  return {
    UVICORN_HOST: bindHost,
    UVICORN_PORT: String(port),
    ENABLE_UI: 'false',
    LOG_LEVEL: 'info',
    PRELOAD_MODELS: JSON.stringify([hubModelOf(slot, model?.id ?? slot.model.default)]),
    STT_MODEL_TTL: '-1',
    WHISPER__INFERENCE_DEVICE: device === 'cpu' ? 'cpu' : 'cuda',
    ...form === 'process' ? { HF_HUB_CACHE: join(stateDir, 'hub') } : {}
  }
}

function modelFile ({ model, slot }: LaunchInput): Model {
  if (model !== null) return model
  throw svcError('slot.config_error',
    `slot '${slot.name}' runs whisper.cpp but has no model: pick a ggml file with \`svc slot edit ${slot.name} --model <id or path>\``,
    { param: 'model.default', details: { slot: slot.name } })
}

/** The engine of a launch. Throws `slot.config_error` where it cannot serve the model on the device. */
function engineChecked ({ slot, device, model }: LaunchInput): Flavour {
  const problem = choiceProblem(slot, { device, model })
  if (problem !== null) throw svcError('slot.config_error', problem, { param: 'model.default', details: { slot: slot.name } })
  return engineOf(slot, model)
}

function noPython (slot: string): Error {
  const message = `slot '${slot}' runs speaches without a container engine: set [plugins.config.stt-engine] python to the Python that has it, ` +
    'such as /opt/speaches/.venv/bin/python, or take a GGML model and whisper-server'
  return svcError('slot.config_error', message, { details: { slot } })
}

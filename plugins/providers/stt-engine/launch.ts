import { join } from 'node:path'
import {
  svcError, type Device, type LaunchInput, type LaunchSpecInput, type Model, type NamedSlotConfig, type ProcessCandidate,
  type ProviderContainerSpec, type ProviderSegments
} from 'svc-gateway/plugin'
import { optionsOf } from './options.js'

/** Where both engines serve transcription; whisper.cpp's server is told so. */
export const TRANSCRIPTION_PATH = '/v1/audio/transcriptions'
const HUB = '/home/ubuntu/.cache/huggingface/hub'

/** Short names of the manifest. Pure. */
export function imageOf (slot: NamedSlotConfig, device: Device): string {
  const base = optionsOf(slot).engine === 'whisper-cpp' ? 'whisper' : 'speaches'
  return device === 'cpu' ? base : `${base}-${device.slice('gpu-'.length)}`
}

/** Flags of whisper.cpp's server; speaches takes its settings from the environment. Pure. */
export function argvSegments (input: LaunchInput): ProviderSegments {
  const { engine, language, convert } = optionsOf(input.slot)
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
  if (optionsOf(input.slot).engine === 'whisper-cpp') {
    // the image's entry point is a shell
    return { entrypoint: ['whisper-server'], command: input.argv }
  }
  if (input.device === 'gpu-vulkan') throw noVulkan(input.slot.name)
  return {
    command: ['uvicorn', '--factory', 'speaches.main:create_app', ...input.argv],
    env: speachesEnv(input),
    mounts: [{ source: join(input.stateDir, 'hub'), target: HUB, readOnly: false }]
  }
}

/** Pure. */
export function processSpec (input: LaunchSpecInput): ProcessCandidate[] {
  if (optionsOf(input.slot).engine === 'whisper-cpp') return [{ command: 'whisper-server', args: input.argv, label: 'whisper-server' }]
  if (input.device === 'gpu-vulkan') throw noVulkan(input.slot.name)
  const { bindHost, port } = input
  return [{
    command: 'speaches', args: ['serve', '--host', bindHost, '--port', String(port), ...input.argv], env: speachesEnv(input), label: 'speaches'
  }]
}

/** The model is fetched before the server says that it is well, and stays in memory. */
function speachesEnv ({ bindHost, port, device, slot, stateDir, form }: LaunchInput): Record<string, string> {
  return {
    UVICORN_HOST: bindHost,
    UVICORN_PORT: String(port),
    ENABLE_UI: 'false',
    LOG_LEVEL: 'info',
    PRELOAD_MODELS: JSON.stringify([optionsOf(slot).model]),
    STT_MODEL_TTL: '-1',
    WHISPER__INFERENCE_DEVICE: device === 'cpu' ? 'cpu' : 'cuda',
    ...form === 'process' ? { HF_HUB_CACHE: join(stateDir, 'hub') } : {}
  }
}

function modelFile ({ model, slot }: LaunchInput): Model {
  if (model !== null) return model
  throw svcError('slot.config_error',
    `slot '${slot.name}' runs whisper.cpp and has no model: pick a ggml file with \`svc slot edit ${slot.name} --model <id or path>\``,
    { param: 'model.default', details: { slot: slot.name } })
}

function noVulkan (slot: string): Error {
  return svcError('slot.config_error', `slot '${slot}' runs speaches, which knows no Vulkan: take \`engine = "whisper-cpp"\` in [options], or another device`,
    { param: 'device', details: { slot } })
}

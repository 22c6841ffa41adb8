import {
  messageOf, shellWords, svcError, type LaunchInput, type LaunchSpecInput, type Model, type NamedProfile, type NamedSlotConfig,
  type ProviderSegments
} from 'svc-gateway/plugin'
import { parseFlags, type Flag } from './flags.js'
import { choosesSequences, modeFlags, modeProblem } from './modes.js'

/** More layers than any model has: all of them, in every version of llama-server. */
const ALL_LAYERS = '999'

/**
 * The provider's share of the command line, lowest precedence first. Pure. Which value stands where:
 *
 * - `base`: model file and id, address, context size, one worker, metrics, and where to compute. On `cpu` that
 *   is `--device none`, which also keeps a GPU build from using the GPU for long prompts.
 * - `model_defaults`: what the model's family needs, then the registry row's `defaults`.
 * - `chat_template`, `mmproj`: only for `llm` slots, only when there is a file.
 * - `slot_overrides`: fields of the slot that were set (`n_gpu_layers` other than -1, `workers` above 1), then the
 *   flags that its type demands. `workers = 1` is the default and leaves a profile's own `--parallel` alone.
 *
 * @throws SvcError `slot.config_error`.
 */
export function argvSegments (input: LaunchInput): ProviderSegments {
  const fromModel = modelDefaults(input)
  const { profile, given } = givenFlags(input, fromModel)
  const llm = input.slot.type === 'llm'
  return {
    base: base(input),
    model_defaults: fromModel,
    chat_template: llm && input.chatTemplatePath !== null ? ['--jinja', '--chat-template-file', input.chatTemplatePath] : [],
    mmproj: llm && input.mmprojPath !== null ? ['--mmproj', input.mmprojPath] : [],
    slot_overrides: [...slotFields(input), ...modeFlags(input, given, profile)]
  }
}

/** What was written for this launch: by the profile alone, and by all. */
function givenFlags (input: LaunchInput, fromModel: readonly string[]): { readonly profile: Flag[], readonly given: Flag[] } {
  const profile = profileFlags(input.profile)
  return { profile, given: [...profile, ...parseFlags(fromModel), ...extraFlags(input.slot)] }
}

/**
 * Requests that the server works on at once: its `--parallel`, wherever that was set. More would wait inside it, where
 * they cannot be seen. Null where the server chooses the number itself (0 and below). The sequences that this provider gives
 * an embedding slot are for the texts of one call: there it is the slot's workers.
 */
export function parallelOf (input: LaunchSpecInput): number | null {
  const { profile, given: written } = givenFlags(input, modelDefaults(input))
  if (choosesSequences(input, written, profile)) return input.slot.workers
  const given = Number(parseFlags(input.argv).findLast(flag => flag.name === 'parallel')?.values[0])
  return Number.isInteger(given) && given > 0 ? given : null
}

/**
 * Why a slot cannot run with its profile and its own arguments; what its model brings is seen at the launch. Pure.
 * A string that cannot be split is told elsewhere.
 */
export function slotProblem (slot: NamedSlotConfig, profile: NamedProfile | null): string | null {
  try {
    return modeProblem(slot, [...profileFlags(profile), ...extraFlags(slot)])
  } catch {
    return null
  }
}

/** The flags that people wrote for a slot: in its profile, for its model and for itself. Null where they cannot be read. Pure. */
export function writtenFlags (slot: NamedSlotConfig, model: Model | null, profile: NamedProfile | null): readonly Flag[] | null {
  try {
    return [...profileFlags(profile), ...parseFlags(shellWords(model?.defaults.extra_args ?? '')), ...extraFlags(slot)]
  } catch {
    return null
  }
}

function profileFlags (profile: NamedProfile | null): Flag[] {
  return parseFlags(profile === null ? [] : words(profile.flags, `flags of profile '${profile.name}'`))
}

function extraFlags ({ server: { extra_args: extra } }: Pick<NamedSlotConfig, 'server'>): Flag[] {
  return parseFlags(typeof extra === 'string' ? words(extra, 'server.extra_args') : extra)
}

function base (input: LaunchInput): string[] {
  const { model, contextSize } = input
  return [
    ...model === null ? [] : ['--model', model.path, '--alias', model.id],
    '--host', input.form === 'container' ? '0.0.0.0' : input.bindHost,
    '--port', String(input.port),
    ...contextSize === null ? [] : ['--ctx-size', String(contextSize)],
    ...onGpu(input) ? ['--n-gpu-layers', ALL_LAYERS] : ['--device', 'none'],
    '--parallel', '1',
    '--metrics'
  ]
}

function modelDefaults (input: LaunchInput): string[] {
  const { model, slot } = input
  if (model === null) return []
  const { n_gpu_layers: layers, extra_args: extra = '' } = model.defaults
  const extraWords = words(extra, `defaults.extra_args of model '${model.id}'`)
  return [
    ...slot.type === 'llm' ? familyFlags(model) : [],
    ...layers === undefined ? [] : gpuLayers(input, layers),
    ...extraWords
  ]
}

/** Gemma loses quality with a quantised cache and cannot shift its sliding-window cache for reuse. */
function familyFlags (model: Model): string[] {
  const name = `${model.id} ${model.path.slice(model.path.lastIndexOf('/') + 1)}`
  if (!/(^|[^a-z])gemma/i.test(name)) return []
  return ['--cache-type-k', 'f16', '--cache-type-v', 'f16', '--cache-reuse', '0']
}

function slotFields (input: LaunchInput): string[] {
  const { slot } = input
  return [
    ...slot.model.n_gpu_layers === -1 ? [] : gpuLayers(input, slot.model.n_gpu_layers),
    // unified: every request may use the whole context, instead of an equal share of it
    ...slot.workers > 1 ? ['--parallel', String(slot.workers), '--kv-unified'] : []
  ]
}

function gpuLayers (input: LaunchInput, layers: number): string[] {
  return onGpu(input) ? ['--n-gpu-layers', layers === -1 ? ALL_LAYERS : String(layers)] : []
}

function onGpu (input: LaunchInput): boolean {
  return input.device !== 'cpu'
}

function words (text: string, where: string): string[] {
  try {
    return shellWords(text)
  } catch (error) {
    throw svcError('slot.config_error', `${where}: ${messageOf(error)}`, { cause: error })
  }
}

import type { Device } from '../../../kernel/contract/schemas/index.js'
import {
  MIN_CONTEXT_SIZE, PLUGIN_NAME_PATTERN, slotConfigSchema, slotTypes, type SlotType
} from '../../../kernel/contract/schemas/index.js'
import { InvalidArgumentError, Option } from 'commander'
import { providerWords } from '../../../plugins/providers/words.js'
import { collectOption, collectOptionOrNone, numberOf } from '../../option-value.js'

/** Of those that ship with the gateway; providers of plugins have other names and are taken too. */
export const offeredProviders = providerWords.filter(({ isNamed }) => isNamed === true).map(({ name }) => name)

const hardwareDevices = { vulkan: 'gpu-vulkan', rocm: 'gpu-rocm', cuda: 'gpu-cuda', cpu: 'cpu' } as const satisfies Record<string, Device>
export type Hardware = keyof typeof hardwareDevices

export const DEFAULT_CONTEXT_SIZE = 4096

const { model, port } = slotConfigSchema.shape
const { context_size: contextSize } = model.unwrap().shape

export function deviceOf (hardware: Hardware): Device {
  return hardwareDevices[hardware]
}

/** Slot types whose engines have a context window. */
export function hasContext (type: SlotType): boolean {
  return type === 'llm' || type === 'embedding' || type === 'reranking'
}

export const typeOption = (): Option =>
  new Option('-t, --type <type>', 'what the slot serves').choices(slotTypes).default('llm')

export const providerOption = (): Option =>
  new Option('--provider <provider>', `engine provider: ${offeredProviders.join(', ')}, or one from a plugin`).argParser(parseProvider)

export const runtimeOption = (): Option =>
  new Option('--runtime <runtime>', 'what runs the engine: container (needs a container engine), process, docker, podman, or a runtime from a plugin')

export const runtimeValueOption = (): Option =>
  new Option('--runtime-option <key=value>', 'option for a runtime from a plugin; KEY alone removes it, none removes all; may be given more than once')
    .argParser(collectOptionOrNone)

export const hardwareOption = (): Option =>
  new Option('--hardware <hardware>', 'hardware that the engine uses').choices(Object.keys(hardwareDevices))

export const engineOption = (): Option =>
  new Option('--option <key=value>', 'option of the engine\'s provider; KEY alone removes it; may be given more than once').argParser(collectOption)

export const portOption = (): Option =>
  new Option('-p, --port <port>', 'port of the engine; without one the gateway chooses at each start').argParser(numberOf(port))

/** `auto` takes the port out of the slot's file. */
export const changedPortOption = (): Option =>
  new Option('-p, --port <port>', 'port of the engine; auto lets the gateway choose at each start')
    .argParser(text => text === 'auto' ? text : numberOf(port)(text))

export const contextOption = (more = ''): Option =>
  new Option('--ctx-size <tokens>', `context window in tokens, at least ${MIN_CONTEXT_SIZE}${more}`).argParser(numberOf(contextSize))

function parseProvider (name: string): string {
  const own = providerWords.find(words => words.name === name)
  if (typeof own?.isNamed === 'string') throw new InvalidArgumentError(own.isNamed)
  if (own?.isNamed === false) throw new InvalidArgumentError(`Allowed choices are ${offeredProviders.join(', ')}, and providers from plugins.`)
  if (!PLUGIN_NAME_PATTERN.test(name)) throw new InvalidArgumentError(`It must be a name such as ${offeredProviders[0]!}.`)
  return name
}

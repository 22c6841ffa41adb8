import type { Command } from 'commander'
import { aboutText } from '../../../kernel/contract/provider/engine-about.js'
import { nameSchema, type SlotType } from '../../../kernel/contract/schemas/index.js'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { textOf, type OptionsOrNone } from '../../option-value.js'
import { slotRecordSchema, type SlotRecord } from '../../record/slot-record.js'
import { writeWarnings } from '../../record/slot-table.js'
import { harmless } from '../../terminal/text-width.js'
import { requireModelless, requireProvider } from './known-provider.js'
import {
  contextOption, DEFAULT_CONTEXT_SIZE, deviceOf, engineOption, hardwareOption, hasContext, portOption, providerOption,
  runtimeOption, runtimeValueOption, typeOption, type Hardware
} from './slot-options.js'

interface CreateOptions {
  readonly type: SlotType
  readonly provider?: string
  readonly hardware?: Hardware
  readonly runtime?: string
  readonly runtimeOption?: OptionsOrNone
  readonly model?: string
  readonly port?: number
  readonly ctxSize?: number
  readonly option?: Readonly<Record<string, unknown>>
}

const NOTE = 'The gateway chooses what is not given: hardware from its probe, the port from its ' +
  'pool, the profile from the model and the device.'

export function addSlotCreate (slot: Command, cli: Cli): void {
  slot.command('create')
    .description('create a slot; it starts on load or on its first request')
    .argument('<name>', 'name of the new slot', textOf(nameSchema))
    .option('-m, --model <model>',
      'model to load: a registry id or the absolute path of a model file; not for engines with their own model')
    .addOption(typeOption())
    .addOption(providerOption())
    .addOption(hardwareOption())
    .addOption(runtimeOption())
    .addOption(runtimeValueOption())
    .addOption(portOption())
    .addOption(contextOption(`, default ${DEFAULT_CONTEXT_SIZE}`))
    .addOption(engineOption())
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples(
      'svc slot create coder --model qwen3-4b --hardware vulkan --ctx-size 16384', 'svc slot create tts --type tts'
    ))
    .action(async (name: string, options: CreateOptions, command: Command) => {
      const client = cli.client(command)
      const { type, provider, hardware, model } = options
      if (provider !== undefined) await requireProvider(client, provider)
      if (model === undefined) {
        const device = hardware === undefined ? undefined : deviceOf(hardware)
        await requireModelless(client, provider, type, device)
      }
      const record = await client.call(
        { method: 'POST', path: '/api/slots', body: bodyOf(name, options) }, slotRecordSchema
      )
      cli.out.line(`Slot ${name} is created: ${summary(record)}.`)
      if (record.about != null) cli.out.line(`Its engine: ${harmless(aboutText(record.about))}.`)
      for (const warning of writeWarnings(record)) cli.out.note(`Warning: ${warning}`)
      cli.out.line(`Start it with: svc slot load ${name}`)
    })
}

/** The default context size goes with the model: another one has another. */
function bodyOf (name: string, options: CreateOptions): object {
  const { type, provider, hardware, model, port, runtime, runtimeOption: told, option } = options
  const isDefault = options.ctxSize === undefined && model !== undefined && hasContext(type)
  const contextSize = isDefault ? DEFAULT_CONTEXT_SIZE : options.ctxSize
  return {
    name,
    type,
    provider,
    device: hardware === undefined ? undefined : deviceOf(hardware),
    port,
    runtime,
    runtime_options: told === 'none' ? undefined : told,
    options: option,
    ...model === undefined && contextSize === undefined ? {} : { model: { default: model, context_size: contextSize } },
    ...isDefault ? { meta: { context_for: model } } : {}
  }
}

function summary ({ type, device, provider, profile, port, ctx_max: context }: SlotRecord): string {
  return [
    type ?? '',
    ...(device == null ? [] : [`on ${device}`]),
    ...(provider == null ? [] : [`by ${provider}`]),
    ...(profile == null ? [] : [`profile ${profile}`]),
    ...(port == null ? [] : [`port ${port}`]),
    ...(context == null ? [] : [`context ${context}`])
  ].join(', ')
}

import { Option, type Command } from 'commander'
import { z } from 'zod'
import { slotConfigSchema } from '../../../kernel/contract/schemas/index.js'
import type { Cli } from '../../cli.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { collectEnv, numberOf, orNone, type OptionsOrNone } from '../../option-value.js'
import { isServing, slotRecordSchema } from '../../record/slot-record.js'
import { writeWarnings } from '../../record/slot-table.js'
import { requireProvider } from './known-provider.js'
import { changedPortOption, contextOption, deviceOf, engineOption, hardwareOption, providerOption, runtimeOption, runtimeValueOption, type Hardware } from './slot-options.js'

interface EditOptions {
  readonly model?: string
  readonly port?: number | 'auto'
  readonly ctxSize?: number
  readonly provider?: string
  readonly hardware?: Hardware
  readonly runtime?: string
  readonly runtimeOption?: OptionsOrNone
  readonly profile?: string
  readonly idleTimeout?: number
  readonly replicas?: number
  readonly minReplicas?: number
  readonly maxReplicas?: number
  readonly extraArgs?: string
  readonly env?: Readonly<Record<string, string | null>>
  readonly image?: string
  readonly option?: Readonly<Record<string, unknown>>
  readonly enable?: true
  readonly disable?: true
}

const envTable = z.record(z.string(), z.unknown()).optional()
const configSchema = z.looseObject({ env: envTable, server: z.looseObject({ env: envTable }).optional() })

export function addSlotEdit (slot: Command, cli: Cli): void {
  slot.command('edit <name>')
    .description('change the configuration of a slot')
    .option('-m, --model <model>', 'model that it loads')
    .addOption(changedPortOption())
    .addOption(contextOption())
    .addOption(providerOption())
    .addOption(hardwareOption())
    .addOption(runtimeOption())
    .addOption(runtimeValueOption())
    .option('--profile <profile>', 'profile; none removes it')
    .addOption(new Option('--idle-timeout <seconds>', 'idle seconds before the slot is unloaded; 0 disables it')
      .argParser(numberOf(slotConfigSchema.shape.idle_timeout_s)))
    .addOption(new Option('--replicas <count>', 'number of engines to start with the slot').argParser(numberOf(slotConfigSchema.shape.replicas)))
    .addOption(new Option('--min-replicas <count>', 'engines to keep running when idle')
      .argParser(numberOf(slotConfigSchema.shape.min_replicas)))
    .addOption(new Option('--max-replicas <count>', 'maximum number of engines while requests are waiting')
      .argParser(numberOf(slotConfigSchema.shape.max_replicas)))
    .option('--extra-args <flags>', 'engine flags, quoted as one argument; they override all others')
    .option('--env <KEY=VALUE>', 'variable for the engine; KEY alone removes it; may be given more than once', collectEnv)
    .addOption(engineOption())
    .option('--image <image>', 'container image instead of the one of the profile; none removes it')
    .addOption(new Option('--enable', 'serve the slot and start it with the gateway').conflicts('disable'))
    .option('--disable', 'stop serving the slot')
    .addHelpText('after', examples('svc slot edit agent --ctx-size 32768', 'svc slot edit agent --extra-args "--top-k 20" --env HF_HOME=/models'))
    .action(async (name: string, options: EditOptions, command: Command) => {
      if (Object.keys(options).length === 0) throw usageFailure('no changes were given', [`Run \`svc slot edit --help\` to see what there is.`])
      const client = cli.client(command)
      if (options.provider !== undefined) await requireProvider(client, options.provider)
      const env = options.env === undefined ? undefined : await mergedEnv(client, name, options.env)
      const record = await client.call(
        // taking a slot out of service unloads it, which takes as long as its requests
        { method: 'PUT', path: pathOf`/api/slots/${name}/config`, body: patchOf(options, env), timeoutMs: null }, slotRecordSchema
      )
      cli.out.line(`Slot ${name} is changed.`)
      for (const warning of writeWarnings(record)) cli.out.note(`Warning: ${warning}`)
      if (record.config_drift || isServing(record)) cli.out.line(`Apply it to the running engine with: svc slot restart ${name}`)
    })
}

function patchOf (options: EditOptions, env: object | undefined): object {
  const { model, ctxSize, hardware, profile, image, extraArgs } = options
  return {
    port: options.port === 'auto' ? null : options.port,
    provider: options.provider,
    runtime: options.runtime,
    runtime_options: options.runtimeOption === 'none' ? null : options.runtimeOption,
    device: hardware === undefined ? undefined : deviceOf(hardware),
    profile: profile === undefined ? undefined : orNone(profile),
    idle_timeout_s: options.idleTimeout,
    replicas: options.replicas,
    min_replicas: options.minReplicas,
    max_replicas: options.maxReplicas,
    options: options.option,
    image: image === undefined ? undefined : orNone(image),
    enabled: options.enable === true ? true : options.disable === true ? false : undefined,
    ...(model === undefined && ctxSize === undefined ? {} : { model: { default: model, context_size: ctxSize } }),
    ...(extraArgs === undefined && env === undefined ? {} : { server: { extra_args: extraArgs === '' ? null : extraArgs, env } })
  }
}

/** The API replaces `env` as a whole: what is there stays only if it is sent again. */
async function mergedEnv (
  client: ApiClient, name: string, change: Readonly<Record<string, string | null>>
): Promise<Record<string, unknown>> {
  const config = await client.call({ path: pathOf`/api/slots/${name}/config` }, configSchema)
  const merged: Record<string, unknown> = { ...config.env, ...config.server?.env, ...change }
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null))
}

import { Argument, Option, type Command } from 'commander'
import { z } from 'zod'
import { devices } from '../../../kernel/contract/schemas/index.js'
import { capabilityChildren, capabilityGroupOf, type CapabilityChild } from '../../../plugins/services/capabilities/words.js'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { orNone } from '../../option-value.js'

interface SetOptions {
  readonly model?: string
  readonly device?: string
  readonly provider?: string
  readonly on?: true
  readonly off?: true
  readonly json?: true
}

const selectedSchema = z.looseObject({
  selection: z.looseObject({
    device: z.string().nullish(), model: z.string().nullish(), enabled: z.boolean(), slot: z.string(), status: z.string(),
    pending_reload: z.boolean().default(false)
  })
})

export function addCapabilitiesSet (capabilities: Command, cli: Cli): void {
  capabilities.command('set')
    .description('choose what serves a capability, and wait until its engine is ready')
    .addArgument(new Argument('<name>', 'capability').choices(capabilityChildren))
    .option('-m, --model <model>', 'model that serves it; none removes it')
    .option('--device <device>', `hardware: ${devices.join(', ')}; none leaves it to the model`)
    .option('--provider <provider>', 'engine; none leaves it to model and device')
    .addOption(new Option('--on', 'switch it on').conflicts('off'))
    .option('--off', 'switch it off')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc capabilities set embed --model nomic-embed-text-v1.5 --on', 'svc capabilities set tts --off'))
    .action(async (name: CapabilityChild, options: SetOptions, command: Command) => {
      const { model, device, provider, on, off } = options
      const body = {
        model: chosen(model), device: chosen(device), provider: chosen(provider),
        enabled: on === true ? true : off === true ? false : undefined
      }
      if (Object.values(body).every(value => value === undefined)) {
        throw usageFailure('no changes were given', ['Run `svc capabilities set --help` to see the options.'])
      }
      const path = pathOf`/api/capabilities/${capabilityGroupOf(name)}/${name}`
      const answer = await cli.client(command).call({ method: 'POST', path, body, timeoutMs: null }, selectedSchema)
      if (options.json === true) return cli.out.json(answer)
      const { selection } = answer
      cli.out.line(selection.enabled
        ? `${name} is served by ${selection.model ?? 'its engine\'s own model'} on ${selection.device ?? 'any device'}: slot ${selection.slot} is ${selection.status}.`
        : switchedOff(name, selection, body))
      if (selection.pending_reload) cli.out.line(`It takes effect when the NPU slot restarts: svc slot restart ${selection.slot}`)
    })
}

function switchedOff (
  name: string, { model, device }: z.output<typeof selectedSchema>['selection'], asked: { readonly model?: string | null | undefined, readonly enabled?: boolean | undefined }
): string {
  if (asked.enabled === false || asked.model == null) return `${name} is off. Switch it on: svc capabilities set ${name} --on`
  return `${name} will be served by ${model ?? asked.model} on ${device ?? 'any device'} once it is on: svc capabilities set ${name} --on`
}

function chosen (value: string | undefined): string | null | undefined {
  return value === undefined ? undefined : orNone(value)
}

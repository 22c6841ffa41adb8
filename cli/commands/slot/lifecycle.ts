import type { Command } from 'commander'
import { aboutText } from '../../../kernel/contract/provider/engine-about.js'
import { stateWords } from '../../../kernel/contract/text/state-words.js'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import type { Output } from '../../terminal/output.js'
import { withSlotProgress } from '../../terminal/progress.js'
import { isServing, modelOf, slotRecordSchema, type SlotRecord } from '../../record/slot-record.js'
import { harmless } from '../../terminal/text-width.js'
import { slotProblems } from '../../record/slot-table.js'

export function addSlotVerbs (slot: Command, cli: Cli): void {
  slot.command('load <name>')
    .description('start the engine of a slot and wait until it serves')
    .option('-m, --model <model>', 'load this model and keep it as the default of the slot')
    .addHelpText('after', examples('svc slot load agent', 'svc slot load agent --model qwen3-4b'))
    .action(async (name: string, options: { model?: string }, command: Command) => {
      const body = options.model === undefined ? {} : { model_id: options.model }
      await tellWhose(cli, command, name)
      tellServing(cli.out, await runVerb(cli, command, name, 'load', body))
    })
  slot.command('unload <name>')
    .description('stop the engine of a slot; its next request starts it again')
    .addHelpText('after', examples('svc slot unload agent'))
    .action(async (name: string, _options: object, command: Command) => {
      const { state } = await runVerb(cli, command, name, 'unload', {})
      cli.out.line(`Slot ${name} is ${stateWords(state)}.`)
    })
  slot.command('restart <name>')
    .description('stop and start the engine of a slot')
    .addHelpText('after', examples('svc slot restart agent'))
    .action(async (name: string, _options: object, command: Command) => {
      tellServing(cli.out, await runVerb(cli, command, name, 'restart', {}))
    })
}

/** Before an image is pulled for the first time: whose the engine is. What is wrong with the slot is for the verb to say. */
async function tellWhose (cli: Cli, command: Command, name: string): Promise<void> {
  const record = await cli.client(command).call({ path: pathOf`/api/slots/${name}` }, slotRecordSchema).catch(() => null)
  cli.signal.throwIfAborted()
  if (record?.about == null || record.image == null || record.image_status !== 'missing') return
  cli.out.note(harmless(`Its engine is ${record.image}: ${aboutText(record.about)}.`))
}

/** Waits for the verb as long as it takes. Leaving early ends the wait and not the verb. */
export async function runVerb (
  cli: Cli, command: Command, name: string, verb: 'load' | 'unload' | 'restart' | 'swap', body: object
): Promise<SlotRecord> {
  const client = cli.client(command)
  const path = `${pathOf`/api/slots/${name}`}/${verb}`
  try {
    return await withSlotProgress(client, cli.out, name, client.call({ method: 'POST', path, body, timeoutMs: null }, slotRecordSchema))
  } catch (error) {
    if (cli.signal.aborted) cli.out.note(`The gateway continues the ${verb}; see \`svc slot status ${name}\`.`)
    throw error
  }
}

/** The API lets a slot that has nothing to load end offline without an error; at the prompt that is a failure. */
export function tellServing (out: Output, record: SlotRecord): void {
  const { name, state, port, metadata } = record
  if (!isServing(record)) {
    throw new CliFailure(`slot '${name}' is ${stateWords(state)}${metadata.message === '' ? '' : `: ${metadata.message}`}`, { hints: slotProblems(record) })
  }
  out.line(`Slot ${name} is ${state}: ${modelOf(record) || 'no model'}${port == null ? '' : ` on port ${port}`}.`)
}

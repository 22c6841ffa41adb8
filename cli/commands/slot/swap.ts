import type { Command } from 'commander'
import { z } from 'zod'
import { ApiFailure } from '../../client/api-failure.js'
import type { Cli } from '../../cli.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { runVerb, tellServing } from './lifecycle.js'

export function addSlotSwap (slot: Command, cli: Cli): void {
  slot.command('swap <name>')
    .description('load another model into a slot and keep it as its default')
    .requiredOption('-m, --model <model>', 'the other model')
    .option('--no-persist', 'temporary: keep the default model of the slot')
    .addHelpText('after', examples('svc slot swap agent --model qwen3-8b'))
    .action(async (name: string, options: { model: string, persist: boolean }, command: Command) => {
      const record = await runVerb(cli, command, name, 'swap', { model_id: options.model })
      tellServing(cli.out, record)
      if (options.persist) await persist(cli.client(command), name, options.model)
    })
}

/** A gateway whose installer is switched off keeps the model in the slot's configuration anyway. */
async function persist (client: ApiClient, name: string, model: string): Promise<void> {
  try {
    await client.call({ method: 'PUT', path: pathOf`/api/install/slots/${name}/model`, body: { model_id: model } }, z.unknown())
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== 'system.http_404') throw error
    await client.call({ method: 'PUT', path: pathOf`/api/slots/${name}/config`, body: { model: { default: model } } }, z.unknown())
  }
}

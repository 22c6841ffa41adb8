import type { Command } from 'commander'
import type { ApiClient } from '../../client/client.js'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { testSchema } from '../../record/upstream-record.js'

export function addUpstreamTest (upstream: Command, cli: Cli): void {
  upstream.command('test <name>')
    .description('test a remote provider by asking for its models')
    .option('--json', 'print the API response; the exit code is the same either way')
    .addHelpText('after', examples('svc upstream test openrouter'))
    .action(async (name: string, options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      if (options.json !== true) return testUpstream(cli, client, name)
      const answer = await client.call(callOf(name), testSchema)
      cli.out.json(answer)
      if (!answer.ok) throw refused(name, answer.error)
    })
}

/** Says how it is; throws when it does not work. */
export async function testUpstream (cli: Cli, client: ApiClient, name: string): Promise<void> {
  const { ok, latency_ms: ms, models_count: models, error } = await client.call(callOf(name), testSchema)
  if (!ok) throw refused(name, error)
  cli.out.line(`Upstream ${name} answers: ${models === 1 ? '1 model' : `${models ?? 0} models`} in ${ms} ms.`)
}

function callOf (name: string): { readonly method: 'POST', readonly path: string, readonly timeoutMs: null } {
  return { method: 'POST', path: pathOf`/api/upstreams/${name}/test`, timeoutMs: null }
}

function refused (name: string, error: string | null | undefined): CliFailure {
  return new CliFailure(harmless(`upstream ${name} does not work: ${error ?? 'no reason given'}`))
}

import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { readSecret } from '../../terminal/secret-prompt.js'
import { upstreamSchema } from '../../record/upstream-record.js'
import { testUpstream } from './test.js'

/** The key comes from standard input and never from the command line, where other people of the machine can see it. */
export function addUpstreamKey (upstream: Command, cli: Cli): void {
  upstream.command('key <name>')
    .description('set the key of a remote provider; it is read from standard input')
    .option('--no-test', 'do not test it')
    .addHelpText('after', examples('svc upstream key openrouter', 'pass show openrouter | svc upstream key openrouter'))
    .action(async (name: string, options: { test: boolean }, command: Command) => {
      const client = cli.client(command)
      const { auth_value_env: key, url } = await client.call({ path: pathOf`/api/upstreams/${name}` }, upstreamSchema)
      if (key === '') throw usageFailure(`upstream ${name} has no variable for its key`, [`Name one: svc upstream edit ${name} --key-env MY_KEY`])
      const value = (await readSecret(cli, `${key}: `)).trim()
      if (value === '') throw usageFailure('no key was given')
      await client.call({ method: 'POST', path: pathOf`/api/providers/${name}/credentials`, body: { key, value } }, z.unknown())
      cli.out.line(`${key} is set; it goes to ${new URL(url).origin}.`)
      if (options.test) await testUpstream(cli, client, name)
    })
}

import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'

const listSchema = z.looseObject({
  active: z.string(),
  personas: z.array(z.looseObject({ id: z.string(), display_name: z.string(), summary: z.string(), active: z.boolean() }))
})
const personaSchema = z.looseObject({ raw_toml: z.string(), active: z.boolean() })
const activatedSchema = z.looseObject({
  active: z.string(), previous: z.string(), reloaded: z.boolean(), reload_error: z.string().nullish()
})

interface Options { readonly agent: string, readonly json?: true }

/** The agent that comes with personas of its own. */
export const USUAL_AGENT = 'hermes'

export function addPersonaCommands (agent: Command, cli: Cli): void {
  const personas = agent.command('personas').description('manage personas: the built-in ones and those of personas.toml')
  const command = (name: string, description: string): Command => personas.command(name)
    .description(description)
    .option('--agent <name>', 'whose', USUAL_AGENT)
    .option('--json', 'print the API response')

  command('list', 'list the personas of an agent')
    .addHelpText('after', examples('svc agent personas list', 'svc agent personas list --agent pi'))
    .action(async ({ agent: name, json }: Options, self: Command) => {
      const client = cli.client(self)
      const call = { path: pathOf`/api/agents/${name}/personas` }
      if (json === true) return cli.out.json(await client.raw(call))
      const { personas: rows } = await client.call(call, listSchema)
      cli.out.table([
        { title: 'ID', cell: ({ id }) => id },
        { title: 'ACTIVE', cell: ({ active }) => active ? 'yes' : '' },
        { title: 'NAME', cell: ({ display_name: shown }) => harmless(shown), expendable: 1 },
        { title: 'SUMMARY', cell: ({ summary }) => harmless(summary), flexible: true }
      ], rows)
    })

  command('show <id>', 'print a persona as personas.toml defines it')
    .addHelpText('after', examples('svc agent personas show coder'))
    .action(async (id: string, { agent: name, json }: Options, self: Command) => {
      const answer = await cli.client(self).raw({ path: pathOf`/api/agents/${name}/personas/${id}` })
      if (json === true) return cli.out.json(answer)
      const { raw_toml: text, active } = personaSchema.parse(answer)
      for (const line of text.trimEnd().split('\n')) cli.out.line(harmless(line))
      if (active) cli.out.note('This persona is active.')
    })

  command('activate <id>', 'make a persona the active one')
    .option('--reload-url <url>', 'reload an agent that the gateway does not run, over its JSON-RPC socket on this machine')
    .addHelpText('after', examples('svc agent personas activate coder', 'svc agent personas activate coder --reload-url "ws://127.0.0.1:9119/api/ws?token=…"'))
    .action(async (id: string, { agent: name, json, reloadUrl }: Options & { readonly reloadUrl?: string }, self: Command) => {
      const answer = await cli.client(self).raw({
        method: 'POST',
        path: pathOf`/api/agents/${name}/personas/${id}/activate`,
        body: reloadUrl === undefined ? {} : { reload_url: reloadUrl }
      })
      if (json === true) return cli.out.json(answer)
      const { active, previous, reloaded, reload_error: why } = activatedSchema.parse(answer)
      cli.out.line(previous === active ? `${active} was already active.` : `${active} is active; before, it was ${previous}.`)
      if (reloaded) cli.out.line('The running agent uses it now.')
      else if (why != null) cli.out.note(harmless(`The running agent could not be reloaded: ${why}`))
    })
}

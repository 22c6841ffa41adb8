import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client/client.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { followUpdate, updateJobSchema } from './follow.js'
import { restartDrifted, showDrift } from './slots.js'
import { updateCheckSchema, updateStateSchema, type UpdateCheck } from './update-record.js'

interface UpdateOptions {
  readonly check?: true
  readonly rollback?: true
  readonly channel?: string
  readonly target?: string
  readonly drift?: true
  readonly restartSlots?: true
  readonly json?: true
}

/** Longer than the gateway waits for the channel. */
const CHECK_MS = 30_000
const rolledBackSchema = z.looseObject({ job: z.string(), rolled_back_to: z.string(), schema_warning: z.string().nullable() })

const NOTE = 'A new release is downloaded, checked by its signature, and tried on a copy of the home; then the gateway restarts ' +
  'with it. A release that does not answer in time is rolled back automatically. Exits with 1 if the update failed.'

export function addUpdateCommand (program: Command, cli: Cli): void {
  program.command('update')
    .description('install a newer release of the gateway, or roll back to the previous one')
    .option('--check', 'only check; installs nothing')
    .option('--rollback', 'roll back to the previous release; a second time undoes that')
    .addOption(new Option('--channel <name>', 'use this channel from now on').choices(['stable', 'nightly']))
    .option('--target <version>', 'install this version instead of the newest; older ones only with this option')
    .option('--drift', 'list the running slots whose settings have changed since they started')
    .option('--restart-slots', 'restart those slots; like --drift, it installs nothing')
    .option('--json', 'print the API response')
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples('svc update --check', 'svc update', 'svc update --channel nightly', 'svc update --rollback'))
    .action(async (options: UpdateOptions, command: Command) => {
      const client = cli.client(command)
      const { channel, target, json, check, rollback } = options
      if (options.drift === true || options.restartSlots === true) return await lookAtSlots(cli, client, options)
      if (rollback === true && (check === true || target !== undefined)) throw usageFailure('--rollback cannot be used with --check or --target')
      if (channel !== undefined) await client.raw({ method: 'PUT', path: '/api/updates/channel', body: { channel } })
      if (rollback === true) return await goBack(cli, client, json === true)
      const query = target === undefined ? {} : { version: target }
      const answer = await client.raw({ path: '/api/updates/check', query, timeoutMs: CHECK_MS })
      const found = updateCheckSchema.parse(answer)
      if (check === true) return json === true ? cli.out.json(answer) : await printCheck(cli, client, found)
      if (!found.update_available) return nothingToDo(cli, found, json === true ? answer : null, target)
      const begun = await client.call({ method: 'POST', path: '/api/updates/apply', body: query }, updateJobSchema)
      await end(cli, client, begun.id, json === true)
    })
}

async function lookAtSlots (cli: Cli, client: ApiClient, { json, drift, restartSlots, ...others }: UpdateOptions): Promise<void> {
  if (Object.keys(others).length > 0 || (drift === true && restartSlots === true)) {
    throw usageFailure('--drift and --restart-slots cannot be combined with options other than --json')
  }
  await (restartSlots === true ? restartDrifted : showDrift)(cli, client, json === true)
}

async function goBack (cli: Cli, client: ApiClient, json: boolean): Promise<void> {
  // the release is tried first
  const back = await client.call({ method: 'POST', path: '/api/updates/rollback', timeoutMs: null }, rolledBackSchema)
  if (back.schema_warning !== null) cli.out.note(`Warning: ${back.schema_warning}`)
  await end(cli, client, back.job, json)
}

async function end (cli: Cli, client: ApiClient, id: string, json: boolean): Promise<void> {
  const job = await followUpdate(cli, client, id)
  if (json) cli.out.json(job)
  if (job.state === 'failed') throw new CliFailure(json ? 'the update failed' : job.error ?? 'the update failed')
  if (json) return
  const version = job.resolved_version ?? 'The release'
  cli.out.line(job.state === 'prepared' ? `${version} is ready; restart the gateway to run it, as nothing here does that automatically.` : `${version} runs.`)
}

/** What was asked for by name and cannot be had is a failure. */
function nothingToDo (cli: Cli, { current, channel, blocked }: UpdateCheck, answer: unknown, target: string | undefined): void {
  if (answer !== null) cli.out.json(answer)
  if (target !== undefined && blocked !== null) throw new CliFailure(blocked)
  if (answer === null) cli.out.line(`Nothing to apply: ${current} runs${blocked === null ? `, and ${channel} has no newer one` : `; ${blocked}`}.`)
}

async function printCheck (cli: Cli, client: ApiClient, check: UpdateCheck): Promise<void> {
  const { installation } = await client.call({ path: '/api/updates/state' }, updateStateSchema)
  const { manifest, current, latest, channel, update_available: available, blocked } = check
  cli.out.pairs([
    ['Current', current],
    ['Latest', manifest.released_at === undefined ? latest : `${latest} (${manifest.released_at})`],
    ['Channel', channel],
    ['Available', available ? 'yes' : 'no'],
    ['Notes', manifest.notes_url ?? null]
  ])
  if (blocked !== null) cli.out.line(`Not installed: ${blocked}.`)
  if (installation.advice !== null && available) cli.out.line(`This installation does not update itself: ${installation.advice}.`)
}

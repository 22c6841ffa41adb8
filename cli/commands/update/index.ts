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

const NOTE = 'A new release is downloaded, checked by its signature, and tried on a copy of the home; then the gateway starts again ' +
  'with it. A release that does not answer within its time is gone back from by itself. It ends with 1 when the update failed.'

export function addUpdateCommand (program: Command, cli: Cli): void {
  program.command('update')
    .description('install a newer release of the gateway, or go back to the one before')
    .option('--check', 'only look; installs nothing')
    .option('--rollback', 'go back to the release before this one; twice is where you began')
    .addOption(new Option('--channel <name>', 'use this channel from now on').choices(['stable', 'nightly']))
    .option('--target <version>', 'this version in place of the newest; an older one is taken only when it is named')
    .option('--drift', 'list the slots that run otherwise than they would be started now')
    .option('--restart-slots', 'restart those slots; like --drift, it installs nothing')
    .option('--json', 'print the answer of the API')
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples('svc update --check', 'svc update', 'svc update --channel nightly', 'svc update --rollback'))
    .action(async (options: UpdateOptions, command: Command) => {
      const client = cli.client(command)
      const { channel, target, json, check, rollback } = options
      if (options.drift === true || options.restartSlots === true) return await lookAtSlots(cli, client, options)
      if (rollback === true && (check === true || target !== undefined)) throw usageFailure('--rollback goes with neither --check nor --target')
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
    throw usageFailure('--drift and --restart-slots each go with --json only')
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
  cli.out.line(job.state === 'prepared' ? `${version} is ready; it runs from the next start of the gateway on, and nothing here starts it by itself.` : `${version} runs.`)
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

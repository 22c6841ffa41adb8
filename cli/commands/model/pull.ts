import { Option, type Command } from 'commander'
import { z } from 'zod'
import { modelCapabilities } from '../../../kernel/contract/schemas/index.js'
import type { Cli } from '../../cli.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { followPull } from '../../pull/follow-pull.js'
import { pullSnapshotSchema, type PullSnapshot } from '../../pull/snapshot.js'
import { sizeText } from '../../terminal/size-text.js'

interface PullOptions {
  readonly repo?: string
  readonly file?: string
  readonly mmproj?: string
  readonly capability?: string
  readonly revision?: string
  readonly detach?: true
  readonly cancel?: true
  readonly json?: true
}

/** The hub is asked before the answer comes. */
const START_MS = 60_000

const NOTE = 'A curated model (qwen3-4b), a registered one, a repository of the hub ' +
  '(owner/name:Q8_0), or a tag of the NPU\'s engine (llama3.2:1b), which downloads it itself.\n' +
  'The download continues after a restart of the gateway, and after Ctrl-C.\n' +
  'Gated models need HF_TOKEN in api.env.'

export function addModelPull (model: Command, cli: Cli): void {
  model.command('pull <ref>')
    .description('download a model and show its progress')
    .option('--repo <owner/name>', 'repository of the hub to take it from')
    .option('--file <name>', 'file of it, or the first of a split model')
    .option('--mmproj <name>', 'projector to download with it')
    .addOption(new Option('--capability <what>', 'capability; the file goes to <store>/<capability>').choices(modelCapabilities))
    .option('--revision <revision>', 'branch, tag or commit')
    .option('-d, --detach', 'start the download and return')
    .option('--cancel', 'cancel the running pull, and remove what it has downloaded')
    .option('--json', 'print the final state, as the API reports it')
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples('svc model pull qwen3-4b', 'svc model pull mine --repo Qwen/Qwen3-4B-GGUF --file Qwen3-4B-Q8_0.gguf'))
    .action(async (ref: string, options: PullOptions, command: Command) => {
      const client = cli.client(command)
      if (options.cancel === true) return await cancel(cli, client, ref, options)
      const started = await start(client, ref, options)
      const { model_id: id, source, hf_repo: repo, hf_file: file, bytes_total: total, resumed } = started
      cli.out.note(`${resumed === true ? 'Joining the pull' : 'Pulling'}: ${repo === '' ? `${id} by ${source}` : `${file} of ${repo}`}, ${sizeText(total)}`)
      if (options.detach === true) return options.json === true ? cli.out.json(started) : cli.out.line(`The gateway pulls ${ref}; svc model pull ${ref} follows it.`)
      tellEnd(cli, await follow(cli, client, ref), options)
    })
}

const startedSchema = pullSnapshotSchema.extend({ resumed: z.boolean().optional() })

function start (client: ApiClient, ref: string, options: PullOptions): Promise<z.output<typeof startedSchema>> {
  const { repo, file, mmproj, capability, revision } = options
  const body = { hf_repo: repo, hf_filename: file, mmproj_filename: mmproj, capability, revision }
  return client.call({ method: 'POST', path: pathOf`/api/models/${ref}/pull`, body, timeoutMs: START_MS }, startedSchema)
}

async function follow (cli: Cli, client: ApiClient, ref: string): Promise<PullSnapshot> {
  try {
    return await followPull(cli, client, ref)
  } catch (error) {
    if (cli.signal.aborted) cli.out.note(`The gateway continues the pull: \`svc model pull ${ref}\` follows it, with --cancel it ends.`)
    throw error
  }
}

async function cancel (cli: Cli, client: ApiClient, ref: string, { json }: PullOptions): Promise<void> {
  const snapshot = await client.call({ method: 'POST', path: pathOf`/api/models/${ref}/pull/cancel`, timeoutMs: START_MS }, pullSnapshotSchema)
  if (json === true) return cli.out.json(snapshot)
  cli.out.line(snapshot.state === 'completed' ? `The pull of ${ref} had already finished.` : `The pull of ${ref} is ${snapshot.state}.`)
}

function tellEnd ({ out }: Cli, snapshot: PullSnapshot, { json }: PullOptions): void {
  const { model_id: id, state, path, bytes_total: total, sha256, error, error_code: code } = snapshot
  if (json === true) out.json(snapshot)
  if (state !== 'completed') {
    throw new CliFailure(`the pull of '${id}' ${state === 'cancelled' ? 'was cancelled' : `failed: ${error ?? 'for an unknown reason'}${code == null ? '' : ` (${code})`}`}`,
      { hints: state === 'failed' ? [`The partial download is kept for a day: \`svc model pull ${id}\` resumes it.`] : [] })
  }
  if (json !== true) out.line(`${id} is complete: ${path ?? '-'}, ${sizeText(total)}${sha256 == null ? '' : `, sha256 ${sha256.slice(0, 12)}`}`)
}

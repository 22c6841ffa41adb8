import { randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { ApiFailure } from '../../client/api-failure.js'
import { pathOf, type StreamedBody } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { followTransfer, WIRE } from './follow-transfer.js'

const BEGIN_MS = 120_000

const begunSchema = z.looseObject({ operation_id: z.string() })

export function addMemoryTransfer (memory: Command, cli: Cli): void {
  memory.command('export <bank>')
    .description('export a bank to a file, which either engine can import')
    .option('-o, --output <file>', 'output file; default is <bank>.zip')
    .option('--no-history', 'leave out the audit log of the bank')
    .option('--json', 'print what was written as JSON')
    .addHelpText('after', examples('svc memory export shared', 'svc memory export project__web -o web.zip'))
    .action(async (bank: string, options: { output?: string, history: boolean, json?: true }, command: Command) => {
      const client = cli.client(command)
      const file = resolve(cli.process.cwd(), options.output ?? `${bank.replaceAll(/[^\w.-]/g, '_')}.zip`)
      const query = { include_data: true, include_bank_config: true, include_history: options.history }
      const path = `${WIRE}${pathOf`/v1/default/banks/${bank}/transfer/export`}`
      // a signal cuts nothing short whose operation would then be unknown
      const begun = await client.under(new AbortController().signal).call({ method: 'POST', path, query, timeoutMs: BEGIN_MS }, begunSchema)
      const id = begun.operation_id
      const { result_metadata: result } = await followTransfer(cli, client, { kind: 'export', bank, id })
      const url = result?.download_url
      if (url === undefined || !url.startsWith('/')) throw new CliFailure('the memory engine returned no file')
      // a file that is cut short does not take the place of a whole one
      const part = `${file}.${randomBytes(4).toString('hex')}.part`
      try {
        await pipeline(await client.open({ path: `${WIRE}${url}` }), createWriteStream(part, { mode: 0o600 }))
        await rename(part, file)
      } finally {
        await rm(part, { force: true })
      }
      const { size } = await stat(file)
      if (options.json === true) cli.out.json({ bank, file, bytes: size })
      else cli.out.line(`${bank} is in ${file}, ${size} bytes.`)
    })
  memory.command('import <bank> <file>')
    .description('create a bank from an exported file')
    .addOption(new Option('--on-conflict <rule>', 'import into an existing bank; what to do with documents that both have').choices(['skip', 'replace', 'new-id']))
    .option('--aliases', 'give the bank its other names too, except those already in use')
    .option('--json', 'print the final state, as the API reports it')
    .addHelpText('after', '\nCtrl-C cancels the import. The embedded engine undoes it, unless it is being committed already.')
    .addHelpText('after', examples('svc memory import shared shared.zip', 'svc memory import shared more.zip --on-conflict skip'))
    .action(async (
      bank: string, file: string, options: { onConflict?: string, aliases?: true, json?: true }, command: Command
    ) => {
      const client = cli.client(command)
      const path = `${WIRE}${pathOf`/v1/default/banks/${bank}/transfer/import`}`
      const query = {
        ...options.onConflict === undefined ? {} : { mode: 'merge', document_conflict: options.onConflict },
        ...options.aliases === true && { include_aliases: true }
      }
      const form = await formOf(resolve(cli.process.cwd(), file))
      const answer = await client.under(form.cut(cli.signal)).send({ method: 'POST', path, query, timeoutMs: null }, form).catch((error: unknown) => {
        if (!(error instanceof ApiFailure) || error.status !== 409) throw error
        throw new CliFailure(`bank '${bank}' already exists`, { hints: ['`--on-conflict skip`, `replace` or `new-id` imports the file into it.'], cause: error })
      })
      const done = await followTransfer(cli, client, { kind: 'import', bank, id: begunSchema.parse(answer).operation_id })
      if (options.json === true) cli.out.json(done)
      else cli.out.line(`${file} is in ${bank}.`)
      const { aliases_imported: imported, aliases_skipped: skipped = 0 } = done.result_metadata ?? {}
      if (options.aliases === true && imported === undefined) cli.out.note('This memory engine imports no other names of a bank.')
      else if (skipped > 0) cli.out.note(`${skipped === 1 ? '1 other name was left out: it is' : `${skipped} other names were left out: they are`} in use, or not allowed.`)
    })
}

interface FileForm extends StreamedBody {
  /** Aborts with the given signal until all of it is sent: what answers then is to be waited for, since it may have begun. */
  cut (signal: AbortSignal): AbortSignal
}

/** A form with one file, streamed from disk. */
async function formOf (file: string): Promise<FileForm> {
  const { size } = await stat(file).catch((error: Error) => { throw new CliFailure(`${file} cannot be read: ${error.message}`) })
  const boundary = `svc-${randomBytes(12).toString('hex')}`
  const name = basename(file).replaceAll(/[^\w. -]/g, '_')
  const head = Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: application/zip\r\n\r\n`)
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  let isSent = false
  async function* body (): AsyncGenerator<Buffer> {
    yield head
    for await (const chunk of createReadStream(file)) yield chunk as Buffer
    isSent = true
    yield tail
  }
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    bytes: head.length + size + tail.length,
    body: body(),
    cut: signal => {
      const sending = new AbortController()
      const abort = (): void => { if (!isSent) sending.abort(signal.reason) }
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
      return sending.signal
    }
  }
}

import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { ApiFailure } from '../../client/api-failure.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { harmless } from '../../terminal/text-width.js'

export const WIRE = '/api/memory/hindsight'
const LOOK_EVERY_MS = 300
/** A deletion waits for the transaction that is running. */
const CANCEL_MS = 30_000

const operationSchema = z.looseObject({
  status: z.string(),
  error_message: z.string().nullish(),
  result_metadata: z.looseObject({
    download_url: z.string().optional(), aliases_imported: z.number().optional(), aliases_skipped: z.number().optional()
  }).nullish()
})
type TransferOperation = z.output<typeof operationSchema>
const engineSchema = z.looseObject({ engine: z.string().nullable() })

export interface Transfer {
  readonly kind: 'import' | 'export'
  readonly bank: string
  /** Of its operation. */
  readonly id: string
}

/** Waits for the end of an import or export. One that is interrupted is cancelled, and the user told what became of it. */
export async function followTransfer (cli: Cli, client: ApiClient, transfer: Transfer): Promise<TransferOperation> {
  const operation = await ended(cli, client, transfer).catch(async (error: unknown) => {
    if (!cli.signal.aborted) throw named(error, transfer)
    // the interrupted client takes no more calls; a second signal ends the process
    cli.out.note(await cancelled(client.under(new AbortController().signal), transfer))
    throw cli.signal.reason
  })
  if (operation.status !== 'completed') throw new CliFailure(`it ended as ${outcomeOf(operation)}`)
  return operation
}

async function ended ({ signal }: Cli, client: ApiClient, transfer: Transfer): Promise<TransferOperation> {
  for (;;) {
    const operation = await client.call({ path: pathTo(transfer) }, operationSchema)
    if (!isRunning(operation)) return operation
    await wait(LOOK_EVERY_MS, undefined, { signal })
  }
}

/** The failure with the operation, which the user may look for later. */
function named (error: unknown, transfer: Transfer): unknown {
  if (!(error instanceof CliFailure)) return error
  const { message, exitCode, hints, trace } = error
  const hint = `The ${transfer.kind} may continue. ${nameOf(transfer)}`
  return new CliFailure(message, { exitCode, hints: [...hints, hint], ...trace === null ? {} : { trace }, cause: error })
}

/** Cancels it and says what is true afterwards. */
async function cancelled (client: ApiClient, transfer: Transfer): Promise<string> {
  const { kind, bank } = transfer
  try {
    await client.raw({ method: 'DELETE', path: pathTo(transfer), timeoutMs: CANCEL_MS })
  } catch (error) {
    if (!(error instanceof ApiFailure && error.status === 409)) return unknown(transfer, error as Error)
    return await late(client, transfer).catch((why: Error) => unknown(transfer, why))
  }
  if (kind === 'export') return `The export of ${bank} is cancelled.`
  const state = await client.call({ path: '/api/memory/engine', timeoutMs: CANCEL_MS }, engineSchema).catch(() => null)
  return state?.engine === 'embedded' ? `The import is cancelled, and ${bank} is as it was.`
    : `The import is cancelled. What a Hindsight server has imported, and what it was importing just now, stays in ${bank}.`
}

/** What became of one that cannot be cancelled any more. */
async function late (client: ApiClient, transfer: Transfer): Promise<string> {
  const { kind } = transfer
  const operation = await client.call({ path: pathTo(transfer) }, operationSchema)
  return isRunning(operation) ? `The ${kind} cannot be cancelled any more: it is being committed. ${nameOf(transfer)}`
    : `The ${kind} had already ended as ${outcomeOf(operation)}.`
}

function unknown (transfer: Transfer, why: Error): string {
  return `Whether the ${transfer.kind} is cancelled is unknown: ${harmless(why.message)}. ${nameOf(transfer)}`
}

function nameOf ({ bank, id }: Transfer): string {
  return `It is operation ${id} of ${bank}.`
}

function pathTo ({ bank, id }: Transfer): string {
  return `${WIRE}${pathOf`/v1/default/banks/${bank}/operations/${id}`}`
}

function isRunning ({ status }: TransferOperation): boolean {
  return status === 'pending' || status === 'processing'
}

function outcomeOf ({ status, error_message: why }: TransferOperation): string {
  return `${harmless(status)}${why == null ? '' : `: ${harmless(why)}`}`
}

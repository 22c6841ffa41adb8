import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { z } from 'zod'
import type { Cli } from './cli.js'
import { CliFailure, usageFailure } from './failure.js'

const objectSchema = z.record(z.string(), z.unknown())

/** The portable envelope in a file, `-` for standard input. Throws a failure of usage for what holds none, with the hint. */
export async function readEnvelope (cli: Cli, file: string, hint: string): Promise<Record<string, unknown>> {
  const where = file === '-' ? 'standard input' : file
  let text: string
  try {
    text = file === '-' ? await readAll(cli.process.stdin) : await readFile(resolve(cli.process.cwd(), file), 'utf8')
  } catch (error) {
    throw usageFailure(`${where} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`)
  }
  const parsed = objectSchema.safeParse(jsonOf(text))
  if (!parsed.success) throw usageFailure(`${where} holds no envelope`, [hint])
  return parsed.data
}

/** Prints the envelope, or writes it to a file, and names what it left out. */
export async function giveEnvelope (
  cli: Cli, what: string, envelope: { readonly omitted: readonly string[] }, output: string | undefined
): Promise<void> {
  if (output === undefined) cli.out.json(envelope)
  else await save(resolve(cli.process.cwd(), output), envelope)
  if (envelope.omitted.length > 0) cli.out.note(`Left out: ${envelope.omitted.join(', ')}`)
  if (output !== undefined) cli.out.line(`${what} is in ${output}.`)
}

function jsonOf (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

async function save (path: string, envelope: object): Promise<void> {
  await writeFile(path, `${JSON.stringify(envelope, null, 2)}\n`).catch((error: NodeJS.ErrnoException) => {
    throw new CliFailure(`${path} cannot be written (${error.code ?? error.message})`, { cause: error })
  })
}

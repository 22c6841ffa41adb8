import { CommanderError } from 'commander'
import { Cli, type CliProcess, type Usual } from './cli.js'
import { CliFailure, exitCodes, Interrupted, PipeClosed, ProgramEnded, RestartWanted } from './failure.js'
import { lostOutput } from './lost-output.js'
import { ownCommand, type OwnCommand } from './own-command.js'
import { createProgram } from './program.js'
import { harmless } from './terminal/text-width.js'
import { problemText } from '../kernel/contract/text/problem-text.js'

const LONGEST_INTERVAL_MS = 2 ** 31 - 1

/** Runs one command line to its end and says with what code to exit. Never rejects. */
export async function main (argv: readonly string[], process: CliProcess, usual?: Usual): Promise<number> {
  let command: OwnCommand | undefined
  const cli = new Cli(process, () => command ??= ownCommand(argv[1] ?? '', process.env), usual)
  let lost: CliFailure | null = null
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      const problem = lostOutput(error)
      if (problem === null) cli.interrupts.abort(new PipeClosed())
      else if (stream === process.stdout) cli.interrupts.abort(lost ??= new CliFailure(problem))
    })
  }
  // what a disk did not take is not there, however well the command went
  const allWritten = async (code: number): Promise<number> => {
    await flushed(process.stdout)
    return code === exitCodes.ok && lost !== null ? await report(cli, lost) : code
  }
  // the clock's timers keep no process alive: a command that waits for nothing else would end in the middle, with 0
  const awake = setInterval(() => {}, LONGEST_INTERVAL_MS)
  try {
    await (await createProgram(cli, argv.slice(2))).parseAsync(argv)
    return await allWritten(exitCodes.ok)
  } catch (error) {
    return await allWritten(await report(cli, error))
  } finally {
    clearInterval(awake)
    cli.interrupts.close()
    await flushed(process.stderr)
  }
}

/** Tells what went wrong, once, and gives the exit code for it. */
async function report (cli: Cli, error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof Interrupted || error instanceof PipeClosed) return error.exitCode
  if (error instanceof ProgramEnded || error instanceof RestartWanted) return error.exitCode
  const { message, hints, exitCode, trace } = error instanceof CliFailure ? error : await foreign(error)
  if (trace !== null && cli.verbose) cli.out.dimNote(harmless(trace))
  for (const [i, line] of [`Error: ${message}`, ...hints].entries()) cli.out.noteFolded(harmless(line), i === 0 ? '' : '  ')
  if (trace !== null && !cli.verbose) cli.out.dimNote(harmless(`  ${trace}`))
  if ((cli.env.SVC_DEBUG ?? '') !== '' && error instanceof Error) cli.out.note(error.stack ?? '')
  return exitCode
}

/** Errors of the kernel carry a code; anything else is a defect of ours or of the machine. */
async function foreign (error: unknown): Promise<Pick<CliFailure, 'message' | 'hints' | 'exitCode' | 'trace'>> {
  const { summary, lines } = await problemList(error)
  const message = summary ?? (error instanceof Error ? error.message : String(error))
  const { code } = error as { code?: unknown }
  return { message: typeof code === 'string' ? `${message} (${code})` : message, hints: lines, exitCode: exitCodes.failed, trace: null }
}

/** All that is wrong in the configuration, a line each; the summary stands for the message, which lists it in one sentence. */
async function problemList (error: unknown): Promise<{ summary: string | null, lines: readonly string[] }> {
  const { z } = await import('zod')
  const diagnosticsSchema = z.looseObject({
    details: z.looseObject({
      summary: z.string().optional(),
      diagnostics: z.array(z.looseObject({
        file: z.string(), path: z.string(), message: z.string(), line: z.number().optional()
      }))
    })
  })
  const { summary = null, diagnostics = [] } = diagnosticsSchema.safeParse(error).data?.details ?? {}
  if (diagnostics.length < 2) return { summary: null, lines: [] }
  const lines = diagnostics.map(({ file, path, message, line }) =>
    `  ${file}: ${problemText(path, message)}${line === undefined ? '' : ` (line ${line})`}`)
  return { summary, lines }
}

/** Resolves when everything is written, or is no longer read. */
function flushed (stream: CliProcess['stdout']): Promise<void> {
  return new Promise(resolve => {
    if (stream.destroyed || stream.writableEnded) resolve()
    else stream.write('', () => resolve())
  })
}

import { CommanderError } from 'commander'
import { z } from 'zod'
import { Cli, type CliProcess } from './cli.js'
import { CliFailure, exitCodes, Interrupted, PipeClosed } from './failure.js'
import { createProgram } from './program.js'
import { harmless } from './text-width.js'

const diagnosticsSchema = z.looseObject({
  details: z.looseObject({ diagnostics: z.array(z.looseObject({ file: z.string(), path: z.string(), message: z.string() })) })
})

/** Runs one command line to its end and says with what code to exit. Never rejects. */
export async function main (argv: readonly string[], process: CliProcess): Promise<number> {
  const cli = new Cli(process)
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') cli.interrupts.abort(new PipeClosed())
    })
  }
  try {
    await createProgram(cli).parseAsync(argv)
    return exitCodes.ok
  } catch (error) {
    return report(cli, error)
  } finally {
    cli.interrupts.close()
    await Promise.all([process.stdout, process.stderr].map(flushed))
  }
}

/** Tells what went wrong, once, and gives the exit code for it. */
function report (cli: Cli, error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof Interrupted || error instanceof PipeClosed) return error.exitCode
  const { message, hints, exitCode, trace } = error instanceof CliFailure ? error : foreign(error)
  if (trace !== null && cli.verbose) cli.out.dimNote(harmless(trace))
  for (const [i, line] of [`Error: ${message}`, ...hints].entries()) cli.out.noteFolded(harmless(line), i === 0 ? '' : '  ')
  if (trace !== null && !cli.verbose) cli.out.dimNote(harmless(`  ${trace}`))
  if ((cli.env.SVC_DEBUG ?? '') !== '' && error instanceof Error) cli.out.note(error.stack ?? '')
  return exitCode
}

/** Errors of the kernel carry a code; anything else is a defect of ours or of the machine. */
function foreign (error: unknown): Pick<CliFailure, 'message' | 'hints' | 'exitCode' | 'trace'> {
  const message = error instanceof Error ? error.message : String(error)
  const { code } = error as { code?: unknown }
  return { message: typeof code === 'string' ? `${message} (${code})` : message, hints: diagnosticLines(error), exitCode: exitCodes.failed, trace: null }
}

/** All that is wrong in the configuration, not only the first. */
function diagnosticLines (error: unknown): string[] {
  const parsed = diagnosticsSchema.safeParse(error)
  const lines = parsed.data?.details.diagnostics.map(({ file, path, message }) => `  ${file}: ${path === '' ? '' : `${path} `}${message}`)
  return lines !== undefined && lines.length > 1 ? lines : []
}

/** Resolves when everything is written, or nobody reads. */
function flushed (stream: CliProcess['stdout']): Promise<void> {
  return new Promise(resolve => {
    if (stream.destroyed || stream.writableEnded) resolve()
    else stream.write('', () => resolve())
  })
}

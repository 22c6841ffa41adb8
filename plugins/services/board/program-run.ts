import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { createLineSplitter, pause, type Clock, type Programs } from 'svc-gateway/plugin'
import type { AgentWorld } from './agent-runner.js'

/** One run of an agent that is a program. */
export interface AgentProgram {
  /** A path, or a name that is looked up in PATH. */
  readonly command: string
  readonly args: readonly string[]
  /** Where it runs; null: where the gateway does. */
  readonly folder: string | null
  readonly env: Readonly<Record<string, string>>
  /** What it reads on its standard input. */
  readonly input: string
}

export interface ProgramEnd {
  /** 128 and the signal's number where a signal ended it; null if unknown. */
  readonly code: number | null
  /** The last line of its standard output that is not empty. */
  readonly last: string
}

/** What it has after it was asked to end. */
const ENDING_S = 5
/** What it wrote before it ended is read in this time: something that it left in the background may hold the stream open. */
const REST_MS = 1_000

/**
 * Runs a program until it ends, and all that it started with it; what it writes is the log of the run. A gateway that is killed
 * leaves none of it to the next one. Rejects where it cannot be started.
 */
export async function runProgram (
  { programs, clock }: { readonly programs: Programs, readonly clock: Clock },
  { command, args, folder, env, input }: AgentProgram, { signal, log }: Pick<AgentWorld, 'signal' | 'log'>
): Promise<ProgramEnd> {
  const form = { kind: 'process', command, args, ...(folder === null ? {} : { workingDir: folder }) } as const
  const program = await programs.run({ purpose: 'board-agent', env, form }, { signal })
  const { stdin, stdout, stderr } = program.pipes!
  const stop = (): void => { void program.stop(ENDING_S).catch(() => undefined) }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const over = new AbortController()
  try {
    stdin.end(input)
    let last = ''
    const read = Promise.all([
      readLines(stdout, line => {
        if (line.trim() !== '') last = line.trim()
        log(line)
      }),
      readLines(stderr, log)
    ])
    const code = await program.ended
    await Promise.race([read, pause(clock, REST_MS, AbortSignal.any([signal, over.signal])).catch(() => undefined)])
    return { code, last }
  } finally {
    over.abort()
    signal.removeEventListener('abort', stop)
    for (const stream of [stdout, stderr]) stream.destroy()
    await program.stop(signal.aborted ? ENDING_S : 0)
  }
}

async function readLines (stream: Readable, take: (line: string) => void): Promise<void> {
  const splitter = createLineSplitter()
  stream.on('data', (chunk: Buffer) => splitter.push(chunk).forEach(take))
  await once(stream, 'close').catch(() => undefined)
  splitter.end().forEach(take)
}

/** Lines as a server writes them, time first, on stdout and stderr. A reader that is gone does not matter. */
export interface EngineLog {
  info (message: string): void
  warn (message: string): void
  error (message: string): void
}

export function createLog (): EngineLog {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => { /* a closed log must not end the engine */ })
  const write = (stream: NodeJS.WriteStream, level: string) => (message: string) => {
    stream.write(`${new Date().toISOString()} ${level} ${message}\n`)
  }
  return { info: write(process.stdout, 'I'), warn: write(process.stderr, 'W'), error: write(process.stderr, 'E') }
}

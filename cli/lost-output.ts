/** What to tell of output that could not be written; null where there is only no reader any more, as with `| head`. */
export function lostOutput (error: NodeJS.ErrnoException): string | null {
  return error.code === 'EPIPE' ? null : `standard output could not be written: ${error.message}`
}

/** Writes all that a program has to say. Where it cannot, the program ends with 1 and says why. */
export function writeOnly (text: string): void {
  process.stdout.on('error', error => {
    const problem = lostOutput(error)
    if (problem === null) return
    process.exitCode = 1
    process.stderr.on('error', () => {}).write(`Error: ${problem}\n`)
  }).write(text)
}

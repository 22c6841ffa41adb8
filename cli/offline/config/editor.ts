import { spawn } from 'node:child_process'
import type { Cli } from '../../cli.js'
import { CliFailure, Interrupted } from '../../failure.js'

/** `$EDITOR`, then `$VISUAL`, then `vi`. */
export function editorOf (env: Readonly<Record<string, string | undefined>>): string {
  return [env.EDITOR, env.VISUAL].find(name => (name ?? '').trim() !== '') ?? 'vi'
}

/** Opens the file and resolves when the editor is closed. It may be a command with options: a shell takes it apart. */
export async function openEditor (cli: Cli, file: string): Promise<void> {
  const editor = editorOf(cli.env)
  const child = spawn('/bin/sh', ['-c', `exec ${editor} "$1"`, 'svc', file], { stdio: 'inherit', env: { ...cli.env } })
  let stopped: NodeJS.Signals | null = null
  // Ctrl-C is for the editor, which has the terminal
  const giveBack = cli.interrupts.takeOver(signal => {
    if (signal === 'SIGINT') return
    stopped = signal
    child.kill(signal)
  })
  const how = await new Promise<string | null>(resolve => {
    child.once('error', error => resolve(error.message))
    child.once('close', (code, signal) => resolve(code === 0 ? null : signal ?? `exit code ${code}`))
  })
  giveBack()
  if (stopped !== null) throw new Interrupted(stopped)
  if (how !== null) throw new CliFailure(`the editor failed (${editor}: ${how})`, { hints: ['Choose another one with EDITOR or VISUAL.'] })
}

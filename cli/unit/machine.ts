import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CliFailure } from '../failure.js'
import { MARK } from './gateway-unit.js'

export interface Place { readonly file: string, readonly text: string }

/** Writes a file of the machine, with its folder. Throws a `CliFailure` where another writer's stands there. */
export async function writeOurs ({ file, text }: Place): Promise<void> {
  const there = await readFile(file, 'utf8').catch(() => null)
  if (there !== null) requireOurs(file, there)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text, { mode: 0o644 })
}

/** True when there was one of ours, which is gone then; what another writer left stays. */
export async function removeOurs (file: string): Promise<boolean> {
  const text = await readFile(file, 'utf8').catch(() => null)
  if (text === null || !isOurs(text)) return false
  await rm(file)
  return true
}

/** A file that another writer made, or took over, stays as it is. */
export function requireOurs (file: string, text: string): void {
  if (isOurs(text)) return
  throw new CliFailure(`${file} was not written by this command, so it was not changed`, { hints: ['Move it away first; put your own changes into drop-ins beside it.'] })
}

function isOurs (text: string): boolean {
  return text.split('\n').slice(0, 2).some(line => line.includes(MARK))
}

/** Never rejects. `said` is the last line of what it complained about. */
export function run (command: string, args: readonly string[]): Promise<{ readonly ok: boolean, readonly said: string }> {
  return new Promise(resolve => {
    execFile(command, args, { timeout: 330_000 }, (error, _stdout, stderr) => {
      resolve({ ok: error === null, said: stderr.trim().split('\n').at(-1) ?? '' })
    })
  })
}

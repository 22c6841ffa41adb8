import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { root } from '../../repository.js'

const run = promisify(execFile)

/**
 * The folder that a script of `test/engines/` prints when it has brought what a ring needs; null after the test was
 * marked as skipped because it cannot be had. With `SVC_TEST_RINGS=required` that is a failure instead.
 */
export async function brought (t: Test, script: string, ...args: readonly string[]): Promise<string | null> {
  try {
    const { stdout } = await run(join(root, 'test/engines', script), args, { maxBuffer: 64 * 1024 * 1024 })
    return stdout.trim()
  } catch (error) {
    const { stderr } = error as { stderr?: string }
    return lacking(t, `${script} ${args.join(' ')}: ${(stderr ?? String(error)).trim().split('\n').slice(-5).join('\n')}`)
  }
}

/** Says why there is nothing to test; a failure where every ring is required. */
export function lacking (t: Test, why: string): null {
  if (process.env.SVC_TEST_RINGS === 'required') t.fail(`SVC_TEST_RINGS=required, but ${why}`)
  else t.comment(`SKIPPED: ${why}`)
  t.pass('nothing to test here')
  return null
}

/** A copy of the scripts of `test/rings/js`, and of a folder beside it, that finds the packages installed in another folder. */
export async function scriptsBeside (t: Test, installed: string, scripts: 'dialects' | 'js' | 'mcp' | 'memory'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-ring-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  for (const name of new Set(['js', scripts])) await cp(join(root, 'test/rings', name), join(folder, name), { recursive: true })
  await symlink(join(installed, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, scripts)
}

/**
 * Runs a program that prints one line of JSON for each thing that it tried, `{ name, error? }`, and passes or fails each
 * as one assertion. A program that ends badly, or tried nothing, is a failure too.
 * @param env in place of the test's own environment, but for PATH and HOME
 * @param before what the assertions' names begin with
 */
export async function runClient (t: Test, command: readonly string[], env: Readonly<Record<string, string>>, before = ''): Promise<void> {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(command[0]!, command.slice(1), { env: { PATH, HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  t.teardown(() => child.kill('SIGKILL'))
  let tried = 0
  let rest = ''
  child.stderr.on('data', (chunk: Buffer) => { rest = `${rest}${chunk.toString()}`.slice(-4_000) })
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{"name":')) {
      rest = `${rest}${line}\n`.slice(-4_000)
      continue
    }
    const { name, error } = JSON.parse(line) as { name: string, error?: string }
    tried++
    if (error === undefined) t.pass(before + name)
    else t.fail(before + name, { diagnostic: true, error })
  }
  const [code, signal] = await exited
  if (code !== 0 || tried === 0) t.fail(`${before}it ends well and has tried something (${String(code ?? signal)}, ${tried} tried)`, { rest })
}

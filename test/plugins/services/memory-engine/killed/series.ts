import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { oneFile } from '../../../../one-file.js'
import { databaseIn } from '../support.js'

/** A program that works on a database and is killed before one of its steps, and what has to be there afterwards. */
export interface Series {
  /** Its file, beside this one: it says what it was answered, a line each, and in its last line how many steps it took. */
  readonly program: string
  /** Fewer steps are not what was meant. */
  readonly moreThan: number
  /** Makes what it begins with, in a folder. */
  readonly prepare?: (t: Test, folder: string) => Promise<void>
  /** Opens what a killed one left below a folder, lets it finish, and looks at what is there. */
  readonly survives: (t: Test, folder: string, said: readonly string[]) => Promise<void> | void
}

/** One is looked at while the next one runs. */
const AT_ONCE = 2

/** @param pointsOf the steps before which it is killed, of so many */
export async function killed (
  t: Test, { program, moreThan, prepare, survives }: Series, pointsOf: (steps: number) => number[]
): Promise<void> {
  const base = t.testdir()
  const file = await oneFile(fileURLToPath(new URL(program, import.meta.url)))
  const before = join(base, 'before')
  mkdirSync(dirname(databaseIn(before)), { recursive: true })
  if (prepare !== undefined) await t.test('what it begins with', t => prepare(t, before))
  const folderOf = (name: string): string => {
    cpSync(before, join(base, name), { recursive: true })
    return join(base, name)
  }
  const whole = await run(file, databaseIn(folderOf('whole')))
  t.equal(whole.signal, null)
  const steps = stepsIn(whole.said)!
  t.ok(steps > moreThan, `${steps} steps`)
  const points = pointsOf(steps)
  const next = async (): Promise<void> => {
    for (let at = points.shift(); at !== undefined; at = points.shift()) {
      const step = at
      const folder = folderOf(String(step))
      const { signal, said } = await run(file, databaseIn(folder), step)
      // what runs at once takes a few steps more or less from run to run, and the last point may lie behind the end of one
      const taken = stepsIn(said)
      await t.test(`step ${step}: ${said.at(-1)!}`, async t => {
        if (taken === null) t.equal(signal, 'SIGKILL', `killed before step ${step} of ${steps}`)
        else t.ok(taken < step, `over before step ${step}`)
        await survives(t, folder, said)
      })
      rmSync(folder, { recursive: true })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

/** So many, spread over all of them. */
export function spread (kills: number): (steps: number) => number[] {
  return steps => [...new Set(Array.from({ length: kills }, (_, n) => Math.max(1, Math.round((n + 0.5) * steps / kills))))]
}

/** Every step, or every so many: an odd number of them comes to all kinds of steps where a few take turns. */
export function every (stride = 1): (steps: number) => number[] {
  return steps => Array.from({ length: Math.ceil(steps / stride) }, (_, n) => 1 + n * stride)
}

async function run (file: string, path: string, at?: number): Promise<{
  readonly signal: NodeJS.Signals | null
  readonly said: readonly string[]
}> {
  const process_ = spawn(process.execPath, [file, path, ...at === undefined ? [] : [String(at)]], {
    env: { ...process.env, NODE_OPTIONS: '' }, stdio: ['ignore', 'pipe', 'inherit']
  })
  const [out, [, signal]] = await Promise.all([text(process_.stdout), once(process_, 'exit') as Promise<[number | null, NodeJS.Signals | null]>])
  return { signal, said: out.trim().split('\n') }
}

function stepsIn (said: readonly string[]): number | null {
  const [, steps] = /^steps (\d+)$/.exec(said.at(-1)!) ?? []
  return steps === undefined ? null : Number(steps)
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { form } from '../models-support.js'
import { openProgram, say } from './program.js'
import { killBefore, toldProgram } from './steps.js'

/*
 * Imports a bank into one that is there and into a new one, undoes either when all of it is written and nothing committed, and
 * does both once more to the end. Says what was asked, acknowledged, undone and over, and is killed before the step it is given.
 */

const { path, at } = toldProgram()
const archive = readFileSync(join(path, '..', 'archive.zip'))
const { core, ask, ended, done } = openProgram(path)
const { steps } = killBefore(at)

/** Between the first slice of an import and what follows it, which would be its commit. */
function whenStaged (): Promise<void> {
  const { run } = core.store
  return new Promise(resolve => {
    core.store.run = (sql, values = []) => {
      const result = run.call(core.store, sql, values)
      // its slice is written in this turn of the event loop, what follows runs in the next one, and this is before that
      if (values.some(value => typeof value === 'string' && value.includes('"stage":"importing"'))) setImmediate(resolve)
      return result
    }
  })
}

const targets = {
  merge: { bank: 'c', path: 'c/transfer/import?mode=merge&document_conflict=replace' },
  restore: { bank: 'n', path: 'n/transfer/import?target_bank_id=r' }
}
for (const [name, { bank, path }] of Object.entries(targets)) {
  const staged = whenStaged()
  say(`asked first ${name}`)
  const { operation_id: id } = await ask('POST', path, ...form('file', 'a.zip', archive))
  await staged
  await ask('DELETE', `${bank}/operations/${id!}`)
  say(`undone ${name}`)
  await ended(id!)
  say(`gone ${name}`)
}
for (const [name, { path }] of Object.entries(targets)) {
  say(`asked ${name}`)
  await done(name, await ask('POST', path, ...form('file', 'a.zip', archive)))
}
say(`steps ${steps()}`)
process.exit()

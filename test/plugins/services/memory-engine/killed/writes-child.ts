import { openCore, say } from './program.js'
import { killBefore, toldProgram } from './steps.js'
import { script } from './writes-script.js'

/*
 * Runs the script of requests, says each that was answered, and is killed before the database does the step whose number it is
 * given. Without a number it says how many steps there are.
 */

const { path, at } = toldProgram()
const { core, ask } = openCore(path, {}, () => 1_700_000_000_000)
const { steps } = killBefore(at)
const ids = new Map<string, string>()
for (const [i, { method, path: target, body, id }] of script.entries()) {
  await ask(method, target.replace('$id', ids.get(id ?? '') ?? ''), body)
  say(`answered ${i + 1}`)
  for (const { id, text } of core.store.all<{ id: string, text: string }>('SELECT id, text FROM memories')) ids.set(text, id)
}
say(`steps ${steps()}`)

import { writeSync } from 'node:fs'
import type { Core } from '../../../../../plugins/services/memory-engine/core.js'
import { answerRequest } from '../../../../../plugins/services/memory-engine/router.js'
import { openStore } from '../../../../../plugins/services/memory-engine/store/open.js'
import { noModels } from '../support.js'
import { killBefore, toldProgram } from './steps.js'
import { script } from './writes-script.js'

/*
 * Runs the script of requests, says each that was answered, and is killed before the database does the step whose number it is
 * given. Without a number it says how many steps there are.
 */

const { path, at } = toldProgram()
const core: Core = {
  store: openStore(path), outside: { abilities: noModels, onAbilities: () => () => {}, run: () => Promise.reject(new Error('none')) },
  hooks: { retaining: [], retained: [], answered: [], retainLater: null }, now: () => 1_700_000_000_000, log: () => {},
  closing: new AbortController().signal
}
const { steps } = killBefore(at)
const ids = new Map<string, string>()
for (const [i, { method, path: target, body, id }] of script.entries()) {
  const place = target.replace('$id', ids.get(id ?? '') ?? '')
  const answer = await answerRequest(core, {
    method, path: `/v1/default/banks/${place}`, query: '', headers: { 'content-type': 'application/json' },
    body: Buffer.from(body === undefined ? '' : JSON.stringify(body)), signal: new AbortController().signal
  })
  if (answer.status !== 200) throw new Error(`${method} ${place}: ${answer.status} ${answer.body.toString()}`)
  writeSync(1, `answered ${i + 1}\n`)
  for (const { id, text } of core.store.all<{ id: string, text: string }>('SELECT id, text FROM memories')) ids.set(text, id)
}
writeSync(1, `steps ${steps()}\n`)

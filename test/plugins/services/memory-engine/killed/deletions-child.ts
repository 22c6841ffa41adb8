import { openStore } from '../../../../../plugins/services/memory-engine/store/open.js'
import { deletions, isSwept } from './deletions.js'
import { openProgram, say } from './program.js'
import { killBefore, toldProgram } from './steps.js'

/* Deletes what goes slice by slice, says what was asked and acknowledged, and is killed before the step it is given. */

const { path, at } = toldProgram()
const { ask } = openProgram(path)
const seen = openStore(path)
const { steps } = killBefore(at)
for (const [name, target] of Object.entries(deletions)) {
  say(`asked ${name}`)
  await ask('DELETE', target)
  say(`acknowledged ${name}`)
}
while (!isSwept(seen)) await new Promise(resolve => { setImmediate(resolve) })
say(`steps ${steps()}`)
process.exit()

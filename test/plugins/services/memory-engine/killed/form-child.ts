import { openStore } from '../../../../../plugins/services/memory-engine/store/open.js'
import { say } from './program.js'
import { killBefore, toldProgram } from './steps.js'

/* Opens a database of a release before, and is killed before the step it is given. */

const { path, at } = toldProgram()
const { steps } = killBefore(at)
openStore(path).close()
say(`steps ${steps()}`)

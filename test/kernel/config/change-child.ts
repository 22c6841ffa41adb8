import { resolvePaths } from '../../../kernel/config/paths.js'
import { createWithLock } from '../../../kernel/state/file-lock.js'
import { acquireHomeLock } from '../../../kernel/state/home-lock.js'
import { reshape, watchedOps } from './change.js'
import { openHome } from './support.js'

/** Changes several files under the locks of a gateway and stands still before its n-th file operation, until it is killed. */
const [home, stopAt] = [process.argv[2]!, Number(process.argv[3])]
const keepAlive = setInterval(() => {}, 1000)
const ops = watchedOps((index, name, path) => {
  if (index !== stopAt) return
  process.send!({ index, name, path })
  return new Promise(() => {})
})
await acquireHomeLock(resolvePaths({}, { home }), 'the child')
const { config } = await openHome(home, {}, { ops, withLock: createWithLock() })
await config.change(reshape)
clearInterval(keepAlive)

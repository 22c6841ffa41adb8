import { reshape, watchedOps } from './change.js'
import { openHome } from './support.js'

/** Changes several files and stands still before its n-th file operation, until it is killed. */
const [home, stopAt] = [process.argv[2]!, Number(process.argv[3])]
const keepAlive = setInterval(() => {}, 1000)
const ops = watchedOps((index, name, path) => {
  if (index !== stopAt) return
  process.send!({ index, name, path })
  return new Promise(() => {})
})
const { config } = await openHome(home, {}, { ops })
await config.change(reshape)
clearInterval(keepAlive)

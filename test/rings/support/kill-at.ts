import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { isMainThread } from 'node:worker_threads'

/**
 * Loaded before a gateway: ends it with SIGKILL right before the file operation whose number stands in the file that
 * `SVC_RING_KILL` names, counted from the moment at which that was written. Only operations count that change what there is below
 * the folder `SVC_RING_KILL_BELOW`; each writes what it was to the file beside, `.at`.
 */
const [arm, below] = [process.env.SVC_RING_KILL, process.env.SVC_RING_KILL_BELOW]
if (arm !== undefined && below !== undefined && isMainThread && process.argv.includes('serve')) {
  type Change = (path: string, ...more: unknown[]) => Promise<unknown>
  const changes = promises as unknown as Record<'rename' | 'rm' | 'rmdir', Change>
  for (const name of ['rename', 'rm', 'rmdir'] as const) {
    const change = changes[name]
    changes[name] = async (path, ...more) => {
      if (path.startsWith(below)) count(arm, `${name} ${path.slice(below.length)}`)
      return await change(path, ...more)
    }
  }
  syncBuiltinESMExports()
}

function count (file: string, what: string): void {
  const left = Number(readFileSync(file, 'utf8'))
  if (left === 0) return
  writeFileSync(file, String(left - 1))
  if (left > 1) return
  const told = openSync(`${file}.at`, 'w')
  writeSync(told, what)
  closeSync(told)
  process.kill(process.pid, 'SIGKILL')
}

import { readFileSync, writeFileSync } from 'node:fs'
import { acquireLock, createWithLock } from '../../../kernel/state/file-lock.js'

/** `count <lock> <file> <rounds>`: adds to a number in a file. `hold <lock>`: takes the lock and waits to be killed. */
const [mode, lock, file, rounds] = process.argv.slice(2) as [string, string, string, string]

if (mode === 'hold') {
  await acquireLock(lock, { text: 'the child' })
  process.send?.('held')
  setInterval(() => undefined, 60_000)
} else if (mode === 'exit') {
  await acquireLock(lock)
  process.exit(0)
} else {
  const withLock = createWithLock({ waitMs: 30_000 })
  for (let i = 0; i < Number(rounds); i++) {
    await withLock(lock, async () => {
      const before = Number(readFileSync(file, 'utf8'))
      // the others get every chance to come in between
      await new Promise(resolve => { setImmediate(resolve) })
      writeFileSync(file, String(before + 1))
    })
  }
}

import { EventEmitter, once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { watchConfig } from '../../cli/serve/config-watch.js'

t.test('a reload that fails is told, and the next change of a file is heard all the same', async t => {
  const etc = t.testdir()
  const slots = join(etc, 'slots')
  mkdirSync(slots)
  const broken = new Error('not this time')
  let calls = 0
  const seen = new EventEmitter()
  const [failed, next] = [once(seen, 'failed'), once(seen, 'next')]
  const watching = await watchConfig({ etc, slots }, async () => {
    await Promise.resolve()
    if (calls++ === 0) throw broken
    seen.emit('next')
  }, error => { seen.emit('failed', error) })
  // a watch of files keeps no process alive
  const alive = setInterval(() => {}, 60_000)
  t.teardown(() => {
    clearInterval(alive)
    watching.close()
  })
  writeFileSync(join(etc, 'svc.toml'), 'a = 1\n')
  t.strictSame(await failed, [broken])
  writeFileSync(join(slots, 'one.toml'), 'a = 2\n')
  await next
  t.equal(calls, 2)
})

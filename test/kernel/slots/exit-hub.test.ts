import t from 'tap'
import type { ContainerRuntime, EngineExit } from '../../../kernel/contract/provider/engine-runtime.js'
import { ExitHub } from '../../../kernel/slots/life/watch/exit-hub.js'
import { settle } from '../../../kernel/testing/fake-clock.js'

t.test('the end of an engine is told once, to the one who listens, also when it came first', async t => {
  let tell = (_exit: EngineExit): void => {}
  let unsubscribed = false
  const hub = new ExitHub({
    onExit: (_instance: string, listener: typeof tell) => {
      tell = listener
      return () => { unsubscribed = true }
    }
  } as unknown as ContainerRuntime, 'i')
  const told: string[] = []
  const listen = (id: string, name = id) => hub.onExit(id, exit => told.push(`${name} ${exit.exitCode}`))
  const exit = (id: string): void => tell({ id, labels: {}, exitCode: 3 })
  listen('a')
  const leave = listen('b')
  leave()
  exit('a')
  exit('a')
  exit('b')
  exit('unknown')
  t.strictSame(told, ['a 3'])
  listen('unknown', 'late')
  t.strictSame(told, ['a 3'], 'not before the caller has its answer')
  await settle()
  t.strictSame(told, ['a 3', 'late 3'])
  const first = listen('c', 'first')
  listen('c', 'second')
  first()
  exit('c')
  t.strictSame(told.at(-1), 'second 3', 'who was replaced cannot unsubscribe the other')
  for (let i = 0; i < 300; i++) exit(`e${i}`)
  listen('e0', 'forgotten')
  await settle()
  t.equal(told.length, 3, 'only the last 256 ends are remembered')
  hub.close()
  t.ok(unsubscribed)
})

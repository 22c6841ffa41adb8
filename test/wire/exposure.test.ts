import t from 'tap'
import { createGateway } from '../../kernel/gateway.js'
import { FakeEngineRuntime } from '../../kernel/testing/index.js'
import type { Logger } from '../../kernel/contract/index.js'

t.test('a gateway that listens beyond this machine says that it asks nobody who they are', async t => {
  for (const [host, told] of [['127.0.0.1', 0], ['localhost', 0], ['0.0.0.0', 1]] as const) {
    const warnings: string[] = []
    const none = (): void => {}
    const warn = (_fields: object, message: string): void => { warnings.push(message) }
    const log = { debug: none, info: none, error: none, warn } as unknown as Logger
    const gateway = createGateway({ home: t.testdir(), host, port: 0, runtime: new FakeEngineRuntime(), log })
    await gateway.start()
    await gateway.stop()
    t.equal(warnings.filter(message => /no authentication.*anyone who reaches the port/.test(message)).length, told, host)
  }
})

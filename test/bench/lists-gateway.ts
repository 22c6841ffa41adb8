import builtins from '../../plugins/index.js'
import { createGateway } from '../../kernel/gateway.js'
import { FakeEngineRuntime } from '../../kernel/testing/index.js'

/** The gateway as it ships on a home that is filled beforehand. Audit rows come as a number, and are written once. */
const [home, rows] = [process.argv[2]!, Number(process.argv[3] ?? 0)]
const gateway = createGateway({ builtins, home, port: 0, runtime: new FakeEngineRuntime() })
const { baseUrl, listeningMs } = await gateway.start()
const { activity } = gateway.kernel()
for (let i = 0; i < rows; i++) {
  const failed = i % 20 === 0
  activity.recordSoon({
    category: ['slot', 'model', 'settings'][i % 3]!,
    action: ['slot.load', 'model.register', 'settings.update'][i % 3]!,
    target: `thing-${i % 500}`,
    actor: i % 2 === 0 ? 'cli' : 'api',
    outcome: failed ? 'error' : 'ok',
    request_id: `req-${i}`,
    after: { step: i }
  })
}
process.stdout.write(`${JSON.stringify({ port: Number(new URL(baseUrl).port), listeningMs })}\n`)
process.on('message', () => { process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() }) })
process.on('disconnect', () => {
  gateway.hurry()
  void gateway.stop().then(() => process.exit(0))
})

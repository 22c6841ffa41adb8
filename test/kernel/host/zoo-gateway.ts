import { createGateway } from '../../../kernel/gateway.js'
import { FakeEngineRuntime } from '../../../kernel/testing/index.js'

/** Runs a gateway on the home given as argument until its standard input ends. Says what came of the plugins. */
const gateway = createGateway({
  home: process.argv[2]!,
  host: '127.0.0.1',
  port: 0,
  runtime: new FakeEngineRuntime(),
  guardProcess: true
})
const { baseUrl } = await gateway.start()
// as Node does for a leak of listeners
process.emitWarning('one listener too many', 'MaxListenersExceededWarning')
process.stdout.write(`${JSON.stringify({ baseUrl })}\n`)
process.stdin.resume()
process.stdin.on('end', () => {
  // read at the end: what fell while the gateway ran counts too
  process.stdout.write(`${JSON.stringify({ report: gateway.report() })}\n`)
  void gateway.stop()
})

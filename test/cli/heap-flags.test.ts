import t from 'tap'
import { isGateway } from '../../cli/heap-flags.js'

t.test('the command line of a gateway is known, whatever options stand in front', async t => {
  for (const line of ['serve', 'serve --demo', '--verbose serve', '--url http://127.0.0.1:8080 serve', '--url=http://x serve --port 1']) {
    t.equal(isGateway(line.split(' ')), true, line)
  }
  for (const line of ['status', '--url serve status', 'chat serve', '--verbose']) t.equal(isGateway(line.split(' ')), false, line)
})

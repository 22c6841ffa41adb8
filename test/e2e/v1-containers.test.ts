import t from 'tap'
import { containerGateway } from './engine-gateways.js'
import { speaksEveryDialect } from './dialect-cells.js'
import { callsForcedTool, callsOnce, refusesBothModes } from './text-surfaces.js'
import { endpoints } from './v1-endpoints.js'

t.setTimeout(600_000)

t.test('every endpoint of /v1 on engines in containers, in the clients that people use', async t => {
  const gateway = await containerGateway(t)
  if (gateway === null) return
  for (const [route, { works }] of Object.entries(endpoints)) {
    for (const work of works) await t.test(`${route}: ${work.name}`, t => work(t, gateway.url))
  }
  await t.test('every dialect gets words and calls, whole and streamed', t => speaksEveryDialect(t, gateway.url))
  await t.test('a client that forces a tool gets its call', t => callsForcedTool(t, gateway.url, 'caller'))
  await t.test('a client that wants one call at a time gets one', t => callsOnce(t, gateway.url, 'caller'))
  await t.test('both modes in one engine', t => refusesBothModes(t, gateway.url))
  t.equal(await gateway.kill('SIGTERM'), 0)
})

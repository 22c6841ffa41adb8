import t, { type Test } from 'tap'
import { svcError } from '../../kernel/contract/index.js'
import { FakeClock, FakeEngineRuntime } from '../../kernel/testing/index.js'
import slotRoutes from '../../plugins/api/slots/index.js'
import { until, wireGateway, type WireGateway } from './wire-gateway.js'

/** Refuses to remove its engines so often. */
class ResistingRuntime extends FakeEngineRuntime {
  refusals = 2
  asked = 0

  override async remove (id: string): Promise<void> {
    this.asked++
    if (this.refusals-- > 0) throw svcError('runtime.failed', 'it does not answer')
    await super.remove(id)
  }
}

interface Rig { readonly gateway: WireGateway, readonly runtime: ResistingRuntime, readonly clock: FakeClock }

/** A gateway whose slot serves. */
async function rig (t: Test): Promise<Rig> {
  const [clock, runtime] = [new FakeClock(), new ResistingRuntime()]
  t.teardown(() => runtime.destroy())
  const gateway = await wireGateway(t, { clock, runtime, plugins: [slotRoutes] })
  t.equal((await gateway.chat({})).status, 200)
  return { gateway, runtime, clock }
}

async function verb (gateway: WireGateway, what: string): Promise<unknown> {
  const answer = await gateway.fetch(`/api/slots/agent/${what}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
  return [answer.status, await answer.json()]
}

async function slot (gateway: WireGateway): Promise<unknown> {
  return await (await gateway.fetch('/api/slots/agent')).json()
}

t.test('an engine that refuses to go twice is told again until it is gone, and the unload says what was wrong', async t => {
  const { gateway, runtime, clock } = await rig(t)
  t.match(await verb(gateway, 'unload'), [502, { error: { code: 'runtime.failed', message: /it does not answer/ } }])
  t.match(await slot(gateway), { state: 'error', metadata: { message: /it does not answer/ } })
  await clock.advance(4_999)
  t.equal(runtime.asked, 1, 'not before its pause is over')
  await clock.advance(1)
  await until(() => runtime.asked === 2, 'it is told again')
  t.match(await slot(gateway), { state: 'error' }, 'it refuses once more')
  await clock.advance(9_999)
  t.equal(runtime.asked, 2, 'the pause grows')
  await clock.advance(1)
  await until(() => runtime.asked === 3, 'it is told a third time')
  await until(() => gateway.slots.status('agent').state === 'offline', 'it is gone')
  t.match(await slot(gateway), { state: 'offline', metadata: { message: /^$/ } })
  await clock.advance(600_000)
  t.equal(runtime.asked, 3, 'nothing is tried after that')
  t.equal((await gateway.chat({})).status, 200, 'and the next request starts another one')
})

t.test('nothing is told to an engine that resists once its slot was deleted or the gateway has stopped', async t => {
  for (const leave of [
    (gateway: WireGateway) => gateway.fetch('/api/slots/agent', { method: 'DELETE' }).then(() => {}),
    (gateway: WireGateway) => gateway.gateway.stop()
  ]) {
    const { gateway, runtime, clock } = await rig(t)
    runtime.refusals = Infinity
    await verb(gateway, 'unload')
    await leave(gateway)
    const { asked } = runtime
    await clock.advance(3_600_000)
    t.equal(runtime.asked, asked)
  }
})

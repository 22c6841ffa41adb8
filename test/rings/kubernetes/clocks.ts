import { existsSync, readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { api, chat } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { clusterHome, drains, endlessStream, loadError, NAMESPACE, podsOf, row, slotFile, slotOf, UP } from './slots.js'
import type { Cluster } from '../support/cluster.js'

const LIBRARIES = '/usr/lib'
const ENDLESS = slotFile({ model: 'endless', extra: '[server]\nextra_args = "--context-shift"\n' })

/** Two hours between the clock of the gateway and that of the cluster. Its monotonic one goes as it does. */
export async function disagree (t: Test, here: Cluster): Promise<void> {
  const library = readdirSync(LIBRARIES).map(name => join(LIBRARIES, name, 'faketime/libfaketime.so.1')).find(path => existsSync(path))
  if (library === undefined) {
    const skip = 'there is no libfaketime; run: test/engines/install-packages.sh clock'
    t.comment(`clocks that differ are not tried: ${skip}`)
    t.pass('skipped', { skip })
    return
  }
  const clock = join(t.testdir(), 'clock')
  const env = {
    LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_CACHE_DURATION: '1', DONT_FAKE_MONOTONIC: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1'
  }
  await row(t, here, 'a gateway that is two hours ahead', async t => {
    await writeFile(clock, '+2h')
    const { start } = await clusterHome(t, here, { endless: ENDLESS })
    const gateway = await start(env)
    const stream = await endlessStream(gateway)
    t.ok(await stream.grows())
    await here.kubectl('-n', NAMESPACE, 'delete', ...await podsOf(here), '--grace-period=1')
    t.equal(await drains(stream), false)
    await eventually('its end is told', async () => !UP.test((await slotOf(gateway, 'endless')).state))
    t.match(await chat(gateway.url, { model: 'endless', max_tokens: 5 }), { status: 200 }, 'and the next request brings another one')
    t.match(await api(gateway, 'POST', '/api/slots/endless/unload', { force: true }), { status: 200 })
    t.strictSame(await podsOf(here), [])
    t.match(gateway.log(), new RegExp(new Date(Date.now() + 7_200_000).toISOString().slice(0, 10)), 'by its own clock')
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
  await row(t, here, 'one that is two hours behind is told by the certificate, and goes on once its clock is set right', async t => {
    await writeFile(clock, '-2h')
    const { start } = await clusterHome(t, here, { agent: slotFile() })
    const gateway = await start(env)
    const { message, details: { reason } } = await loadError(gateway, 'agent')
    t.equal(reason, 'runtime.unavailable', 'the cluster cannot be opened')
    t.match(message, /CERT_NOT_YET_VALID.*; correct the clock of this machine/)
    t.strictSame(await podsOf(here), [])
    await writeFile(clock, '+0')
    await eventually('the next requests bring it up, without a load by hand', async () => (await chat(gateway.url, { max_tokens: 5 })).status === 200)
    t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })
    t.strictSame(await podsOf(here), [])
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
}

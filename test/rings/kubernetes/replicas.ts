import type { Test } from 'tap'
import { api, chat, type LiveGateway } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { clusterHome, drains, endlessStream, NAMESPACE, podsOf, slotFile, slotOf } from './slots.js'
import type { Cluster } from '../support/cluster.js'

/** One request fills an engine, and what waits brings up another one at once. */
const PAIR = 'max_replicas = 2\nworkers = 1\nscale_up_wait_s = 0\nscale_down_wait_s = 3600\n'
  + slotFile({ model: 'endless', extra: '[server]\nextra_args = "--context-shift"\n' })

/** A slot with several engines, each a pod of its own. */
export async function replicates (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, { endless: PAIR })
  let gateway = await start()
  const streams = [await endlessStream(gateway), await endlessStream(gateway)]
  t.strictSame(await statesOf(gateway), ['serving', 'serving'], 'the second request brings up a second engine')
  const pods = await podsOf(here)
  t.equal(pods.length, 2)
  for (const { grows } of streams) t.ok(await grows())

  await gateway.kill('SIGKILL')
  for (const stream of streams) t.equal(await drains(stream), false)
  gateway = await start()
  await eventually('both are adopted', async () => (await statesOf(gateway)).every(state => state === 'ready'))
  t.strictSame(await podsOf(here), pods, 'they are the ones of before')
  const [one, two] = [await endlessStream(gateway), await endlessStream(gateway)]
  t.strictSame(await statesOf(gateway), ['serving', 'serving'], 'each has one of two requests')
  t.strictSame(await podsOf(here), pods)

  await here.kubectl('-n', NAMESPACE, 'delete', pods[0]!, '--grace-period=1')
  const ended = await Promise.race([one, two].map(async stream => {
    await drains(stream)
    return stream
  }))
  const left = ended === one ? two : one
  t.ok(await left.grows(), 'the stream of the other goes on')
  const third = await endlessStream(gateway)
  const now = await podsOf(here)
  t.equal(now.length, 2, 'the next request brings up another one')
  t.ok(now.includes(pods[1]!) && !now.includes(pods[0]!))

  for (const { leave } of [left, third]) leave()
  t.match(await api(gateway, 'PUT', '/api/slots/endless/config', { scale_down_wait_s: 1 }), { status: 200 })
  await eventually('one goes, which is not needed', async () => (await statesOf(gateway)).toSorted().join() === 'offline,ready')
  t.equal((await podsOf(here)).length, 1)
  t.match(await chat(gateway.url, { model: 'endless', max_tokens: 5 }), { status: 200 })
  t.match(await api(gateway, 'POST', '/api/slots/endless/unload', { force: true }), { status: 200 })
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}

async function statesOf (gateway: LiveGateway): Promise<readonly string[]> {
  const { replicas } = await slotOf(gateway, 'endless') as unknown as { readonly replicas: ReadonlyArray<{ readonly state: string }> }
  return replicas.map(({ state }) => state)
}

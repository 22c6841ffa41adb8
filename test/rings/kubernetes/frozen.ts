import type { Test } from 'tap'
import { api, chat, type LiveGateway } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { clusterHome, drains, endlessStream, engineProcess, podAt, podsOf, slotFile, slotOf } from './slots.js'
import type { Cluster } from '../support/cluster.js'

interface Replica { readonly state: string, readonly port: number | null }

const PAIR = 'min_replicas = 2\nreplicas = 2\nworkers = 1\n' + slotFile({ model: 'endless', extra: '[server]\nextra_args = "--context-shift"\n' })

/** One of two engines is stopped by a signal, which the cluster does not see: its pod runs on. */
export async function freezes (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, { endless: PAIR })
  const gateway = await start()
  t.match(await api(gateway, 'PATCH', '/api/settings', { slots: { unresponsive_s: 10 } }), { status: 200 })
  t.match(await api(gateway, 'POST', '/api/slots/endless/load', {}), { status: 200 })
  await eventually('both are up', async () => (await replicasOf(gateway)).every(({ state }) => state === 'ready'))
  const pods = await podsOf(here)
  t.equal(pods.length, 2)
  const stream = await endlessStream(gateway)
  const busy = (await replicasOf(gateway)).find(({ state }) => state === 'serving')!
  const frozen = await podAt(here, busy.port!)
  process.kill(await engineProcess(here, frozen), 'SIGSTOP')
  const ended = drains(stream)
  for (let i = 0; i < 5; i++) t.match(await chat(gateway.url, { model: 'endless', max_tokens: 5 }), { status: 200 }, 'the other one answers')
  t.equal(await ended, false, 'the stream of the frozen one ends')
  await eventually('another engine is in its place', async () => {
    const now = await podsOf(here)
    const states = (await replicasOf(gateway)).map(({ state }) => state)
    return now.length === 2 && !now.includes(frozen) && states.every(state => state === 'ready')
  })
  t.ok((await podsOf(here)).includes(pods.find(pod => pod !== frozen)!), 'the other one is the one of before')
  const both = [await endlessStream(gateway), await endlessStream(gateway)]
  for (const { grows } of both) t.ok(await grows())
  for (const { leave } of both) leave()
  t.match(await api(gateway, 'POST', '/api/slots/endless/unload', { force: true }), { status: 200 })
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}

async function replicasOf (gateway: LiveGateway): Promise<readonly Replica[]> {
  return (await slotOf(gateway, 'endless') as unknown as { readonly replicas: readonly Replica[] }).replicas
}

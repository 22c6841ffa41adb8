import { join } from 'node:path'
import t from 'tap'
import { LABEL_INSTANCE, LABEL_SLOT } from '../../../kernel/contract/provider/engine-runtime.js'
import { eventually, realClock } from '../../kernel/runtime/support.js'
import { clusterOf, drive, HOME, quiet, specOf } from './driven-cluster.js'
import type { FakePod } from './fake-cluster.js'

t.test('a home that moves to another namespace or cluster takes its pods away from where they were, and no others', async t => {
  const root = t.testdir({ before: {}, after: {}, home: {} })
  const [before, after] = [await clusterOf(t, undefined, join(root, 'before')), await clusterOf(t, undefined, join(root, 'after'))]
  const folder = join(root, 'home')
  const first = await drive(t, before, {}, HOME, realClock, folder)
  const id = await first.runtime.create(specOf('chat'), quiet)
  await first.runtime.start(id, quiet)
  const neighbour = await drive(t, before, {}, 'that home')
  const theirs = await neighbour.runtime.create({ ...specOf('chat', 'that home') }, quiet)
  const forged: FakePod = structuredClone(before.pods.get(id)!)
  forged.metadata.name = 'svc-chat-0123456789ab'
  before.pods.set(forged.metadata.name, forged)
  await first.runtime.close()

  const again = await drive(t, before, {}, HOME, realClock, folder)
  t.match(await again.runtime.list({ [LABEL_INSTANCE]: HOME, [LABEL_SLOT]: 'chat' }), [{ id }], 'where it stays they are found again')
  await again.runtime.close()

  before.judge = () => ({ status: 503, message: 'away' })
  const moved = await drive(t, after, {}, HOME, realClock, folder)
  const told = /pods of this home may be left in namespace 'engines' of .*kubectl.* delete pods -l svc\.local\/instance=/
  await eventually('it is told', () => moved.log.lines.some(line => told.test(line)))
  t.match(moved.runtime.info.reason, /namespace 'engines'; pods of this home may be left/)
  t.ok(before.pods.has(id))
  await moved.runtime.close()

  before.judge = () => undefined
  const later = await drive(t, after, {}, HOME, realClock, folder)
  await eventually('they are gone', () => !before.pods.has(id))
  await eventually('nothing is left to tell', () => !later.runtime.info.reason.includes('may be left'))
  t.strictSame([...before.pods.keys()], [theirs, forged.metadata.name])
  const asked = before.requests.length
  await later.runtime.close()
  await (await drive(t, after, {}, HOME, realClock, folder)).runtime.close()
  t.equal(before.requests.length, asked, 'and it is not asked again')
})

t.test('a cluster with two addresses is one', async t => {
  const folder = t.testdir()
  const cluster = await clusterOf(t, undefined, folder)
  const first = await drive(t, cluster, {}, HOME, realClock, folder)
  const id = await first.runtime.create(specOf('chat'), quiet)
  await first.runtime.start(id, quiet)
  await first.runtime.close()
  const second = await drive(t, { kubeconfig: await cluster.alsoAt('localhost') }, {}, HOME, realClock, folder)
  await eventually('it was looked at', () => !second.runtime.info.reason.includes('may be left'))
  t.ok(cluster.pods.has(id), 'its pods are in use')
})

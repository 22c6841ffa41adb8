import t from 'tap'
import { until } from '../wire-gateway.js'
import { replicaGateway, type ReplicaGateway } from './replica-gateway.js'

interface Turn { readonly role: string, readonly content: string }

const begun = (word: string): Turn[] => [{ role: 'system', content: `You talk about ${word}. `.repeat(40) }, { role: 'user', content: word }]
const goneOn = (word: string): Turn[] => [...begun(word), { role: 'assistant', content: word }, { role: 'user', content: 'and then?' }]

/** Asks, and says which replica got it; the answer is left open. */
async function placed (
  gateway: ReplicaGateway, user: string, messages: readonly Turn[]
): Promise<{ index: number, answer: Promise<string> }> {
  const answer = gateway.ask(user, { messages })
  await until(() => [1, 2].some(index => gateway.asked(index).includes(user)), `${user} is at an engine`)
  return { index: gateway.asked(1).includes(user) ? 1 : 2, answer }
}

for (const [keys, where] of [['', 2], ['prefix_affinity = false\n', 1]] as const) {
  t.test(`a conversation goes ${where === 2 ? 'back to the replica that has its beginning' : 'to the idlest replica where that is switched off'}`, async t => {
    const gateway = await replicaGateway(t, `replicas = 2\nworkers = 8\n${keys}`)
    await gateway.slots.load('agent')
    const [tea, coffee] = [await placed(gateway, 'tea', begun('tea')), await placed(gateway, 'coffee', begun('coffee'))]
    t.strictSame([tea.index, coffee.index], [1, 2])
    gateway.finish('tea')
    gateway.finish('coffee')
    await Promise.all([tea.answer, coffee.answer])
    const next = await placed(gateway, 'more coffee', goneOn('coffee'))
    t.equal(next.index, where)
    gateway.finish('more coffee')
    await next.answer
  })
}

t.test('it goes elsewhere while that replica has three requests more than the other', async t => {
  const gateway = await replicaGateway(t, 'replicas = 2\nworkers = 8')
  await gateway.slots.load('agent')
  const indexes: number[] = []
  const answers: Array<Promise<string>> = []
  for (let i = 0; i < 6; i++) {
    const { index, answer } = await placed(gateway, `turn ${i}`, begun('tea'))
    indexes.push(index)
    answers.push(answer)
  }
  t.strictSame(indexes, [1, 1, 1, 2, 2, 2], 'and what was there last leads on from then')
  for (let i = 0; i < 6; i++) gateway.finish(`turn ${i}`)
  await Promise.all(answers)
})

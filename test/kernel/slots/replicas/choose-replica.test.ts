import t from 'tap'
import { chooseReplica, type FreeReplica } from '../../../../kernel/slots/replicas/choose-replica.js'
import { prefixKeys, PrefixPlaces, type PrefixSource } from '../../../../kernel/slots/replicas/prefix-places.js'
import { BodyView } from '../../../../kernel/dispatch/body/body-view.js'

const free = (...inFlight: readonly number[]): FreeReplica[] => inFlight.map((count, i) => ({ index: i + 1, inFlight: count }))
const chosen = (...args: Parameters<typeof chooseReplica>): number | null => chooseReplica(...args)?.index ?? null

t.test('the replica with the fewest requests gets the next one, and a conversation goes back unless that one is too busy', async t => {
  t.equal(chosen([], null), null)
  t.equal(chosen(free(2, 1, 3), null), 2)
  t.equal(chosen(free(1, 1, 1), null), 1)
  t.equal(chosen(free(0, 2, 0), 2), 2, 'two more than the idlest is in bounds')
  t.equal(chosen(free(0, 3, 0), 2), 1, 'three more is not')
  t.equal(chosen(free(0, 1), 3), 1, 'one that is not free does not count')
})

type Turn = { readonly role: string, readonly content: string }
const source = (messages: readonly Turn[], more: object = {}): PrefixSource =>
  BodyView.of(Buffer.from(JSON.stringify({ ...more, messages, temperature: 1 }))) as BodyView
const turn = (role: string, length: number, letter = 'x'): Turn => ({ role, content: letter.repeat(length) })

t.test('the beginnings of a conversation are found again when it goes on, whatever else its body says', async t => {
  const first = [turn('system', 2_000), turn('user', 400, 'a')]
  const next = [...first, turn('assistant', 300, 'b'), turn('user', 500, 'c')]
  const [one, two] = [prefixKeys(source(first, { model: 'm' })), prefixKeys(source(next, { seed: 5, stream: true, model: 'other' }))]
  t.ok(one.length >= 9, `${one.length} keys`)
  t.strictSame(two.slice(0, one.length - 1), one.slice(0, -1), 'all but the piece with the end of the list')
  t.strictSame(prefixKeys(source([turn('user', 10)])), [], 'a short one is worth nothing')
  t.strictSame(prefixKeys(BodyView.of(Buffer.from('{"model":"m"}')) as BodyView), [])
  t.ok(prefixKeys(source([turn('user', 20_000_000)])).length < 200, 'a body of 20 MB has as many keys as one of 1 MB')
})

t.test('the longest beginning tells the replica, and what is gone or was not used for longest is forgotten', async t => {
  const places = new PrefixPlaces(40)
  const system = turn('system', 1_000)
  const [a, b] = ['a', 'b'].map(letter => prefixKeys(source([system, turn('user', 1_000, letter)])))
  t.equal(places.find(a!), null)
  places.note(a!, 1)
  places.note(b!, 2)
  t.equal(places.find(a!), 1)
  t.equal(places.find(b!), 2)
  t.equal(places.find(prefixKeys(source([system, turn('user', 900, 'c')]))), 2, 'what they have in common was used there last')
  places.forget(2)
  t.equal(places.find(b!), null)
  for (let i = 0; i < 50; i++) places.note(prefixKeys(source([turn('user', 1_000, String.fromCharCode(65 + i))])), 3)
  t.ok(places.size <= 40)
  t.equal(places.find(a!), null, 'pushed out')
})

import t, { type Test } from 'tap'
import { lacking } from './support/clients.js'
import { startHindsight } from './support/hindsight-server.js'
import { bankAt, filledBank, type BankClient } from './support/memory-bank.js'
import { embeddedGateway } from './support/memory-gateway.js'

t.setTimeout(600_000)

type Differences = ReadonlyArray<readonly [line: RegExp, why: string]>

/** What an import in the other engine changes, and why that is meant. */
const outwards: Differences = [
  [/^lost memory Observation: .*\.entities /, 'a server gives observations their entities by itself, and has none of them right after an import'],
  [/^new memory Observation: .*\.entities \[""\]$/, 'the same']
]
const inwards: Differences = [
  [/^lost webhook .*\.enabled true$/, 'an archive from elsewhere must not make this engine call any address'],
  [/^new webhook .*\.enabled false$/, 'the same']
]

async function differences (from: BankClient, to: BankClient): Promise<readonly string[]> {
  const [before, after] = [await from.lines(), await to.lines()]
  const [had, has] = [new Set(before), new Set(after)]
  return [...before.filter(line => !has.has(line)).map(line => `lost ${line}`), ...after.filter(line => !had.has(line)).map(line => `new ${line}`)]
}

async function carried (t: Test, from: BankClient, to: BankClient, meant: Differences): Promise<void> {
  await to.restored(await from.exported())
  const found = await differences(from, to)
  t.same(found.filter(each => !meant.some(([line]) => line.test(each))), [], 'all of it arrives but for what is listed')
  t.same(meant.filter(([line]) => !found.some(each => line.test(each))), [], 'what is listed is so')
}

t.test('an archive of one engine is an import of the other', async t => {
  const server = await startHindsight()
  if (typeof server === 'string') {
    lacking(t, server)
    return
  }
  t.teardown(() => server.stop())
  const ours = `${await embeddedGateway(t, server)}/api/memory/hindsight`
  const [there, left] = [bankAt(server.url, 'there'), bankAt(ours, 'there')]
  await t.test('an embedded bank becomes one of a Hindsight server', async t => {
    await filledBank(ours, 'there')
    await carried(t, left, there, outwards)
  })
  await t.test('a bank of a Hindsight server becomes an embedded one', async t => {
    await filledBank(server.url, 'here')
    await carried(t, bankAt(server.url, 'here'), bankAt(ours, 'here'), inwards)
  })
  await t.test('a bank that goes there and comes back is what it was', async t => {
    const back = bankAt(ours, 'back')
    await carried(t, there, back, inwards)
    t.same((await differences(left, back)).filter(each => ![...outwards, ...inwards].some(([line]) => line.test(each))), [])
  })
})

import t, { type Test } from 'tap'
import type { Archive } from '../../plugins/services/memory-engine/transfer/archive.js'
import { readArchive } from '../../plugins/services/memory-engine/transfer/read-archive.js'
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

async function carried (t: Test, from: BankClient, to: BankClient, meant: Differences): Promise<Archive> {
  const archive = await from.exported()
  await to.restored(archive)
  const found = await differences(from, to)
  t.same(found.filter(each => !meant.some(([line]) => line.test(each))), [], 'all of it arrives but for what is listed')
  t.same(meant.filter(([line]) => !found.some(each => line.test(each))), [], 'what is listed is so')
  return await readArchive(archive)
}

async function named (base: string, alias: string): Promise<number> {
  const answer = await fetch(`${base}/v1/default/banks/there/aliases`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ alias })
  })
  await answer.body?.cancel()
  return answer.status
}

/** Which keys that the embedded engine has beyond the layout of the server have something in them. */
function ownKeys ({ documents, aliases }: Archive): object {
  const facts = documents.flatMap(document => document.facts)
  return {
    events: documents.some(({ events }) => events.length > 0), changes: facts.some(({ changes = [] }) => changes.length > 0),
    aliases: aliases.map(({ alias }) => alias)
  }
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
    for (const alias of ['home', 'house']) t.equal(await named(ours, alias), 201)
    t.match(ownKeys(await carried(t, left, there, outwards)), { events: true, changes: true, aliases: ['home', 'house'] })
    t.match(await (await fetch(`${server.url}/v1/default/banks/there/aliases`)).json(), { bank_id: 'there', aliases: { length: 0 } }, 'a server takes no names from it')
    t.same(ownKeys(await readArchive(await there.exported())), { events: false, changes: false, aliases: [] }, 'nor the keys that are ours alone')
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

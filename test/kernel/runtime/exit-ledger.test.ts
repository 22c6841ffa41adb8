import fc from '../../property.js'
import t from 'tap'
import { ExitLedger, type LedgerRow } from '../../../kernel/runtime/exit-ledger.js'

const row = (id: string, state: LedgerRow['state']): LedgerRow => ({ id, labels: { id }, state })
const list = (ledger: ExitLedger, ...rows: LedgerRow[]): string[] => ledger.listed(rows, ledger.beforeList()).map(news => news.id)

t.test('what had ended before anybody listened is no news', async t => {
  const ledger = new ExitLedger()
  t.same(list(ledger, row('old', 'exited'), row('live', 'running'), row('new', 'created')), [])
  t.same(list(ledger, row('old', 'exited'), row('live', 'running'), row('new', 'created')), [])
})

t.test('an event tells once, and a list after it tells nothing', async t => {
  const ledger = new ExitLedger()
  list(ledger, row('a', 'running'))
  t.equal(ledger.ended('a'), true)
  t.equal(ledger.ended('a'), false)
  t.same(list(ledger, row('a', 'exited')), [])
  t.same(list(ledger, row('a', 'running')), [], 'nor a list that is older than the event')
  t.same(list(ledger, row('a', 'exited')), [])
})

t.test('what ended in a gap is told by the list', async t => {
  const ledger = new ExitLedger()
  list(ledger, row('a', 'running'), row('b', 'running'))
  const news = ledger.listed([row('a', 'exited')], ledger.beforeList())
  t.same(news, [{ id: 'a', labels: { id: 'a' }, gone: false }, { id: 'b', labels: { id: 'b' }, gone: true }])
  t.equal(ledger.ended('a'), false, 'a late event is no second time')
  t.same(list(ledger), [])
})

t.test('what came and went in a gap is told too', async t => {
  const ledger = new ExitLedger()
  list(ledger)
  t.same(list(ledger, row('short', 'exited')), ['short'])
})

t.test('seen running elsewhere counts, even before the first list', async t => {
  const ledger = new ExitLedger()
  ledger.running('a', { id: 'a' })
  t.same(list(ledger, row('a', 'exited')), ['a'])
})

t.test('an event counts for one that the first list showed as ended', async t => {
  const ledger = new ExitLedger()
  list(ledger, row('a', 'exited'))
  t.equal(ledger.ended('a'), true)
})

t.test('a list cannot know of what starts while it is made', async t => {
  const ledger = new ExitLedger()
  list(ledger, row('a', 'created'))
  const before = ledger.beforeList()
  ledger.running('a', {})
  ledger.running('b', {})
  t.same(ledger.listed([row('a', 'exited')], before), [], 'neither its old state nor that it is not in it')
  t.same(list(ledger, row('a', 'exited')), ['a', 'b'])
})

t.test('started again, it ends again', async t => {
  const ledger = new ExitLedger()
  list(ledger, row('a', 'running'))
  ledger.ended('a')
  ledger.starting('a')
  t.same(list(ledger, row('a', 'exited')), [], 'its first end is not told again')
  ledger.running('a', {})
  t.equal(ledger.ended('a'), true)
})

t.test('whatever is late, doubled or lost: each end is told exactly once', async t => {
  const step = fc.constantFrom('start', 'end', 'event', 'list', 'stale', 'remove')
  fc.assert(fc.property(fc.array(fc.tuple(step, fc.nat(3)), { maxLength: 60 }), steps => {
    const ledger = new ExitLedger()
    const truth = new Map<string, LedgerRow['state']>()
    const ended: string[] = []
    const told: string[] = []
    const rows = (): LedgerRow[] => [...truth].map(([id, state]) => row(id, state))
    told.push(...list(ledger))
    let stale: { rows: LedgerRow[], before: ReadonlySet<string> } | null = null
    steps.forEach(([what, slot], index) => {
      const id = [...truth.keys()].at(-1 - slot)
      if (what === 'start') {
        truth.set(`e${index}`, 'running')
        ledger.running(`e${index}`, {})
      } else if (what === 'end' && id !== undefined && truth.get(id) === 'running') {
        truth.set(id, 'exited')
        ended.push(id)
      } else if (what === 'remove' && id !== undefined && truth.get(id) === 'exited') {
        truth.delete(id)
      } else if (what === 'event' && id !== undefined && truth.get(id) === 'exited' && ledger.ended(id)) {
        told.push(id)
      } else if (what === 'stale') {
        if (stale !== null) told.push(...ledger.listed(stale.rows, stale.before).map(news => news.id))
        stale = { rows: rows(), before: ledger.beforeList() }
      } else if (what === 'list') {
        told.push(...list(ledger, ...rows()))
      }
    })
    told.push(...list(ledger, ...rows()))
    t.same([...told].sort(), [...ended].sort())
  }), { numRuns: 300 })
})

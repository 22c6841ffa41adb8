import { Ledger } from '../../../plugins/services/agent-budgets/ledger.js'

/** Reserves and settles until it is killed, and writes a line for each reservation that was granted. Argument: the ledger. */
const ledger = await Ledger.open(process.argv[2]!)
const now = Date.UTC(2026, 10, 29, 12)
for (let i = 0; i < 100_000; i++) {
  const seq = ledger.add({
    kind: 'reserve', agent: 'pi', persona: 'pi', surface: 'chat', upstream: 'up', model: 'm', nano: 1000 + i, requestId: null
  }, now, () => {})
  process.stdout.write(`${seq}\n`)
  if (i % 3 !== 0) ledger.settle(seq, 500, { input: 1, output: 2 })
  await new Promise(resolve => { setImmediate(resolve) })
}

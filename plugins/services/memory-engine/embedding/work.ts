import type { Core } from '../core.js'
import { PermanentFailure, type Operation } from '../operations/operation.js'
import type { Run, Work } from '../operations/operation-queue.js'
import { embedIdentity } from '../recall/model-calls.js'
import { knownModel } from '../recall/vector-table.js'
import { findBank, type BankRow } from '../store/bank-table.js'
import { BATCH, embedBatch, pauseAfter } from './batch.js'
import { countWaiting, markCancelled, resumeCancelled, waitingIn } from './waiting.js'

/**
 * Gives all memories of a bank that wait for one a vector. A model that is away is waited for; when another one takes its place,
 * the work goes on with that.
 */
export function embeddingWork (core: Core): Work {
  return async (operation, run) => {
    // a cancelled operation has no payload: it was tried again by hand
    if (operation.payload === null) await resumeCancelled(core.store, bankOf(core, operation).seq, run.signal)
    const done = await embedAll(core, operation, run)
    run.commit(() => done)
  }
}

async function embedAll (core: Core, operation: Operation, run: Run): Promise<Readonly<Record<string, unknown>>> {
  const { store } = core
  let [embedded, total, failures] = [0, 0, 0]
  let begun: string | null = null
  for (;;) {
    const identity = embedIdentity(core)
    if (identity === null) throw new Error('nothing embeds now')
    const model = knownModel(store, identity)
    const bank = bankOf(core, operation)
    // an operation before this one may have been cancelled a moment ago
    await markCancelled(store, identity, model, run.signal)
    const batch = waitingIn(store, bank.seq, model, BATCH)
    if (batch.length === 0) return { embedded, model: identity }
    if (identity !== begun) total = embedded + countWaiting(store, bank.seq, model)
    begun = identity
    run.progress('embedding', embedded, Math.max(total, embedded + batch.length))
    try {
      embedded += await embedBatch(core, identity, bank.seq, batch, run.signal)
      failures = 0
    } catch (error) {
      run.signal.throwIfAborted()
      run.progress('waiting_for_model', embedded, total)
      core.log('info', 'memories wait for their vectors', { error: (error as Error).message, failures: ++failures })
      await changed(core, pauseAfter(failures), run.signal)
    }
  }
}

function bankOf (core: Core, { bankId }: Operation): BankRow {
  const bank = findBank(core.store, bankId)
  if (bank === undefined) throw new PermanentFailure(`Bank '${bankId}' not found`)
  return bank
}

/** Resolves when the pause is over or another model may be there. Rejects with the signal's reason. */
function changed ({ outside }: Core, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = (): void => {
      clearTimeout(timer)
      stop()
      signal.removeEventListener('abort', over)
      if (signal.aborted) reject(signal.reason as Error)
      else resolve()
    }
    const timer = setTimeout(over, ms)
    timer.unref()
    const stop = outside.onAbilities(over)
    signal.addEventListener('abort', over)
  })
}

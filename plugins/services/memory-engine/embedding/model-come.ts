import type { Core } from '../core.js'
import { ROWS_AT_ONCE } from '../store/slices.js'
import { turn } from '../store/turn.js'
import { takeInForOthers } from './cancelled.js'

interface Come {
  readonly identity: string
  readonly ready: Promise<void>
}

const models = new WeakMap<Core, Come>()

/** Resolves when this model may be asked for all that waits: what was refused or left out for another one is open again. */
export function modelCome (core: Core, identity: string): Promise<void> {
  const known = models.get(core)
  if (known?.identity === identity) return known.ready
  const come: Come = { identity, ready: prepare(core, identity) }
  models.set(core, come)
  come.ready.catch(() => {
    if (models.get(core) === come) models.delete(core)
  })
  return come.ready
}

async function prepare (core: Core, identity: string): Promise<void> {
  takeInForOthers(core, identity)
  await forgetRefusals(core)
}

/** Another model may take what the one before did not, and so may one that was seen to after a restart. */
async function forgetRefusals ({ store, closing }: Core): Promise<void> {
  const slice = `UPDATE memories SET embed_tries = 0 WHERE seq IN (SELECT seq FROM memories WHERE embed_tries > 0 LIMIT ${ROWS_AT_ONCE})`
  while (store.run(slice).changes === ROWS_AT_ONCE) {
    await turn()
    closing.throwIfAborted()
  }
}

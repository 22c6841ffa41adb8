import { openStore } from '../../../../../plugins/services/memory-engine/store/open.js'
import { databaseIn } from '../support.js'
import type { Series } from './series.js'
import { isIndexed, isSound, keepsWhatItNames } from './sound.js'
import { script } from './writes-script.js'

/** Requests that retain, edit and delete. */
export const writes: Series = {
  program: './writes-child.js',
  moreThan: 60,
  survives: (t, folder, said) => {
    const answered = said.filter(line => line.startsWith('answered')).length
    const store = openStore(databaseIn(folder))
    isSound(t, store)
    const found = store.all<{ line: string }>(
      `SELECT b.bank_id || ': ' || m.text AS line FROM memories m JOIN banks b ON b.seq = m.bank
       WHERE m.state = 'valid' ORDER BY 1`).map(({ line }) => line)
    // the request under way is done or not begun
    const possible = [answered === 0 ? [] : script[answered - 1]!.then, script[answered]?.then ?? []]
    t.ok(possible.some(lines => JSON.stringify(lines) === JSON.stringify(found)), `${answered} answered: ${found.join(', ')}`)
    isIndexed(t, store)
    keepsWhatItNames(t, store)
    store.close()
  }
}

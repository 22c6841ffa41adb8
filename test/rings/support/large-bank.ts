import { callsOf } from '../../bench/memory/memory-calls.js'
import { listed, mostOf, openOn, recalls, RETAINED, rss } from '../../bench/memory/memory-million.js'
import { createTexts } from '../../bench/memory/memory-texts.js'

/** What an engine did with a large bank, and how much memory its process took, in MiB. */
export interface LargeBank {
  readonly memories: number
  /** After the same recalls in a bank of one memory. */
  readonly before: number
  readonly recalled: number
  /** At most, while it was retained into and listed. */
  readonly most: number
  /** What a recall found first of what was just retained, and whether one found first what was there before and was asked for. */
  readonly found: readonly [string, boolean]
}

/*
 * Opens the database it is given, in a process of its own so that nothing else is counted, uses its bank `large` and prints what
 * came of that.
 */

const engine = openOn(process.argv[2]!)
const call = callsOf(engine)
const { sentence, item } = createTexts(4)
const first = async (query: string): Promise<string> => (await call('POST', 'large/memories/recall', { query })).body.results[0].text
await recalls(call, 'small', sentence)
const before = rss()
await recalls(call, 'large', sentence)
const recalled = rss()
let found: LargeBank['found'] = ['', false]
const most = await mostOf(async () => {
  await call('POST', 'large/memories', { items: [{ content: 'The zeppelin crosses Lake Ladoga.' }, ...Array.from({ length: RETAINED }, item)] })
  const { body: { items: [, old] } } = await call('GET', 'large/memories/list?limit=2&offset=50000')
  found = [await first('Which lake does the zeppelin cross?'), await first(old.text) === old.text]
  await recalls(call, 'large', sentence)
  await listed(call)
})
const { body: { total } } = await call('GET', 'large/memories/list?limit=1')
await engine.close()
process.stdout.write(JSON.stringify({ memories: total, before, recalled, most, found } satisfies LargeBank))

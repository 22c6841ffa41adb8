import type { Token } from 'node-llama-cpp'
import t from 'tap'
import { lookBackOf, RecentTokens } from '../../../../plugins/providers/llm-server/embedded/tokens/recent-tokens.js'

const MOST = lookBackOf(-1)
const token = (id: number): Token => id as Token

t.test('what is looked back is what was asked for, up to a bound', async t => {
  t.equal(lookBackOf(64), 64)
  t.equal(lookBackOf(0), 0)
  t.equal(lookBackOf(MOST + 1), MOST)
  t.ok(MOST > 0 && Number.isFinite(MOST))
})

t.test('the last tokens of a prompt and of the answer behind it are the same however long both are', async t => {
  for (const length of [0, 1, MOST - 1, MOST, MOST + 1, 3 * MOST]) {
    const recent = new RecentTokens(Array.from({ length }, (_, i) => token(i)))
    let next = length
    for (let told = 0; told <= 3 * MOST; told++) {
      if (told % 4099 === 0) {
        for (const count of [1, 64, MOST]) {
          const from = Math.max(0, next - count)
          t.strictSame(recent.last(count), Array.from({ length: next - from }, (_, i) => token(from + i)), `${count} of ${next}`)
        }
      }
      recent.push(token(next++))
    }
  }
})

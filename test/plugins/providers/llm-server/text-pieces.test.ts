import fc from '../../../property.js'
import t from 'tap'
import { integerRange, numberRange } from '../../../../plugins/providers/llm-server/embedded/grammar/number-range.js'
import { SlotPool } from '../../../../plugins/providers/llm-server/embedded/slot-pool.js'
import { StopScanner } from '../../../../plugins/providers/llm-server/embedded/tokens/stop-strings.js'
import { TokenText } from '../../../../plugins/providers/llm-server/embedded/tokens/token-text.js'

function scan (pieces: readonly string[], stops: readonly string[]): { shown: string[], stopped: boolean } {
  const scanner = new StopScanner(stops)
  const shown = pieces.map(piece => scanner.push(piece))
  return { shown: [...shown, scanner.stopped ? '' : scanner.flush()], stopped: scanner.stopped }
}

t.test('a stop string ends the text before it, in pieces too', async t => {
  const table: Array<[pieces: string[], stops: string[], shown: string[], stopped: boolean]> = [
    [['a', 'b'], [], ['a', 'b', ''], false],
    [['a', 'b'], [''], ['a', 'b', ''], false],
    [['one stop two'], ['stop'], ['one ', ''], true],
    [['one st', 'op two', 'three'], ['stop'], ['one ', '', '', ''], true],
    [['one st', 'age'], ['stop'], ['one ', 'stage', ''], false],
    [['one st'], ['stop'], ['one ', 'st'], false],
    [['aaab'], ['aab'], ['a', ''], true],
    [['aa', 'ab'], ['aab'], ['', 'a', ''], true],
    [['xabc'], ['b', 'abc'], ['xa', ''], true],
    [['xabc'], ['c', 'abc'], ['x', ''], true]
  ]
  for (const [pieces, stops, shown, stopped] of table) {
    t.same(scan(pieces, stops), { shown, stopped }, `${pieces.join('|')} until ${stops.join(',')}`)
  }
})

t.test('stop strings, whatever the text and the pieces', async t => {
  const letters = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 6 }).map(parts => parts.join(''))
  const stopList = fc.array(letters.filter(text => text !== ''), { minLength: 1, maxLength: 3 })
  fc.assert(fc.property(fc.array(letters, { maxLength: 8 }), stopList, (pieces, stops) => {
    const text = pieces.join('')
    const { shown, stopped } = scan(pieces, stops)
    const all = shown.join('')
    // nothing of a stop string, nothing invented, nothing lost
    if (stops.some(stop => all.includes(stop)) || !text.startsWith(all)) return false
    if (stopped ? !stops.some(stop => text.startsWith(stop, all.length)) : all !== text) return false
    // what was shown on the way never had to be taken back
    if (stopped && all !== scan([text], stops).shown.join('')) return false
    return stopped === stops.some(stop => text.includes(stop))
  }))
  t.pass('holds')
})

t.test('tokens that end within a character', async t => {
  const detokenize = (tokens: readonly number[]): string => Buffer.from(tokens).toString('utf8')
  // an engine writes U+FFFD for a character that is not complete, so a text that holds one cannot be told from it
  const whole = fc.string({ unit: 'grapheme', maxLength: 20 }).filter(text => !text.includes('\uFFFD'))
  fc.assert(fc.property(whole, text => {
    const tokens = new TokenText(detokenize)
    const pieces = [...Buffer.from(text)].map(byte => tokens.push(byte))
    const before = pieces.join('')
    return !before.includes('\uFFFD') && before + tokens.flush() === text
  }))
  const cut = new TokenText(detokenize)
  t.equal(cut.push(0xE6) + cut.push(0x9D) + cut.flush(), '', 'a character that is never completed is left out')
  const garbage = new TokenText(detokenize)
  const shown = Array.from({ length: 40 }, () => garbage.push(0xFF)).join('')
  t.ok(shown.length > 0, 'bytes that are no text do not wait forever')
})

t.test('free sequences go to the best fit, then in turn', async t => {
  const never = new AbortController().signal
  await t.test('the best idle one, then first come first served', async t => {
    const pool = new SlotPool(['a', 'b'])
    t.equal(await pool.acquire(never, slot => slot === 'b' ? 1 : 0), 'b')
    t.equal(await pool.acquire(never), 'a')
    const order: string[] = []
    const waiters = [1, 2].map(async n => order.push(`${n}${await pool.acquire(never)}`))
    t.equal(pool.waiting, 2)
    pool.release('a')
    pool.release('b')
    await Promise.all(waiters)
    t.same(order, ['1a', '2b'])
    t.equal(pool.busy, 2)
  })
  await t.test('a waiter who leaves takes no slot along', async t => {
    const pool = new SlotPool(['a'])
    await pool.acquire(never)
    const leaving = new AbortController()
    const gone = pool.acquire(leaving.signal)
    const next = pool.acquire(never)
    leaving.abort(new Error('gone'))
    await t.rejects(gone, { message: 'gone' })
    pool.release('a')
    t.equal(await next, 'a')
    await t.rejects(pool.acquire(leaving.signal), { message: 'gone' }, 'one who has left already gets nothing')
    pool.release('a')
    t.equal(pool.busy, 0)
  })
})

/** The alternatives of a number's grammar as a regular expression. */
function readable (range: string): RegExp {
  return new RegExp(`^(${range.replaceAll('fraction', '[.][0-9]{1,15}').replace(/["\s]/g, '')})$`)
}

t.test('a grammar of integers takes those between its bounds and no others', async t => {
  const near = fc.integer({ min: -120, max: 120 })
  const bound = fc.option(fc.oneof(near, fc.integer({ min: -1_000_000, max: 1_000_000 })), { nil: null })
  fc.assert(fc.property(bound, bound, fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 1 }), (min, max, steps) => {
    const range = integerRange(min, max)
    if (range === null) return min !== null && max !== null && min > max
    const values = steps.flatMap(step => [(min ?? 0) + step, (max ?? 0) + step, (min ?? 0) + step * 1117])
    const lies = (value: number): boolean => value >= (min ?? -Infinity) && value <= (max ?? Infinity)
    return values.every(value => readable(range).test(String(value)) === lies(value))
  }))
  t.ok(integerRange(null, null)!.length < 2000, 'and stays short')
})

t.test('a grammar of numbers takes fractions between whole bounds and none outside', async t => {
  const bound = fc.option(fc.integer({ min: -30, max: 30 }), { nil: null })
  fc.assert(fc.property(bound, bound, fc.integer({ min: -330, max: 330 }), (min, max, tenths) => {
    const range = numberRange(min, max)
    if (range === null) return min !== null && max !== null && min > max
    const value = tenths / 10
    return readable(range).test(value.toFixed(1)) || readable(range).test(String(value))
      ? value >= (min ?? -Infinity) && value <= (max ?? Infinity)
      : value < (min ?? -Infinity) || value > (max ?? Infinity)
  }))
  t.equal(numberRange(0.2, 0.8), null)
})

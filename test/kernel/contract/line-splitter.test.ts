import fc from '../../property.js'
import t from 'tap'
import { createLineSplitter } from '../../../kernel/contract/text/line-splitter.js'

function split (chunks: readonly Buffer[], maxLength?: number): string[] {
  const splitter = createLineSplitter(maxLength)
  return [...chunks.flatMap(chunk => splitter.push(chunk)), ...splitter.end()]
}

t.test('bytes are split into lines, whatever their line ends', async t => {
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    ['nothing', '', []],
    ['one line', 'a\n', ['a']],
    ['a last line without its end', 'a\nb', ['a', 'b']],
    ['empty lines', '\n\na\n', ['', '', 'a']],
    ['line ends of another system', 'a\r\nb\r\n', ['a', 'b']],
    ['a progress bar is one line', '1%\r2%\r3%\n', ['1%\r2%\r3%']]
  ]
  for (const [title, text, lines] of cases) t.same(split([Buffer.from(text)]), lines, title)
})

t.test('however the bytes are cut, the lines are the same', async t => {
  const text = fc.array(fc.constantFrom('a', 'ß', '漢', '🚀', '\n', '\r\n', ' '), { maxLength: 60 }).map(parts => parts.join(''))
  fc.assert(fc.property(text, fc.array(fc.nat(8), { maxLength: 80 }), (text, cuts) => {
    const bytes = Buffer.from(text)
    const chunks: Buffer[] = []
    let at = 0
    for (const cut of cuts) {
      chunks.push(bytes.subarray(at, at + cut))
      at += cut
    }
    chunks.push(bytes.subarray(at))
    const expected = text.split(/\r?\n/)
    if (expected.at(-1) === '') expected.pop()
    t.same(split(chunks), expected)
  }), { numRuns: 200 })
})

t.test('a long line comes in pieces, whole characters each', async t => {
  const line = '🚀'.repeat(25)
  for (const bytes of [1, 3, 7, 1000]) {
    const chunks = []
    const all = Buffer.from(`${line}\nnext\n`)
    for (let at = 0; at < all.length; at += bytes) chunks.push(all.subarray(at, at + bytes))
    const lines = split(chunks, 9)
    t.equal(lines.at(-1), 'next')
    t.equal(lines.slice(0, -1).join(''), line)
    t.ok(lines.every(piece => piece.length <= 9 && !/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/.test(piece)))
  }
})

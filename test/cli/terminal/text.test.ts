import t from 'tap'
import { readServerEvents, type ServerEvent } from '../../../cli/client/sse-reader.js'
import { tableLines } from '../../../cli/terminal/table.js'
import { processorMs } from '../../processor-time.js'
import { foldLines, harmless, oneLine, textWidth, truncate } from '../../../cli/terminal/text-width.js'

async function* inPieces (text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function eventsOf (text: string, size: number): Promise<ServerEvent[]> {
  const events: ServerEvent[] = []
  for await (const event of readServerEvents(inPieces(text, size))) events.push(event)
  return events
}

t.test('an event stream is read the same way however it is cut', async t => {
  const cases: ReadonlyArray<readonly [string, string, ReadonlyArray<Partial<ServerEvent>>]> = [
    ['one event', 'data: a\n\n', [{ event: 'message', data: 'a', id: null }]],
    ['no space after the colon, and only one space taken', 'data:a\n\ndata:  b\n\n', [{ data: 'a' }, { data: ' b' }]],
    ['comments', ': ping\n\ndata: a\n: more\n\n', [{ data: 'a' }]],
    ['several lines of data', 'data: a\ndata\ndata: b\n\n', [{ data: 'a\n\nb' }]],
    ['names and ids', 'event: state\nid: 7\ndata: {}\n\ndata: x\n\n', [{ event: 'state', data: '{}', id: '7' }, { event: 'message', id: '7' }]],
    ['CRLF', 'event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n', [{ event: 'e', data: 'a' }, { event: 'message', data: 'b' }]],
    ['CR alone, also as the very last byte', 'data: a\r\rdata: b\r\r', [{ data: 'a' }, { data: 'b' }]],
    ['characters of several bytes', 'data: grüße 🌍\n\n', [{ data: 'grüße 🌍' }]],
    ['a byte order mark', '\ufeffdata: a\n\n', [{ data: 'a' }]],
    ['an event without its blank line', 'data: a\n\ndata: lost\n', [{ data: 'a' }]],
    ['a name without data', 'event: x\n\ndata: a\n\n', [{ event: 'message', data: 'a' }]]
  ]
  for (const [name, text, expected] of cases) {
    for (const size of [1, 2, 3, 1000]) {
      const events = await eventsOf(text, size)
      t.equal(events.length, expected.length, `${name}, ${size} bytes at a time`)
      t.match(events, expected, `${name}, ${size} bytes at a time`)
    }
  }
})

t.test('text is measured and cut in columns of the terminal', async t => {
  for (const [text, width] of [['abc', 3], ['größe', 5], ['e\u0301', 1], ['日本', 4], ['👩‍👩‍👧', 2], ['', 0]] as const) {
    t.equal(textWidth(text), width, text)
  }
  t.equal(truncate('abcdef', 6), 'abcdef')
  t.equal(truncate('abcdef', 4), 'abc…')
  t.strictSame(['abcdef', 'größe', '日本'].map(text => truncate(text, 0)), ['', '', ''])
  t.equal(truncate('日本語日本語', 5), '日本…')
  t.equal(truncate('👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧', 3), '👩‍👩‍👧…')
})

t.test('a text is folded between words, and a word that is too long is not cut', async t => {
  t.same(foldLines('one two three', 7), ['one two', 'three'])
  t.same(foldLines('see /a/very/long/path now', 8), ['see', '/a/very/long/path', 'now'])
  t.same(foldLines('', 8), [''])
})

t.test('what comes from elsewhere cannot steer the terminal', async t => {
  t.equal(oneLine(' a\nb\u001b[2Jc\u009b1m '), 'a b [2Jc 1m')
  t.equal(harmless('a\n\tb\u001b[2J\rc'), 'a\n\tb[2Jc')
})

t.test('a table fits the width: flexible columns give way first', async t => {
  const rows = [
    { name: 'agent', model: 'a-very-long-model-name-that-nobody-can-remember-q4-k-m.gguf', note: 'n'.repeat(50) },
    { name: '日本', model: 'x', note: '' }
  ]
  const columns = [
    { title: 'NAME', cell: (row: typeof rows[0]) => row.name },
    { title: 'MODEL', cell: (row: typeof rows[0]) => row.model, flexible: true },
    { title: 'NOTE', cell: (row: typeof rows[0]) => row.note },
    { title: 'MORE', cell: () => 'm'.repeat(10), expendable: 1 }
  ]
  const lines = tableLines(columns, rows, 80)
  t.equal(lines.length, 3)
  for (const line of lines) t.ok(textWidth(line) <= 80, line)
  t.match(lines[1], /^agent {2}a-very\S*… {2}n{50}$/, 'names and notes are whole, what is expendable is gone')
  t.match(tableLines(columns, rows, 200)[1], 'remember-q4-k-m.gguf  nnn')
  const cell = async (length: number): Promise<number> => await processorMs(() => {
    t.ok(tableLines([{ title: 'ID', cell: (id: string) => id, flexible: true }], ['é'.repeat(length)], 80).every(line => textWidth(line) <= 80))
  })
  await cell(10_000)
  t.ok(await cell(1_000_000) < 20 + 20 * await cell(10_000), 'a cell of any length is measured up to where it is cut')
  t.ok(tableLines(columns, rows, 20).every(line => textWidth(line) <= 22), 'down to a width where nothing is left to give')
})

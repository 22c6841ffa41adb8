import assert from 'node:assert/strict'
import fc from '../../property.js'
import t from 'tap'
import { formBoundary } from '../../../kernel/contract/http/form.js'
import { FieldFinder, type FoundField } from '../../../kernel/dispatch/upload/field-finder.js'

interface Outcome {
  readonly field: FoundField | null
  readonly problem: string | null
  readonly done: boolean
}

function find (body: Buffer, boundary: string, cuts: readonly number[] = [], longestValue = 64): Outcome {
  const finder = new FieldFinder({ boundary, name: 'model', longestValue })
  let from = 0
  for (const cut of [...new Set(cuts)].filter(cut => cut > 0 && cut < body.length).sort((a, b) => a - b).concat(body.length)) {
    finder.push(body.subarray(from, cut))
    from = cut
  }
  return { field: finder.field, problem: finder.problem, done: finder.done }
}

const file = (content: string, headers = ''): string =>
  `Content-Disposition: form-data; name="file"; filename="a b.wav"\r\nContent-Type: audio/wav\r\n${headers}\r\n${content}`
const field = (name: string, value: string): string => `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`
const form = (boundary: string, ...parts: readonly string[]): Buffer =>
  Buffer.from(`${parts.map(part => `--${boundary}\r\n${part}\r\n`).join('')}--${boundary}--\r\n`, 'latin1')

t.test('a form, cut at every byte, at every pair of bytes, and into single bytes', async t => {
  const body = form('xyzB', file('RIFF\r\n--xyz not yet\r\n--xyzBx nor this\n--xyzB- nor this\r\n-'), field('model', 'whisper-1'), field('language', 'de'))
  const expected = { field: { value: 'whisper-1', start: body.indexOf('whisper-1'), end: body.indexOf('whisper-1') + 9 }, problem: null, done: true }
  for (let i = 0; i <= body.length; i++) assert.deepEqual(find(body, 'xyzB', [i]), expected, `cut at ${i}`)
  for (let i = 1; i < body.length; i += 3) {
    for (let j = i; j < body.length; j += 7) assert.deepEqual(find(body, 'xyzB', [i, j]), expected, `cut at ${i} and ${j}`)
  }
  t.same(find(body, 'xyzB', Array.from(body.keys())), expected)
})

const boundaryText = fc.string({ unit: fc.constantFrom(...'abXY019\'()+_,-./:=?'), minLength: 1, maxLength: 70 })
/** Content that is fond of looking like a boundary. */
const content = (boundary: string): fc.Arbitrary<Buffer> => fc.array(fc.oneof(
  fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.from(bytes)),
  fc.nat(boundary.length).map(n => Buffer.from(`\r\n--${boundary.slice(0, n)}`)),
  fc.constantFrom('\r', '\n', '\r\n', '-', '--').map(text => Buffer.from(text)),
  fc.constant(Buffer.from(`--${boundary}`)).map(text => Buffer.concat([Buffer.from('x'), text]))
), { maxLength: 8 }).map(parts => Buffer.concat(parts)).filter(bytes => !bytes.includes(`\n--${boundary}`))

const anyForm = boundaryText.chain(boundary => fc.record({
  boundary: fc.constant(boundary),
  preamble: fc.constantFrom('', '\r\n', 'This is a form.\r\n', '--\r\n\r\n'),
  padding: fc.constantFrom('', ' ', '\t '),
  epilogue: fc.constantFrom('', '\r\n', '\r\nmore\r\n'),
  before: fc.array(content(boundary), { maxLength: 3 }),
  after: fc.array(content(boundary), { maxLength: 2 }),
  value: fc.string({ unit: fc.constantFrom(...'abc-/: .é'), maxLength: 20 }),
  name: fc.constantFrom('Content-Disposition: form-data; name="model"', 'content-disposition:form-data;name=model',
    'CONTENT-DISPOSITION : Form-Data ; Name = "model"', 'Content-Type: text/plain\r\nContent-Disposition: form-data;\r\n name="model"'),
  cuts: fc.array(fc.nat(2000), { maxLength: 20 })
}))

t.test('whatever is around it, the field is found, and found where it is', async () => {
  fc.assert(fc.property(anyForm, ({ boundary, preamble, padding, epilogue, before, after, value, name, cuts }) => {
    const line = (last = ''): Buffer => Buffer.from(`--${boundary}${last}${last === '' ? padding : ''}\r\n`)
    const part = (headers: string, bytes: Buffer): Buffer => Buffer.concat([line(), Buffer.from(`${headers}\r\n\r\n`), bytes, Buffer.from('\r\n')])
    const head = Buffer.concat([Buffer.from(preamble), ...before.map(bytes => part('Content-Disposition: form-data; name="file"; filename*=UTF-8\'\'a', bytes))])
    const text = Buffer.from(value)
    const body = Buffer.concat([head, part(name, text), ...after.map(bytes => part('Content-Disposition: form-data; name="x"', bytes)), line('--'), Buffer.from(epilogue)])
    const start = head.length + line().length + name.length + 4
    assert.deepEqual(find(body, boundary, cuts).field, { value, start, end: start + text.length })
  }), { numRuns: 3000 })
})

t.test('the field of a form without it, or with a file of that name, is not found', async t => {
  for (const body of [form('B'), form('B', file('x')), form('B', field('models', 'a'), field('Model', 'b'), field('x', 'name="model"')),
    form('B', `Content-Disposition: form-data; name="model"; filename="model"\r\n\r\nwhisper`),
    form('B', `Content-Disposition: form-data; name="model"; FILENAME*=UTF-8''m\r\n\r\nwhisper`),
    form('B', `X-Content-Disposition: form-data; name="model"\r\n\r\nwhisper`),
    form('B', file(field('model', 'inside a file'), ''))]) {
    t.same(find(body, 'B'), { field: null, problem: null, done: true }, body.toString().slice(0, 80))
  }
  t.same(find(Buffer.from('--B\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhis'), 'B'), { field: null, problem: null, done: false }, 'a form that ends too soon')
  t.same(find(Buffer.from('--B--\r\n--B\r\nContent-Disposition: form-data; name="model"\r\n\r\nx\r\n--B--'), 'B').field, null, 'behind the end of the form')
})

t.test('of two fields the first counts; bare line feeds and empty values are taken', async t => {
  t.equal(find(form('B', field('model', 'one'), field('model', 'two')), 'B').field?.value, 'one')
  t.same(find(form('B', field('model', '')), 'B').field, { value: '', start: 53, end: 53 })
  t.equal(find(Buffer.from('--B\nContent-Disposition: form-data; name="model"\n\none\n--B--\n'), 'B').field?.value, 'one')
  t.equal(find(form('B', field('model', 'line\nfeed\r')), 'B').field?.value, 'line\nfeed\r', 'one line break in front of the boundary is the boundary\'s')
  t.equal(find(form('B', `Content-Disposition: form-data; name="mod\\el"\r\n\r\nquoted`), 'B').field?.value, 'quoted')
})

t.test('what cannot be read is refused before it is kept', async t => {
  const headers = find(Buffer.from(`--B\r\nX: ${'a'.repeat(20_000)}`), 'B', Array.from({ length: 40 }, (_, i) => i * 500))
  t.match(headers, { field: null, done: true, problem: /headers of a part are longer than 16384/ })
  t.match(find(form('B', `X: ${'a'.repeat(17_000)}\r\n${field('model', 'x')}`), 'B'), { problem: /headers of a part/ })
  t.match(find(form('B', field('model', 'a'.repeat(65))), 'B'), { field: null, problem: /'model' is longer than 64 bytes/ })
  t.match(find(Buffer.from(`--B\r\n${field('model', 'a'.repeat(5000))}`), 'B', Array.from({ length: 20 }, (_, i) => i * 100)), { problem: /longer than 64/ })
  t.equal(find(form('B', field('model', 'a'.repeat(64))), 'B').field?.value.length, 64)
})

t.test('large files cost little and nothing of them is kept', async t => {
  const finder = new FieldFinder({ boundary: 'a-boundary-of-some-length', name: 'model', longestValue: 64 })
  finder.push(Buffer.from(`--a-boundary-of-some-length\r\n${file('')}`))
  const chunk = Buffer.alloc(64 * 1024, '\r\n--a-boundary-of-some-')
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < 1600; i++) finder.push(chunk)
  t.ok(process.memoryUsage().arrayBuffers - before < 32 * 1024 * 1024, 'no piece is held')
  finder.push(Buffer.from(`\r\n--a-boundary-of-some-length\r\n${field('model', 'late')}\r\n--a-boundary-of-some-length--`))
  t.equal(finder.field?.value, 'late')
  t.ok(finder.field!.start > 100 * 1024 * 1024)
})

t.test('the boundary is read from a multipart content type, and only there', async t => {
  const cases: ReadonlyArray<readonly [type: string, boundary: string | null]> = [
    ['multipart/form-data; boundary=abc', 'abc'],
    ['Multipart/Form-Data;charset=utf-8; BOUNDARY="a b;c=d"', 'a b;c=d'],
    ['multipart/form-data; boundary="a\\"b"', 'a"b'],
    ['multipart/form-data;boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW', '----WebKitFormBoundary7MA4YWxkTrZu0gW'],
    ['multipart/form-data', null], ['multipart/form-data; boundary=', null], ['multipart/form-data; boundary=""', null],
    [`multipart/form-data; boundary=${'a'.repeat(201)}`, null], ['multipart/mixed; boundary=abc', null],
    ['multipart/form-dataX; boundary=abc', null], ['application/json', null], ['', null]
  ]
  for (const [type, boundary] of cases) t.equal(formBoundary(type), boundary, type)
})

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { formParts } from '../../../kernel/contract/index.js'

const TYPE = 'multipart/form-data; boundary=b-1'
const form = (...lines: readonly string[]): Buffer => Buffer.from(lines.join('\r\n'))

t.test('every part of a form comes out as it went in', async t => {
  const sent = new FormData()
  const files = [Buffer.alloc(0), Buffer.from('\r\n--'), Buffer.from('\r\n\r\n'), randomBytes(70_000)]
  sent.append('model', 'img')
  files.forEach((file, n) => sent.append('image[]', new Blob([new Uint8Array(file)], { type: 'image/png' }), `a ${n}.png`))
  sent.append('prompt', 'd\u00e9j\u00e0')
  const encoded = new Response(sent)
  const body = Buffer.from(await encoded.arrayBuffer())
  const parts = formParts(body, encoded.headers.get('content-type')!)
  t.strictSame(parts.map(({ name, filename, type }) => [name, filename, type]), [
    ['model', null, null], ...files.map((_, n) => ['image[]', `a ${n}.png`, 'image/png']), ['prompt', null, null]
  ])
  files.forEach((file, n) => t.ok(parts[n + 1]!.bytes.equals(file), `file ${n}`))
  t.equal(parts.at(-1)!.bytes.toString(), 'd\u00e9j\u00e0')
})

t.test('what stands around the parts, bare line feeds and names without quotes are taken', async t => {
  const plain = Buffer.from('before\n--b-1\ncontent-disposition: form-data; name=model\n\nimg\n--b-10\n--b-1--\nbehind')
  t.match(formParts(plain, TYPE).map(({ name, bytes }) => [name, bytes.toString()]), [['model', 'img\n--b-10']])
  t.same(formParts(form('--b-1--', ''), TYPE), [], 'a form of nothing')
})

t.test('a form that cannot be read says why', async t => {
  const part = ['--b-1', 'Content-Disposition: form-data; name="a"', '', 'x']
  const cases: ReadonlyArray<readonly [Buffer, string | undefined, string, RegExp]> = [
    [form(...part, '--b-1--'), 'application/json', 'request.unsupported_media_type', /application\/json/],
    [form(...part, '--b-1--'), undefined, 'request.unsupported_media_type', /without content type/],
    [form(...part, '--b-1--'), 'multipart/form-data', 'request.invalid_form', /boundary/],
    [Buffer.alloc(0), TYPE, 'request.invalid_form', /no part/],
    [form(...part), TYPE, 'request.invalid_form', /truncated/],
    [form('--b-1', 'Content-Disposition: form-data; name="a"'), TYPE, 'request.invalid_form', /truncated/],
    [form('--b-1', 'Content-Type: text/plain', '', 'x', '--b-1--'), TYPE, 'request.invalid_form', /no name/],
    [form('--b-1', `X: ${'y'.repeat(20_000)}`, '', 'x', '--b-1--'), TYPE, 'request.invalid_form', /headers of a part/],
    [form(...Array.from({ length: 1001 }, () => part).flat(), '--b-1--'), TYPE, 'request.invalid_form', /more than 1000 parts/]
  ]
  for (const [body, type, code, message] of cases) t.throws(() => formParts(body, type), { code, message }, `${code} ${message.source}`)
})

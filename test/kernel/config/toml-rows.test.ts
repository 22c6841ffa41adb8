import assert from 'node:assert/strict'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from '../../property.js'
import t from 'tap'
import { parseToml, type Table } from '../../../kernel/config/toml/toml-file.js'
import { patchRow, rowsOf, type RowChange } from '../../../kernel/config/toml/toml-rows.js'
import { openHome } from './support.js'

const FILE = `# my upstreams
# second line

# the main one
[[upstream]]
name = "one"   # its name
url = "http://a/v1"
auth_style = "none"

[upstream.model_filters]
include = ["a*"] # only these

# another, spare
[[upstream]]
name = "two"
url = "http://b/v1" # b
# end of two

# ---- rest ----

# the last
[[upstream]]
name = "three"
url = "http://c/v1"
`

function patched (text: string, change: RowChange): { text: string, rewrites: number } {
  let rewrites = 0
  return { text: patchRow(text, 'upstream', change, () => { rewrites++ }), rewrites }
}

const rows = rowsOf(parseToml(FILE), 'upstream') as readonly Table[]

t.test('one row is changed, and the other lines are the same', async t => {
  const cases: Array<[string, RowChange, string]> = [
    ['a value', { kind: 'set', index: 0, row: { ...rows[0], url: 'http://z/v1' } }, FILE.replace('http://a/v1', 'http://z/v1')],
    ['a new key', { kind: 'set', index: 1, row: { ...rows[1], enabled: false } }, FILE.replace('# b\n', '# b\nenabled = false\n')],
    ['a key of its table', { kind: 'set', index: 0, row: { ...rows[0], model_filters: { include: ['a*'], exclude: ['q'] } } },
      FILE.replace('# only these\n', '# only these\nexclude = [ "q" ]\n')],
    ['a key less', { kind: 'set', index: 0, row: { name: 'one', url: 'http://a/v1', model_filters: { include: ['a*'] } } }, FILE.replace('auth_style = "none"\n', '')],
    ['a table less', { kind: 'set', index: 0, row: { name: 'one', url: 'http://a/v1', auth_style: 'none' } },
      FILE.replace('\n[upstream.model_filters]\ninclude = ["a*"] # only these\n', '')],
    ['a new table', { kind: 'set', index: 1, row: { ...rows[1], model_filters: { exclude: ['x'] } } },
      FILE.replace('# end of two\n', '# end of two\n\n[upstream.model_filters]\nexclude = [ "x" ]\n')],
    ['the first goes', { kind: 'delete', index: 0 }, FILE.replace(/# the main one\n[^]*# only these\n\n/, '')],
    ['one in the middle goes, and the comment that is not its own stays', { kind: 'delete', index: 1 }, FILE.replace(/# another, spare\n[^]*# end of two\n\n/, '')],
    ['the last goes', { kind: 'delete', index: 2 }, FILE.replace(/\n# the last\n[^]*$/, '')],
    ['one more', { kind: 'add', row: { name: 'new', url: 'http://n', model_filters: { include: ['q'] } } },
      `${FILE}\n[[upstream]]\nname = "new"\nurl = "http://n"\n\n[upstream.model_filters]\ninclude = [ "q" ]\n`],
    ['nothing', { kind: 'set', index: 1, row: { ...rows[1] } }, FILE]
  ]
  for (const [name, change, wanted] of cases) {
    t.strictSame(patched(FILE, change), { text: wanted, rewrites: 0 }, name)
    const crlf = patched(FILE.replaceAll('\n', '\r\n'), change)
    t.strictSame(crlf, { text: wanted.replaceAll('\n', '\r\n'), rewrites: 0 }, `${name}, with the line ends of Windows`)
  }
})

t.test('files that are not written as rows, or not at all', async t => {
  const row = { name: 'n', url: 'u' }
  t.equal(patched('', { kind: 'add', row }).text, '[[upstream]]\nname = "n"\nurl = "u"\n')
  t.equal(patched('# mine\n\n\n', { kind: 'add', row }).text, '# mine\n\n[[upstream]]\nname = "n"\nurl = "u"\n')
  const only = patched('# mine\n\n[[upstream]]\nname = "n"\n', { kind: 'delete', index: 0 })
  t.strictSame(only, { text: '# mine\n', rewrites: 0 })
  const inline = 'upstream = [{ name = "a" }, { name = "b" }] # two\n'
  for (const change of [{ kind: 'add', row }, { kind: 'set', index: 1, row }, { kind: 'delete', index: 0 }] as const) {
    const wanted = change.kind === 'add' ? [{ name: 'a' }, { name: 'b' }, row] : change.kind === 'set' ? [{ name: 'a' }, row] : [{ name: 'b' }]
    t.strictSame(parseToml(patched(inline, change).text), { upstream: wanted }, change.kind)
  }
  t.strictSame(parseToml(patched('upstream = []\n', { kind: 'add', row }).text), { upstream: [row] })
})

const value = fc.constantFrom<unknown>('x', 'with "quotes" # and', '', 7, 2.5, true, ['p', 'q'], [], 'two\nlines')
const keys = ['url', 'auth_style', 'b-c', 'sp ace']
const table = fc.dictionary(fc.constantFrom(...keys), value, { maxKeys: 3, noNullPrototype: true })
const rowOf = fc.record({ name: fc.constantFrom('a', 'b', 'c'), ...{ rest: table, filters: fc.option(table, { nil: undefined }) } })
  .map(({ name, rest, filters }): Table => ({ name, ...rest, ...(filters === undefined ? {} : { model_filters: filters }) }))
const file = fc.record({
  rows: fc.array(rowOf, { maxLength: 4 }), comments: fc.array(fc.boolean(), { minLength: 1, maxLength: 9 }), crlf: fc.boolean()
})

/** Rows as a person would write them: with comments above, behind and between. */
function render (list: readonly Table[], comments: readonly boolean[], crlf: boolean): string {
  let text = ''
  let n = 0
  const comment = (line: string): string => comments[n++ % comments.length] === true ? line : ''
  list.forEach((row, i) => {
    text = patchRow(text, 'upstream', { kind: 'add', row }, () => {})
    const last = text.lastIndexOf('[[upstream]]')
    const header = `${comment(`# above ${i}.\n`)}[[upstream]]${comment(` # behind ${i}.`)}`
    text = `${text.slice(0, last)}${header}${text.slice(last + '[[upstream]]'.length)}${comment(`\n# between ${i}.\n`)}`
  })
  return crlf ? text.replaceAll('\n', '\r\n') : text
}

t.test('whatever is changed: the file says what was meant, and no comment of another row is lost', async t => {
  let rewrites = 0
  const runs = 3_000
  fc.assert(fc.property(file, rowOf, fc.nat(3), fc.constantFrom('add', 'set', 'delete'), ({ rows: list, comments, crlf }, row, at, kind) => {
    const text = render(list, comments, crlf)
    const before = rowsOf(parseToml(text), 'upstream')
    if (kind !== 'add' && before.length === 0) return
    const index = before.length === 0 ? 0 : at % before.length
    const change: RowChange = kind === 'add' ? { kind, row } : kind === 'set' ? { kind, index, row } : { kind: 'delete', index }
    const result = patchRow(text, 'upstream', change, () => { rewrites++ })
    const wanted = [...before] as Table[]
    if (change.kind === 'add') wanted.push(row)
    else if (change.kind === 'set') wanted[index] = row
    else wanted.splice(index, 1)
    assert.deepEqual(rowsOf(parseToml(result), 'upstream'), wanted)
    if (rewrites > 0) return
    for (const [comment, of] of text.matchAll(/# (?:above|behind) (\d+)\./g)) {
      if (Number(of) !== index || change.kind === 'add') assert.ok(result.includes(comment), `${comment} is gone from\n${result}`)
    }
    for (const [comment] of text.matchAll(/# between \d+\./g)) assert.ok(result.includes(comment) || change.kind === 'delete', `${comment} is gone`)
  }), { numRuns: runs })
  t.ok(rewrites < runs / 100, `${rewrites} of ${runs} were written anew`)
})

t.test('rows through the configuration service', async t => {
  const home = t.testdir({})
  const { config, log, paths } = await openHome(home, { 'upstreams.toml': `${FILE}\n[[upstream]]\nname = "bad"\nurl = 7\n`, 'providers.toml': '[[provider]]\ncatalog_id = "openai" # mine\n' })
  const text = (): Promise<string> => readFile(join(paths.etc, 'upstreams.toml'), 'utf8')
  const through = (key: 'upstreams' | 'providers') => ({
    create: (row: object) => config.change<unknown>(draft => draft[key].create({ ...row })),
    patch: (id: string, patch: object) => config.change<unknown>(draft => draft[key].patch(id, { ...patch })),
    delete: (id: string) => config.change<unknown>(draft => draft[key].delete(id))
  })
  const [upstreams, providers] = [through('upstreams'), through('providers')]
  const seen: string[][] = []
  config.onChange(next => { seen.push(next.upstreams.map(({ name }) => name)) })

  t.match(await upstreams.create({ name: 'four', url: 'http://d/v1', auth_header: null, retries: 2 }), { name: 'four', retries: 2, timeout_seconds: 300 })
  t.strictSame(seen.at(-1), ['one', 'two', 'three', 'four'])
  t.match(await text(), /url = 7\n\n\[\[upstream\]\]\nname = "four"\nurl = "http:\/\/d\/v1"\nretries = 2\n$/, 'a broken row stays as it is, and defaults are not written')
  t.match(await upstreams.patch('one', { model_filters: { exclude: ['z'] }, auth_style: null }), { auth_style: 'bearer', model_filters: { include: ['a*'], exclude: ['z'] } })
  await upstreams.patch('bad', { url: 'http://mended/v1' })
  t.strictSame(config.snapshot.upstreams.map(({ name }) => name), ['one', 'two', 'three', 'bad', 'four'], 'a broken row can be mended')
  await upstreams.delete('two')
  t.match(await text(), /# my upstreams[^]*# ---- rest ----/)
  t.match(await providers.patch('openai', { enabled: false, models: ['gpt'] }), { enabled: false })
  t.match(config.snapshot.providers, [{ catalog_id: 'openai', enabled: false, models: ['gpt'] }])
  t.match(await readFile(join(paths.etc, 'providers.toml'), 'utf8'), /openai" # mine\n/)

  const before = await text()
  const refusals: Array<[string, Promise<unknown>, object]> = [
    ['a second one', upstreams.create({ name: 'one', url: 'http://x' }), { code: 'upstream.already_exists', status: 409 }],
    ['renamed to another', upstreams.patch('one', { name: 'four' }), { code: 'upstream.already_exists' }],
    ['one that is not there', upstreams.patch('nope', {}), { code: 'upstream.not_found', status: 404 }],
    ['deleting it', upstreams.delete('nope'), { code: 'upstream.not_found' }],
    ['a bad value', upstreams.patch('one', { url: 'ftp://x', retries: 99 }), { code: 'validation.invalid', details: { fields: [{ path: 'url' }, { path: 'retries' }] } }],
    ['an unknown key', upstreams.create({ name: 'x', url: 'http://x', retrys: 1 }), { code: 'validation.unknown_keys', message: /retries\?/ }],
    ['no name', upstreams.create({ url: 'http://x' }), { code: 'validation.invalid' }],
    ['the gateway\'s own name', upstreams.create({ name: 'svc', url: 'http://x' }), { code: 'validation.invalid', message: /gateway's own name/ }],
    ['a change that fails later', config.change(async draft => {
      await draft.upstreams.create({ name: 'x', url: 'http://x' })
      throw new Error(`no: ${(await draft.upstreams.ids()).join(' ')}`)
    }), { message: 'no: one three bad four x' }]
  ]
  for (const [name, work, wanted] of refusals) t.match(await work.then(() => 'done', (error: unknown) => error), wanted, name)
  t.equal(await text(), before, 'nothing was written')
  t.strictSame(log.lines.filter(({ message }) => /comments are lost/.test(message)), [])

  await Promise.all(Array.from({ length: 8 }, (_, i) => upstreams.create({ name: `many-${i}`, url: 'http://x' })))
  t.equal(config.snapshot.upstreams.filter(({ name }) => name.startsWith('many-')).length, 8, 'writers wait for each other')
  await writeFile(join(paths.etc, 'upstreams.toml'), 'not toml')
  await t.rejects(upstreams.patch('one', { retries: 1 }), { code: 'config.parse_error', message: /upstreams\.toml/ })
  await writeFile(join(paths.etc, 'upstreams.toml'), FILE)
  if (process.getuid?.() !== 0) {
    await chmod(paths.etc, 0o500)
    await t.rejects(upstreams.delete('one'), { code: 'config.write_failed' })
    await chmod(paths.etc, 0o700)
  }
})

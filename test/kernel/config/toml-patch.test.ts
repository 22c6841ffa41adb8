import { isDeepStrictEqual } from 'node:util'
import { timesOfJson } from '../../processor-time.js'
import fc from '../../property.js'
import t from 'tap'
import { lineFinder } from '../../../kernel/config/toml/toml-index.js'
import { patchToml, stringifyToml } from '../../../kernel/config/toml/toml-patch.js'
import { isTable, parseToml, type Table } from '../../../kernel/config/toml/toml-file.js'

/** One `key = value` line of a generated file, with the comments that belong to it. */
interface Line { readonly key: string, readonly literal: string, readonly above: boolean, readonly trailing: boolean }
interface Section { readonly name: string, readonly about: boolean, readonly lines: readonly Line[] }
interface Document { readonly root: readonly Line[], readonly sections: readonly Section[], readonly crlf: boolean }

const keys = ['alpha', 'b-c', 'port', 'x_y', '"with.dot"', '"sp ace"']
const literals = [
  '1', '-7', '0x1F', '1_000', '1.5', '2.0', 'true', '"x"', '\'lit # eral\'', '"esc \\"q\\" \\n"', '[]', '["a", "b"]', '[1, 2, 3]',
  '[\n  "one",  # first\n  "two",\n]', '{ k = "v" }', '{ k = "v", l = 2 }', '1979-05-27', '1979-05-27T07:32:00Z', '"""\nmulti\nline"""'
]
const values: readonly unknown[] = [0, 42, 2.5, true, false, '', 'plain', 'with "quotes" and \\', [], ['p', 'q'], [1, 2], { inner: 'x' }]

const line = fc.record({
  key: fc.constantFrom(...keys), literal: fc.constantFrom(...literals), above: fc.boolean(), trailing: fc.boolean()
})
const lines = fc.uniqueArray(line, { maxLength: 4, selector: item => item.key })
const section = fc.record({ name: fc.constantFrom('model', 'server', 'npu', 'image'), about: fc.boolean(), lines })
const document: fc.Arbitrary<Document> = fc.record({
  root: lines, sections: fc.uniqueArray(section, { maxLength: 3, selector: item => item.name }), crlf: fc.boolean()
})
const edit = fc.record({
  place: fc.nat(3),
  kind: fc.constantFrom('set', 'add', 'delete'),
  index: fc.nat(5),
  key: fc.constantFrom('vision', 'new key', 'n.dot'),
  value: fc.constantFrom(...values)
})

function render ({ root, sections, crlf }: Document): string {
  let n = 0
  const renderLine = ({ key, literal, above, trailing }: Line): string[] => {
    const id = n++
    const comment = trailing && !literal.includes('\n') ? `  # trailing ${id}.` : ''
    return [...(above ? [`# above ${id}.`] : []), `${key} = ${literal}${comment}`]
  }
  const text = [
    '# header.', '', ...root.flatMap(renderLine),
    ...sections.flatMap(({ name, about, lines }) => [
      '', ...(about ? [`# about ${name}.`] : []), `[${name}]`, ...lines.flatMap(renderLine)
    ]),
    '', '# tail.', ''
  ].join('\n')
  return crlf ? text.replaceAll('\n', '\r\n') : text
}

/** Dates stay what the parser made of them. */
function copy (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy)
  return isTable(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copy(item)])) : value
}

type EditOf<A> = A extends fc.Arbitrary<infer T> ? T : never

/** Applies edits to the parsed file; tells which comments may go. */
function change (doc: Document, base: Table, edits: readonly EditOf<typeof edit>[]) {
  const next = copy(base) as Table
  const gone = new Set<number>()
  const offsets = doc.sections.reduce((at, { lines }) => [...at, at.at(-1)! + lines.length], [doc.root.length])
  for (const { place, kind, index, key, value } of edits) {
    const section = doc.sections[place - 1]
    const table = section === undefined ? next : next[section.name] as Table
    const own = section === undefined ? doc.root : section.lines
    const target = own[index]
    if (kind === 'add') table[key] = copy(value)
    if (target === undefined || kind === 'add') continue
    const name = target.key.replaceAll('"', '')
    const id = (section === undefined ? 0 : offsets[place - 1]!) + index
    // a table in the place of a value is another form, and takes the line of the value away
    if (kind === 'delete' || isTable(value)) gone.add(id)
    if (kind === 'delete') delete table[name]
    else if (Object.hasOwn(table, name)) table[name] = copy(value)
  }
  return { next, gone }
}

t.test('a patched file has exactly the intended values, and the comments of everything that stayed', async t => {
  let rewritten = 0
  let patched = 0
  fc.assert(fc.property(document, fc.array(edit, { minLength: 1, maxLength: 4 }), (doc, edits) => {
    const text = render(doc)
    const base = parseToml(text)
    const { next, gone } = change(doc, base, edits)
    let fallback = false
    const result = patchToml(text, next, () => { fallback = true })
    if (!isDeepStrictEqual(parseToml(result), next)) return false
    patched++
    if (fallback) { rewritten++; return true }
    const own = text.match(/# (above|trailing) (\d+)\./g) ?? []
    const kept = own.filter(comment => !gone.has(Number(/\d+/.exec(comment)![0])))
    const places = ['# header.', ...kept, '# tail.', ...(text.match(/# about \w+\./g) ?? [])].map(comment => result.indexOf(comment))
    return places.every(at => at !== -1)
  }), { numRuns: 600, seed: 20260101 })
  t.ok(rewritten <= patched / 100, `the patcher failed ${rewritten} of ${patched} times`)
})

const slot = `# Slot agent: main chat
name = "agent"       # must match the file
device = "gpu-rocm"  # AMD

# keep warm all day
idle_timeout_s = 0

# The model
[model]
default = "qwen" # the big one

[server]
extra_args = [
  "--foo",  # why foo
]
`

const cases: readonly { name: string, text: string, edit: (table: Table) => void, expect: string }[] = [
  {
    name: 'a changed value keeps its line',
    text: slot,
    edit: table => { table.device = 'npu' },
    expect: slot.replace('"gpu-rocm"  #', '"npu"       #')
  },
  {
    name: 'a new root key goes below the last one, not under the comment of the first table',
    text: slot,
    edit: table => { table.vision = false },
    expect: slot.replace('idle_timeout_s = 0\n', 'idle_timeout_s = 0\nvision = false\n')
  },
  {
    name: 'a root key in a file of tables goes above the comment of the first',
    text: '# header\n\n# about\n[model]\na = 1\n',
    edit: table => { table.vision = false },
    expect: '# header\n\nvision = false\n\n# about\n[model]\na = 1\n'
  },
  {
    name: 'a deleted key takes the comment above it along',
    text: slot,
    edit: table => { delete table.idle_timeout_s },
    expect: slot.replace('# keep warm all day\nidle_timeout_s = 0\n\n', '')
  },
  {
    name: 'a list keeps the comments of the entries that stay',
    text: slot,
    edit: table => { (table.server as Table).extra_args = ['--foo', '--bar'] },
    expect: slot.replace('# why foo\n', '# why foo\n  "--bar",\n')
  },
  { name: 'an empty file gets its first key', text: '', edit: table => { table.a = 1 }, expect: 'a = 1\n' },
  { name: 'a file without a last newline', text: 'a = 1', edit: table => { table.b = 'x' }, expect: 'a = 1\nb = "x"\n' },
  {
    name: 'line ends stay those of Windows',
    text: 'a = 1 # one\r\n\r\n[t]\r\nb = 2\r\n',
    edit: table => { table.c = 3; (table.t as Table).b = 4 },
    expect: 'a = 1 # one\r\nc = 3\r\n\r\n[t]\r\nb = 4\r\n'
  },
  {
    name: 'dotted keys and quoted keys',
    text: 'model.default = "x" # d\n\n[models."org/name.gguf"]\npath = "/a"\n',
    edit: table => { table.model = { default: 'y' }; (table.models as Table)['org/name.gguf'] = { path: '/b' } },
    expect: 'model.default = "y" # d\n\n[models."org/name.gguf"]\npath = "/b"\n'
  }
]

t.test('what a patched file looks like', async t => {
  for (const { name, text, edit, expect } of cases) {
    const next = parseToml(text)
    edit(next)
    t.equal(patchToml(text, next, reason => t.fail(reason)), expect, name)
  }
})

t.test('what cannot be changed in place is written anew, and it is said', async t => {
  const reasons: string[] = []
  // a JavaScript date never reads back as the same value, so no way of patching is ever right
  const result = patchToml('a = 1 # note\nb = 2\n', { a: new Date(0), b: 2 }, reason => reasons.push(reason))
  t.equal(result, 'a = 1970-01-01T00:00:00.000Z\nb = 2\n')
  t.equal(reasons.length, 1)
  t.equal(stringifyToml({}), '\n')
})

t.test('equal values leave the text alone, to the byte', async t => {
  t.equal(patchToml('a=1 #x\n\n\n', { a: 1 }, t.fail), 'a=1 #x\n\n\n')
})

t.test('the line of a key is found by its path', async t => {
  const find = lineFinder('a = 1\n[m]\n# c\nb.c = 2\n[[u]]\nx = 1\n[[u]]\nx = {\n y = 1 }\n')
  const table: readonly [string[], number | undefined][] = [
    [['a'], 1], [['m'], 2], [['m', 'b', 'c'], 4], [['m', 'zz'], 2], [['u', '0', 'x'], 6], [['u', '1', 'x', 'y'], 8], [['nope'], undefined]
  ]
  for (const [path, line] of table) t.equal(find(path), line, path.join('.'))
})

t.test('a change of many values costs what it is long', async t => {
  const wide = (value: number): Table => Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`k${i}`, value]))
  const hosts = Array.from({ length: 2_000 }, (_, i) => `host-${i}`)
  const cases: ReadonlyArray<readonly [string, Table, Table]> = [
    ['added', { a: 1 }, { a: 1, options: wide(1) }], ['changed', { options: wide(1) }, { options: wide(2) }],
    ['deleted', { a: 1, options: wide(1) }, { a: 1, options: {} }], ['a long list', { hosts, a: 1 }, { hosts: [...hosts, 'one-more'], a: 1 }],
    ['backslashes', { a: 'x' }, { a: '\\'.repeat(60_000) }]
  ]
  for (const [name, base, next] of cases) {
    let text = ''
    const times = await timesOfJson(() => { text = patchToml(stringifyToml(base), next, t.fail) })
    t.same(parseToml(text), next)
    t.ok(times < 30, `${name}: ${Math.round(times)} times a megabyte of JSON`)
  }
})

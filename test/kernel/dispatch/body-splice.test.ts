import assert from 'node:assert/strict'
import fc from '../../property.js'
import t from 'tap'
import { spliceBody } from '../../../kernel/dispatch/body/body-splice.js'
import { BodyView } from '../../../kernel/dispatch/body/body-view.js'
import { rewrittenBody } from '../../../kernel/dispatch/body/rewritten-body.js'

function viewOf (text: string): BodyView {
  const view = BodyView.of(Buffer.from(text))
  if (typeof view === 'string') throw new Error(`${view}: ${text}`)
  return view
}

const names = fc.constantFrom('model', 'omni', 'messages', 'stream', 'mo"del', 'mödel', 'a', '', '\\', 'x\u2028y')
const space = fc.constantFrom('', ' ', '\n', '\t ', '\r\n  ')

/** JSON text with free white space, escapes as the generator likes, and possibly duplicated keys. */
const objectText = fc.array(fc.record({
  key: fc.tuple(names, fc.boolean()).map(([name, escape]) => escape ? escapeAll(name) : JSON.stringify(name)),
  value: fc.jsonValue({ maxDepth: 4 }).map(value => JSON.stringify(value)),
  before: space,
  colon: space,
  after: space
}), { maxLength: 8 }).map(members => {
  const inner = members.map(m => `${m.before}${m.key}${m.colon}:${m.colon}${m.value}${m.after}`).join(',')
  return `${members[0]?.before ?? ''}{${inner === '' ? ' ' : inner}}${members[0]?.after ?? ''}`
})

function escapeAll (text: string): string {
  return `"${[...text].flatMap(c => c.split('')).map(c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`
}

t.test('an edited body parses to the edited object', async () => {
  fc.assert(fc.property(objectText, fc.boolean(), fc.boolean(), (text, set, drop) => {
    const edits = { ...(set ? { set: { model: 'new é " model', extra: { a: [1] } } } : {}), ...(drop ? { drop: ['omni', 'a'] } : {}) }
    const expected = JSON.parse(text) as Record<string, unknown>
    if (set) Object.assign(expected, { model: 'new é " model', extra: { a: [1] } })
    if (drop) for (const key of ['omni', 'a']) delete expected[key]
    const result = spliceBody(viewOf(text), edits).toString()
    assert.deepEqual(JSON.parse(result), expected)
  }), { numRuns: 2000 })
})

t.test('a body whose model alone changes is, byte for byte, what any other edit makes of it', async () => {
  fc.assert(fc.property(objectText, fc.constantFrom('m2', 'agent', 'new é " model', ''), fc.boolean(), (text, model, drops) => {
    const options = { surface: 'chat', path: '/', ...(drops ? { drop: ['omni', 'a'] } : {}) } as const
    const edited = spliceBody(viewOf(text), { set: { model }, drop: drops ? options.drop! : [] })
    assert.equal(rewrittenBody(viewOf(text), options, model, null).toString(), edited.toString())
  }), { numRuns: 1000 })
})

t.test('bytes outside the edited members stay', async t => {
  const text = '{ "model" : "agent" ,\n "messages":[{"content":"m\\u006fdel \\"model\\": 1"}], "temperature":0.10000000000000000001 }'
  t.equal(spliceBody(viewOf(text), { set: { model: 'm2' } }).toString(), text.replace('"agent"', '"m2"'))
  t.equal(spliceBody(viewOf(text), { set: { model: 'agent' } }).toString(), text, 'no edit, same text')
  const body = Buffer.from(text)
  const view = BodyView.of(body) as BodyView
  t.equal(spliceBody(view, { set: { model: 'agent' }, drop: ['nothing'] }), body, 'no edit, same buffer')
})

/** What `add` means, on parsed values: a request's own value wins, null is no value, objects merge. */
function withDefaults (given: unknown, fallback: unknown): unknown {
  if (given === undefined || given === null) return fallback
  if (!isObject(given) || !isObject(fallback)) return given
  const merged: Record<string, unknown> = { ...given }
  for (const [key, value] of Object.entries(fallback)) {
    const result = withDefaults(Object.hasOwn(given, key) ? given[key] : undefined, value)
    Object.defineProperty(merged, key, { value: result, enumerable: true, configurable: true, writable: true })
  }
  return merged
}

function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

t.test('what a body leaves open is added, objects are merged, and its own values win', async () => {
  const additions = fc.dictionary(names, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 })
  fc.assert(fc.property(objectText, additions, (text, add) => {
    const result = spliceBody(viewOf(text), { add }).toString()
    assert.deepEqual(JSON.parse(result), withDefaults(JSON.parse(text), JSON.parse(JSON.stringify(add))))
  }), { numRuns: 3000 })
})

t.test('additions touch nothing else, set wins over add, and undefined is skipped', async t => {
  const thinking = { chat_template_kwargs: { enable_thinking: true } }
  const added = (text: string): string => spliceBody(viewOf(text), { add: thinking }).toString()
  t.equal(added('{"a": 1.0}'), '{"chat_template_kwargs":{"enable_thinking":true},"a": 1.0}')
  t.equal(added('{"chat_template_kwargs" : { "x" : 1e0 } , "a":1}'), '{"chat_template_kwargs" : { "enable_thinking":true,"x" : 1e0 } , "a":1}')
  t.equal(added('{"chat_template_kwargs":{"enable_thinking":false}}'), '{"chat_template_kwargs":{"enable_thinking":false}}')
  t.equal(added('{"chat_template_kwargs":"text"}'), '{"chat_template_kwargs":"text"}')
  t.equal(added('{"chat_template_kwargs": null}'), '{"chat_template_kwargs": {"enable_thinking":true}}')
  const view = viewOf('{"voice":"","speed":2}')
  t.equal(spliceBody(view, { add: { speed: 1 } }), view.body, 'no change, same buffer')
  t.equal(spliceBody(view, { set: { voice: 'a' }, add: { voice: 'b', pitch: undefined }, drop: ['speed'] }).toString(), '{"voice":"a"}')
})

t.test('every occurrence of a duplicated key is edited', async t => {
  t.equal(spliceBody(viewOf('{"model":"a","model":"b","x":1}'), { set: { model: 'c' } }).toString(), '{"model":"c","model":"c","x":1}')
  t.equal(spliceBody(viewOf('{"omni":true,"x":1,"omni":false}'), { drop: ['omni'] }).toString(), '{"x":1}')
  t.equal(spliceBody(viewOf('{"omni":true,"omni":false}'), { drop: ['omni'] }).toString(), '{}')
})

t.test('the view sees what a parser sees', async t => {
  const view = viewOf('{"model":"first","stream":true,"m\\u006fdel":"last","n":null,"off":false,"deep":{"model":"no"}}')
  t.equal(view.string('model'), 'last')
  t.equal(view.isTrue('stream'), true)
  t.equal(view.isTrue('n'), false)
  t.same(['deep', 'stream', 'n', 'none', 'off'].map(key => view.isFalse(key)), [false, false, false, false, true])
  t.equal(view.string('deep'), null)
  t.strictSame(view.value('deep'), { model: 'no' })
  t.equal(view.value('absent'), undefined)
  t.strictSame(['model', 'n', 'absent', 'deep'].map(key => view.has(key)), [true, false, false, true], 'null says nothing')
  t.throws(() => viewOf('{"a":"\\x"}').value('a'), { code: 'request.invalid_json', param: 'a' }, 'the inside of a string is seen when it is read')
})

t.test('what is not a JSON object is told apart', async t => {
  const cases: Array<[string, string]> = [
    ['', 'empty'], ['   ', 'empty'], ['{', 'invalid_json'], ['{"a":1', 'invalid_json'], ['{"a"}', 'invalid_json'],
    ['{"a":1,}', 'invalid_json'], ['{,}', 'invalid_json'], ['{"a":[1,]}', 'invalid_json'], ['{"a":[}', 'invalid_json'],
    ['{"a":{"b" 1}}', 'invalid_json'], ['{"a":tru}', 'invalid_json'], ['{"a":01}', 'invalid_json'], ['{"a":1}x', 'invalid_json'],
    ['{"a":"open}', 'invalid_json'], ['model=agent', 'invalid_json'], ['{\'a\':1}', 'invalid_json'], ['{"a":{1:2}}', 'invalid_json'],
    ['{"a":1 "b":2}', 'invalid_json'], ['{"a":[1 2]}', 'invalid_json'], ['{"a":+1}', 'invalid_json'], ['{"a":-}', 'invalid_json'],
    ['[]', 'not_an_object'], ['"text"', 'not_an_object'], ['12', 'not_an_object'], ['null', 'not_an_object'], ['[1,', 'invalid_json'],
    ['\ufeff', 'empty'], ['\ufeff\ufeff{}', 'invalid_json'], ['{\ufeff}', 'invalid_json'], ['\ufeff[]', 'not_an_object']
  ]
  for (const [text, expected] of cases) t.equal(BodyView.of(Buffer.from(text)), expected, JSON.stringify(text))
})

t.test('what no request looks like is refused before it costs anything, however deep or wide it is', async t => {
  const deep = (levels: number, open = '[', close = ']'): string => `{"a":${open.repeat(levels)}${close === ']' ? '' : '1'}${close.repeat(levels)}}`
  t.notOk(typeof BodyView.of(Buffer.from(deep(1_000))) === 'string', 'a thousand levels')
  t.notOk(typeof BodyView.of(Buffer.from(deep(1_000, '{"b":', '}'))) === 'string')
  for (const [what, text] of [
    ['deeper', deep(1_001)], ['deeper, in objects', deep(1_001, '{"b":', '}')], ['never closed', `{"a":${'['.repeat(10_000_000)}`],
    ['a list', '['.repeat(10_000_000)], ['side by side', `{"a":[${'[],'.repeat(5_000_000)}[]]}`], ['24 MB of one key', `{${'"a":1,'.repeat(4_000_000)}"a":1}`]
  ] as const) t.equal(BodyView.of(Buffer.from(text)), 'too_complex', what)
  const wide = BodyView.of(Buffer.from(`{${'"omni":1,'.repeat(9_999)}"model":"x"}`)) as BodyView
  t.equal(spliceBody(wide, { drop: ['omni'] }).toString(), '{"model":"x"}')
  t.equal((BodyView.of(Buffer.from(`{"a":[${'12,'.repeat(4_000_000)}1]}`)) as BodyView).members.length, 1, 'numbers without end are the engine\'s to judge')
})

t.test('a byte order mark in front is not part of the body', async t => {
  const view = viewOf('\ufeff{"model":"x","omni":true}')
  t.equal(view.string('model'), 'x')
  t.equal(spliceBody(view, {}).toString(), '{"model":"x","omni":true}')
  t.equal(spliceBody(view, { set: { model: 'y' }, drop: ['omni'] }).toString(), '{"model":"y"}')
})

t.test('whatever JSON.parse takes as an object, the view takes; structure errors it refuses', async () => {
  fc.assert(fc.property(fc.oneof(fc.json({ maxDepth: 5 }), fc.string({ unit: fc.constantFrom(...'{}[],:"\\ 1tn') })), text => {
    let parsed: unknown
    let ok = true
    try { parsed = JSON.parse(text) } catch { ok = false }
    const view = BodyView.of(Buffer.from(text))
    if (!ok) {
      // strings are the engine's to judge: only a text whose strings are sound must be refused
      if (!text.includes('\\')) assert.equal(typeof view, 'string')
    } else if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) {
      assert.notEqual(typeof view, 'string')
    } else {
      assert.equal(view, 'not_an_object')
    }
  }), { numRuns: 5000 })
})

t.test('a string of 20 MB costs no parse', async t => {
  const image = 'A'.repeat(20 * 1024 * 1024)
  const text = `{"messages":[{"content":[{"image_url":"data:image/png;base64,${image}"}]}],"model":"agent"}`
  const result = spliceBody(viewOf(text), { set: { model: 'm' } })
  t.equal(result.length, text.length - 4)
  t.equal(result.subarray(-12).toString(), '"model":"m"}')
})

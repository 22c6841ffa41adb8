import fc from '../../property.js'
import t from 'tap'
import { timesOfJson } from '../../processor-time.js'
import { bodyChecksum, canonicalJson, portableArgs, portableFlags, redactLine, shellText, shellWords } from '../../../kernel/contract/index.js'

t.test('words survive being written as text', async () => {
  fc.assert(fc.property(fc.array(fc.string({ minLength: 1 })), words => {
    t.same(shellWords(shellText(words)), words)
  }), { numRuns: 300 })
})

t.test('flags that leave this host', async t => {
  const cases: ReadonlyArray<readonly [string, string, readonly string[]]> = [
    ['-fa on -b 512 -1 --temp 0.5', '-fa on -b 512 -1 --temp 0.5', []],
    ['--lora /home/me/a.gguf -fa on', '-fa on', ['--lora']],
    ['--lora=~/a.gguf --mmproj ../x --grammar-file ./g', '', ['--lora', '--mmproj', '--grammar-file']],
    ['--lora-scaled /a.gguf 0.5 --jinja', '--jinja', ['--lora-scaled']],
    ['-ot "blk.*=CPU,x=/dev/y"', '', ['-ot']],
    ['--api-key abc --api-key-file k --hf-token x --token y --password=z --client-secret s', '',
      ['--api-key', '--api-key-file', '--hf-token', '--token', '--password', '--client-secret']],
    ['--max-tokens 5 --special-tokens --tokenizer x --keep 3 --authored 1', '--max-tokens 5 --special-tokens --tokenizer x --keep 3 --authored 1', []],
    ['--override sk-abcdefgh1234 --rpc http://user:pw@host/x', '', ['--override', '--rpc']],
    ['--model-url https://host/a/b.gguf', '--model-url https://host/a/b.gguf', []],
    ['/bare/path -fa on', '-fa on', ['a value without a flag']],
    ['--open "quote', '', ['flags with an open quote']]
  ]
  for (const [text, flags, omitted] of cases) t.same(portableFlags(text), { flags, omitted }, text)
  t.same(portableArgs(['--a', '1', '--b=/x', '--c']), { words: ['--a', '1', '--c'], omitted: ['--b'] })
  t.equal(portableFlags('-fa   on').flags, '-fa   on', 'what may leave as it is keeps its spelling')
})

t.test('what looks for secrets costs what the text is long', async t => {
  const texts = ['-', '--', 'a-', 'a.', '://', 'a://', 'KEY', '/', ' -a'].map(part => part.repeat(50_000 / part.length))
  for (const text of texts) {
    const times = await timesOfJson(() => { portableFlags(text); redactLine(text) })
    t.ok(times < 15, `${text.slice(0, 8)}: ${Math.round(times)} times a megabyte of JSON`)
  }
})

t.test('checksums look at content, not at form', async t => {
  t.equal(canonicalJson({ b: [{ d: 1, c: null }], a: 'x' }), '{"a":"x","b":[{"c":null,"d":1}]}')
  const body = { b: 1, a: { d: [1, 2], c: 'x' } }
  t.equal(bodyChecksum(body), bodyChecksum({ a: { c: 'x', d: [1, 2], e: null }, b: 1, f: null }))
  t.not(bodyChecksum(body), bodyChecksum({ ...body, b: 2 }))
  t.not(bodyChecksum(body), bodyChecksum({ ...body, a: { d: [2, 1], c: 'x' } }), 'the order of a list counts')
  t.match(bodyChecksum(body), /^sha256:[0-9a-f]{64}$/)
})

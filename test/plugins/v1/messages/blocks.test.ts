import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { MessageEvents } from '../../../../plugins/v1/messages/chat-events.js'

interface Piece {
  readonly of: number | 'text' | 'thinking'
  readonly said: string
}

interface Block {
  readonly type: string
  readonly id?: string
  said: string
}

const END = { reason: 'stop', stop: null, usage: { input: 1, output: 1, cached: 0, reasoning: 0 }, times: null }

function write (events: MessageEvents, { of, said }: Piece): void {
  if (typeof of === 'number') events.call(of, `call_${of}`, 'go', said)
  else if (of === 'text') events.text(said)
  else events.reasoning(said)
}

/** The blocks of a stream. Throws for a delta that does not lie between its own start and stop. */
function blocksOf (text: string): Block[] {
  const blocks: Block[] = []
  let open = -1
  for (const event of text.split('\n\n').slice(0, -1)) {
    const said = JSON.parse(event.slice(event.indexOf('data: ') + 6)) as Record<string, unknown>
    if (said.type === 'content_block_start') {
      assert.equal(open, -1)
      open = blocks.length
      const { type, id } = said.content_block as { type: string, id?: string }
      blocks.push({ type, ...id === undefined ? {} : { id }, said: '' })
    } else if (said.type === 'content_block_delta') {
      const { text: word, thinking, partial_json: json } = said.delta as Record<string, string>
      blocks[open]!.said += word ?? thinking ?? json ?? ''
    }
    if ('index' in said) assert.equal(said.index, open)
    if (said.type === 'content_block_stop') open = -1
  }
  assert.equal(open, -1)
  return blocks
}

t.test('whatever an engine mixes, each block has its pieces between its start and its stop, and nothing is lost', t => {
  const key = fc.oneof(fc.string(), fc.constantFrom('{', '}', '"', '\\', '\\"}', ']')).filter(name => name !== '__proto__')
  const args = fc.oneof(
    { weight: 6, arbitrary: fc.dictionary(key, fc.jsonValue()).map(value => JSON.stringify(value)) },
    { weight: 1, arbitrary: fc.constantFrom('', '{"a', '"{') }
  )
  const call = fc.record({ args, cuts: fc.array(fc.nat(), { maxLength: 4 }) })
  const word = fc.record({ of: fc.constantFrom('text' as const, 'thinking' as const), said: fc.string({ minLength: 1 }) })
  const answer = [fc.array(call, { maxLength: 4 }), fc.array(word, { maxLength: 6 }), fc.infiniteStream(fc.nat())] as const
  fc.assert(fc.property(...answer, (calls, words, order) => {
    const waiting: Piece[][] = calls.map(({ args: whole, cuts }, of) => {
      const marks = [0, ...cuts.map(cut => cut % (whole.length + 1)).sort((a, b) => a - b), whole.length]
      return marks.slice(1).map((mark, i) => ({ of, said: whole.slice(marks[i], mark) }))
    })
    waiting.push([...words])
    const events = new MessageEvents('m')
    events.begin(null)
    const begun: number[] = []
    while (waiting.some(({ length }) => length > 0)) {
      const left = waiting.filter(({ length }) => length > 0)
      const piece = left[order.next().value! % left.length]!.shift()!
      if (typeof piece.of === 'number' && !begun.includes(piece.of)) begun.push(piece.of)
      write(events, piece)
    }
    events.end(END)
    const blocks = blocksOf(events.take()!.toString())
    const uses = blocks.filter(({ type }) => type === 'tool_use')
    assert.deepEqual(uses.map(({ id, said }) => [id, said]), begun.map(of => [`call_${of}`, calls[of]!.args]))
    const texts = (kind: string, all: ReadonlyArray<{ said: string }>): string => `${kind}${all.map(({ said }) => said).join('')}`
    for (const kind of ['text', 'thinking']) {
      assert.equal(texts(kind, blocks.filter(({ type }) => type === kind)), texts(kind, words.filter(({ of }) => of === kind)))
    }
  }), { numRuns: 500 })
  t.end()
})

t.test('a call is told while it is written, and the next one as soon as its arguments are whole', t => {
  const events = new MessageEvents('m')
  const seen = (piece: Piece): string => {
    write(events, piece)
    return events.take()?.toString() ?? ''
  }
  events.begin(null)
  events.take()
  t.match(seen({ of: 0, said: '{"a":' }), /"partial_json":"\{\\"a\\":"/)
  t.equal(seen({ of: 1, said: '{"b":' }), '')
  t.equal(seen({ of: 'text', said: 'so' }), '')
  t.match(seen({ of: 0, said: '1}' }), /content_block_stop.*content_block_start.*"id":"call_1".*"partial_json":"\{\\"b\\":"/s)
  t.match(seen({ of: 1, said: '2}' }), /content_block_stop.*"text_delta","text":"so"/s)
  t.match(seen({ of: 'text', said: '!' }), /"text":"!"/)
  t.equal(seen({ of: 0, said: ' \n' }), '', 'space behind arguments says nothing')
  t.throws(() => seen({ of: 0, said: '{}' }), { code: 'dispatch.upstream_failed' })
  t.end()
})

t.test('what is held beside a call that is not over has a limit', t => {
  const events = new MessageEvents('m')
  events.begin(null)
  events.call(0, 'a', 'go', '{')
  const piece = 'x'.repeat(1024 * 1024)
  for (let i = 0; i < 31; i++) events.text(piece)
  t.throws(() => { for (let i = 0; i < 2; i++) events.text(piece) }, { code: 'dispatch.upstream_failed' })
  const many = new MessageEvents('m')
  many.begin(null)
  many.call(0, 'a', 'go', '{')
  t.throws(() => { for (let i = 0; i < 200_000; i++) write(many, { of: i % 2 === 0 ? 'text' : 'thinking', said: '.' }) }, { code: 'dispatch.upstream_failed' })
  t.end()
})

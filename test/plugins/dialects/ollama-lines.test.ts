import t from 'tap'
import { chatForm, OllamaAnswer } from '../../../plugins/dialects/ollama/talk/answer.js'
import { isoTime } from '../../../plugins/dialects/ollama/talk/line-frame.js'

void t.test('the time of a line is what a date says of it, in any order of times', async t => {
  const times = [0, 1, 999, 1000, -1, -1000, 1_700_000_000_000, 1_700_000_000_007, 1_700_000_000_990.7, 1_699_999_999_999]
  for (const ms of [...times, ...times.reverse()]) t.equal(isoTime(ms), new Date(Math.floor(ms)).toISOString())
})

void t.test('each line of a stream is JSON that names the model as it was asked for, and its own time', async t => {
  let now = 1_700_000_000_000
  const clock = { now: () => now, monotonic: () => now }
  const answer = new OllamaAnswer({ model: 'a "quoted" one\n', form: chatForm, clock, startedAt: now, isCold: false }, true)
  const lines: Array<Record<string, unknown>> = []
  const took = (): void => { lines.push(...answer.take()!.toString().trimEnd().split('\n').map(line => JSON.parse(line) as Record<string, unknown>)) }
  answer.text('one')
  took()
  now += 1234
  const bytes = Buffer.from('"\\"two\\""')
  t.equal(answer.json('text', bytes, 1, bytes.length - 1), true)
  took()
  answer.end({ reason: 'stop', stop: null, usage: { input: 3, output: 2, cached: 0, reasoning: 0 }, times: null })
  took()
  t.same(lines.map(({ model }) => model), Array(3).fill('a "quoted" one\n'))
  t.same(lines.map(({ created_at: at }) => at), ['2023-11-14T22:13:20.000Z', '2023-11-14T22:13:21.234Z', '2023-11-14T22:13:21.234Z'])
  t.same(lines.map(({ message }) => (message as { content: string }).content), ['one', '"two"', ''])
  t.same(lines.map(({ done }) => done), [false, false, true])
})

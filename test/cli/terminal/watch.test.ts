import t, { type Test } from 'tap'
import { changes, fitted, overdrawn } from '../../../cli/terminal/watch.js'
import { fakeApi, FakeProcess, refuse, run, type FakeApi } from '../support.js'

const request = {
  id: 'req-1', model: 'agent', slot: 'agent', upstream: null, phase: 'loading', reason: `slot 'agent' is warming ${'x'.repeat(100)}`,
  started_at: '2026-01-01T00:00:00.000Z', age_ms: 400, bytes_in: 99, bytes_out: 0, tokens: 0
}

/** Answers with one list after the other, and stays at the last one. */
async function inTurn (t: Test, ...lists: ReadonlyArray<readonly object[] | null>): Promise<FakeApi> {
  let turn = 0
  const fake = await fakeApi({
    'GET /api/requests': (_request, response) => {
      const list = lists[Math.min(turn++, lists.length - 1)]!
      if (list === null) refuse(response, 503, 'plugin.unavailable', 'it fell')
      else response.end(JSON.stringify({ requests: list }))
    }
  })
  t.teardown(() => fake.close())
  return fake
}

t.test('a terminal is drawn over until Ctrl-C', async t => {
  const fake = await inTurn(t, [request], [{ ...request, phase: 'streaming', reason: null }], [])
  const process = new FakeProcess({ tty: true, columns: 60, env: { NO_COLOR: '1' } })
  const finished = process.run('ps', '--watch', '--interval', '0.1', '--url', fake.url)
  await process.shows('stdout', 'No requests are in flight.')
  process.send('SIGINT')
  t.match(await finished, { code: 130, stderr: /^$/ })
  const [first, second, third] = process.stdout.text.split('\u001b[J')
  t.match(first, /^\rID +MODEL .*\u001b\[K\nreq-1 .*loading.*\u001b\[K\nreq-1: slot 'agent' is warming x+…\u001b\[K\n$/)
  t.match(second, /^\u001b\[3A\rID .*\u001b\[K\nreq-1 .*streaming/, 'over the three lines before')
  t.match(third, /^\u001b\[2A\rNo requests are in flight\.\u001b\[K\n$/)
})

t.test('elsewhere whatever changes is a line', async t => {
  const fake = await inTurn(t, [request], [request], [{ ...request, phase: 'streaming', reason: null }], [], null)
  const { code, stdout, stderr } = await run(['ps', '-w', '--interval', '0.1', '--url', fake.url])
  t.equal(code, 1)
  t.match(stderr, /it fell \(plugin\.unavailable\)/, 'it ends with the gateway')
  t.notMatch(stdout, '\u001b')
  const lines = stdout.trimEnd().split('\n').map(line => line.replace(/^\d{4}-\S+Z /, ''))
  t.match(lines, [/^req-1 agent agent loading slot 'agent' is warming/, /^req-1 agent agent streaming$/, /^req-1 is over$/])
  t.equal(lines.length, 3, 'what stays the same is told once')
})

t.test('invalid combinations of --watch options are refused', async t => {
  t.match(await run(['ps', '--watch', '--json']), { code: 2, stderr: /cannot be used with/ })
  t.match(await run(['ps', '--watch', '--interval', '0']), { code: 2, stderr: /must be at least 0\.1/ })
})

t.test('a view is drawn over its last state, and cut to the terminal', t => {
  t.equal(overdrawn(['a', 'b'], 0), '\ra\u001b[K\nb\u001b[K\n\u001b[J')
  t.equal(overdrawn([], 3), '\u001b[3A\r\u001b[J')
  t.same(fitted(['a', 'b', 'c', 'd'], 5), ['a', 'b', 'c', 'd'])
  t.same(fitted(['a', 'b', 'c', 'd'], 4), ['a', 'b', '… and 2 more lines'])
  t.same(fitted(['a', 'b'], null), ['a', 'b'])
  t.same(changes(new Map([['a', '1'], ['b', '1']]), new Map([['b', '2'], ['c', '3']])), ['a is over', '2', '3'])
  t.end()
})

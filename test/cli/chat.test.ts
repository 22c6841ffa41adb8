import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { bin, fakeApi, FakeProcess, refuse, run, spawnSvc, sse, type Answer, type FakeApi } from './support.js'

const CHAT = 'POST /v1/chat/completions'

function chunk (delta: object, finish: string | null = null): string {
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
}

async function chatApi (t: Test, answer: Answer): Promise<FakeApi> {
  const fake = await fakeApi({ [CHAT]: answer })
  t.teardown(() => fake.close())
  return fake
}

const hello: Answer = (_request, response) => {
  sse(response).end(`: warming\n\n${chunk({ role: 'assistant', content: '' })}${chunk({ reasoning_content: 'Greet.' })}` +
    `${chunk({ content: 'Hel' })}${chunk({ content: 'lo \u001b[2J🌍' })}${chunk({}, 'stop')}data: [DONE]\n\n`)
}

t.test('an answer is streamed to standard output, without the reasoning', async t => {
  const fake = await chatApi(t, hello)
  const { code, stdout, stderr } = await run(['chat', 'hi', '--system', 'be kind', '--max-tokens', '9', '--temperature', '0.5', '-v', '--url', fake.url])
  t.equal(code, 0)
  t.equal(stdout, 'Hello \u001b[2J🌍\n', 'what is piped on is what the model said')
  t.match(stderr, /^3 tokens, .*first after \d/)
  t.same(fake.seen[0]!.body, {
    model: 'agent', stream: true, stream_options: { include_usage: true }, max_tokens: 9, temperature: 0.5,
    messages: [{ role: 'system', content: 'be kind' }, { role: 'user', content: 'hi' }]
  })
  await run(['chat', 'hi', '-s', 'coder', '--url', fake.url])
  t.match(fake.seen[1]!.body, { model: 'coder' })
  await run(['chat', 'hi', '-s', 'coder', '-m', 'svc/utility', '--url', fake.url])
  t.match(fake.seen[2]!.body, { model: 'svc/utility' })
})

t.test('on a terminal the reasoning is dim and the model cannot steer it', async t => {
  const { url } = await chatApi(t, hello)
  const { stdout } = await run(['chat', 'hi', '--url', url], { tty: true })
  t.equal(stdout, '\u001b[2mGreet.\u001b[0m\n\nHello [2J🌍\n')
})

t.test('the prompt may come from standard input', async t => {
  const fake = await chatApi(t, hello)
  const process = new FakeProcess()
  process.stdin.end('why?\n')
  t.equal((await process.run('chat', '--url', fake.url)).code, 0)
  t.match(fake.seen[0]!.body, { messages: [{ role: 'user', content: 'why?\n' }] })
  const silent = new FakeProcess()
  silent.stdin.end('\n')
  t.equal((await silent.run('chat', '--url', fake.url)).code, 2)
})

t.test('--no-stream prints the whole answer, and --json prints what the API sends', async t => {
  const answer = { id: 'c', choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }] }
  const whole = await chatApi(t, answer)
  t.equal((await run(['chat', 'hi', '--no-stream', '--url', whole.url])).stdout, 'Hello\n')
  t.equal((await run(['chat', 'hi', '--no-stream', '--json', '--url', whole.url])).stdout, `${JSON.stringify(answer, null, 2)}\n`)
  t.notOk('stream' in (whole.seen[0]!.body as object))
  const { url } = await chatApi(t, hello)
  const lines = (await run(['chat', 'hi', '--json', '--url', url])).stdout.trimEnd().split('\n')
  t.equal(lines.length, 5)
  t.match(JSON.parse(lines[2]!), { choices: [{ delta: { content: 'Hel' } }] })
})

t.test('a reader that has seen enough ends it quietly, also while more is to be written', async t => {
  const fake = await chatApi(t, (_request, response) => {
    const stream = sse(response)
    const more = (): void => { while (!stream.destroyed && stream.write(chunk({ content: 'x'.repeat(1000) }))); }
    stream.on('drain', more)
    more()
  })
  const command = `"${process.execPath}" "${bin}" chat --json hello --url ${fake.url} 2>&1 | head -1`
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { timeout: 300_000 })
  t.equal(stdout.split('\n').length, 2)
  t.match(JSON.parse(stdout), { object: 'chat.completion.chunk' })
})

t.test('failures exit 1 and keep what was said so far', async t => {
  const cases: ReadonlyArray<readonly [string, Answer, string, RegExp]> = [
    ['an error event', (_request, response) => {
      sse(response).end(`${chunk({ content: 'Hel' })}event: error\ndata: {"error":{"code":"slot.stopped","message":"was unloaded","details":{}}}\n\n`)
    }, 'Hel\n', /^Error: the answer broke off: was unloaded \(slot\.stopped\)\n$/],
    ['a stream that ends too early', (_request, response) => { sse(response).end(chunk({ content: 'Hel' })) }, 'Hel\n', /ended early/],
    ['a connection that breaks', (_request, response) => {
      sse(response).write(chunk({ content: 'Hel' }), () => response.destroy())
    }, 'Hel\n', /the connection was lost/],
    ['a refusal', (_request, response) => refuse(response, 404, 'model.not_found', 'no model is named agent'), '', /^Error: no model is named agent \(model\.not_found\)/],
    ['something else than a stream', {}, '', /not an event stream/]
  ]
  for (const [name, answer, stdout, stderr] of cases) {
    const { url } = await chatApi(t, answer)
    const finished = await run(['chat', 'hi', '--url', url])
    t.match(finished, { code: 1, stdout, stderr }, name)
  }
  const { url } = await chatApi(t, (_request, response) => { sse(response).end(chunk({ content: 'all' }, 'stop')) })
  t.equal((await run(['chat', 'hi', '--url', url])).code, 0, 'an engine may leave out the last line')
})

t.test('with --verbose, a question that is refused has no figures of an answer', async t => {
  const { url } = await chatApi(t, (_request, response) => refuse(response, 404, 'model.not_found', 'no model is named nosuch'))
  for (const more of [[], ['--no-stream']]) {
    t.match(await run(['--verbose', 'chat', '-m', 'nosuch', 'hi', ...more, '--url', url]), {
      code: 1, stdout: /^$/, stderr: /^POST \S+ -> HTTP 404\nError: no model is named nosuch \(model\.not_found\)\n$/
    })
  }
})

t.test('Ctrl-C on the real program closes the connection and exits 130', async t => {
  const fake = await chatApi(t, (_request, response) => { sse(response).write(chunk({ content: 'Once upon a time\n' })) })
  for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]] as const) {
    const svc = spawnSvc(['chat', 'tell me a story', '--url', fake.url])
    t.teardown(() => svc.child.kill('SIGKILL'))
    t.equal(await svc.firstLine, 'Once upon a time')
    svc.child.kill(signal)
    t.match(await svc.finished, { code, stdout: 'Once upon a time\n', stderr: /^$/ })
    await fake.seen.at(-1)!.left
  }
})

t.test('a conversation: turns, a cancelled answer, a refused question, the end', async t => {
  let turn = 0
  const fake = await chatApi(t, (_request, response) => {
    turn += 1
    if (turn === 2) sse(response).write(chunk({ content: 'I will go on for ever' }))
    else if (turn === 3) refuse(response, 503, 'slot.loading', 'not yet')
    else sse(response).end(`${chunk({ content: `answer ${turn}` }, 'stop')}data: [DONE]\n\n`)
  })
  const process = new FakeProcess({ tty: true, env: { NO_COLOR: '1' } })
  const finished = process.run('chat', '--url', fake.url)
  process.stdin.write('first\r')
  await process.shows('stdout', 'answer 1\n')
  process.stdin.write('second\r')
  await process.shows('stdout', 'go on for ever')
  process.stdin.write('\u0003')
  await process.shows('stderr', '(cancelled)')
  await fake.seen[1]!.left
  process.stdin.write('third\r')
  await process.shows('stderr', 'not yet (slot.loading)')
  process.stdin.write('  \rfourth\r')
  await process.shows('stdout', 'answer 4\n')
  t.same((fake.seen[3]!.body as { messages: unknown }).messages, [
    { role: 'user', content: 'first' }, { role: 'assistant', content: 'answer 1' },
    { role: 'user', content: 'second' }, { role: 'assistant', content: 'I will go on for ever' },
    { role: 'user', content: 'fourth' }
  ])
  process.stdin.write('\u0004')
  t.equal((await finished).code, 0)
})

t.test('Ctrl-C at the prompt of a conversation ends it, and so does a second one during an answer', async t => {
  const idle = new FakeProcess({ tty: true })
  const left = idle.run('chat', '--url', 'http://127.0.0.1:9')
  await idle.shows('stderr', '>')
  idle.stdin.write('\u0003')
  t.equal((await left).code, 130)
  const { url } = await chatApi(t, (_request, response) => { sse(response).write(chunk({ content: 'Hm' })) })
  const busy = new FakeProcess({ tty: true })
  const stopped = busy.run('chat', '--url', url)
  busy.stdin.write('q\r')
  await busy.shows('stdout', 'Hm')
  busy.send('SIGINT')
  busy.send('SIGINT')
  t.equal((await stopped).code, 130)
})

t.test('under npm, which passes Ctrl-C on, one press counts once', async t => {
  const { url } = await chatApi(t, (_request, response) => { sse(response).write(chunk({ content: 'Hm' })) })
  const busy = new FakeProcess({ env: { npm_lifecycle_event: 'npx' } })
  const stopped = busy.run('chat', 'q', '--url', url)
  await busy.shows('stdout', 'Hm')
  busy.send('SIGINT')
  busy.send('SIGINT')
  t.equal((await stopped).code, 130)
  t.same(busy.exits, [], 'the command ended by itself')
})

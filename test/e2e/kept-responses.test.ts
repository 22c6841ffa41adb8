import t from 'tap'
import { createFakeEngine } from '../../kernel/testing/index.js'
import { chat, speaking } from '../wire/format/dialect-engines.js'
import { upstreamTable } from '../wire/fake-upstream.js'
import { until } from '../wire/wire-gateway.js'
import { liveHome, startLive } from './live-gateway.js'
import { openai } from './text-surfaces.js'

t.setTimeout(600_000)

t.test('every response that a client saw complete is there after a kill -9 in that moment', async t => {
  const upstream = await createFakeEngine()
  t.teardown(() => upstream.close())
  const answer = speaking({ '/chat/completions': chat }, ['gpt-9'], { error: { message: 'Invalid URL' } })
  upstream.answer(request => request.body.includes('forever') ? { headAfterMs: Infinity } : answer(request))
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n',
    'etc/svc/upstreams.toml': upstreamTable('far', `${upstream.origin}/v1`)
  })
  const first = await startLive(t, home)
  const { responses } = openai(first.url)
  const question = { model: 'far/gpt-9', input: 'hi' }
  const whole = await responses.create(question)
  const deleted = await responses.create(question)
  await responses.delete(deleted.id)
  const working = await responses.create({ ...question, input: 'forever', background: true })
  await until(() => upstream.active > 0, 'it is being made')
  let streamed = ''
  try {
    for await (const event of await responses.create({ ...question, previous_response_id: whole.id, stream: true })) {
      if (event.type !== 'response.completed') continue
      streamed = event.response.id
      await first.kill('SIGKILL')
      break
    }
  } catch (error) {
    // the end of the stream may have died with the gateway
    if (streamed === '') throw error
  }

  const second = await startLive(t, home)
  const again = openai(second.url).responses
  for (const id of [whole.id, streamed]) t.match(await again.retrieve(id), { id, status: 'completed', output: [{ type: 'message' }] })
  t.match(await again.retrieve(working.id), { status: 'failed', error: { message: /the gateway stopped/ } })
  t.match(await again.retrieve(deleted.id).catch((error: unknown) => error), { status: 404 })
  t.equal((await again.inputItems.list(streamed)).data.length, 3)
  t.equal((await again.create({ ...question, previous_response_id: streamed })).status, 'completed')
  t.equal(await second.kill('SIGTERM'), 0)
})

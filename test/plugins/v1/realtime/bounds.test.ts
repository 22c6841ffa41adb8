import t from 'tap'
import { fakeSlot } from '../audio/support.js'
import { until } from '../../../wire/wire-gateway.js'
import { pcmOf, wavHead } from '../../providers/audio/sound.js'
import { asked, bytesIn, hears, realtimeGateway, says, silence, sound } from './support.js'

const MIB = 1024 * 1024
const manual = { type: 'session.update', session: { type: 'realtime', audio: { input: { turn_detection: null } } } }
const message = (text: string): object => ({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] } })

t.test('what is said without an end is bounded: refused where the client tells turns, cut where the gateway does', async t => {
  const gateway = await realtimeGateway(t)
  await gateway.slots.load('stt')
  gateway.runtime.engine('stt').answer(hears(''))
  const client = await gateway.open()
  client.send(manual)
  const [still, loud] = [JSON.stringify(silence(50)), JSON.stringify(sound(50))]
  for (let i = 0; i < 3; i++) client.send(still)
  t.match(await client.next('error'), { error: { code: 'realtime.full', param: 'audio', message: /commit or clear/ } })
  client.send({ type: 'input_audio_buffer.clear' })
  await client.next('input_audio_buffer.cleared')

  const talker = await gateway.open()
  talker.send({ type: 'session.update', session: { type: 'realtime', audio: { input: { transcription: {} } } } })
  for (let i = 0; i < 3; i++) talker.send(loud)
  await talker.next('input_audio_buffer.speech_stopped')
  const { usage } = await talker.next('conversation.item.input_audio_transcription.completed') as unknown as { usage: { seconds: number } }
  t.ok(usage.seconds > 120 && usage.seconds < 200, `${usage.seconds} s`)
})

t.test('items, their parts and their text are bounded', async t => {
  const gateway = await realtimeGateway(t)
  const client = await gateway.open()
  for (let i = 0; i < 3; i++) client.send(message('x'.repeat(3 * MIB)))
  t.match(await client.next('error'), { error: { code: 'realtime.full', message: /8 MiB of text/ } })
  const parts = await gateway.open()
  const content = Array.from({ length: 70_000 }, () => ({ type: 'input_text', text: '' }))
  for (let i = 0; i < 2; i++) parts.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
  t.match(await parts.next('error'), { error: { code: 'realtime.full' } })
  const items = await gateway.open()
  for (let i = 0; i < 1_025; i++) items.send(message('x'))
  t.match(await items.next('error'), { error: { code: 'realtime.full', message: /1024 items/ } })
  items.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
  items.send({ type: 'response.create' })
  await items.next('conversation.item.deleted')
  t.match(await items.next('response.done'), { response: { status: 'completed' } }, 'an answer makes room for itself')
  items.socket.send('x'.repeat(5 * MIB))
  t.equal(await items.closed, 1009)
})

t.test('names, ids and notes of items count as their text does', async t => {
  const gateway = await realtimeGateway(t)
  const long = 'x'.repeat(3 * MIB)
  const [call, output] = [{ type: 'function_call', name: 'now', arguments: '{}' }, { type: 'function_call_output', call_id: 'call_1', output: '' }]
  const image = { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: long }
  const items = [{ ...call, name: long }, { ...call, call_id: long }, { ...output, call_id: long }, { type: 'message', role: 'user', content: [image] }]
  for (const item of items) {
    const client = await gateway.open()
    for (let i = 0; i < 3; i++) client.send({ type: 'conversation.item.create', item })
    t.match(await client.next('error'), { error: { code: 'realtime.full', message: /8 MiB of text/ } })
    client.socket.close()
  }
})

t.test('a response reads no more than a conversation may have, however often its input refers to an item', async t => {
  const gateway = await realtimeGateway(t)
  const client = await gateway.open()
  client.send({ type: 'conversation.item.create', item: { id: 'story', type: 'message', role: 'user', content: [{ type: 'input_text', text: 'x'.repeat(MIB) }] } })
  const create = (input: readonly object[]): void => client.send({ type: 'response.create', response: { conversation: 'none', output_modalities: ['text'], input } })
  const times = (count: number): object[] => Array.from({ length: count }, () => ({ type: 'item_reference', id: 'story' }))
  create(times(9))
  t.match(await client.next('error'), { error: { code: 'realtime.full', param: 'response.input', message: /8 MiB of text: send less/ } })
  create(times(50_000))
  t.match(await client.next('error'), { error: { code: 'realtime.full', param: 'response.input' } })
  create(times(2))
  t.match(await client.next('response.done'), { response: { status: 'completed' } })
})

t.test('sound that waits for its engine is counted by itself, whatever id it has', async t => {
  const gateway = await realtimeGateway(t)
  await gateway.slots.load('stt')
  gateway.runtime.engine('stt').take(request => request.resume())
  const client = await gateway.open()
  const audio = pcmOf(50).toString('base64')
  const input = [{ id: 'twin', type: 'message', role: 'user', content: [{ type: 'input_audio', audio }] }]
  const response = { conversation: 'none', input }
  for (let i = 0; i < 5; i++) {
    client.send({ type: 'response.create', response })
    const { response: made } = await client.next('response.created') as unknown as { response: { id: string } }
    client.send({ type: 'response.cancel', response_id: made.id })
    await client.next('response.done')
  }
  client.send({ type: 'response.create', response })
  t.match(await client.next('error'), { error: { code: 'realtime.full', message: /more than four minutes/ } })
})

t.test('a client that does not read holds its engine, and nothing is piled up for it', async t => {
  const gateway = await realtimeGateway(t)
  for (const slot of ['agent', 'tts']) await gateway.slots.load(slot)
  gateway.runtime.engine('agent').answer(says('A long story.'))
  const second = pcmOf(1)
  let sent = 0
  gateway.runtime.engine('tts').take((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'audio/wav' }).write(wavHead(0, 24_000, false))
    const write = (): void => {
      for (; sent < 400; sent++) if (!response.write(second)) return void response.once('drain', () => { sent++; write() })
      response.end()
    }
    write()
  })
  const { send, socket, next, events } = await gateway.open()
  await next('session.created')
  socket.pause()
  send({ type: 'response.create' })
  let last = -1
  // it comes to a halt: not a piece in 50 turns of the event loop and of the network
  await until(() => {
    const isStill = sent === last && sent > 0
    last = sent
    return isStill
  }, 'the engine is made to wait')
  t.ok(sent < 350, `${sent} of 400 seconds of sound were taken from it`)
  socket.resume()
  t.match(await next('response.done'), { response: { status: 'completed' } })
  t.equal(bytesIn(events), 400 * second.length)
})

t.test('an engine that speaks without an end is left, and so is one that goes on behind the end of its sound', async t => {
  const gateway = await realtimeGateway(t)
  for (const slot of ['agent', 'tts']) await gateway.slots.load(slot)
  gateway.runtime.engine('agent').answer(says('A word.'))
  const second = pcmOf(1)
  for (const [length, status] of [[0, 'failed'], [second.length, 'completed']] as const) {
    const left = new Promise<void>(resolve => {
      gateway.runtime.engine('tts').take((request, response) => {
        request.resume()
        response.on('close', resolve)
        response.writeHead(200, { 'content-type': 'audio/wav' }).write(wavHead(length, 24_000, length > 0))
        const write = (): void => {
          while (!response.destroyed) if (!response.write(second)) return void response.once('drain', write)
        }
        write()
      })
    })
    const { send, next, socket } = await gateway.open()
    await next('session.created')
    send({ type: 'response.create' })
    t.match(await next('response.done'), { response: { status } })
    await left
    socket.close()
  }
})

t.test('text that comes all at once and without a pause is spoken in pieces', async t => {
  const gateway = await realtimeGateway(t)
  await gateway.slots.load('agent')
  gateway.runtime.engine('agent').answer(says('word'.repeat(500)))
  const { send, next } = await gateway.open()
  send({ type: 'response.create' })
  t.match(await next('response.done'), { response: { status: 'completed' } })
  const inputs = asked(gateway, 'tts').map(({ input }) => String(input))
  t.equal(inputs.join(''), 'word'.repeat(500))
  t.ok(inputs.every(({ length }) => length <= 240))
})

t.test('the session goes on while engines of a kind come and go', async t => {
  const gateway = await realtimeGateway(t, { agent: fakeSlot('llm') })
  const client = await gateway.open()
  client.send({ type: 'response.create' })
  t.match(await client.next('error'), { error: { code: 'realtime.no_slot' } })
  await gateway.slots.create('late', { type: 'tts', provider: 'fake', device: 'cpu' })
  await gateway.slots.load('late')
  client.send({ type: 'response.create' })
  t.match(await client.next('error'), { error: { code: 'realtime.not_sound' } }, 'it is asked now, and has four bytes to say')
})

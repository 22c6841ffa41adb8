import type { Test } from 'tap'
import {
  chatStream, createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type EngineScript, type FakeClock, type TestGateway
} from '../../../../kernel/testing/index.js'
import realtime from '../../../../plugins/v1/realtime/index.js'
import { pcmOf, wavHead } from '../../providers/audio/sound.js'
import { fakeSlot } from '../audio/support.js'
import { socketClient, type Event, type SocketClient } from '../../../wire/socket-client.js'

export type { Event }

export interface RealtimeGateway extends TestGateway {
  readonly runtime: FakeEngineRuntime
  readonly open: (query?: string, headers?: Readonly<Record<string, string>>) => Promise<RealtimeClient>
}

export type RealtimeClient = SocketClient

export const JSON_TYPE = { 'content-type': 'application/json' }
export const SSE_TYPE = { 'content-type': 'text/event-stream' }
/** Sound of a WAV file whose length is not known when it begins. */
export const spokenAs = (seconds: number, rate = 24_000): EngineScript => ({
  headers: { 'content-type': 'audio/wav' }, chunks: [wavHead(0, rate, false), pcmOf(seconds, rate)]
})
export const says = (...words: readonly string[]): EngineScript => ({ headers: SSE_TYPE, chunks: chatStream(words) })
export const hears = (text: string): EngineScript => ({ headers: JSON_TYPE, chunks: [JSON.stringify({ text })] })

export const allSlots = { agent: fakeSlot('llm'), stt: fakeSlot('transcription'), tts: fakeSlot('tts') }

/** A gateway with a slot that hears, one that answers and one that speaks, none of them loaded. */
export async function realtimeGateway (
  t: Test, slots: Readonly<Record<string, string>> = allSlots, clock?: FakeClock, upstreams = ''
): Promise<RealtimeGateway> {
  const runtime = new FakeEngineRuntime({
    onStart: ({ slot, engine }) => {
      if (slot === 'stt') engine.answer(hears('What time is it?'))
      if (slot === 'tts') engine.answer(spokenAs(0.2))
    }
  })
  const gateway = await createTestGateway({
    runtime,
    plugins: [createFakeProviderPlugin(), realtime],
    files: {
      ...Object.fromEntries(Object.entries(slots).map(([name, text]) => [`etc/svc/slots/${name}.toml`, text])),
      ...upstreams === '' ? {} : { 'etc/svc/upstreams.toml': upstreams }
    },
    ...clock === undefined ? {} : { clock }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return Object.assign(gateway, {
    runtime,
    open: (query = '?model=agent', headers: Readonly<Record<string, string>> = {}) => {
      return socketClient(t, `${gateway.baseUrl.replace('http', 'ws')}/v1/realtime${query}`, headers)
    }
  })
}

/** A tone, or silence, as an event of the client. */
export function sound (seconds: number, loudness = 1): object {
  const samples = pcmOf(seconds)
  for (let at = 0; at < samples.length; at += 2) samples.writeInt16LE(Math.round(samples.readInt16LE(at) * loudness), at)
  return { type: 'input_audio_buffer.append', audio: samples.toString('base64') }
}

export const silence = (seconds: number): object => sound(seconds, 0)

/** What the engine of a slot was asked, as JSON. */
export function asked (gateway: RealtimeGateway, slot: string): Array<Record<string, unknown>> {
  return gateway.runtime.engine(slot).requests.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>)
}

/** Sound that was told, in bytes. */
export function bytesIn (events: readonly Event[]): number {
  return events.filter(({ type }) => /audio\.delta$/.test(type)).reduce((sum, { delta }) => sum + Buffer.from(String(delta), 'base64').length, 0)
}

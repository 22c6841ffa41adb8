import { randomUUID } from 'node:crypto'
import { svcError, type AdaptedAnswer, type Clock } from 'svc-gateway/plugin'
import { completionOf, toolCallsOf, type Completion, type ToolCall } from './completion.js'
import { readAll } from './engine-call.js'
import type { OmniLoop } from './loop.js'
import type { SpokenAudio } from './tool.js'

const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
/** What `message.audio` promises, in seconds; the sound is in the answer, so nothing expires. */
const AUDIO_LIFETIME_S = 3600

/** Runs the loop for a client that waits for one JSON answer: the last one of the model. */
export async function plainAnswer (loop: OmniLoop, clock: Clock): Promise<AdaptedAnswer> {
  let last: Completion | null = null
  for (;;) {
    let answer
    try {
      answer = await loop.chat()
    } catch (error) {
      if (!loop.isOnlyGpu(error)) throw error
      return json(picturesOnly(loop, last, clock))
    }
    const bytes = await readAll(answer, LONGEST_ANSWER_BYTES)
    if (answer.status !== 200) return { status: answer.status, headers: typeOf(answer.headers), body: bytes }
    const completion = completionOf(bytes)
    if (completion === null) {
      if (loop.runs.length === 0) return { status: 200, headers: typeOf(answer.headers), body: bytes }
      throw svcError('dispatch.upstream_failed', `slot '${loop.caller}' answered with something that is not a chat completion`)
    }
    last = completion
    loop.spend(completion.usage)
    const { message } = completion.choices[0]!
    const calls = toolCallsOf(message, loop.round)
    const { isLast, forClient, trimmed } = loop.judge(calls)
    if (isLast && loop.runs.length === 0 && !trimmed) return { status: 200, headers: typeOf(answer.headers), body: bytes }
    if (isLast) return json(finished(loop, completion, trimmed ? forClient : null, clock))
    await loop.run(message, calls)
  }
}

/** The model's last answer, with what the tools made for the client. */
function finished (loop: OmniLoop, completion: Completion, calls: readonly ToolCall[] | null, clock: Clock): object {
  const [{ message, ...choice }, ...others] = completion.choices as [Completion['choices'][number], ...Completion['choices']]
  const { tool_calls: _calls, ...rest } = message
  const audio = loop.audio.at(-1)
  const kept = calls === null ? message : calls.length === 0 ? rest : { ...rest, tool_calls: calls }
  return {
    ...completion,
    choices: [{
      ...choice,
      ...calls?.length === 0 ? { finish_reason: 'stop' } : {},
      message: { ...kept, ...audio === undefined ? {} : { audio: audioPart(audio, clock) } }
    }, ...others],
    ...usageOf(loop),
    _svc: account(loop)
  }
}

/** Pictures were made, and the model cannot come back to talk about them: they are the answer. */
export function picturesText (loop: OmniLoop): string {
  return loop.images.map(url => `![](${url})`).join('\n')
}

function picturesOnly (loop: OmniLoop, last: Completion | null, clock: Clock): object {
  return {
    id: 'chatcmpl-omni',
    object: 'chat.completion',
    created: Math.floor(clock.now() / 1000),
    model: loop.caller,
    ...last,
    choices: [{ index: 0, message: { role: 'assistant', content: picturesText(loop) }, finish_reason: 'stop' }],
    ...usageOf(loop),
    _svc: account(loop, { caller_slot_unavailable: true })
  }
}

/** Of all rounds: the client is told what it cost, not what its last part did. */
export function usageOf ({ usage }: OmniLoop): object {
  return usage === null ? {} : { usage }
}

/** What was done for an answer; for people and logs. */
export function account (loop: OmniLoop, more: object = {}): object {
  return {
    omni: {
      caller_slot: loop.caller,
      rounds: loop.round,
      tools: loop.runs.map(({ name, ok, server, approvalId, images, audio }) => ({
        name,
        ok,
        ...server === undefined ? {} : { server },
        ...approvalId === undefined ? {} : { approval_id: approvalId },
        ...images.length === 0 ? {} : { images }, ...audio === null ? {} : { content_type: audio.contentType }
      })),
      ...more
    }
  }
}

/** Sound as chat answers carry it. `expires_at` in epoch seconds. */
export function audioPart ({ data, transcript }: SpokenAudio, clock: Clock): object {
  return {
    id: `audio-${randomUUID()}`,
    data: data.toString('base64'),
    transcript,
    expires_at: Math.floor(clock.now() / 1000) + AUDIO_LIFETIME_S
  }
}

function json (content: object): AdaptedAnswer {
  return { status: 200, headers: JSON_TYPE, body: Buffer.from(JSON.stringify(content)) }
}

function typeOf (headers: Readonly<Record<string, string>>): Record<string, string> {
  const type = headers['content-type']
  return type === undefined ? {} : { 'content-type': type }
}

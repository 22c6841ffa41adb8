import { svcError } from 'svc-gateway/plugin'
import type { Json } from '../over-chat/ref.js'
import type { Engines } from './engines.js'
import type { AnswerNews } from './response.js'
import { isSpoken, Sentences } from './sentences.js'
import type { Settings } from './settings.js'

/** Of one answer, with the arguments of its calls, in characters. */
const LONGEST = 1024 * 1024

/**
 * Makes an answer and tells of it: text and calls as they come, and sound sentence by sentence while the text goes on. The end is
 * told when all of it is spoken.
 * @param tell resolves when there is room for more. Rejects with what failed, or the signal's reason.
 */
export async function makeAnswer (
  engines: Pick<Engines, 'chat' | 'speak'>, settings: Settings, body: Json, tell: (news: AnswerNews) => Promise<void>, signal: AbortSignal
): Promise<void> {
  if (settings.modality === 'text') {
    for await (const news of bounded(engines.chat(body, signal))) await tell(news)
    return
  }
  const failed = new AbortController()
  const both = AbortSignal.any([signal, failed.signal])
  const line = new SentenceLine()
  let end: AnswerNews | null = null
  const write = async (): Promise<void> => {
    const sentences = new Sentences()
    for await (const news of bounded(engines.chat(body, both))) {
      if (news.kind === 'end') {
        end = news
        continue
      }
      await tell(news)
      if (news.kind === 'text') line.push(...sentences.push(news.text))
    }
    line.push(sentences.end())
    line.end()
  }
  const speak = async (): Promise<void> => {
    for (let text = await line.next(); text !== null; text = await line.next()) {
      both.throwIfAborted()
      await tell({ kind: 'sentence', text })
      if (!isSpoken(text)) continue
      for await (const bytes of engines.speak(text.trim(), settings, both)) await tell({ kind: 'sound', bytes })
    }
  }
  const guarded = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      failed.abort(error)
      line.end()
      throw error
    }
  }
  const [written, spoken] = await Promise.allSettled([guarded(write), guarded(speak)])
  // the first failure is the reason of the other one
  if (failed.signal.aborted) throw failed.signal.reason
  if (written.status === 'rejected') throw written.reason
  if (spoken.status === 'rejected') throw spoken.reason
  if (end !== null) await tell(end)
}

async function* bounded (news: AsyncIterable<AnswerNews>): AsyncGenerator<AnswerNews, void, undefined> {
  let length = 0
  for await (const each of news) {
    length += each.kind === 'text' ? each.text.length : each.kind === 'call' ? each.args.length : 0
    if (length > LONGEST) throw svcError('dispatch.upstream_failed', `the answer of the engine is longer than ${LONGEST} characters`)
    yield each
  }
}

/** Sentences that wait to be spoken. */
class SentenceLine {
  readonly #waiting: string[] = []
  #isOver = false
  #wake = (): void => {}

  push (...sentences: readonly string[]): void {
    this.#waiting.push(...sentences)
    this.#wake()
  }

  end (): void {
    this.#isOver = true
    this.#wake()
  }

  /** Null after the last one. */
  async next (): Promise<string | null> {
    while (this.#waiting.length === 0) {
      if (this.#isOver) return null
      await new Promise<void>(resolve => { this.#wake = resolve })
    }
    return this.#waiting.shift()!
  }
}

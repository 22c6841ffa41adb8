import type { Token } from 'node-llama-cpp'
import type { GenerationEnd } from './generate.js'
import type { Call } from './http-server.js'
import { chatSchema, completionSchema, type CompletionBody, type GenerationBody } from './requests.js'
import { limitsOf, samplingOf } from './sampler-options.js'
import { SseWriter } from './sse-writer.js'
import { answerGrammar, callGrammar, forcedTools } from './grammar/output.js'
import type { TextEngine, TextRequest } from './text-engine.js'
import { answerId, callFormat, chatFormat, completionFormat, type AnswerFormat, type AnswerHead } from './wire.js'
import { parseBody } from './wire-error.js'

export async function chatCompletions (engine: TextEngine, call: Call): Promise<object | null> {
  const body = parseBody(chatSchema, await call.json())
  const prompt = engine.tokenize(engine.renderer.render(body))
  const tools = forcedTools(body)
  const includeUsage = body.stream_options?.include_usage === true
  const format = tools === null
    ? chatFormat(headOf(engine), includeUsage)
    : callFormat(headOf(engine), includeUsage, tools.map(tool => tool.name))
  return answer(engine, call, body, [prompt], format, tools === null ? answerGrammar(body) : callGrammar(tools))
}

export async function completions (engine: TextEngine, call: Call): Promise<object | null> {
  const body = parseBody(completionSchema, await call.json())
  const prompts = promptsOf(body).map(prompt => engine.tokenize(prompt))
  return answer(engine, call, body, prompts, completionFormat(headOf(engine)), answerGrammar(body))
}

/** Answers every prompt `n` times, on the stream as it comes or all at once. Null: the stream is written. */
async function answer (
  engine: TextEngine, call: Call, body: GenerationBody, prompts: readonly Token[][], format: AnswerFormat, shape: string | null
): Promise<object | null> {
  const grammar = shape === null ? null : await engine.compile(shape)
  const jobs = prompts.flatMap(prompt => new Array<Token[]>(body.n ?? 1).fill(prompt))
  const defaults = engine.args.sampling
  const settings = { ...limitsOf(body, defaults), sampling: samplingOf(body, defaults), grammar, signal: call.signal }
  if (body.stream !== true) {
    const texts = jobs.map(() => '')
    const ends = await runJobs(engine, jobs, settings, {
      text: (index, text) => { texts[index] += text },
      end: () => undefined
    })
    return format.full(texts, ends)
  }
  const stream = new SseWriter(call.response, call.signal)
  const opened = new Set<number>()
  const open = async (index: number): Promise<void> => {
    if (opened.has(index)) return
    opened.add(index)
    const opening = format.opening(index)
    if (opening !== null) await stream.send(opening)
  }
  const ends = await runJobs(engine, jobs, settings, {
    text: async (index, text) => {
      await open(index)
      const piece = format.piece(index, text)
      if (piece !== null) await stream.send(piece)
    },
    end: async (index, end) => {
      await open(index)
      await stream.send(format.closing(index, end))
    }
  })
  const usage = format.usage(ends)
  if (usage !== null) await stream.send(usage)
  stream.done()
  return null
}

interface JobListener {
  text (index: number, text: string): void | Promise<void>
  end (index: number, end: GenerationEnd): void | Promise<void>
}

/** Runs the jobs side by side as slots allow. The first that fails ends the others, and all have ended when it rejects. */
async function runJobs (
  engine: TextEngine, jobs: ReadonlyArray<readonly Token[]>, settings: Omit<TextRequest, 'prompt'>, listener: JobListener
): Promise<GenerationEnd[]> {
  const failure = new AbortController()
  const signal = AbortSignal.any([settings.signal, failure.signal])
  const run = async (prompt: readonly Token[], index: number): Promise<GenerationEnd> => {
    const pieces = engine.generate({ ...settings, signal, prompt })
    try {
      for (;;) {
        const next = await pieces.next()
        if (next.done === true) {
          await listener.end(index, next.value)
          return next.value
        }
        await listener.text(index, next.value)
      }
    } catch (error) {
      failure.abort(error)
      throw error
    } finally {
      await pieces.return(undefined as never) // gives the slot back when the listener failed
    }
  }
  const results = await Promise.allSettled(jobs.map(run))
  const failed = results.find(result => result.status === 'rejected')
  if (failed !== undefined) throw failure.signal.reason as Error
  return results.map(result => (result as PromiseFulfilledResult<GenerationEnd>).value)
}

function headOf (engine: TextEngine): AnswerHead {
  return { id: answerId('chatcmpl'), created: Math.floor(Date.now() / 1000), model: engine.args.alias }
}

/** A list of numbers is one prompt in tokens; any other list is a list of prompts. */
function promptsOf ({ prompt }: CompletionBody): ReadonlyArray<string | readonly number[]> {
  return typeof prompt === 'string' || prompt.every(item => typeof item === 'number') ? [prompt as string | number[]] : prompt as string[]
}

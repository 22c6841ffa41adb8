import type { Token } from 'node-llama-cpp'
import { chatFormat } from './chat-wire.js'
import { answerReader } from './chat/answer-reader.js'
import type { AnswerReader } from './chat/answer-part.js'
import { toolTypes } from './chat/tool-types.js'
import { toolsOf } from './chat-template.js'
import { completionFormat } from './completion-wire.js'
import type { GenerationEnd } from './generate.js'
import { answerGrammar, callGrammar, forcedTools } from './grammar/output.js'
import type { Call } from './http-server.js'
import { chatSchema, completionSchema, MOST_ANSWERS, MOST_LOGPROBS, type CompletionBody, type GenerationBody } from './requests.js'
import { limitsOf, samplingOf, type Sampling } from './sampler-options.js'
import { SseWriter } from './sse-writer.js'
import { runJobs, type JobRequest } from './text-jobs.js'
import type { TextEngine } from './text-engine.js'
import type { RankedToken } from './tokens/logprobs.js'
import type { Piece } from './tokens/shown-text.js'
import { answerId, nothingSaid, say, type AnswerFormat, type AnswerHead } from './wire.js'
import { badRequest, parseBody } from './wire-error.js'

export async function chatCompletions (engine: TextEngine, call: Call): Promise<object | null> {
  const body = parseBody(chatSchema, await call.json())
  const chat = engine.renderer.render(body)
  const { family } = engine.renderer
  const forced = forcedTools(body)
  const parallel = body.parallel_tool_calls !== false
  const shape = forced === null
    ? answerGrammar(body, chat.thoughts)
    : callGrammar(forced, { family, several: parallel && body.tool_choice === 'required', thoughts: chat.thoughts })
  const tools = forced === null && shape !== null ? null : toolsOf(body)
  const names = new Set(tools?.map(tool => tool.function.name))
  const calls = tools === null ? null : { family, names, types: toolTypes(tools), parallel }
  const isTold = body.reasoning_format === 'none'
  const thoughts = isTold ? 'none' : chat.thoughts
  const includeUsage = body.stream_options?.include_usage === true
  const reader = (): AnswerReader => answerReader({ family, thoughts, tools: calls, thoughtsAs: isTold ? 'text' : 'reasoning' })
  const format = chatFormat(headOf(engine), { reader, n: body.n ?? 1, includeUsage })
  const top = body.logprobs === true ? body.top_logprobs ?? MOST_LOGPROBS : null
  const spoken = tools === null && chat.thoughts === 'none' && family.channels !== true ? nothing : engine.spoken
  return answer(engine, call, { body, prompts: [engine.tokenize(chat.prompt)], format, shape, top, spoken })
}

export async function completions (engine: TextEngine, call: Call): Promise<object | null> {
  const body = parseBody(completionSchema, await call.json())
  const asked = promptsOf(body)
  if (asked.length * (body.n ?? 1) > MOST_ANSWERS) throw badRequest(`Field 'prompt': more than ${MOST_ANSWERS} answers at once; ask with fewer prompts or a smaller n`)
  const prompts = asked.map(prompt => engine.tokenize(prompt))
  const top = body.logprobs === false ? null : body.logprobs === true ? 0 : body.logprobs ?? null
  const format = completionFormat(headOf(engine), body.n ?? 1)
  return answer(engine, call, { body, prompts, format, shape: answerGrammar(body, 'none'), top, spoken: nothing })
}

const nothing: ReadonlyMap<Token, string> = new Map()

interface Asked {
  readonly body: GenerationBody
  readonly prompts: readonly Token[][]
  readonly format: AnswerFormat
  /** A grammar in llama.cpp's notation. */
  readonly shape: string | null
  readonly top: number | null
  readonly spoken: ReadonlyMap<Token, string>
}

/** Answers every prompt `n` times, on the stream as it comes or all at once. Null: the stream is written. */
async function answer (
  engine: TextEngine, call: Call, { body, prompts, format, shape, top, spoken }: Asked
): Promise<object | null> {
  if (top !== null && shape !== null) {
    throw badRequest('Field \'logprobs\': is not supported with a grammar, a schema or a forced tool; leave one of them out, or install llama-server')
  }
  const grammar = shape === null ? null : await engine.compile(shape)
  const n = body.n ?? 1
  const defaults = engine.args.sampling
  const sampling = samplingOf(body, defaults)
  const settings = { ...limitsOf(body, defaults), grammar, topLogprobs: top, spoken, signal: call.signal }
  // with one seed for all they would say the same
  const seeded = (i: number): Sampling =>
    sampling.seed === null ? sampling : { ...sampling, seed: (sampling.seed + i) % 0xFFFFFFFF }
  const jobs = prompts.flatMap(prompt => Array.from({ length: n }, (_, i) => ({ ...settings, prompt, sampling: seeded(i) })))
  return body.stream === true ? stream(engine, call, jobs, format) : whole(engine, jobs, format)
}

async function whole (engine: TextEngine, jobs: readonly JobRequest[], format: AnswerFormat): Promise<object> {
  const choices = jobs.map(() => ({ said: nothingSaid(), reader: format.reader() }))
  const ends = await runJobs(engine, jobs, choices.map(({ said, reader }) => ({
    piece: ({ text, tokens }) => say(said, reader.push(text), tokens),
    end: () => say(said, reader.end(), []),
    enough: () => reader.enough
  })))
  return format.full(choices.map(({ said }) => said), ends)
}

async function stream (engine: TextEngine, call: Call, jobs: readonly JobRequest[], format: AnswerFormat): Promise<null> {
  const stream = new SseWriter(call.response, call.signal)
  const send = async (chunks: readonly object[]): Promise<void> => {
    for (const chunk of chunks) await stream.send(chunk)
  }
  const ends = await runJobs(engine, jobs, jobs.map((_, index) => {
    const [reader, choice] = [format.reader(), format.choice(index)]
    // tokens whose text is held back are told with what comes next
    let tokens: RankedToken[] = []
    let opened = false
    const open = async (): Promise<void> => {
      if (!opened && choice.opening !== null) await stream.send(choice.opening)
      opened = true
    }
    return {
      piece: async (piece: Piece) => {
        await open()
        tokens.push(...piece.tokens)
        const chunks = choice.chunks(reader.push(piece.text), tokens)
        if (chunks.length > 0) tokens = []
        await send(chunks)
      },
      end: async (end: GenerationEnd) => {
        await open()
        const chunks = choice.chunks(reader.end(), tokens)
        await send(chunks)
        await stream.send(choice.closing(end, chunks.length === 0 ? tokens : []))
      },
      enough: () => reader.enough
    }
  }))
  const usage = format.usage(ends)
  if (usage !== null) await stream.send(usage)
  stream.done()
  return null
}

function headOf ({ args, host }: TextEngine): AnswerHead {
  return {
    id: answerId('chatcmpl'), created: Math.floor(Date.now() / 1000), model: args.alias,
    system_fingerprint: `svc-embedded-${host.llama.llamaCppRelease.release}`
  }
}

/** A list of numbers is one prompt in tokens; any other list is a list of prompts. */
function promptsOf ({ prompt }: CompletionBody): ReadonlyArray<string | readonly number[]> {
  return typeof prompt === 'string' || prompt.every(item => typeof item === 'number') ? [prompt as string | number[]] : prompt as string[]
}

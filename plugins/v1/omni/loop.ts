import { isSvcError, messageOf, type CallAnswer, type Clock, type DispatchService, type ForwardOptions, type GpuArbiter, type PluginCall } from 'svc-gateway/plugin'
import type { ToolCall } from './completion.js'
import type { OmniRequest } from './request.js'
import { isUsage, sumOf, type Usage } from './usage.js'
import { runTools, type ToolRun } from './tool-runs.js'
import type { SpokenAudio } from './tool.js'
import { declared, type Toolbox } from './toolbox.js'

/** Answers of the caller's model for one request. */
export const MOST_ROUNDS = 8

export interface LoopServices {
  readonly dispatch: DispatchService
  readonly gpu: GpuArbiter
  readonly clock: Clock
}

export interface LoopInput {
  readonly request: OmniRequest
  /** What the chat route changes in a request for a slot. */
  readonly edit: ForwardOptions['edit']
  readonly requestId: string
  readonly origin: PluginCall['origin']
  /** Name of the slot whose model calls the tools. */
  readonly caller: string
  readonly toolbox: Toolbox
  /** As the caller's model gets them. */
  readonly messages: readonly unknown[]
}

/** What became of a round: the client's turn, or another round. */
export interface Verdict {
  readonly isLast: boolean
  /** Calls that are the client's to run; handed to it without those of the gateway. */
  readonly forClient: readonly ToolCall[]
  /** Calls were left out of the last answer. */
  readonly trimmed: boolean
}

/** The state of one tool loop: the conversation as it grows, and what the tools made for the client. */
export class OmniLoop {
  readonly #services: LoopServices
  readonly #input: LoopInput
  readonly #signal: AbortSignal
  readonly #messages: unknown[]
  readonly #tools: readonly unknown[]
  readonly runs: ToolRun[] = []
  round = 0
  /** What all rounds so far took together; null while no engine told. */
  usage: Usage | null = null

  constructor (services: LoopServices, input: LoopInput, signal: AbortSignal) {
    this.#services = services
    this.#input = input
    this.#signal = signal
    this.#messages = [...input.messages]
    this.#tools = [...input.request.tools, ...declared(input.toolbox)]
  }

  /** Tool servers were named: the client wants to know what ran, in a stream too. */
  get tellsStream (): boolean { return this.#input.request.named !== null && this.runs.length > 0 }
  get caller (): string { return this.#input.caller }
  get images (): readonly string[] { return this.runs.flatMap(({ images }) => images) }
  get audio (): readonly SpokenAudio[] { return this.runs.map(({ audio }) => audio).filter(audio => audio !== null) }

  /** Asks the caller's model for its next answer. What the client says of the choice of tools holds for the first. */
  chat (): Promise<CallAnswer> {
    const { request, caller, requestId, origin, edit } = this.#input
    this.round++
    const body = {
      ...request.body,
      model: caller,
      messages: this.#messages,
      tools: this.#tools,
      n: undefined,
      ...this.round === 1 ? {} : { tool_choice: this.round === MOST_ROUNDS ? 'none' : undefined }
    }
    return this.#services.dispatch.call({
      surface: 'chat',
      path: '/chat/completions',
      body: Buffer.from(JSON.stringify(body)),
      ...edit === undefined ? {} : { edit },
      requestId,
      origin,
      signal: this.#signal
    })
  }

  /** Adds what a round took. */
  spend (usage: unknown): void {
    if (isUsage(usage)) this.usage = this.usage === null ? usage : sumOf(this.usage, usage)
  }

  /** A round with a call that only the client can run goes to the client; the gateway's calls come again after it. */
  judge (calls: readonly ToolCall[]): Verdict {
    const forClient = calls.filter(call => !this.#isOurs(call))
    const isLast = calls.length === 0 || forClient.length > 0 || this.round >= MOST_ROUNDS
    return { isLast, forClient, trimmed: isLast && forClient.length < calls.length }
  }

  /** Runs the tools that an answer asks for, and adds both to the conversation. */
  async run (message: Readonly<Record<string, unknown>>, calls: readonly ToolCall[]): Promise<readonly ToolRun[]> {
    const runs = await runTools(this.#input.toolbox, calls, this.#services.clock, this.#signal)
    this.#messages.push({ ...message, tool_calls: calls }, ...runs.map(run => run.message))
    this.runs.push(...runs)
    if (runs.some(({ images }) => images.length > 0)) await this.#takeGpuBack()
    return runs
  }

  /** Whether a failed answer only means that the GPU is with the image engine: the pictures are there anyway. */
  isOnlyGpu (error: unknown): boolean {
    return isSvcError(error) && error.code === 'gpu.image_mode' && this.images.length > 0
  }

  #isOurs ({ function: { name } }: ToolCall): boolean {
    // an undeclared name is told to the model, not to the client
    return this.#input.toolbox.has(name) || !this.#input.request.tools.some(tool =>
      (tool as { readonly function?: { readonly name?: unknown } } | null)?.function?.name === name)
  }

  /** Pictures took the GPU from the caller's model; once a round it is asked back. */
  async #takeGpuBack (): Promise<void> {
    const { gpu } = this.#services
    const { mode, llm_slots: slots } = gpu.status()
    if (mode !== 'img' || !slots.includes(this.caller)) return
    try {
      gpu.switchTo('llm')
      await gpu.settled(this.#signal)
    } catch (error) {
      this.#signal.throwIfAborted()
      // pinned, or in use: the next answer says so
      if (!isSvcError(error)) throw new Error(`the GPU could not be taken back: ${messageOf(error)}`, { cause: error })
    }
  }
}

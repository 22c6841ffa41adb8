import type {
  Clock, ConfigService, DispatchService, ForwardOptions, GpuArbiter, ModelRegistry, NamedSlotConfig, ProviderCatalog, SlotService,
  TakenAnswer, TakenRequest, ToolCatalogue
} from 'svc-gateway/plugin'
import type { ImageMaker } from '../images/ref.js'
import { canCallTools, canSee } from './abilities.js'
import { attachmentsOf, withNames } from './attachments.js'
import { OmniLoop } from './loop.js'
import { plainAnswer } from './plain-answer.js'
import { namedTools, type NamedToolServices } from './named-tools.js'
import { requireOwnPage } from './own-page.js'
import { omniRequest, type OmniRequest } from './request.js'
import { streamedAnswer } from './streamed-answer.js'
import { toolboxOf } from './toolbox.js'

export interface OmniServices {
  readonly dispatch: DispatchService
  readonly slots: SlotService
  readonly models: ModelRegistry
  readonly config: ConfigService
  readonly gpu: GpuArbiter
  readonly clock: Clock
  readonly providers: ProviderCatalog
  readonly images: ImageMaker
  readonly tools: ToolCatalogue
}

/** Answers a chat request with the tool loop when it can have it; null when it is to go the plain way. */
export function answerWithTools (
  services: OmniServices, call: TakenRequest, { edit }: Pick<ForwardOptions, 'edit'>
): TakenAnswer | null {
  const request = omniRequest(call.body)
  const caller = request === null || request.body.tool_choice === 'none' ? null : callerOf(services, request)
  if (request === null || caller === null) return null
  const { dispatch, slots, models, config, clock, providers, images } = services
  const usable = slots.names().map(name => slots.config(name)).filter(slot => isUsable(slots, slot))
  const attachments = attachmentsOf(request.messages)
  const context = {
    dispatch, models, providers, images, requestId: call.requestId, origin: call.request.headers, caller, attachments,
    slots: usable
  }
  const { named } = request
  const toolbox = toolboxOf(context, request.tools, taken => {
    if (named === null) return []
    requireOwnPage(call.request.headers, config.snapshot.svc.server.allowed_origins)
    return namedTools(named, namedToolServices(services, call), taken)
  })
  if (toolbox.size === 0) return null
  // what neither the model nor a tool takes stays, and the engine says so
  const messages = withNames(request.messages, {
    image: !canSee(caller, models) && toolbox.has('analyze_image'), audio: toolbox.has('transcribe_audio')
  })
  const { stream } = request
  const input = { request, edit, requestId: call.requestId, origin: call.request.headers, caller: caller.name, toolbox, messages }
  return {
    stream,
    answer: signal => {
      const loop = new OmniLoop(services, input, signal)
      if (!stream) return plainAnswer(loop, clock)
      return streamedAnswer(loop, { clock, pingMs: config.snapshot.svc.dispatcher.ping_interval_s * 1000 })
    }
  }
}

/** The slot that serves the request, when its model can call tools. Upstreams run no tools of ours. */
function callerOf ({ dispatch, slots, models }: OmniServices, { model }: OmniRequest): NamedSlotConfig | null {
  const name = dispatch.target(model, 'chat')?.slot ?? null
  const slot = name === null ? null : slots.config(name)
  return slot !== null && canCallTools(slot, models) ? slot : null
}

function isUsable (slots: SlotService, slot: NamedSlotConfig): boolean {
  // one that failed is not offered: its tool would only take the model's time
  if (!slot.enabled || slots.status(slot.name).state === 'error') return false
  return slot.model.default !== null || slots.provider(slot.name)?.needsModel === false
}

const AGENT = /^[a-z0-9_-]{1,64}$/

/** Who calls the tools: the agent that sends the request, as its other calls do. */
function namedToolServices (
  { tools: catalogue, clock }: OmniServices, { request: { headers }, requestId }: TakenRequest
): NamedToolServices {
  const given = headers['x-svc-agent']
  const agent = typeof given === 'string' && AGENT.test(given.trim().toLowerCase()) ? given.trim().toLowerCase() : null
  const after: NamedToolServices['after'] = (ms, fn) => {
    const timer = clock.setTimer(ms, fn)
    return () => timer.cancel()
  }
  return { catalogue, caller: { agent, actor: `mcp:${agent ?? 'anonymous'}`, requestId }, after }
}

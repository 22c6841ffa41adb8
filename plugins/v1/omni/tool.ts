import type { DispatchService, ModelRegistry, NamedSlotConfig, PluginCall, ProviderCatalog } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { ImageMaker } from '../images/ref.js'
import type { Attachment } from './attachments.js'

/** Sound that a tool made, for the client and not for the model. */
export interface SpokenAudio {
  readonly data: Buffer
  readonly contentType: string
  readonly transcript: string
}

export interface ToolResult {
  /** What the model is told, as JSON. */
  readonly told: unknown
  readonly audio?: SpokenAudio
  /** Addresses of images that were made. */
  readonly images?: readonly string[]
  /** The approval that it waited for. */
  readonly approvalId?: string
}

/** One tool of the set, bound to the slot that serves it. */
export interface OmniTool<S extends z.ZodType = z.ZodType> {
  readonly name: string
  readonly description: string
  readonly parameters: S
  /** As it is declared, where that is not made from `parameters`. */
  readonly inputSchema?: object
  /** The tool server that it is of; none for the gateway's slots. */
  readonly server?: string
  /** May throw: the model is then told what failed. Must honour the signal. */
  readonly run: (args: z.output<S>, signal: AbortSignal) => Promise<ToolResult>
}

/** What a tool sees of the request that it works for. */
export interface ToolContext {
  readonly dispatch: DispatchService
  readonly models: Pick<ModelRegistry, 'get'>
  readonly providers: Pick<ProviderCatalog, 'get'>
  readonly images: ImageMaker
  readonly requestId: string
  /** Headers of the client's request: what a tool asks for is charged to its agent. */
  readonly origin: PluginCall['origin']
  /** The slot whose model calls the tools. */
  readonly caller: NamedSlotConfig
  /** Enabled slots that have what they need to run, in configuration order. */
  readonly slots: readonly NamedSlotConfig[]
  readonly attachments: ReadonlyMap<string, Attachment>
}

/** The tool, when there is a slot for it; else null and the model never hears of it. Pure. */
export type OfferTool = (context: ToolContext) => OmniTool | null

export function defineOmniTool<S extends z.ZodType> (tool: OmniTool<S>): OmniTool {
  return tool as unknown as OmniTool
}

/** The slot that serves a kind of tool: the operator's default when it fits, else the first that does. Pure. */
export function slotFor (
  slots: readonly NamedSlotConfig[], type: NamedSlotConfig['type'], fits: (slot: NamedSlotConfig) => boolean = () => true
): NamedSlotConfig | null {
  const fitting = slots.filter(slot => slot.type === type && fits(slot))
  return fitting.find(slot => slot.default) ?? fitting[0] ?? null
}

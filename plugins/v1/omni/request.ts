import { svcError } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { NamedTools } from './named-tools.js'

/** A chat request that opted into the tool loop. */
export interface OmniRequest {
  /** As the client sent it, `omni` taken out. */
  readonly body: Readonly<Record<string, unknown>>
  readonly model: string
  readonly messages: readonly unknown[]
  /** The client's own tools. */
  readonly tools: readonly unknown[]
  readonly stream: boolean
  /** Null for the gateway's slots alone. */
  readonly named: NamedTools | null
}

const names = z.array(z.string().min(1).max(130)).max(128).default([])
const namedSchema = z.strictObject({ servers: names, tools: names })

/** The request when its `omni` is true, or names tools, and it can be read; else null. Throws for names that are none. */
export function omniRequest (raw: Buffer): OmniRequest | null {
  const parsed = parsedObject(raw)
  if (parsed === null || (parsed.omni !== true && !isObject(parsed.omni))) return null
  const { omni, ...body } = parsed
  const { model, messages, tools, stream } = body
  // what is wrong with the rest is told by the plain way
  if (typeof model !== 'string' || model.trim() === '' || !Array.isArray(messages)) return null
  return {
    body,
    model: model.trim(),
    messages,
    tools: Array.isArray(tools) ? tools : [],
    stream: stream === true,
    named: namedIn(omni)
  }
}

function parsedObject (raw: Buffer): Record<string, unknown> | null {
  try {
    const parsed = JSON.parse(raw.toString('utf8')) as unknown
    return isObject(parsed) ? parsed : null
  } catch {
    return null
  }
}

function namedIn (omni: unknown): NamedTools | null {
  if (omni === true) return null
  const checked = namedSchema.safeParse(omni)
  if (checked.success) return checked.data.servers.length + checked.data.tools.length === 0 ? null : checked.data
  throw svcError('validation.invalid', 'omni must be true, or an object with `servers` and `tools`, lists of names', { param: 'omni' })
}

function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

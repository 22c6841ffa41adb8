/** A chat request that opted into the tool loop. */
export interface OmniRequest {
  /** As the client sent it, `omni` taken out. */
  readonly body: Readonly<Record<string, unknown>>
  readonly model: string
  readonly messages: readonly unknown[]
  /** The client's own tools. */
  readonly tools: readonly unknown[]
  readonly stream: boolean
}

/** The request when its `omni` is true and it can be read, else null. */
export function omniRequest (raw: Buffer): OmniRequest | null {
  const parsed = parsedObject(raw)
  if (parsed?.omni !== true) return null
  const { omni: _omni, ...body } = parsed
  const { model, messages, tools, stream } = body
  // what is wrong with the rest is told by the plain way
  if (typeof model !== 'string' || model.trim() === '' || !Array.isArray(messages)) return null
  return { body, model: model.trim(), messages, tools: Array.isArray(tools) ? tools : [], stream: stream === true }
}

function parsedObject (raw: Buffer): Record<string, unknown> | null {
  try {
    const parsed = JSON.parse(raw.toString('utf8')) as unknown
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? parsed as Record<string, unknown> : null
  } catch {
    return null
  }
}

/** An image or a recording of the conversation, by the name under which tools take it: `image_1`, `audio_2`. */
export interface Attachment {
  readonly kind: 'image' | 'audio'
  /** Of an image: its URL, `data:` or other. Of a recording: base64. */
  readonly content: string
  /** Of a recording, as the client named it: `wav`, `mp3`. */
  readonly format: string
}

/** Which kinds of attachments a tool takes in the place of the caller's model. */
export type HandedOver = Readonly<Record<Attachment['kind'], boolean>>

/** The images and recordings of a conversation, in order. Pure. */
export function attachmentsOf (messages: readonly unknown[]): ReadonlyMap<string, Attachment> {
  const attachments = new Map<string, Attachment>()
  eachAttachment(messages, (name, attachment, part) => {
    attachments.set(name, attachment)
    return part
  })
  return attachments
}

/**
 * The conversation as the caller's model gets it: what a tool takes instead is replaced by a line of text with its
 * name, so that the model can hand it on. Pure.
 */
export function withNames (messages: readonly unknown[], handedOver: HandedOver): readonly unknown[] {
  return eachAttachment(messages, (name, { kind }, part) => handedOver[kind] ? { type: 'text', text: `[attached: ${name}]` } : part)
}

function eachAttachment (
  messages: readonly unknown[], visit: (name: string, attachment: Attachment, part: unknown) => unknown
): readonly unknown[] {
  const counts = { image: 0, audio: 0 }
  const visited = (part: unknown): unknown => {
    const attachment = attachmentIn(part)
    return attachment === null ? part : visit(`${attachment.kind}_${++counts[attachment.kind]}`, attachment, part)
  }
  return messages.map(message => {
    const content = (message as { readonly content?: unknown } | null)?.content
    return Array.isArray(content) ? { ...message as object, content: content.map(visited) } : message
  })
}

function attachmentIn (part: unknown): Attachment | null {
  const { type, image_url: image, input_audio: audio } = (part ?? {}) as Readonly<Record<string, unknown>>
  if (type === 'image_url') {
    const url = typeof image === 'string' ? image : (image as { readonly url?: unknown } | null | undefined)?.url
    return typeof url === 'string' ? { kind: 'image', content: url, format: '' } : null
  }
  if (type !== 'input_audio') return null
  const { data, format } = (audio ?? {}) as { readonly data?: unknown, readonly format?: unknown }
  return typeof data === 'string' ? { kind: 'audio', content: data, format: typeof format === 'string' ? format : 'wav' } : null
}

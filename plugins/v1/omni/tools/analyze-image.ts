import { z } from 'zod'
import { canSee } from '../abilities.js'
import { contentOf } from '../completion.js'
import { askEngineJson } from '../engine-call.js'
import { defineOmniTool, slotFor, type OfferTool } from '../tool.js'

/** Asks a model that can see about an image of the conversation, or one at an address. */
export const analyzeImage: OfferTool = context => {
  const slot = slotFor(context.slots, 'llm', candidate => canSee(candidate, context.models))
  return slot === null ? null : defineOmniTool({
    name: 'analyze_image',
    description: 'Ask a question about an image that the user attached, or about one at an address.',
    parameters: z.object({
      image: z.string().min(1).describe('Name of the attachment, such as image_1, or an http or data: URL'),
      question: z.string().min(1).describe('What to find out')
    }),
    run: async ({ image, question }, signal) => {
      const content = [{ type: 'text', text: question }, { type: 'image_url', image_url: { url: address(image) } }]
      const body = { model: slot.name, messages: [{ role: 'user', content }] }
      return { told: { content: contentOf(await askEngineJson(context, 'chat', '/chat/completions', body, signal)) } }
    }
  })

  function address (name: string): string {
    const attachment = context.attachments.get(name)
    if (attachment?.kind === 'image') return attachment.content
    if (/^(https?:|data:image\/)/i.test(name)) return name
    const known = [...context.attachments].filter(([, { kind }]) => kind === 'image').map(([key]) => key)
    throw new Error(`there is no image '${name.slice(0, 100)}'; attached are: ${known.join(', ') || 'none'}`)
  }
}

import { z } from 'zod'
import { defineOmniTool, slotFor, type OfferTool, type ToolContext } from '../tool.js'

/** Makes pictures from words, with the defaults of the image slot. */
export const generateImage: OfferTool = context => {
  const slot = slotFor(context.slots, 'image')
  return slot === null ? null : defineOmniTool({
    name: 'generate_image',
    description: 'Make a picture from a description. Show the user the address that comes back, as an image.',
    parameters: z.object({
      prompt: z.string().min(1).describe('What the picture shows'),
      size: z.string().regex(/^\d{2,5}x\d{2,5}$/i).optional().describe('Width and height in pixels, such as 1024x1024'),
      n: z.int().min(1).max(4).optional().describe('How many pictures')
    }),
    run: async ({ prompt, size, n }, signal) => {
      const images = await context.images.make({ model: modelOf(slot, context), prompt, size, n }, context, signal)
      return { told: { images }, images }
    }
  })
}

/** A slot that names no model takes any that its engine can drive. */
function modelOf ({ name, model, provider }: ToolContext['slots'][number], { providers }: ToolContext): string {
  if (model.default !== null) return name
  return providers.get(provider)?.catalogue?.find(({ problem }) => problem === null)?.id ?? name
}

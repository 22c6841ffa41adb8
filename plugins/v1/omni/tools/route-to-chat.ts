import { z } from 'zod'
import { contentOf } from '../completion.js'
import { askEngineJson } from '../engine-call.js'
import { defineOmniTool, type OfferTool } from '../tool.js'

/**
 * Asks the model of another slot. That model gets no tools, so the depth is one. Two slots of one NPU cannot talk to
 * each other: only one of them is ever loaded.
 */
export const routeToChat: OfferTool = context => {
  const { caller } = context
  const targets = context.slots.filter(slot =>
    slot.type === 'llm' && slot.name !== caller.name && !(slot.device === 'npu' && caller.device === 'npu'))
  if (targets.length === 0) return null
  return defineOmniTool({
    name: 'route_to_chat',
    description: 'Ask another model and get its answer.',
    parameters: z.object({
      target: z.enum(targets.map(({ name }) => name)).describe('Which model'),
      prompt: z.string().min(1).describe('What it is asked'),
      context: z.string().optional().describe('What it has to know for that')
    }),
    run: async ({ target, prompt, context: background }, signal) => {
      const system = targets.find(({ name }) => name === target)?.system_prompt ?? null
      const messages = [
        ...system === null ? [] : [{ role: 'system', content: system }],
        { role: 'user', content: background === undefined ? prompt : `${prompt}\n\nContext\n${background}` }
      ]
      const answer = await askEngineJson(context, 'chat', '/chat/completions', { model: target, messages }, signal)
      return { told: { content: contentOf(answer) } }
    }
  })
}

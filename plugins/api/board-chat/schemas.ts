import { z } from 'zod'

export const chatSchema = z.strictObject({
  messages: z.array(z.strictObject({
    role: z.enum(['user', 'assistant']),
    content: z.string().min(1).max(64 * 1024)
  })).min(1).max(200).meta({ description: 'The conversation so far, the last message from the user' }),
  board: z.string().max(48).optional().meta({ description: 'Slug of the board; default is the current one' }),
  model: z.string().min(1).max(256).optional().meta({ description: 'Default: `orchestrator_profile` of the board, else `svc/agent`' })
})

export type ChatMessages = z.output<typeof chatSchema>['messages']

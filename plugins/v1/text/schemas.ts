import { z } from 'zod'

// told, not checked here: the tool-calling loop reads its own part of the body
const namesSchema = z.array(z.string().meta({ minLength: 1, maxLength: 130 })).meta({ maxItems: 128 })

export const chatBodySchema = z.looseObject({
  model: z.string().meta({ description: 'Slot name, model id, `svc/<role>` or upstream model', pattern: '\\S' }),
  messages: z.array(z.looseObject({ role: z.string() })),
  stream: z.boolean().optional(),
  omni: z.union([
    z.boolean(), z.strictObject({ servers: namesSchema.optional(), tools: namesSchema.optional() })
  ]).optional().meta({
    description: 'Opt in to the tool-calling loop: true for the tools that slots serve; `servers` adds those of tool servers, `tools` names individual ones. Never reaches the engine'
  }),
  memory: z.union([
    z.boolean(),
    z.strictObject({
      bank: z.string().meta({ pattern: '^(shared|agents|project:[A-Za-z0-9_-]{1,64})$', examples: ['shared'] }).optional(),
      recall: z.boolean().optional(),
      retain: z.boolean().optional()
    })
  ]).optional().meta({
    description: 'Opt in to the memory: memories relevant to the question are put before it, and the exchange is remembered afterwards; `bank` is a dataset (`shared`), or `private:<own name>` with `X-svc-Agent` and `X-svc-Private`. Never reaches the engine'
  })
})

export const completionBodySchema = z.looseObject({
  model: z.string().meta({ pattern: '\\S' }),
  prompt: z.union([z.string(), z.array(z.string()), z.array(z.int()), z.array(z.array(z.int()))]),
  suffix: z.string().nullish().meta({ description: 'Text after the completion; on engines that have `/infill`' }),
  stream: z.boolean().optional()
})

const usageSchema = z.looseObject({ prompt_tokens: z.int(), completion_tokens: z.int().optional(), total_tokens: z.int() })

const answerShape = {
  id: z.string(),
  created: z.int().meta({ description: 'Epoch seconds' }),
  model: z.string(),
  usage: usageSchema.optional()
}
const choiceShape = { index: z.int(), finish_reason: z.string().nullable() }

/** What engines answer; it is documented and passed on as it comes. */
export const chatAnswerSchema = z.looseObject({
  ...answerShape,
  object: z.literal('chat.completion'),
  choices: z.array(z.looseObject({
    ...choiceShape,
    message: z.looseObject({ role: z.string(), content: z.string().nullish(), tool_calls: z.array(z.looseObject({})).optional() })
  }))
})

export const completionAnswerSchema = z.looseObject({
  ...answerShape,
  object: z.literal('text_completion'),
  choices: z.array(z.looseObject({ ...choiceShape, text: z.string() }))
})

import { Template } from '@huggingface/jinja'
import { callId, templateTraits, thoughtsAfter, type TemplateTraits } from './chat/template-traits.js'
import { familyOf, type ToolFamily } from './chat/tool-family.js'
import type { ChatBody, ChatMessage } from './requests.js'
import { badRequest } from './wire-error.js'

/** What llama-server falls back to for models without a template. */
const chatml = '{% for message in messages %}{{ \'<|im_start|>\' + message.role + \'\\n\' + message.content + \'<|im_end|>\\n\' }}' +
  '{% endfor %}{% if add_generation_prompt %}{{ \'<|im_start|>assistant\\n\' }}{% endif %}'

export interface RenderedChat {
  /** Special tokens are spelled out. */
  readonly prompt: string
  readonly thoughts: ReturnType<typeof thoughtsAfter>
}

export interface ChatRenderer {
  readonly source: string
  readonly traits: TemplateTraits
  /** How the model writes calls. */
  readonly family: ToolFamily
  /** Throws a `WireError` when the template refuses the messages. */
  render (body: ChatBody): RenderedChat
}

/**
 * @param source Jinja template, null for ChatML.
 * @throws when the template cannot be parsed.
 */
export function createChatRenderer (source: string | null, tokens: { readonly bos: string, readonly eos: string }): ChatRenderer {
  const text = source ?? chatml
  const template = new Template(text)
  const render = (context: Readonly<Record<string, unknown>>): string =>
    template.render({ bos_token: tokens.bos, eos_token: tokens.eos, ...context })
  const traits = templateTraits(text, render)
  return {
    source: text,
    traits,
    family: familyOf(text),
    render (body) {
      const tools = toolsOf(body)
      try {
        const prompt = render({
          messages: toolsSaid(body.messages, traits.tools ? null : tools).map(message => written(message, traits)),
          add_generation_prompt: body.add_generation_prompt ?? true,
          ...tools === null ? {} : { tools },
          ...body.chat_template_kwargs
        })
        return { prompt, thoughts: thoughtsAfter(prompt, traits) }
      } catch (error) {
        throw badRequest(`The chat template of the model refuses the messages: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
}

/** Tools that the model may call; null for none. Pure. */
export function toolsOf ({ tools, tool_choice: choice }: ChatBody): ChatBody['tools'] & object | null {
  return tools === null || tools === undefined || tools.length === 0 || choice === 'none' ? null : tools
}

/** A template that does not know of tools would leave them out, so the first message says them. */
function toolsSaid (messages: ChatMessage[], tools: ReturnType<typeof toolsOf>): ChatMessage[] {
  if (tools === null) return messages
  const said = `You can call these functions, with a JSON object {"name": ..., "arguments": {...}}:\n${JSON.stringify(tools)}`
  const [first, ...rest] = messages
  return first?.role === 'system' && typeof first.content === 'string'
    ? [{ ...first, content: `${first.content}\n\n${said}` }, ...rest]
    : [{ role: 'system', content: said }, ...messages]
}

/** A message as the template understands it; calls and results that it does not know become text. */
function written (message: ChatMessage, traits: TemplateTraits): Record<string, unknown> {
  const content = textOf(message)
  const { tool_calls: calls, ...plain } = message
  if (message.role === 'tool' && !traits.results) {
    return { role: 'user', content: JSON.stringify({ tool_response: { tool_call_id: message.tool_call_id, name: message.name, content } }) }
  }
  const { tool_call_id: answered } = message
  if (calls === null || calls === undefined || calls.length === 0) {
    return { ...plain, content, ...answered === null || answered === undefined ? {} : { tool_call_id: callId(answered, traits) } }
  }
  if (traits.calls !== null) return { ...message, content, tool_calls: calls.map(call => writtenCall(call, traits)) }
  const said = calls.map(call => JSON.stringify({ name: call.function.name, arguments: objectOf(call.function.arguments) }))
  return { ...plain, content: [...content === '' ? [] : [content], ...said].join('\n') }
}

type ToolCall = (ChatMessage['tool_calls'] & object)[number]

function writtenCall (call: ToolCall, traits: TemplateTraits): object {
  const { name, arguments: args } = call.function
  return {
    ...call,
    ...typeof call.id === 'string' ? { id: callId(call.id, traits) } : {},
    function: { name, arguments: traits.calls === 'object' ? objectOf(args) : args }
  }
}

/** Arguments that are no JSON, as those of an answer that was cut off, stay the text that they are. */
function objectOf (text: unknown): unknown {
  if (typeof text !== 'string') return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** Templates expect text: parts are joined by line breaks, as llama-server does it. */
function textOf ({ content }: ChatMessage): string {
  return Array.isArray(content) ? content.map(part => part.text).join('\n') : content ?? ''
}

import { Template } from '@huggingface/jinja'
import type { ChatBody, ChatMessage } from './requests.js'
import { badRequest } from './wire-error.js'

/** What llama-server falls back to for models without a template. */
const chatml = '{% for message in messages %}{{ \'<|im_start|>\' + message.role + \'\\n\' + message.content + \'<|im_end|>\\n\' }}' +
  '{% endfor %}{% if add_generation_prompt %}{{ \'<|im_start|>assistant\\n\' }}{% endif %}'

export interface ChatRenderer {
  readonly source: string
  /** Prompt text with special tokens spelled out. Throws a `WireError` when the template refuses the messages. */
  render (body: ChatBody): string
}

/**
 * @param source Jinja template, null for ChatML.
 * @throws when the template cannot be parsed.
 */
export function createChatRenderer (source: string | null, tokens: { readonly bos: string, readonly eos: string }): ChatRenderer {
  const text = source ?? chatml
  const template = new Template(text)
  return {
    source: text,
    render (body) {
      try {
        return template.render({
          messages: toolsSaid(body, text).map(plainMessage),
          add_generation_prompt: body.add_generation_prompt ?? true,
          bos_token: tokens.bos,
          eos_token: tokens.eos,
          ...toolsOf(body) === null ? {} : { tools: toolsOf(body) },
          ...body.chat_template_kwargs
        })
      } catch (error) {
        throw badRequest(`The chat template of the model refuses the messages: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
}

function toolsOf ({ tools, tool_choice: choice }: ChatBody): ChatBody['tools'] & object | null {
  return tools === null || tools === undefined || tools.length === 0 || choice === 'none' ? null : tools
}

/** A template that does not know of tools would leave them out, so the first message says them. */
function toolsSaid (body: ChatBody, template: string): ChatMessage[] {
  const tools = toolsOf(body)
  if (tools === null || /\btools\b/.test(template)) return body.messages
  const said = `You can call these functions, with a JSON object {"name": ..., "arguments": {...}}:\n${JSON.stringify(tools)}`
  const [first, ...rest] = body.messages
  return first?.role === 'system' && typeof first.content === 'string'
    ? [{ ...first, content: `${first.content}\n\n${said}` }, ...rest]
    : [{ role: 'system', content: said }, ...body.messages]
}

/** Templates expect text: parts are joined by line breaks, as llama-server does it. */
function plainMessage (message: ChatMessage): Record<string, unknown> {
  const { content } = message
  return { ...message, content: Array.isArray(content) ? content.map(part => part.text).join('\n') : content ?? '' }
}
